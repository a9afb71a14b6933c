"""Formula helpers of extremes of two, and of bounds."""

from __future__ import annotations

from typing import Any

from ... import kernels
from .shared import as_mask


def extreme_share(ops: Any, grad: Any, equal: Any, lost: Any) -> Any:
    """What an operand of maximum or minimum gets: half where both are equal, nothing where the other one won."""
    return ops.where(lost, ops.zeros_like(grad), ops.where(equal, grad * 0.5, grad))


def first_is_extreme(ops: Any, first: Any, other: Any) -> Any:
    """fmax and fmin: the first operand wins ties, and a NaN loses."""
    return as_mask(ops, first | ops.isnan(other), other)


def clamp_backward(ops: Any, grad: Any, self: Any, min: Any, max: Any) -> Any:
    """The gradient passes where the value lies within the limits, limits included; a NaN within none."""
    if ops is kernels and (fast := kernels.clamp_large_backward(grad, self, min, max)) is not None:
        return fast
    inside = None
    if min is not None:
        inside = ops.ge(self, _limit(min))
    if max is not None:
        below = ops.le(self, _limit(max))
        inside = below if inside is None else ops.logical_and(inside, below)
    return grad if inside is None else ops.where(inside, grad, 0)


def _limit(limit: Any) -> Any:
    # A complex number without an imaginary part is one too.
    return limit.real if limit.__class__ is complex else limit


def clamp_backward_min(ops: Any, grad: Any, self: Any, min: Any, max: Any) -> Any:
    """The lower limit gets the gradient where it is the result."""
    at_limit = self < min if max is None else (self < min) & (min < max)
    return ops.where(at_limit, grad, ops.zeros_like(grad))


def clamp_backward_max(ops: Any, grad: Any, self: Any, min: Any, max: Any) -> Any:
    """The upper limit gets the gradient where it is the result (it wins over a larger lower one)."""
    at_limit = self > max if min is None else (self > max) | (max < min)
    return ops.where(at_limit, grad, ops.zeros_like(grad))
