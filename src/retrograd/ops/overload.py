"""Operators as objects: ``torch.ops.aten.mm.default``.

Whoever watches operators (dispatch modes, checkpoint policies) calls them by torch's names.  An operator of the table
that exists in several forms has a function for each (``max`` and ``max_dim``); where torch has several overloads for
what is one function here (``mul.Tensor``, ``mul.Scalar``), they are equal.  Which overloads a function of the table
stands for is in its record (core/records.py); ``signatures/overloads.txt`` says it of the functions that are composed
of others.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any

from ..core.late import operators as ops
from ..core.records import record_of, records
from ..tensor import Tensor
from .signatures import overloads_of_composites


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

    def __init__(self, packet: OpOverloadPacket, overload: str, function: Callable[..., Any]) -> None:
        self.overloadpacket: OpOverloadPacket = packet
        self._overloadname = overload
        self.function: Callable[..., Any] = function

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
        name = self.__name__
        return (_aten_only(name) or getattr(ops, name, None) or getattr(Tensor, name))(*args, **kwargs)

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='aten.{self.__name__}')>"


class _Namespace:
    """``torch.ops.aten``: the operators by name, looked up when they are asked for."""

    def __getattr__(self, name: str) -> OpOverloadPacket:
        known = not name.startswith("__") and (
            hasattr(ops, name)
            or hasattr(Tensor, name)
            or _aten_only(name) is not None
            or name in _operators()
        )
        if not known:
            raise AttributeError(f"'_OpNamespace' 'aten' object has no attribute '{name}'")
        packet = OpOverloadPacket(name)
        setattr(self, name, packet)
        return packet


aten: _Namespace = _Namespace()


@cache
def _operators() -> dict[str, dict[str, Callable[..., Any]]]:
    """The functions of the table by torch's name and overload."""
    found: dict[str, dict[str, Callable[..., Any]]] = {}
    for function, record in records().items():
        for name in (record.base, *record.aliases):
            found.setdefault(name, {}).update(dict.fromkeys(record.overloads, function))
    return found


def _aten_only(name: str) -> Callable[..., Any] | None:
    """A function that torch has nowhere else."""
    from . import aten_only, registry  # noqa: F401 (declares them; made of operators)

    return registry.SPACES["aten"].get(name)


def _function_of(base: str, overload: str) -> Callable[..., Any] | None:
    function = _operators().get(base, {}).get(overload)
    if function is None and overload in overloads_of_composites(base):
        function = getattr(ops, base, None) or getattr(Tensor, base, None) or _aten_only(base)
    return function


def overload_of(operator: Callable[..., Any]) -> OpOverload:
    """The object that stands for an operator's function (or for what `with_kernel` made of it).

    >>> import retrograd as torch
    >>> overload_of(torch.exp) is torch.ops.aten.exp.default
    True
    """
    return _overload_of(original(operator))


@cache
def _overload_of(function: Callable[..., Any]) -> OpOverload:
    record = record_of(function)
    name, overload = (function.__name__, "default") if record is None else (record.base, record.overloads[0])
    if _function_of(name, overload) is function:
        return getattr(getattr(aten, name), overload)
    return OpOverload(OpOverloadPacket(name), overload, function)


# ------------------------------------------------------------------------------------------------------------- kernels


def original(operator: Callable[..., Any]) -> Callable[..., Any]:
    """The operator that `with_kernel` was given."""
    return getattr(operator, "__wrapped__", operator)


def with_kernel(
    operator: Callable[..., Any], substitute: Callable[[Callable[..., Any]], Callable[..., Any]]
) -> Callable[..., Any] | None:
    """The operator with ``substitute(kernel)`` in place of its kernel, recording history as the operator does.

    It is the same code in other surroundings: nothing is written to, so other threads see nothing of it.
    None if the operator has no kernel of its own.

    >>> import retrograd as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> loud = with_kernel(torch.exp, lambda kernel: lambda array: kernel(array) * 0 + 7)
    >>> loud(x)
    tensor([7., 7.], grad_fn=<ExpBackward0>)
    """
    record = record_of(operator)
    if record is None or not isinstance(operator, FunctionType):
        return None
    name = f"kernel_{record.kernel}"  # what its wrapper calls it
    surroundings = dict(operator.__globals__)
    surroundings[name] = substitute(surroundings[name])
    result = FunctionType(
        operator.__code__, surroundings, operator.__name__, operator.__defaults__, operator.__closure__
    )
    result.__kwdefaults__ = operator.__kwdefaults__
    result.__wrapped__ = original(operator)  # type: ignore[attr-defined]
    return result
