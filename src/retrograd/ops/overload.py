"""Operators as objects: ``torch.ops.aten.mm.default``.

Whoever watches operators (dispatch modes, checkpoint policies) calls them by torch's names.  An operator of the table
that exists in several forms has a function for each (``max`` and ``max_dim``); where torch has several overloads for
what is one function here (``mul.Tensor``, ``mul.Scalar``), they are equal.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any

#: Overloads that torch has for arguments of different kinds, where here one function takes them all.
_BY_ARGUMENTS = frozenset({
    "default", "Tensor", "Scalar", "Tensor_Tensor", "Tensor_Scalar", "Scalar_Tensor", "Tensor_mode", "Scalar_mode",
    "dim", "int", "dim_IntList", "dim_int", "correction", "dimname", "self", "value", "src", "dims", "dtype",
})  # fmt: skip


class OpOverload:
    """One operator; calling it runs it.

    >>> import retrograd as torch
    >>> torch.ops.aten.exp.default(torch.zeros(2))
    tensor([1., 1.])
    >>> torch.ops.aten.exp.default.__name__
    'exp.default'
    """

    __slots__ = ("_overloadname", "function", "overloadpacket")

    namespace = "aten"

    def __init__(self, packet: OpOverloadPacket, overload: str, function: Callable) -> None:
        self.overloadpacket = packet
        self._overloadname = overload
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    @property
    def __name__(self) -> str:
        return f"{self.overloadpacket.__name__}.{self._overloadname}"

    def name(self) -> str:
        """``'aten::exp'``."""
        suffix = "" if self._overloadname == "default" else f".{self._overloadname}"
        return f"aten::{self.overloadpacket.__name__}{suffix}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpOverload) and original(other.function) is original(self.function)

    def __hash__(self) -> int:
        return hash(original(self.function))

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='aten.{self.overloadpacket.__name__}', overload='{self._overloadname}')>"


class OpOverloadPacket:
    """All forms of an operator: ``torch.ops.aten.max`` has ``.default`` and ``.dim``."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, overload: str) -> OpOverload:
        function = None if overload.startswith("__") else _function_of(self.__name__, overload)
        if function is None:
            raise AttributeError(f"The underlying op of 'aten.{self.__name__}' has no overload name '{overload}'")
        result = OpOverload(self, overload, function)
        setattr(self, overload, result)
        return result

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from . import namespace as ops

        return (_aten_only(self.__name__) or getattr(ops, self.__name__))(*args, **kwargs)

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='aten.{self.__name__}')>"


class _Namespace:
    """``torch.ops.aten``: the operators by name, looked up when they are asked for."""

    def __getattr__(self, name: str) -> OpOverloadPacket:
        from ..tensor import Tensor
        from . import namespace as ops

        known = not name.startswith("__") and (
            hasattr(ops, name)
            or hasattr(Tensor, name)
            or _aten_only(name) is not None
            or any(f.startswith(f"{name}_") for f in _operators())
        )
        if not known:
            raise AttributeError(f"'_OpNamespace' 'aten' object has no attribute '{name}'")
        packet = OpOverloadPacket(name)
        setattr(self, name, packet)
        return packet


aten = _Namespace()


@cache
def _operators() -> dict[str, Callable]:
    """The generated operators by the name of their function."""
    from .._generated import functions

    return {
        name: f
        for name, f in vars(functions).items()
        if isinstance(f, FunctionType) and f.__module__ == functions.__spec__.name  # it has no __name__, see quiet.py
    }


def _aten_only(name: str) -> Callable | None:
    """A function that torch has nowhere else."""
    from . import aten_only

    return aten_only.FUNCTIONS.get(name)


def _function_of(base: str, overload: str) -> Callable | None:
    from ..tensor import Tensor
    from . import namespace as ops

    operators = _operators()
    function = operators.get(f"{base}_{overload}")
    if function is None and overload in _BY_ARGUMENTS:
        function = operators.get(base) or getattr(ops, base, None) or getattr(Tensor, base, None) or _aten_only(base)
    return function


def overload_of(operator: Callable) -> OpOverload:
    """The object that stands for an operator's function (or for what `with_kernel` made of it).

    >>> import retrograd as torch
    >>> overload_of(torch.exp) is torch.ops.aten.exp.default
    True
    """
    return _overload_of(original(operator))


@cache
def _overload_of(function: Callable) -> OpOverload:
    name = function.__name__
    inplace = "_" if name.endswith("_") else ""
    parts = name.removesuffix("_").split("_")
    # max_dim is `max.dim`, pow_Tensor_Scalar is `pow.Tensor_Scalar`.
    for end in range(1, len(parts)):
        overload = "_".join(parts[end:])
        if overload in _BY_ARGUMENTS:
            return getattr(getattr(aten, "_".join(parts[:end]) + inplace), overload)
    code = getattr(function, "__code__", None)
    takes_numbers = code is not None and "number" in code.co_names and "other" in code.co_varnames[: code.co_argcount]
    overload = "Tensor" if takes_numbers else "default"
    if _function_of(name, overload) is function:
        return getattr(getattr(aten, name), overload)
    return OpOverload(OpOverloadPacket(name), overload, function)


# ------------------------------------------------------------------------------------------------------------- kernels


def original(operator: Callable) -> Callable:
    """The operator that `with_kernel` was given."""
    return getattr(operator, "__wrapped__", operator)


def kernel_name(operator: Callable) -> str | None:
    """What an operator's wrapper calls its kernel; None if it is not a wrapper around one kernel."""
    code = getattr(operator, "__code__", None)
    names = [] if code is None else [name for name in code.co_names if name.startswith("kernel_")]
    return names[0] if len(names) == 1 else None


def with_kernel(operator: Callable, substitute: Callable[[Callable], Callable]) -> Callable | None:
    """The operator with ``substitute(kernel)`` in place of its kernel, recording history as the operator does.

    It is the same code in other surroundings: nothing is written to, so other threads see nothing of it.
    None if the operator has no kernel of its own.

    >>> import retrograd as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> loud = with_kernel(torch.exp, lambda kernel: lambda array: kernel(array) * 0 + 7)
    >>> loud(x)
    tensor([7., 7.], grad_fn=<ExpBackward0>)
    """
    name = kernel_name(operator)
    if name is None or not isinstance(operator, FunctionType):
        return None
    surroundings = dict(operator.__globals__)
    surroundings[name] = substitute(surroundings[name])
    result = FunctionType(
        operator.__code__, surroundings, operator.__name__, operator.__defaults__, operator.__closure__
    )
    result.__kwdefaults__ = operator.__kwdefaults__
    result.__wrapped__ = original(operator)  # type: ignore[attr-defined]
    return result
