"""Formula helpers of norms and distances."""

from __future__ import annotations

import math
from typing import Any

from ... import kernels
from ...kernels.dims import normalize_dim
from .reduce import Dims, restore
from .shared import real_part


def norm_backward(ops: Any, grad: Any, self: Any, ord: Any, dim: Dims, keepdim: bool, result: Any) -> Any:
    """The direction of each element times (its size / the norm) ** (ord - 1); the subgradient 0 where that is 0 / 0."""
    p = float(ord)
    grad, norm = (restore(ops, x, self.shape, dim, keepdim) for x in (grad, result))
    if p == 0:
        return ops.zeros_like(self)
    if p == 1:
        return ops.mul(ops.sgn(self), grad)
    if p == 2 and ops is kernels:  # a few norms are changed in place of all elements, which are 0 there
        return ops.mul(grad, ops.div(self, ops.masked_fill(norm, ops.eq(norm, 0), math.inf)))
    if p == 2:
        return grad * ops.masked_fill(self / norm, ops.eq(norm, 0), 0)
    size = ops.abs(self)
    if math.isinf(p):
        # Those of the size of the norm share the gradient.
        chosen = ops.logical_or(ops.eq(size, norm), ops.logical_and(ops.isnan(size), ops.isnan(norm)))
        share = ops.div(grad, ops.sum(chosen, dim, True))
        return ops.mul(ops.sgn(self), ops.mul(chosen, share))
    if p < 1:
        # A negative power of 0 is infinite, and 0 has no direction.
        scaled = ops.sgn(self) * ops.masked_fill(ops.pow(size, p - 1), ops.eq(self, 0), 0)
        return scaled * grad * ops.pow(norm, 1 - p)
    scaled = ops.sgn(self) * ops.pow(size, p - 1) if p < 2 else self * ops.pow(size, p - 2)
    return scaled * ops.masked_fill(grad / ops.pow(norm, p - 1), ops.eq(norm, 0), 0)


def row_pairs(ops: Any, x1: Any, x2: Any) -> Any:
    """The difference of every row of one and every row of the other."""
    return ops.unsqueeze(x1, -2) - ops.unsqueeze(x2, -3)


def cdist_jvp(ops: Any, x1: Any, x1_t: Any, x2: Any, x2_t: Any, p: float, result: Any) -> Any:
    """The tangent of `cdist`."""
    slopes = norm_backward(ops, ops.ones_like(result), row_pairs(ops, x1, x2), p, (-1,), False, result)
    return ops.sum(slopes * row_pairs(ops, x1_t, x2_t), -1)


def _pairs(ops: Any, rows: Any) -> tuple[Any, Any]:
    """The numbers of the rows of each pair."""
    pairs = ops.triu_indices(rows.shape[0], rows.shape[0], 1)
    return pairs[0], pairs[1]


def _pair_differences(ops: Any, rows: Any) -> Any:
    first, second = _pairs(ops, rows)
    return ops.index_select(rows, 0, first) - ops.index_select(rows, 0, second)


def pdist_backward(ops: Any, grad: Any, self: Any, p: float, result: Any) -> Any:
    """The gradient of each pair, given to both of its rows."""
    first, second = _pairs(ops, self)
    each = norm_backward(ops, grad, _pair_differences(ops, self), p, (1,), False, result)
    return ops.index_add(ops.index_add(ops.zeros_like(self), 0, first, each), 0, second, -each)


def pdist_jvp(ops: Any, self: Any, self_t: Any, p: float, result: Any) -> Any:
    """The tangent of `pdist`."""
    slopes = norm_backward(ops, ops.ones_like(result), _pair_differences(ops, self), p, (1,), False, result)
    return ops.sum(slopes * _pair_differences(ops, self_t), 1)


def _larger(ops: Any, self: Any, p: float, dim: int, maxnorm: float) -> tuple[Any, Any, Any, tuple[int, ...]]:
    """Which slices are scaled; those alone, ones elsewhere; their norms; and the dimensions of a slice.

    What is not scaled takes no part in the norms either: a row with a NaN is left alone, and so is its gradient.
    """
    dim = normalize_dim(dim, self.ndim)
    others = tuple([d for d in range(self.ndim) if d != dim])
    larger = ops.gt(ops.norm(self, p, others, True), maxnorm)
    rows = ops.where(larger, self, ops.ones_like(self))
    return larger, rows, ops.norm(rows, p, others, True), others


def renorm_backward(ops: Any, grad: Any, self: Any, p: float, dim: int, maxnorm: float) -> Any:
    """The gradient of `renorm`: scaled as the slices were, and what changes their norms."""
    larger, rows, norm, others = _larger(ops, self, p, dim, maxnorm)
    along = real_part(ops, ops.sum(grad * rows.conj(), others, True))
    of_norm = along * (-maxnorm / ((norm + 1e-7) * (norm + 1e-7)))
    scaled = grad * (maxnorm / (norm + 1e-7)) + norm_backward(ops, of_norm, rows, p, others, True, norm)
    return ops.where(larger, scaled, grad)


def renorm_jvp(ops: Any, self: Any, self_t: Any, p: float, dim: int, maxnorm: float) -> Any:
    """The tangent of `renorm`."""
    larger, rows, norm, others = _larger(ops, self, p, dim, maxnorm)
    slopes = norm_backward(ops, ops.ones_like(norm), rows, p, others, True, norm)
    norm_t = real_part(ops, ops.sum(slopes.conj() * ops.where(larger, self_t, ops.zeros_like(self_t)), others, True))
    scaled = self_t * (maxnorm / (norm + 1e-7)) - rows * (norm_t * (maxnorm / ((norm + 1e-7) * (norm + 1e-7))))
    return ops.where(larger, scaled, self_t)
