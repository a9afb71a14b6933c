"""Formula helpers of scans.

`logcumsumexp` has the slopes exp(self[i] - result[j]) for i <= j.  Both its derivatives are linear recurrences whose
factors exp(result[i] - result[i + 1]) are at most 1, so that nothing overflows.
"""

from __future__ import annotations

from typing import Any


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
