"""Formula helpers of losses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

NONE, MEAN, SUM = 0, 1, 2


def reduced(ops: Any, values: Any, reduction: int) -> Any:
    """The elements of a loss, their mean or their sum."""
    if reduction == NONE:
        return values
    return ops.mean(values) if reduction == MEAN else ops.sum(values)


def shared_grad(ops: Any, grad: Any, reduction: int, *tensors: Any) -> Any:
    """The gradient of each element of a loss, from that of the reduced loss; the tensors are broadcast to its shape."""
    if reduction != MEAN:
        return grad
    n = math.prod(np.broadcast_shapes(*[tuple(t.shape) for t in tensors]))
    return grad / n if n else grad * math.nan


def nll_loss_alone(ops: Any, grad: Any, target: Any, weight: Any, reduction: int, ignore_index: int) -> Any:
    """`nll_loss`; the kernel also returns the sum of the weights."""
    result = ops.nll_loss(grad, target, weight, reduction, ignore_index)
    return result[0] if isinstance(result, tuple) else result


def mse_loss_backward(ops: Any, grad: Any, self: Any, target: Any, reduction: int) -> Any:
    """``2 * (self - target)`` times the gradient of each element."""
    return (self - target) * (shared_grad(ops, grad, reduction, self, target) * 2)


def smooth_l1_loss_backward(ops: Any, grad: Any, self: Any, target: Any, reduction: int, beta: float) -> Any:
    """The gradient of `smooth_l1_loss` for `self`: its slope is the difference over beta, but at most 1."""
    difference = self - target
    slope = ops.clamp(difference / beta, -1, 1) if beta else ops.sgn(difference)
    return slope * shared_grad(ops, grad, reduction, self, target)


def huber_loss_backward(ops: Any, grad: Any, self: Any, target: Any, reduction: int, delta: float) -> Any:
    """The gradient of `huber_loss` for `self`: its slope is the difference, but at most delta."""
    return ops.clamp(self - target, -delta, delta) * shared_grad(ops, grad, reduction, self, target)


def soft_margin_loss_backward(ops: Any, grad: Any, self: Any, target: Any, reduction: int) -> Any:
    """The gradient of `soft_margin_loss` for `self`; the factor that is at most 1 comes first, against overflow."""
    power = ops.exp(-target * self)
    return shared_grad(ops, grad, reduction, self, target) * (power / (power + 1)) * -target


def binary_cross_entropy_backward(ops: Any, grad: Any, self: Any, target: Any, weight: Any, reduction: int) -> Any:
    """The gradient of `binary_cross_entropy` for the probabilities."""
    grad = shared_grad(ops, grad, reduction, self)
    grad = grad * (self - target) / ops.clamp_min((1 - self) * self, 1e-12)
    return grad if weight is None else grad * weight


def binary_cross_entropy_target_backward(
    ops: Any, grad: Any, self: Any, target: Any, weight: Any, reduction: int
) -> Any:
    """The gradient of `binary_cross_entropy` for the targets."""
    grad = shared_grad(ops, grad, reduction, self)
    grad = grad * (ops.clamp_min(ops.log1p(-self), -100) - ops.clamp_min(ops.log(self), -100))
    return grad if weight is None else grad * weight


def bce_with_logits_backward(
    ops: Any, grad: Any, self: Any, target: Any, weight: Any, pos_weight: Any, reduction: int
) -> Any:
    """The gradient of `binary_cross_entropy_with_logits` for the logits."""
    grad = shared_grad(ops, grad, reduction, self)
    probability = ops.sigmoid(self)
    if pos_weight is None:
        slope = probability - target
    else:
        positive = pos_weight * target
        slope = (positive + 1 - target) * probability - positive
    return grad * slope if weight is None else grad * slope * weight


def bce_with_logits_target_backward(
    ops: Any, grad: Any, self: Any, target: Any, weight: Any, pos_weight: Any, reduction: int
) -> Any:
    """The gradient of `binary_cross_entropy_with_logits` for the targets."""
    grad = shared_grad(ops, grad, reduction, self)
    if pos_weight is None:
        slope = -self
    else:
        slope = ops.log_sigmoid(-self) - pos_weight * ops.log_sigmoid(self)
    return grad * slope if weight is None else grad * slope * weight
