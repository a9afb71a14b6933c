"""Operators that torch has for its own tests: that an operator can have another derivative for nested tensors.

Both give a copy.  Their derivatives are wrong on purpose, each in its own way, so that a test sees which one was used.
"""

from __future__ import annotations

from typing import Any

from ..autograd.function import Function
from ..core.late import operators as ops
from ..tensor import Tensor
from ._internal.base import NestedBase


class _Plain(Function):
    """Of plain tensors: one more than the gradient."""

    @staticmethod
    def forward(input: Tensor) -> Tensor:  # type: ignore[override]
        return ops.clone(input)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:  # type: ignore[override]
        return grad + 1

    @staticmethod
    def jvp(ctx: Any, tangent: Any) -> Any:  # type: ignore[override]
        return ops.clone(tangent)


class _Nested(Function):
    """Of nested ones: its square, and with `b` the gradient more."""

    @staticmethod
    def forward(ctx: Any, input: Tensor, b: bool) -> Tensor:  # type: ignore[override]
        ctx.b = b
        return ops.clone(input)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:  # type: ignore[override]
        return grad * grad + grad if ctx.b else grad * grad, None


def _test_autograd_multiple_dispatch(input: Tensor, b: bool | None = None) -> Tensor:
    """A copy; with `b`, of plain tensors one with the right derivative."""
    if isinstance(input, NestedBase):
        return _Nested.apply(input, b is not None)
    return _Plain.apply(input) if b is None else ops.clone(input)


def _test_autograd_multiple_dispatch_view(input: Tensor) -> Tensor:
    """A view of a tensor as a vector."""
    return ops.view(input, (-1,))


def _test_autograd_multiple_dispatch_view_copy(input: Tensor) -> Tensor:
    """A copy of it."""
    return ops.clone(_test_autograd_multiple_dispatch_view(input))
