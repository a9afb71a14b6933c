"""Formula helpers of quotients and signs."""

from __future__ import annotations

from typing import Any

from .shared import _is_complex, real_part


def floored_quotient(ops: Any, self: Any, other: Any) -> Any:
    """``self / other`` rounded down: how many times remainder subtracts `other`."""
    return ops.div(self, other, rounding_mode="floor")


def truncated_quotient(ops: Any, self: Any, other: Any) -> Any:
    """``self / other`` rounded toward zero: what fmod subtracts `other` that many times."""
    return ops.trunc(self / other)


def real_product(ops: Any, a: Any, b: Any) -> Any:
    """Re(a * conj(b)): the change of a real function of a complex number."""
    return real_part(ops, a * b.conjugate())


def sgn_backward(ops: Any, grad: Any, self: Any, result: Any) -> Any:
    """d/dself of ``self / |self|``: only the part of `grad` at right angles to `self` counts; 0 at 0 and for reals."""
    if not _is_complex(self):
        return ops.zeros_like(grad)
    size = ops.abs(self)
    zero = size == 0
    across = grad - real_part(ops, grad * result.conjugate()) * result
    return ops.where(zero, ops.zeros_like(across), across / ops.where(zero, ops.ones_like(size), size))


def conj_of(ops: Any, value: Any) -> Any:
    """The conjugate of an expression that may be a number."""
    return value.conjugate()


def no_derivative(ops: Any, grad: Any, name: str) -> Any:
    """The same for an operator that torch's table of derivatives does not have at all: its error is another."""
    raise RuntimeError(
        f"derivative for aten::{name} is not implemented: detach its result, or compute it under no_grad()"
    )
