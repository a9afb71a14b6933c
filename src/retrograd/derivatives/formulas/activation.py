"""Formula helpers of activations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .shared import _is_complex, rounded_once


@rounded_once
def log_sigmoid_backward(ops: Any, grad: Any, self: Any) -> Any:
    """The sigmoid of -x."""
    return grad * ops.sigmoid(-self)


@rounded_once
def leaky_relu_backward(ops: Any, grad: Any, self: Any, negative_slope: Any) -> Any:
    """1 above 0, else `negative_slope`."""
    return ops.where(self > 0, grad, grad * negative_slope)


@rounded_once
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


@rounded_once
def mish_backward(ops: Any, grad: Any, self: Any) -> Any:
    """d/dx x * tanh(softplus(x))."""
    t = ops.tanh(ops.softplus(self))
    return grad * (t + self * (1 - t * t) * ops.sigmoid(self))


@rounded_once
def elu_backward(ops: Any, grad: Any, self: Any, alpha: Any, scale: Any, input_scale: Any) -> Any:
    """The slope `scale` above 0, that of the exponential below."""
    negative = ops.exp(self * input_scale) * (alpha * scale * input_scale)
    return grad * ops.where(self <= 0, negative, ops.ones_like(self) * scale)


def refusing_negative(name: str, slot: str, apply: Callable[..., Any]) -> Callable[..., Any]:
    """`apply` of an activation's node, for its in-place variant, whose `slot` may not be negative: the result, which is
    all that torch keeps, does not say then which side of 0 an element came from."""

    def checked(node: Any, edges: Any, grads: Any) -> Any:
        if getattr(node, slot) < 0:
            raise RuntimeError(
                f"In-place {'leakyReLu' if name == 'leaky_relu' else 'elu'} backward calculation is triggered with a "
                "negative slope which is not supported. This is caused by calling in-place forward function with a "
                "negative slope, please call out-of-place version instead."
            )
        return apply(node, edges, grads)

    return checked


@rounded_once
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


def unchanged_by(ops: Any, tangent: Any, result: Any) -> Any:
    """What a tangent adds to that of a result that does not vary with it."""
    return ops.zeros_like(result)


def _halves(ops: Any, x: Any, dim: int) -> tuple[Any, Any]:
    n = x.shape[dim] // 2
    return ops.narrow(x, dim, 0, n), ops.narrow(x, dim, n, n)


def glu_backward(ops: Any, grad: Any, self: Any, dim: int) -> Any:
    """The gradients of both halves."""
    first, second = _halves(ops, self, dim)
    gate = ops.sigmoid(second)
    return ops.cat([grad * gate, grad * first * (gate * (1 - gate))], dim)


def glu_jvp(ops: Any, self: Any, self_t: Any, dim: int) -> Any:
    """The tangent of `glu`."""
    (first, second), (first_t, second_t) = _halves(ops, self, dim), _halves(ops, self_t, dim)
    gate = ops.sigmoid(second)
    return first_t * gate + first * (gate * (1 - gate)) * second_t
