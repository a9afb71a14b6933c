"""Formula helpers of reductions, and a note that `scan.py` follows.

A reduction's gradient arrives without the reduced dimensions; `restore` puts them back as dimensions of size 1, so that
it broadcasts against the input.

Note [Products with zeros]
The derivative of a product by one factor is the product of the others, ``result / factor`` unless the factor is zero.
With a zero among the factors the formulas multiply instead of dividing: what comes before times what comes after.
They are then made of `cumprod`, whose own derivative is written without a division in the same case (`_scan_backward`),
so that every order of derivative is right at zeros too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from numpy import count_nonzero, ndarray

from ... import kernels
from ...core.state import local
from ...kernels.compiled import LARGE
from ...kernels.dims import normalize_dim, normalize_dims
from ...tensor import Tensor, wrap
from ...tensor.special import all_values
from .shared import _has_values

Dims = int | Sequence[int] | None


def sum_all_backward(ops: Any, grad: Any, shape: Sequence[int]) -> Any:
    """The gradient of a full sum: the same for every element."""
    if ops is kernels:
        return kernels.repeated(grad, shape)
    if grad.__class__ is Tensor and not grad.requires_grad and _is_unwatched(grad):
        # A constant, such as the 1 that a pass begins with, has no history for a view to share.
        array = kernels.repeated(grad._numbers_, shape)
        if array.flags.owndata:
            return wrap(array)
    return ops.expand(grad, shape)


def _is_unwatched(tensor: Tensor) -> bool:
    """May what becomes of it be no operator? Who records a step sees kernels as well (capture/recording.py)."""
    state = local.state
    return state.interceptor is None or (len(state.observers) == 1 and tensor._memory_.__class__ is not ndarray)


def restore(ops: Any, reduced: Any, shape: Sequence[int], dim: Dims, keepdim: bool) -> Any:
    """What a reduction of a tensor of `shape` over `dim` gave, with the reduced dimensions as ones of size 1."""
    if keepdim or not shape or reduced.ndim == len(shape):
        return reduced
    if not reduced.ndim:
        return reduced  # broadcasts against everything
    dims = normalize_dims(dim, len(shape))
    return ops.reshape(reduced, tuple([1 if d in dims else n for d, n in enumerate(shape)]))


def count(shape: Sequence[int], dim: Dims) -> int:
    """How many elements of a tensor of `shape` a reduction over `dim` makes into one."""
    return math.prod([shape[d] for d in normalize_dims(dim, len(shape))]) if shape else 1


def along(ops: Any, jacobian: Any, tangent: Any, dim: Dims, keepdim: bool) -> Any:
    """The tangent of a reduction, from its gradient for a cotangent of ones (which is conjugated)."""
    return ops.sum(jacobian.conj() * tangent, dim, keepdim)


def real_along(ops: Any, jacobian: Any, tangent: Any, dim: Dims, keepdim: bool) -> Any:
    """As `along`, for a reduction whose result is real."""
    product = jacobian.conj() * tangent
    return ops.sum(ops.real(product), dim, keepdim)


# ------------------------------------------------------------------------------------------------------ sums, means


def sum_backward(ops: Any, grad: Any, shape: Sequence[int], dim: Dims, keepdim: bool) -> Any:
    """`grad` in every element that was summed."""
    return ops.expand(restore(ops, grad, shape, dim, keepdim), tuple(shape))


def mean_backward(ops: Any, grad: Any, shape: Sequence[int], dim: Dims, keepdim: bool) -> Any:
    """As `sum_backward`, divided by the number of elements (before there are many)."""
    return sum_backward(ops, ops.div(grad, count(shape, dim)), shape, dim, keepdim)


def logsumexp_backward(ops: Any, grad: Any, self: Any, result: Any, dim: Dims, keepdim: bool) -> Any:
    """The softmax of the elements, times `grad`."""
    if ops is kernels and (fast := kernels.logsumexp_rows_backward(grad, self, result, dim, keepdim)) is not None:
        return fast
    grad, result = (restore(ops, x, self.shape, dim, keepdim) for x in (grad, result))
    return grad * ops.exp(self - result).conj()


# --------------------------------------------------------------------------------------------------------- products


def _has_zero(ops: Any, x: Any) -> bool:
    if not _has_values(x):
        return False
    values = x if ops is kernels else all_values(x)  # of all examples, where it is batched
    if values.dtype.char not in "fdFD":
        return bool(ops.any(ops.eq(x, 0)))
    if values.__class__ is ndarray and values.size <= LARGE:
        return count_nonzero(values) != values.size  # of few a fifth of the time of `all`, of many four times that
    return not values.all()


def _products_before(ops: Any, x: Any, dim: int) -> Any:
    """For each element along `dim` the product of those before it; 1 for the first."""
    n = x.shape[dim]
    one = ops.ones_like(ops.narrow(x, dim, 0, 1))
    return ops.cat([one, ops.cumprod(ops.narrow(x, dim, 0, n - 1), dim)], dim)


def _products_of_others(ops: Any, x: Any, dim: int) -> Any:
    after = ops.flip(_products_before(ops, ops.flip(x, (dim,)), dim), (dim,))
    return _products_before(ops, x, dim) * after


def prod_backward(ops: Any, grad: Any, self: Any, result: Any) -> Any:
    """The product of the other elements, times `grad`. See Note [Products with zeros]."""
    if not self.ndim:
        return grad
    if not _has_zero(ops, self):
        return grad * (result / self).conj()
    others = _products_of_others(ops, ops.reshape(self, (-1,)), 0)
    return grad * ops.reshape(others, tuple(self.shape)).conj()


def prod_dim_backward(ops: Any, grad: Any, self: Any, result: Any, dim: int, keepdim: bool) -> Any:
    """The same for the product over one dimension."""
    if not self.ndim:
        return grad
    grad, result = (restore(ops, x, self.shape, dim, keepdim) for x in (grad, result))
    if not _has_zero(ops, self):
        return grad * (result / self).conj()
    return grad * _products_of_others(ops, self, normalize_dim(dim, self.ndim)).conj()


# ---------------------------------------------------------------------------------------------------------- spreads


def var_backward(ops: Any, grad: Any, self: Any, dim: Dims, correction: float | None, keepdim: bool) -> Any:
    """Twice the distance from the mean, over n - correction."""
    shape = self.shape
    freedom = count(shape, dim) - (1 if correction is None else correction)
    factor = 2 / freedom if freedom else math.inf
    distance = ops.sub(self, ops.mean(self, dim, True))
    return ops.mul(ops.mul(restore(ops, grad, shape, dim, keepdim), factor), distance)


def std_backward(
    ops: Any, grad: Any, result: Any, self: Any, dim: Dims, correction: float | None, keepdim: bool
) -> Any:
    """That of the variance, over twice the result; 0 where that is 0."""
    grad = ops.masked_fill(ops.div(grad, ops.mul(result, 2)), ops.eq(result, 0), 0)
    return var_backward(ops, grad, self, dim, correction, keepdim)


def var_mean_backward(
    ops: Any, grads: Sequence[Any], self: Any, dim: Dims, correction: float | None, keepdim: bool
) -> Any:
    """The gradients of variance and mean together; either may be missing."""
    spread = None if grads[0] is None else var_backward(ops, grads[0], self, dim, correction, keepdim)
    return _plus_mean(ops, spread, grads[1], self.shape, dim, keepdim)


def std_mean_backward(
    ops: Any, grads: Sequence[Any], std: Any, self: Any, dim: Dims, correction: float | None, keepdim: bool
) -> Any:
    """The gradients of standard deviation and mean together."""
    spread = None if grads[0] is None else std_backward(ops, grads[0], std, self, dim, correction, keepdim)
    return _plus_mean(ops, spread, grads[1], self.shape, dim, keepdim)


def _plus_mean(ops: Any, spread: Any, grad: Any, shape: Sequence[int], dim: Dims, keepdim: bool) -> Any:
    if grad is None:
        return spread
    average = mean_backward(ops, grad, shape, dim, keepdim)
    return average if spread is None else spread + average


# --------------------------------------------------------------------------------------------------------- extremes


def extreme_backward(ops: Any, grad: Any, self: Any, result: Any, dim: Dims, keepdim: bool) -> Any:
    """`grad`, shared by the elements that equal the result."""
    if ops is kernels and (fast := kernels.extreme_shares(grad, self, result, dim)) is not None:
        return fast
    grad, result = (restore(ops, x, self.shape, dim, keepdim) for x in (grad, result))
    chosen = ops.eq(self, result)
    return ops.mul(chosen, ops.div(grad, ops.sum(chosen, dim, True)))


def aminmax_backward(
    ops: Any, grads: Sequence[Any], self: Any, smallest: Any, largest: Any, dim: int | None, keepdim: bool
) -> Any:
    """The gradients of both extremes together; either may be missing."""
    parts = [
        extreme_backward(ops, grad, self, result, dim, keepdim)
        for grad, result in zip(grads, (smallest, largest), strict=True)
        if grad is not None
    ]
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


def shared_backward(ops: Any, grad: Any, self: Any, result: Any) -> Any:
    """As `extreme_backward` over all elements; if the result is NaN, every NaN has its share."""
    if ops is kernels and (fast := kernels.extreme_shares(grad, self, result, None, True)) is not None:
        return fast
    chosen = ops.logical_or(ops.eq(self, result), ops.logical_and(ops.isnan(self), ops.isnan(result)))
    return ops.mul(chosen, ops.div(grad, ops.sum(chosen)))
