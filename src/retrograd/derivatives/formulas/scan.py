"""Formula helpers of running sums and products, and of recurrences."""

from __future__ import annotations

import math
from typing import Any

from ... import kernels
from ...kernels.dims import normalize_dim
from .reduce import _has_zero, _products_before


def cumsum_backward(ops: Any, grad: Any, dim: int) -> Any:
    """The sum of the gradients from each element on."""
    if not grad.ndim:
        return grad
    if ops is kernels:
        return kernels.cumsum_from_end(grad, dim)
    return ops.flip(ops.cumsum(ops.flip(grad, (dim,)), dim), (dim,))


def cumprod_backward(ops: Any, grad: Any, self: Any, dim: int, result: Any) -> Any:
    """Each element is a factor of all later products. See Note [Products with zeros]."""
    if not self.ndim or not math.prod(self.shape):
        return grad
    if not _has_zero(ops, self):
        return cumsum_backward(ops, grad * result.conj(), dim) / self.conj()
    return _scan_backward(ops, grad, self, normalize_dim(dim, self.ndim))


def _scan_backward(ops: Any, grad: Any, self: Any, dim: int) -> Any:
    # The gradient of element k is the product of those before it times g[k] + x[k+1] (g[k+1] + x[k+2] (g[k+2] + ...)).
    grads, factors = ops.unbind(grad, dim), ops.unbind(self.conj(), dim)
    later = [grads[-1]]
    for g, factor in zip(reversed(grads[:-1]), reversed(factors[1:]), strict=True):
        later.append(ops.add(g, ops.mul(factor, later[-1])))
    return ops.stack(later[::-1], dim) * _products_before(ops, self, dim).conj()


def cumprod_jvp(ops: Any, tangent: Any, self: Any, dim: int, result: Any) -> Any:
    """The tangent of cumprod: the product rule, carried along the dimension where a zero forbids to divide."""
    if not self.ndim or not math.prod(self.shape):
        return tangent
    if not _has_zero(ops, self):
        return result * ops.cumsum(tangent / self, dim)
    before = _products_before(ops, self, normalize_dim(dim, self.ndim))
    steps = ops.unbind(before * tangent, dim)
    tangents = [steps[0]]
    for factor, step in zip(ops.unbind(self, dim)[1:], steps[1:], strict=True):
        tangents.append(ops.add(ops.mul(tangents[-1], factor), step))
    return ops.stack(tangents, dim)


def one_before(ops: Any, values: Any, dim: int) -> Any:
    """`values` moved on by one along `dim`, with 0 in the first place."""
    if not values.ndim:
        return ops.zeros_like(values)
    first = ops.zeros_like(ops.narrow(values, dim, 0, min(1, values.shape[dim])))
    return ops.cat([first, ops.narrow(values, dim, 0, max(values.shape[dim] - 1, 0))], dim)


def recurrence_backward(ops: Any, grad: Any, decay: Any, dim: int) -> Any:
    """The gradient of a linear recurrence: the recurrence from the end, with the factors one place further."""
    if not grad.ndim:
        return grad
    backward = one_before(ops, ops.flip(ops.conj(decay), (dim,)), dim)
    return ops.flip(ops.linear_recurrence(ops.flip(grad, (dim,)), backward, dim), (dim,))


def _slopes(ops: Any, self: Any, result: Any, dim: int) -> tuple[Any, Any]:
    # exp(self[i] - result[i]) and exp(result[i - 1] - result[i]); of two infinities the one that the result is has the
    # slope 1, and where it is both, there is none.
    if not self.ndim or not self.shape[dim]:
        own = ops.ones_like(result)
        return own, own
    n = self.shape[dim]
    first = ops.narrow(result, dim, 0, 1)
    before, now = ops.narrow(result, dim, 0, n - 1), ops.narrow(result, dim, 1, n - 1)
    later = ops.narrow(self, dim, 1, n - 1)
    is_own, is_before = ops.eq(later, now), ops.eq(before, now)
    own = ops.exp(ops.masked_fill(later - now, is_own & ~is_before, 0))
    decay = ops.exp(ops.masked_fill(before - now, is_before & ~is_own, 0))
    return ops.cat([ops.ones_like(first), own], dim), ops.cat([ops.zeros_like(first), decay], dim)


def logcumsumexp_backward(ops: Any, grad: Any, self: Any, result: Any, dim: int) -> Any:
    """What the sums from each element on owe to it."""
    own, decay = _slopes(ops, self, result, dim)
    return ops.conj(own) * recurrence_backward(ops, grad, decay, dim)


def logcumsumexp_jvp(ops: Any, self_t: Any, self: Any, result: Any, dim: int) -> Any:
    """The tangents up to each element, each with its share."""
    own, decay = _slopes(ops, self, result, dim)
    return ops.linear_recurrence(self_t * own, decay, dim)
