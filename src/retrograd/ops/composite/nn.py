"""Neural-network operators that are made of others; ``nn/functional.py`` is what users call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..registry import composite
from .normalization import flat_gradients


@composite(space="internal")
def native_layer_norm_backward(
    grad: Any,
    input: Any,
    normalized_shape: Sequence[int],
    mean: Any,
    rstd: Any,
    weight: Any,
    eps: float,
    edges: tuple[Any, ...],
) -> tuple[Any, Any, Any]:
    """The gradients of layer_norm for its input, weight and bias, those that `edges` asks for; differentiable again.

    The kernel of the same name uses the mean and deviation of the forward pass.  Here they are computed anew, for they
    depend on the input, and a second derivative must know it.
    """
    shape = tuple(normalized_shape)
    dims = tuple(range(-len(shape), 0))
    others = tuple(range(input.ndim - len(shape)))
    grad_input = grad_weight = grad_bias = None
    if edges[2] is not None:
        grad_bias = grad.sum(others) if others else grad
    if edges[0] is not None or edges[1] is not None:
        centered = input - input.mean(dims, True)
        scale = ((centered * centered).mean(dims, True) + eps).rsqrt()
        normal = centered * scale
    if edges[1] is not None:
        grad_weight = grad * normal
        grad_weight = grad_weight.sum(others) if others else grad_weight
    if edges[0] is not None:
        g = grad if weight is None else grad * weight
        grad_input = scale * (g - g.mean(dims, True) - normal * (g * normal).mean(dims, True))
    return flat_gradients((grad_input, grad_weight, grad_bias), input, weight)
