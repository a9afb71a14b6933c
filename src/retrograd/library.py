"""``torch.library``: operators that programs define.

>>> import retrograd as torch
>>> @torch.library.custom_op("mine::double", mutates_args=())
... def double(x: torch.Tensor) -> torch.Tensor:
...     return x * 2
>>> double.register_autograd(lambda ctx, grad: grad * 2)
>>> x = torch.ones(2, requires_grad=True)
>>> torch.ops.mine.double(x).sum().backward()
>>> x.grad
tensor([2., 2.])

An operator is a function with a formula for its gradient; there are no compilers here that have to know more of it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from . import ops
from .autograd.function import Function
from .autograd.grad_mode import no_grad

__all__ = ["CustomOpDef", "Library", "custom_op", "register_autograd", "register_fake", "register_kernel", "triton_op"]

#: "namespace::name" -> the operator.
_operators: dict[str, CustomOpDef] = {}


class _Space:
    """``torch.ops.NAMESPACE`` of operators that programs define."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, name: str) -> Any:
        found = _operators.get(f"{self.__name__}::{name}")
        if found is None:
            raise AttributeError(f"'_OpNamespace' '{self.__name__}' object has no attribute '{name}'")
        return found


class CustomOpDef:
    """An operator that a program has defined; it is called like the function that it was made of."""

    def __init__(self, namespace: str, name: str, fn: Callable[..., Any], mutates_args: Iterable[str]) -> None:
        self._namespace, self._name, self._fn = namespace, name, fn
        self._signature = inspect.signature(fn)
        self.__name__ = self.__qualname__ = name
        self.__doc__ = fn.__doc__
        self._kernel = fn
        self._backward: Callable[..., Any] | None = None
        self._setup_context: Callable[..., Any] | None = None
        mutated = list(self._signature.parameters) if mutates_args == "unknown" else list(mutates_args)
        unknown = [argument for argument in mutated if argument not in self._signature.parameters]
        if unknown:
            raise ValueError(f"mutates_args: {self._qualname} has no argument {unknown[0]!r}")
        self._mutated = mutated

    @property
    def _qualname(self) -> str:
        return f"{self._namespace}::{self._name}"

    @property
    def default(self) -> CustomOpDef:
        """Its one form."""
        return self

    def register_kernel(self, device_types: Any, fn: Callable[..., Any] | None = None, /) -> Any:
        """What computes it on some kinds of devices: a function for the CPU takes the place of the first one."""
        kinds = [device_types] if isinstance(device_types, str) or device_types is None else list(device_types)

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            if None in kinds or "cpu" in kinds:
                self._kernel = function
            return function

        return register if fn is None else register(fn)

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """What gives the shape of the result to compilers, of which there is none here."""
        return fn

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """The formula: ``backward(ctx, *grads)`` returns a gradient for each argument;
        ``setup_context(ctx, inputs, output)`` keeps what it needs."""
        if self._mutated:
            raise RuntimeError(f"Cannot register autograd formula for an operator that writes to its arguments: {self}")
        self._backward, self._setup_context = backward, setup_context

    def register_vmap(self, func: Any = None, /) -> NoReturn:
        """How it is batched: refused, give it a batch dimension."""
        raise RuntimeError(f"{self._qualname}: operators of programs are not batched here")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        inputs = tuple(bound.arguments.values())
        return self._kernel(*inputs) if self._mutated else _CustomOp.apply(self, *inputs)

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"


class _CustomOp(Function):
    """Runs the kernel of an operator out of autograd's sight, and its formula on the way back."""

    @staticmethod
    def forward(ctx: Any, operator: CustomOpDef, *inputs: Any) -> Any:
        with no_grad():
            output = operator._kernel(*inputs)
        ctx.operator = operator
        ctx.count = len(inputs)
        if operator._setup_context is not None:
            operator._setup_context(ctx, inputs, output)
        return output

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        operator = ctx.operator
        if operator._backward is None:
            raise RuntimeError(
                f"{operator._qualname} has no formula for its gradient: give it one with register_autograd()"
            )
        found = operator._backward(ctx, *grads)
        found = found if isinstance(found, tuple) else (found,)
        return (None, *found, *([None] * (ctx.count - len(found))))


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: Any,
    device_types: Any = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Make a function an operator ``namespace::name``, which is then ``torch.ops.namespace.name`` as well.

    `mutates_args` names the arguments that it writes to. With `device_types`, it is the kernel of these alone.
    """
    namespace, colons, own = name.partition("::")
    if not colons or not namespace.isidentifier() or not own.isidentifier():
        raise ValueError(f"custom_op(name): expected a name such as 'mine::double', but got {name!r}")
    if not isinstance(getattr(ops, namespace, _Space(namespace)), _Space):
        raise ValueError(f"custom_op(name): torch.ops.{namespace} is taken, call the namespace of {name!r} otherwise")

    def define(function: Callable[..., Any]) -> CustomOpDef:
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise ValueError(f"custom_op: an operator's arguments have names: *{parameter.name} of {name} has none")
            if schema is None and parameter.annotation is parameter.empty:
                raise ValueError(
                    f"infer_schema(func): Parameter {parameter.name} must have a type annotation. ({name})"
                )
        operator = CustomOpDef(namespace, own, function, mutates_args)
        _operators[name] = operator
        setattr(ops, namespace, _Space(namespace))
        return operator

    return define if fn is None else define(fn)


triton_op = custom_op


def _find(op: Any) -> CustomOpDef:
    found = op if isinstance(op, CustomOpDef) else _operators.get(str(op))
    if found is None:
        raise RuntimeError(f"operator {op} does not exist: torch.library.custom_op() defines one")
    return found


def register_autograd(
    op: Any, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None, lib: Any = None
) -> None:
    """The formula of an operator: see `CustomOpDef.register_autograd`."""
    _find(op).register_autograd(backward, setup_context=setup_context)


def register_fake(op: Any, func: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """What gives the shape of an operator's result to compilers, of which there is none here."""
    operator = _find(op)
    return operator.register_fake if func is None else operator.register_fake(func)


def register_kernel(op: Any, device_types: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None) -> Any:
    """What computes an operator on some kinds of devices."""
    return _find(op).register_kernel(device_types, func)


class Library:
    """Operators by their schemas: refused, `custom_op` defines one from a function."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError("torch.library.Library: define an operator from a function, with torch.library.custom_op()")
