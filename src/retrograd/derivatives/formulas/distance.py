"""Formula helpers of norms."""

from __future__ import annotations

import math
from typing import Any

from .reduce import Dims, restore


def norm_backward(ops: Any, grad: Any, self: Any, ord: Any, dim: Dims, keepdim: bool, result: Any) -> Any:
    """The direction of each element times (its size / the norm) ** (ord - 1); the subgradient 0 where that is 0 / 0."""
    p = float(ord)
    grad, norm = (restore(ops, x, self.shape, dim, keepdim) for x in (grad, result))
    if p == 0:
        return ops.zeros_like(self)
    if p == 1:
        return ops.sgn(self) * grad
    if p == 2:
        return grad * ops.masked_fill(self / norm, ops.eq(norm, 0), 0)
    size = ops.abs(self)
    if math.isinf(p):
        # Those of the size of the norm share the gradient.
        chosen = ops.logical_or(ops.eq(size, norm), ops.logical_and(ops.isnan(size), ops.isnan(norm)))
        share = ops.div(grad, ops.sum(chosen, dim, True))
        return ops.mul(ops.sgn(self), ops.mul(chosen, share))
    if p < 1:
        # A negative power of 0 is infinite, and 0 has no direction.
        scaled = ops.sgn(self) * ops.masked_fill(ops.pow(size, p - 1), ops.eq(self, 0), 0)
        return scaled * grad * ops.pow(norm, 1 - p)
    scaled = ops.sgn(self) * ops.pow(size, p - 1) if p < 2 else self * ops.pow(size, p - 2)
    return scaled * ops.masked_fill(grad / ops.pow(norm, p - 1), ops.eq(norm, 0), 0)
