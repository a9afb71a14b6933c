"""The gradients of batch and group normalisation made of other operators, so that they can be differentiated again.

The kernels of the same names use the statistics of the forward pass.  Here they are computed anew, for they depend on
the input, and a second derivative must know it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._generated import functions as generated
from ..registry import composite

Gradients = tuple[Any, Any, Any]


def _per_channel(values: Any, ndim: int) -> Any:
    return values.reshape((1, -1, *[1] * (ndim - 2)))


def _gradients(grad: Any, normal: Any, edges: tuple[Any, ...]) -> tuple[Any, Any]:
    """The gradients for the weight and the bias."""
    others = tuple(d for d in range(grad.ndim) if d != 1)
    grad_weight = (grad * normal).sum(others) if edges[1] is not None else None
    return grad_weight, grad.sum(others) if edges[2] is not None else None


def flat_gradients(gradients: Gradients, *arguments: Any) -> Gradients:
    """They were computed from all the arguments: where one does not vary with an argument, its derivative is 0."""
    found = []
    for gradient in gradients:
        for argument in arguments:
            if gradient is not None and argument is not None:
                gradient = generated.flat_in(gradient, argument)
        found.append(gradient)
    return tuple(found)  # type: ignore[return-value]


@composite(space="internal")
def native_batch_norm_backward(
    grad: Any, input: Any, weight: Any, mean: Any, rstd: Any, training: bool, eps: float, edges: tuple[Any, ...]
) -> Gradients:
    """The gradients of batch_norm for its input, weight and bias, those that `edges` asks for."""
    dims = tuple(d for d in range(input.ndim) if d != 1)
    if training:
        centered = input - input.mean(dims, True)
        scale = ((centered * centered).mean(dims, True) + eps).rsqrt()
        normal = centered * scale
    else:
        scale = _per_channel(rstd.to(input.dtype), input.ndim)
        normal = (input - _per_channel(mean.to(input.dtype), input.ndim)) * scale
    grad_input = None
    if edges[0] is not None:
        g = grad
        if training:
            g = g - g.mean(dims, True) - normal * (g * normal).mean(dims, True)
        # The weight last: an infinite one makes NaN of a difference that it is multiplied into.
        grad_input = scale * g if weight is None else scale * g * _per_channel(weight, input.ndim)
    return flat_gradients((grad_input, *_gradients(grad, normal, edges)), input, weight)


@composite(space="internal")
def native_group_norm_backward(
    grads: Sequence[Any],
    input: Any,
    weight: Any,
    mean: Any,
    rstd: Any,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: float,
    edges: tuple[Any, ...],
) -> Gradients:
    """The gradients of group_norm for its input, weight and bias, those that `edges` asks for."""
    grad, grad_mean, grad_rstd = grads
    shape = tuple(input.shape)
    rows = (N * group, C // group * HxW)
    x = input.reshape(rows)
    centered = x - x.mean(1, True)
    scale = ((centered * centered).mean(1, True) + eps).rsqrt()
    normal = centered * scale
    grad_input = grad_weight = grad_bias = None
    if grad is not None:
        grad = grad.reshape((N, C, HxW))
        grad_weight, grad_bias = _gradients(grad, normal.reshape((N, C, HxW)), edges)
    if edges[0] is not None:
        parts = []
        if grad is not None:
            g = (grad if weight is None else grad * weight.reshape((1, -1, 1))).reshape(rows)
            parts.append(scale * (g - g.mean(1, True) - normal * (g * normal).mean(1, True)))
        if grad_mean is not None:
            parts.append((grad_mean.reshape((-1, 1)) / max(rows[1], 1)).expand(rows))
        if grad_rstd is not None:
            parts.append(normal * (grad_rstd.reshape((-1, 1)) * scale * scale / -max(rows[1], 1)))
        grad_input = sum(parts[1:], parts[0]).reshape(shape)
    return grad_input, grad_weight, grad_bias


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
