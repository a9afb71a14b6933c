"""Formula helpers of powers."""

from __future__ import annotations

import math
from typing import Any

from .shared import _is_complex


def pow_backward(ops: Any, grad: Any, self: Any, exponent: Any) -> Any:
    """d/dself of ``self ** exponent`` for a number: nothing at exponent 0, where self ** -1 may be infinite."""
    if exponent == 0:
        return ops.zeros_like(grad)
    slope = self + self if exponent == 2 else self ** (exponent - 1) * exponent
    return grad * (slope.conjugate() if _is_complex(slope) else slope)


def pow_backward_self(ops: Any, grad: Any, self: Any, exponent: Any) -> Any:
    """The same where the exponent is a tensor: 0 where it is 0."""
    result = grad * (exponent * ops.pow(self, exponent - 1)).conjugate()
    return ops.where(exponent == 0, ops.zeros_like(result), result)


def pow_backward_exponent(ops: Any, grad: Any, self: Any, exponent: Any, result: Any) -> Any:
    """d/dexponent of ``self ** exponent``: ``result * log(self)``, and 0 where self is 0 and the result stays 0."""
    if isinstance(self, (int, float, complex)):
        if self == 0:
            # 0 ** y is constant where the real part of y is not negative (and infinite or undefined elsewhere).
            derivative = grad * (result * -math.inf).conjugate()
            return ops.where(_constant_power_of_zero(ops, exponent), ops.zeros_like(derivative), derivative)
        if isinstance(self, complex) or (self < 0 and _is_complex(exponent)):
            import cmath

            return grad * (result * cmath.log(self)).conjugate()
        logarithm = math.log(self) if self > 0 else math.nan
        return grad * (result * logarithm).conjugate()
    zero = (self == 0) & _constant_power_of_zero(ops, exponent)
    # Ones of the result's dtype, so that an integer or less precise base is widened before the logarithm.
    derivative = grad * (result * ops.log(ops.where(zero, ops.ones_like(result), self))).conjugate()
    return ops.where(zero, ops.zeros_like(derivative), derivative)


def _constant_power_of_zero(ops: Any, exponent: Any) -> Any:
    """Where ``0 ** y`` is the same for all y nearby, or on one side: y >= 0, of complex ones Re y > 0 and y == 0."""
    if not _is_complex(exponent):
        return exponent >= 0
    return (ops.real(exponent) > 0) | (exponent == 0)
