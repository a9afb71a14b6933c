"""What a transformed function may not do to tensors of the world outside: write to those that it captures, and leave
tensors with a history of its own behind.

A graph is made of plain tensors (levels.py), so nothing about a tensor says whether it was made inside of a transform.
Both are therefore asked where the answer is at hand, and nothing is paid for them elsewhere.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ..autograd.accumulate_grad import AccumulateGrad
from ..autograd.forward_grad import has_fw_grad
from ..core.state import local
from ..core.where import Location, user_location
from ..tensor import Tensor
from ..utils._pytree import tree_flatten
from .reaching import captured_tensors

# ------------------------------------------------------------------------------------------------------------- captured


class Guard:
    """Asked before every write in place (`mutation_guard` of the thread's state) while `function` is transformed.

    What it captures (reaching.py) is looked for at the first write to a tensor that has no history from inside.
    """

    __slots__ = ("arguments", "captured", "first", "function", "outer", "replaced")

    def __init__(self, function: Any, outer: Any, first: int) -> None:
        self.function: Any = function
        self.outer: Any = outer
        #: The number of the first node that is made inside.
        self.first: int = first
        #: What `function` is called with.
        self.arguments: Any = ()
        self.captured: dict[int, Tensor] | None = None
        #: Tensors that stand in a module while a `functional_call` runs, by identity.
        self.replaced: dict[int, Any] = {}

    def lend(self, tensors: Collection[Any]) -> None:
        """A `functional_call` puts these into a module."""
        self.replaced.update({id(tensor): tensor for tensor in tensors})
        if self.outer is not None:
            self.outer.lend(tensors)

    def before_copy(self, tensor: Tensor) -> None:
        """`copy.deepcopy` of what is differentiated would be a constant, and its derivative silently zero."""
        if any(leaf is tensor for leaf in tree_flatten(self.arguments)[0]) and (
            tensor.requires_grad or has_fw_grad(tensor)
        ):
            raise NotImplementedError(
                "Cannot access storage of TensorWrapper: copy.deepcopy() of an argument of "
                f"{getattr(self.function, '__name__', 'the function')}, of shape {list(tensor._memory_.shape)}, which "
                f"is being differentiated ({user_location()}): the copy would not depend on it. Write x.clone(), or "
                "x.detach().clone() if a constant is what is wanted"
            )
        if self.outer is not None:
            self.outer.before_copy(tensor)

    def before_data(self, tensor: Tensor) -> None:
        """``x.data = ...`` of a tensor of the transform: its derivative would be that of what it was."""
        if self._made_inside(tensor) or any(leaf is tensor for leaf in tree_flatten(self.arguments)[0]):
            raise RuntimeError(
                "mutating directly with `.data` inside functorch transform is not allowed: "
                f"{getattr(self.function, '__name__', 'the function')} sets that of a tensor of shape "
                f"{list(tensor._memory_.shape)} at {user_location()}. Use copy_(), or a new tensor"
            )
        if self.outer is not None:
            self.outer.before_data(tensor)

    def before_write(self, tensor: Tensor) -> None:
        meta: Any = tensor._grad_meta_
        base = meta.base if meta is not None and meta.is_view else tensor
        if not self._made_inside(base) and (self._captures(tensor) or self._captures(base)):
            raise RuntimeError(
                "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place "
                "operation that would mutate a captured Tensor. This is not supported; please rewrite the function "
                "being transformed to explicitly accept the mutated Tensor(s) as inputs. "
                f"{getattr(self.function, '__name__', 'The function')} captures a tensor of shape "
                f"{list(base._memory_.shape)} and writes to it at {user_location()}: give it that tensor as an "
                "argument, or write to a clone()"
            )
        if self.outer is not None:
            self.outer.before_write(tensor)

    def _made_inside(self, base: Tensor) -> bool:
        edge = base._edge_
        return edge is not None and edge[0].sequence_nr >= self.first

    def _captures(self, tensor: Tensor) -> bool:
        if self.captured is None:
            found = captured_tensors(self.function, self.replaced)
            for leaf in tree_flatten(self.arguments)[0]:
                found.pop(id(leaf), None)
                while isinstance(leaf, Tensor) and leaf._special_ is not None and leaf._held_:  # type: ignore[attr-defined]
                    leaf = leaf._held_[0]  # type: ignore[attr-defined]
                    found.pop(id(leaf), None)
            self.captured = found
        return id(tensor) in self.captured


# -------------------------------------------------------------------------------------------------------------- escaped


class Escape:
    """Which transform's variable an accumulator, or a tangent, was of."""

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


class EscapedTangent:
    """Where a tangent was that ended with its transform: what `unpack_dual` finds there."""

    __slots__ = ("function", "name", "where")

    def __init__(self, name: str, function: Any) -> None:
        self.name: str = name
        self.function: str = getattr(function, "__name__", "a function")
        self.where: Location | None = user_location(3)

    def error(self, tensor: Tensor) -> RuntimeError:
        return RuntimeError(
            f"a tensor may have escaped from inside a function being transformed: one of shape "
            f"{list(tensor._memory_.shape)} was computed inside of {self.name}({self.function}), in the call at "
            f"{self.where}, and its derivative there is asked for after that call has returned, where there is none. "
            "Return it from the function (has_aux=True), or keep a detach() of it"
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
        meta: Any = tensor._grad_meta_
        reference = None if meta is None else meta.grad_accumulator
        node: Any = None if reference is None else reference()
        if node is not None and node.__class__ is AccumulateGrad:
            where = where or user_location(2)
            node.metadata["escaped"] = Escape(name, function, tensor._memory_.shape, where)
            node.__class__ = EscapedVariable


def guarded(function: Any) -> Guard:
    """The guard for a transform of `function` that begins."""
    state = local.state
    return Guard(function, state.mutation_guard, state.sequence_nr)
