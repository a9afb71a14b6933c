"""Formula helpers of what numbers are made of."""

from __future__ import annotations

from typing import Any

from .shared import as_mask


def isfinite_mask(ops: Any, self: Any) -> Any:
    """1 where a number passes nan_to_num unchanged."""
    return as_mask(ops, ops.isfinite(self), self)


def copysign_backward(ops: Any, grad: Any, self: Any, result: Any) -> Any:
    """1 where the sign was kept, -1 where it was turned, 0 at 0."""
    zero = self == 0
    ratio = result / ops.where(zero, ops.ones_like(self), self)
    return grad * ops.where(zero, ops.zeros_like(ratio), ratio)
