"""Formula helpers of special functions."""

from __future__ import annotations

import math
from typing import Any


def _over(ops: Any, value: Any, x: Any, limit: float) -> Any:
    # value / x, and `limit` where x is 0, or so small that the value has lost its digits to being denormal.
    zero = ops.lt(ops.abs(x), 1e-36)
    return ops.masked_fill(ops.div(value, ops.masked_fill(x, zero, 1)), zero, limit)


def i1_backward(ops: Any, grad: Any, self: Any, result: Any) -> Any:
    """The slope of `i1` is i0 - i1 / x."""
    return grad * (ops.i0(self) - _over(ops, result, self, 0.5))


def i1e_backward(ops: Any, grad: Any, self: Any, result: Any) -> Any:
    """The slope of `i1e` is i0e - i1e * (sign + 1 / x)."""
    return grad * (ops.special_i0e(self) - ops.sgn(self) * result - _over(ops, result, self, 0.5))


def logit_backward(ops: Any, grad: Any, self: Any, eps: float | None) -> Any:
    """1 / (x (1 - x)) within the bounds; outside, 0 where eps clamps, else NaN."""
    slope = grad / ((self + 0) * (1 - self))  # at -0 as at 0
    if eps is None:
        return ops.masked_fill(slope, (self < 0) | (self > 1), math.nan)
    return ops.masked_fill(slope, (self < eps) | (self > 1 - eps), 0)


def xlogy_backward_self(ops: Any, grad: Any, self: Any, other: Any) -> Any:
    """log(other), but 0 where self is 0 and other has no logarithm."""
    return _zero_without(ops, ops.xlogy(grad, other), self, other, 0)


def xlog1py_backward_self(ops: Any, grad: Any, self: Any, other: Any) -> Any:
    """log(1 + other), but 0 where self is 0 and that does not exist."""
    return _zero_without(ops, ops.special_xlog1py(grad, other), self, other, -1)


def _zero_without(ops: Any, slope: Any, self: Any, other: Any, least: int) -> Any:
    # `other` may be a number.
    none = other <= least
    if none is False:
        return slope
    return ops.masked_fill(slope, ops.eq(self, 0) if none is True else none & ops.eq(self, 0), 0)


def igamma_slope(ops: Any, self: Any, other: Any) -> Any:
    """The derivative of `igamma` by its second argument: the density of the gamma distribution."""
    return ops.exp(ops.log(other) * (self - 1) - other - ops.lgamma(self))


def erfinv_backward(ops: Any, grad: Any, self: Any) -> Any:
    """From `self`, as torch has it: the result may be overwritten."""
    inverse = ops.erfinv(self)
    return grad * (ops.exp(inverse * inverse) * (math.sqrt(math.pi) / 2))


def mvlgamma_backward(ops: Any, grad: Any, self: Any, p: int) -> Any:
    """The sum of the slopes of the `p` gamma functions."""
    slope = ops.digamma(self + 0.0)  # which makes 0 of -0
    for i in range(1, p):
        slope = slope + ops.digamma(self - i / 2)
    return grad * slope
