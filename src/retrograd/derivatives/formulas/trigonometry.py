"""Formula helpers of trigonometric and hyperbolic functions."""

from __future__ import annotations

import math
from typing import Any

from .shared import _is_complex


def acosh_slope(ops: Any, self: Any) -> Any:
    """``1 / sqrt(self^2 - 1)``; for complex numbers as a product of roots, which has the branch cuts of acosh."""
    if _is_complex(self):
        return ops.rsqrt(self - 1) * ops.rsqrt(self + 1)
    return ops.rsqrt(self * self - 1)


def over_square_sum(ops: Any, numerator: Any, self: Any, other: Any) -> Any:
    """``numerator / (self^2 + other^2)``, and 0 where both are 0."""
    total = self * self + other * other
    zero = total == 0
    quotient = numerator / ops.where(zero, ops.ones_like(total), total)
    return ops.where(zero, ops.zeros_like(quotient), quotient)


def sinc_backward(ops: Any, grad: Any, self: Any) -> Any:
    """d/dx sin(pi x) / (pi x), 0 at 0."""
    scaled = self * math.pi
    square = scaled * scaled
    # Near 0 the difference of two nearly equal numbers over a square that may be 0: the series instead.
    near = ops.abs(square) < 1e-3
    series = scaled * (square * (1 / 30 - square / 840) - 1 / 3)
    safe = ops.where(near, ops.ones_like(scaled), scaled)
    slope = (safe * ops.cos(safe) - ops.sin(safe)) / (safe * safe)
    return grad * (ops.where(near, series, slope) * math.pi).conjugate()
