"""Formula helpers of special functions."""

from __future__ import annotations

import math
from typing import Any


def _over(ops: Any, value: Any, x: Any, limit: float) -> Any:
    # value / x, and `limit` where x is 0.
    zero = ops.eq(x, 0)
    return ops.masked_fill(ops.div(value, ops.masked_fill(x, zero, 1)), zero, limit)


def i1_backward(ops: Any, grad: Any, self: Any, result: Any) -> Any:
    """The slope of `i1` is i0 - i1 / x."""
    return grad * (ops.i0(self) - _over(ops, result, self, 0.5))


def i1e_backward(ops: Any, grad: Any, self: Any, result: Any) -> Any:
    """The slope of `i1e` is i0e - i1e * (sign + 1 / x)."""
    return grad * (ops.special_i0e(self) - ops.sgn(self) * result - _over(ops, result, self, 0.5))


def logit_backward(ops: Any, grad: Any, self: Any, eps: float | None) -> Any:
    """1 / (x (1 - x)) within the bounds; outside, 0 where eps clamps, else NaN."""
    slope = grad / (self * (1 - self))
    if eps is None:
        return ops.masked_fill(slope, (self < 0) | (self > 1), math.nan)
    return ops.masked_fill(slope, (self < eps) | (self > 1 - eps), 0)


def xlogy_backward_self(ops: Any, grad: Any, self: Any, other: Any) -> Any:
    """log(other), but 0 where self is 0 and other has no logarithm."""
    return grad * _log_or_zero(ops, self, other, ops.log)


def xlog1py_backward_self(ops: Any, grad: Any, self: Any, other: Any) -> Any:
    """log(1 + other), but 0 where self is 0 and that does not exist."""
    return grad * _log_or_zero(ops, self, other, ops.log1p, -1)


def _log_or_zero(ops: Any, self: Any, other: Any, log: Any, least: int = 0) -> Any:
    # Either may be a number, whose logarithm Python refuses at 0.
    if isinstance(other, (int, float)):
        if other <= least:
            zero = ops.zeros_like(self)
            outside = -math.inf if other == least else math.nan
            return ops.masked_fill(zero, ops.ne(self, 0), outside)
        return math.log(other) if least == 0 else math.log1p(other)
    none = other <= least
    return ops.masked_fill(log(other), none & ops.eq(self, 0) if hasattr(self, "shape") else none & (self == 0), 0)


def igamma_slope(ops: Any, self: Any, other: Any) -> Any:
    """The derivative of `igamma` by its second argument: the density of the gamma distribution."""
    return ops.exp(ops.log(other) * (self - 1) - other - ops.lgamma(self))
