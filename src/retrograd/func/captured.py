"""What a transformed function may not do to tensors of the world outside: write to those that it captures, and leave
tensors with a history of its own behind.

A graph is made of plain tensors (levels.py), so nothing about a tensor says whether it was made inside of a transform.
Both are therefore asked where the answer is at hand, and nothing is paid for them elsewhere.
"""

from __future__ import annotations

import dis
import functools
from collections.abc import Sequence
from types import CodeType, FunctionType, MethodType
from typing import Any

from ..autograd.accumulate_grad import AccumulateGrad
from ..core.state import local
from ..core.where import Location, is_user_code, user_location
from ..tensor import Tensor

# ------------------------------------------------------------------------------------------------------------- captured


class Guard:
    """Asked before every write in place (`mutation_guard` of the thread's state) while `function` is transformed.

    What a function captures is what it and the functions that it calls read from closures, global variables and default
    values; it is looked for at the first write.
    """

    __slots__ = ("captured", "function", "outer", "written")

    def __init__(self, function: Any, outer: Any) -> None:
        self.function: Any = function
        self.outer: Any = outer
        self.captured: dict[int, Tensor] | None = None
        #: Tensors that had no history when they were written to.
        self.written: list[Tensor] = []

    def before_write(self, tensor: Tensor) -> None:
        if self.captured is None:
            self.captured = captured_tensors(self.function)
        meta: Any = tensor._grad_meta
        base = meta.base if meta is not None and meta.is_view else tensor
        if id(tensor) in self.captured or id(base) in self.captured:
            raise RuntimeError(
                "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place "
                "operation that would mutate a captured Tensor. This is not supported; please rewrite the function "
                "being transformed to explicitly accept the mutated Tensor(s) as inputs. "
                f"{getattr(self.function, '__name__', 'The function')} captures a tensor of shape "
                f"{list(base._memory.shape)} and writes to it at {user_location()}: give it that tensor as an "
                "argument, or write to a clone()"
            )
        if tensor._edge is None:
            self.written.append(tensor)
        if self.outer is not None:
            self.outer.before_write(tensor)

    def release(self, arguments: Sequence[Tensor], outputs: list[Tensor]) -> None:
        """The values that were written to `arguments` stay in them; their history ends with the transform, but for
        `outputs`."""
        if self.written:
            ours = {id(tensor) for tensor in arguments}
            for tensor in self.written:
                if id(tensor) in ours and tensor._edge is not None and not tensor._is_view():
                    edge = tensor._edge
                    for position, output in enumerate(outputs):
                        if output is tensor:
                            outputs[position] = tensor.detach()
                            outputs[position]._edge = edge
                    tensor.detach_()


def captured_tensors(function: Any) -> dict[int, Tensor]:
    """The tensors that a function reads from outside, by their identity."""
    found: dict[int, Tensor] = {}
    seen: set[int] = set()
    todo = [function]
    while todo:
        one = todo.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, Tensor):
            found[id(one)] = one
        elif isinstance(one, FunctionType):
            todo += _read_by(one)
        elif isinstance(one, functools.partial):
            todo += (one.func, *one.args, *one.keywords.values())
        elif isinstance(one, MethodType):
            todo.append(one.__func__)
        elif one.__class__ in (list, tuple):
            todo += one
        elif one.__class__ is dict:
            todo += one.values()
    return found


#: What may be a tensor, or lead to one.
_LEADING = (Tensor, FunctionType, functools.partial, MethodType, list, tuple, dict)


def _read_by(function: FunctionType) -> list[Any]:
    """What a function reads and does not set: the contents of its closure, global variables, default values."""
    found: list[tuple[str, Any]] = []
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found.append((name, cell.cell_contents))
        except ValueError:  # not set yet
            continue
    codes = [function.__code__]
    for code in codes:
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    if is_user_code(function.__code__):
        known = function.__globals__
        found += [(name, known[name]) for code in codes for name in code.co_names if name in known]
    found = [(name, value) for name, value in found if isinstance(value, _LEADING)]
    if any(not isinstance(value, FunctionType) for _, value in found):
        set_here = {
            instruction.argval
            for code in codes
            for instruction in dis.get_instructions(code)
            if instruction.opname in ("STORE_DEREF", "STORE_GLOBAL")
        }
        found = [(name, value) for name, value in found if name not in set_here]
    defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    return [value for _, value in found] + [value for value in defaults if isinstance(value, _LEADING)]


# -------------------------------------------------------------------------------------------------------------- escaped


class Escape:
    """Which transform's variable an accumulator was of."""

    __slots__ = ("function", "name", "shape", "where")

    def __init__(self, name: str, function: Any, shape: tuple[int, ...], where: Location | None) -> None:
        self.name: str = name
        self.function: str = getattr(function, "__name__", "a function")
        self.shape: tuple[int, ...] = shape
        self.where: Location | None = where

    def error(self) -> RuntimeError:
        return RuntimeError(
            f"a tensor may have escaped from inside a function being transformed: it was computed from the argument of "
            f"shape {list(self.shape)} that {self.name}({self.function}) differentiated, in the call at {self.where}, "
            "and a derivative of it is asked for after that call has returned, where there is no such argument. Return "
            "it from the function (has_aux=True), or keep a detach() of it"
        )


class EscapedVariable(AccumulateGrad):
    """The accumulator of a transform's variable that has outlived the transform: its metadata has the `Escape`."""

    __slots__ = ()

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"

    def apply(self, edges: tuple[Any, ...], grads: Sequence[Any]) -> tuple[Any, ...]:
        raise self.escaped()

    apply_tensors = apply

    def escaped(self) -> RuntimeError:
        """The error for whoever comes here."""
        return self.metadata["escaped"].error()


def close(variables: Sequence[Tensor], name: str, function: Any) -> None:
    """A transform has returned, and nothing that it gave leads to its `variables`: what does has escaped."""
    where = None
    for tensor in variables:
        meta: Any = tensor._grad_meta
        reference = None if meta is None else meta.grad_accumulator
        node: Any = None if reference is None else reference()
        if node is not None and node.__class__ is AccumulateGrad:
            where = where or user_location(2)
            node.metadata["escaped"] = Escape(name, function, tensor._memory.shape, where)
            node.__class__ = EscapedVariable


def guarded(function: Any) -> Guard:
    """The guard for a transform of `function` that begins."""
    return Guard(function, local.state.mutation_guard)
