"""Formula helpers of pointwise operators."""

from __future__ import annotations

import math
from typing import Any

# -------------------------------------------------------------------------------------------------------- arithmetic


def maybe_multiply(ops: Any, grad: Any, factor: Any) -> Any:
    """``grad * factor``, without the work when the factor is 1."""
    return grad if factor == 1 else grad * factor


def conj_of(ops: Any, value: Any) -> Any:
    """The conjugate of an expression that may be a number."""
    return value.conjugate()


def not_implemented(ops: Any, grad: Any, name: str) -> Any:
    """For an operator whose result counts as differentiable, but that has no derivative."""
    raise NotImplementedError(
        f"the derivative for '{name}' is not implemented: detach its result, or compute it under no_grad()"
    )


def no_derivative(ops: Any, grad: Any, name: str) -> Any:
    """The same for an operator that torch's table of derivatives does not have at all: its error is another."""
    raise RuntimeError(
        f"derivative for aten::{name} is not implemented: detach its result, or compute it under no_grad()"
    )


def unchanged_by(ops: Any, tangent: Any, result: Any) -> Any:
    """What a tangent adds to that of a result that does not vary with it."""
    return ops.zeros_like(result)


def floored_quotient(ops: Any, self: Any, other: Any) -> Any:
    """``self / other`` rounded down: how many times remainder subtracts `other`."""
    return ops.div(self, other, rounding_mode="floor")


def truncated_quotient(ops: Any, self: Any, other: Any) -> Any:
    """``self / other`` rounded toward zero: what fmod subtracts `other` that many times."""
    return ops.trunc(self / other)


# ------------------------------------------------------------------------------------------------------------ powers


def pow_backward(ops: Any, grad: Any, self: Any, exponent: Any) -> Any:
    """d/dself of ``self ** exponent`` for a number: nothing at exponent 0, where self ** -1 may be infinite."""
    if exponent == 0:
        return ops.zeros_like(grad)
    return grad * (self ** (exponent - 1) * exponent).conjugate()


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


# ------------------------------------------------------------------------------------------------- complex numbers


def _is_complex(value: Any) -> bool:
    """Is an array or Tensor complex? Asked in both namespaces."""
    return getattr(value, "_data", value).dtype.kind == "c"


def real_part(ops: Any, grad: Any) -> Any:
    """The real part of what may be real already."""
    return ops.real(grad) if _is_complex(grad) else grad


def imag_part(ops: Any, grad: Any) -> Any:
    """The imaginary part of what may be real."""
    return ops.imag(grad) if _is_complex(grad) else ops.zeros_like(grad)


def real_product(ops: Any, a: Any, b: Any) -> Any:
    """Re(a * conj(b)): the change of a real function of a complex number."""
    return real_part(ops, a * b.conjugate())


def imag_backward(ops: Any, grad: Any) -> Any:
    """The imaginary part x gives back i times its gradient."""
    return grad * 1j


def sgn_backward(ops: Any, grad: Any, self: Any, result: Any) -> Any:
    """d/dself of ``self / |self|``: only the part of `grad` at right angles to `self` counts; 0 at 0 and for reals."""
    if not _is_complex(self):
        return ops.zeros_like(grad)
    size = ops.abs(self)
    zero = size == 0
    across = grad - real_part(ops, grad * result.conjugate()) * result
    return ops.where(zero, ops.zeros_like(across), across / ops.where(zero, ops.ones_like(size), size))


def angle_backward(ops: Any, grad: Any, self: Any) -> Any:
    """d/dself of the argument: ``i self / |self|^2``; a real number's angle is constant."""
    if not _is_complex(self):
        return ops.zeros_like(grad)
    size = ops.abs(self)
    zero = size == 0
    direction = self * 1j / ops.where(zero, ops.ones_like(size), size * size)
    return ops.where(zero, ops.zeros_like(direction), grad * direction)


def angle_forward(ops: Any, tangent: Any, self: Any) -> Any:
    """The tangent of the argument: Im(conj(self) * tangent) / |self|^2."""
    if not _is_complex(self):
        return ops.zeros_like(tangent)
    size = ops.abs(self)
    zero = size == 0
    turned = imag_part(ops, tangent * self.conjugate()) / ops.where(zero, ops.ones_like(size), size * size)
    return ops.where(zero, ops.zeros_like(turned), turned)


def polar_backward_abs(ops: Any, grad: Any, result: Any, angle: Any) -> Any:
    """d/dabs of ``abs * exp(i angle)``."""
    return real_part(ops, grad * ops.complex(ops.cos(angle), ops.sin(angle)).conjugate())


def polar_forward(ops: Any, abs_p: Any, abs_t: Any, angle_p: Any, angle_t: Any, result: Any) -> Any:
    """The tangent of ``abs * exp(i angle)``."""
    return ops.complex(ops.cos(angle_p), ops.sin(angle_p)) * abs_t + result * 1j * angle_t


# ------------------------------------------------------------------------------------------- choosing and clamping


def as_mask(ops: Any, mask: Any, like: Any) -> Any:
    """0 and 1 in the dtype of `like`."""
    return ops.where(mask, ops.ones_like(like), ops.zeros_like(like))


def extreme_share(ops: Any, grad: Any, equal: Any, lost: Any) -> Any:
    """What an operand of maximum or minimum gets: half where both are equal, nothing where the other one won."""
    return ops.where(lost, ops.zeros_like(grad), ops.where(equal, grad * 0.5, grad))


def first_is_extreme(ops: Any, first: Any, other: Any) -> Any:
    """fmax and fmin: the first operand wins ties, and a NaN loses."""
    return as_mask(ops, first | ops.isnan(other), other)


def isfinite_mask(ops: Any, self: Any) -> Any:
    """1 where a number passes nan_to_num unchanged."""
    return as_mask(ops, ops.isfinite(self), self)


def erfinv_backward(ops: Any, grad: Any, self: Any) -> Any:
    """From `self`, as torch has it: the result may be overwritten."""
    inverse = ops.erfinv(self)
    return grad * (ops.exp(inverse * inverse) * (math.sqrt(math.pi) / 2))


def clamp_backward(ops: Any, grad: Any, self: Any, min: Any, max: Any) -> Any:
    """The gradient passes where the value lies within the limits, limits included; a NaN within none."""
    inside = None
    if min is not None:
        inside = self >= min
    if max is not None:
        inside = self <= max if inside is None else inside & (self <= max)
    return grad if inside is None else ops.where(inside, grad, ops.zeros_like(grad))


def clamp_backward_min(ops: Any, grad: Any, self: Any, min: Any, max: Any) -> Any:
    """The lower limit gets the gradient where it is the result."""
    at_limit = self < min if max is None else (self < min) & (min < max)
    return ops.where(at_limit, grad, ops.zeros_like(grad))


def clamp_backward_max(ops: Any, grad: Any, self: Any, min: Any, max: Any) -> Any:
    """The upper limit gets the gradient where it is the result (it wins over a larger lower one)."""
    at_limit = self > max if min is None else (self > max) | (max < min)
    return ops.where(at_limit, grad, ops.zeros_like(grad))


def copysign_backward(ops: Any, grad: Any, self: Any, result: Any) -> Any:
    """1 where the sign was kept, -1 where it was turned, 0 at 0."""
    zero = self == 0
    ratio = result / ops.where(zero, ops.ones_like(self), self)
    return grad * ops.where(zero, ops.zeros_like(ratio), ratio)


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


# --------------------------------------------------------------------------------------------------------- activations


def softplus_backward(ops: Any, grad: Any, self: Any, beta: Any, threshold: Any) -> Any:
    """sigmoid(beta x), and 1 where softplus is linear."""
    scaled = self * beta
    return ops.where(scaled > threshold, grad, grad * ops.sigmoid(scaled))


def gelu_curvature(ops: Any, self: Any, approximate: str) -> Any:
    """The second derivative of gelu, exactly or for the tanh approximation."""
    square = self * self
    if approximate == "none":
        return ops.exp(square * -0.5) * ((2 - square) * (1 / math.sqrt(2 * math.pi)))
    scale, cubic = math.sqrt(2 / math.pi), 0.044715
    t = ops.tanh(self * (square * cubic + 1) * scale)
    first = (square * (3 * cubic) + 1) * scale  # the derivatives of what tanh is applied to
    second = self * (6 * cubic * scale)
    return (1 - t * t) * (first + self * (second - 2 * t * first * first) * 0.5)


def silu_curvature(ops: Any, self: Any) -> Any:
    """The second derivative of silu."""
    s = ops.sigmoid(self)
    return s * (1 - s) * (self * (1 - 2 * s) + 2)


def mish_backward(ops: Any, grad: Any, self: Any) -> Any:
    """d/dx x * tanh(softplus(x))."""
    t = ops.tanh(ops.softplus(self))
    return grad * (t + self * (1 - t * t) * ops.sigmoid(self))


def elu_backward(ops: Any, grad: Any, self: Any, alpha: Any, scale: Any, input_scale: Any) -> Any:
    """The slope `scale` above 0, that of the exponential below."""
    negative = ops.exp(self * input_scale) * (alpha * scale * input_scale)
    return grad * ops.where(self <= 0, negative, ops.ones_like(self) * scale)


def hardswish_backward(ops: Any, grad: Any, self: Any) -> Any:
    """0 below -3, 1 above 3, a line between."""
    inside = grad * (self * (1 / 3) + 0.5)
    return ops.where(self <= -3, ops.zeros_like(grad), ops.where(self < 3, inside, grad))


def softsign_backward(ops: Any, grad: Any, self: Any) -> Any:
    """x / (1 + |x|), whose modulus is not differentiable where x is complex: in terms of x and of sgn(x)."""
    denominator = ops.abs(self) + 1
    if not _is_complex(self):
        return grad / (denominator * denominator)
    return grad / denominator - ops.sgn(self) * ops.real(grad * ops.conj(self)) / (denominator * denominator)
