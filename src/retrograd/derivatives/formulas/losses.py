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


def _rows(ops: Any, tensor: Any) -> Any:
    """A vector as the one row of a matrix."""
    return tensor if tensor.ndim == 2 else ops.reshape(tensor, (1, -1))


def _row_grad(ops: Any, grad: Any, reduction: int, rows: int) -> Any:
    """The gradient of the loss of each row, in a column."""
    if reduction == NONE:
        return ops.reshape(grad, (-1, 1))
    return grad / rows if reduction == MEAN and rows else grad


def _margin_jvp(ops: Any, slopes: Any, self_t: Any, reduction: int) -> Any:
    """The tangent of a loss of rows, of which the slopes are given."""
    return reduced(ops, ops.sum(slopes * self_t, -1), reduction)


def multi_margin_backward(
    ops: Any, grad: Any, self: Any, target: Any, p: int, margin: float, weight: Any, reduction: int
) -> Any:
    """Each class that is not below the target by `margin` is pushed down, and the target up by all of that."""
    rows, index = _rows(ops, self), ops.reshape(target, (-1, 1))
    gaps = margin - ops.gather(rows, 1, index) + rows
    slopes = ops.where(ops.gt(gaps, 0), ops.ones_like(gaps) if p == 1 else gaps * 2, ops.zeros_like(gaps))
    if weight is not None:
        slopes = slopes * ops.reshape(ops.index_select(weight, 0, ops.reshape(target, (-1,))), (-1, 1))
    slopes = ops.scatter(slopes, 1, index, 0) / rows.shape[1]
    each = slopes * _row_grad(ops, grad, reduction, rows.shape[0])
    return ops.reshape(ops.scatter_add(each, 1, index, -ops.sum(each, 1, True)), self.shape)


def multi_margin_jvp(
    ops: Any, self: Any, self_t: Any, target: Any, p: int, margin: float, weight: Any, reduction: int
) -> Any:
    """The tangent of `multi_margin_loss`."""
    ones = ops.ones_like(ops.sum(_rows(ops, self), 1))
    slopes = multi_margin_backward(ops, ones, self, target, p, margin, weight, NONE)
    return _margin_jvp(ops, slopes, self_t, reduction)


def multilabel_margin_backward(
    ops: Any, grad: Any, self: Any, target: Any, reduction: int, is_target: Any
) -> Any:
    """The same for several targets in each row, which end at the first negative one."""
    rows, labels, is_target = (_rows(ops, x) for x in (self, target, is_target))
    used = ops.eq(ops.cumsum(ops.lt(labels, 0) * ops.ones_like(labels), 1), 0)
    labels = labels * used
    gaps = 1 - ops.unsqueeze(ops.gather(rows, 1, labels), 2) + ops.unsqueeze(rows, 1)
    counted = ops.unsqueeze(used, 2) * (1 - ops.unsqueeze(is_target, 1))
    slopes = ops.gt(gaps, 0) * counted / rows.shape[1]
    each = slopes * ops.unsqueeze(_row_grad(ops, grad, reduction, rows.shape[0]) * ops.ones_like(rows), 2)
    return ops.reshape(ops.scatter_add(ops.sum(each, 1), 1, labels, -ops.sum(each, 2)), self.shape)


def multilabel_margin_jvp(ops: Any, self: Any, self_t: Any, target: Any, reduction: int) -> Any:
    """The tangent of `multilabel_margin_loss`."""
    rows, labels = _rows(ops, self), _rows(ops, target)
    used = ops.eq(ops.cumsum(ops.lt(labels, 0) * ops.ones_like(labels), 1), 0)
    hits = ops.scatter_add(ops.zeros_like(rows), 1, labels * used, used * ops.ones_like(rows))
    ones = ops.ones_like(ops.sum(rows, 1))
    is_target = ops.gt(hits, 0) * ops.ones_like(rows)
    return _margin_jvp(ops, multilabel_margin_backward(ops, ones, self, target, NONE, is_target), self_t, reduction)
