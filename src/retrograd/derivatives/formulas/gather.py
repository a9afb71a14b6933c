"""Formula helpers of reading and writing at positions along a dimension."""

from __future__ import annotations

from typing import Any

from ... import kernels
from ...tensor import wrap


def gather_gradient(ops: Any, grad: Any, shape: Any, dim: int, index: Any, sparse_grad: bool) -> Any:
    """The gradient of `gather`."""
    if sparse_grad:
        return ops.gather_sparse_gradient(grad, shape, dim, index)
    return ops.gather_backward(grad, shape, dim, index)


def selected_values(ops: Any, input: Any, dim: int, indices: Any, keepdim: bool) -> Any:
    """What a reduction along `dim` that picks the elements at `indices` gives for `input`."""
    if not input.ndim:
        return input
    if keepdim:
        return ops.gather(input, dim, indices)
    # Counted from the end, the new dimension of `indices` has the same number as that of `input`.
    return ops.squeeze(ops.gather(input, dim, ops.unsqueeze(indices, dim)), dim)


def index_fill_value_backward(ops: Any, grad: Any, dim: int, index: Any) -> Any:
    """The sum of `grad` over the places that were filled: an index that comes twice fills one place."""
    # By a mask, as a plain index_select would count such a place twice.
    kept = ops.index_fill(ops.ones_like(grad), dim, index, 0)
    return ops.sum(grad * (1 - kept))


def take_backward(ops: Any, grad: Any, sizes: tuple[int, ...], index: Any) -> Any:
    """`grad` added up at the places `index` of zeros."""
    return ops.put(ops.new_zeros(grad, sizes), index, grad, True)


def put_zeros(ops: Any, grad: Any, index: Any, sizes: tuple[int, ...]) -> Any:
    """`grad` with zeros at the places that `put` has overwritten."""
    return ops.put(grad, index, ops.new_zeros(grad, sizes))


def scatter_reduce_backward(
    ops: Any, grad: Any, self: Any, dim: int, index: Any, src: Any, reduce: str, include_self: bool, result: Any
) -> tuple[Any, Any]:
    """The gradients of `self` and `src`."""
    if reduce == "prod":
        return _prod_backward(ops, grad, self, dim, index, src, include_self, result)
    if reduce in ("amax", "amin"):
        # The gradient is shared by all that have the extreme value.
        mine = _is(ops, self, result)
        theirs = _is(ops, src, ops.gather(result, dim, index))
        if not include_self:
            mine = ops.scatter(mine, dim, index, False)
        count = ops.scatter_add(_as(ops, mine, grad), dim, index, _as(ops, theirs, src))
        share = ops.div(grad, ops.clamp_min(count, 1))
        return ops.mul(mine, share), ops.mul(theirs, ops.gather(share, dim, index))
    if reduce == "mean":
        grad = ops.div(grad, _mean_count(ops, self, dim, index, src, include_self))
    grad_src = ops.gather(grad, dim, index)
    return grad if include_self else ops.scatter(grad, dim, index, 0), grad_src


def _is(ops: Any, value: Any, extreme: Any) -> Any:
    # Whether it is the extreme value; a NaN is the largest and the smallest.
    return ops.logical_or(ops.eq(value, extreme), ops.logical_and(ops.isnan(value), ops.isnan(extreme)))


def _as(ops: Any, mask: Any, like: Any) -> Any:
    # A mask as zeros and ones of the dtype of `like`, which has its shape.
    return ops.mul(mask, ops.ones_like(like))


def _mean_count(ops: Any, self: Any, dim: int, index: Any, src: Any, include_self: bool) -> Any:
    # How many elements went into every place; 1 where there were none.
    ones = ops.ones_like(self)
    count = ones if include_self else ops.scatter(ones, dim, index, 0)
    return ops.clamp_min(ops.scatter_add(count, dim, index, ops.ones_like(src)), 1)


def _prod_backward(
    ops: Any, grad: Any, self: Any, dim: int, index: Any, src: Any, include_self: bool, result: Any
) -> tuple[Any, Any]:
    # The gradient of a factor is the product of the others: that of those that are not zero, times those that are.
    # Up to two zeros are kept as what they are, rather than as the number 0, so that the second derivative is right.
    start = self if include_self else ops.scatter(self, dim, index, 1)
    zero_self, zero_src = ops.eq(start, 0), ops.eq(src, 0)
    rest_self, rest_src = ops.masked_fill(start, zero_self, 1), ops.masked_fill(src, zero_src, 1)
    count_self, count_src = _as(ops, zero_self, self), _as(ops, zero_src, src)
    zeros_self, zeros_src = ops.mul(start, count_self), ops.mul(src, count_src)
    rest = ops.scatter_reduce(rest_self, dim, index, rest_src, "prod")
    count = ops.scatter_add(count_self, dim, index, count_src)
    zeros = ops.scatter_add(zeros_self, dim, index, zeros_src)

    def others(rest: Any, own: Any, count: Any, zeros: Any) -> Any:
        none, one = ops.eq(count, 0), ops.eq(count, 1)
        zeros = ops.masked_fill(ops.mul(zeros, one), none, 1)
        return ops.mul(ops.div(rest, own), zeros)

    grad_self = ops.mul(grad, others(rest, rest_self, ops.sub(count, count_self), ops.sub(zeros, zeros_self)))
    if not include_self:
        grad_self = ops.scatter(grad_self, dim, index, 0)
    rest, count, zeros = (ops.gather(x, dim, index) for x in (rest, count, zeros))
    grad_src = others(rest, rest_src, ops.sub(count, count_src), ops.sub(zeros, zeros_src))
    return grad_self, ops.mul(ops.gather(grad, dim, index), grad_src)


def scatter_reduce_jvp(
    ops: Any,
    self: Any,
    self_t: Any,
    dim: int,
    index: Any,
    src: Any,
    src_t: Any,
    reduce: str,
    include: bool,
    result: Any,
) -> Any:
    """The tangent: each gradient's factor, which the backward pass of ones gives, times the tangent, added up."""
    if reduce in ("sum", "mean"):
        return ops.scatter_reduce(self_t, dim, index, src_t, reduce, include_self=include)
    ones = ops.ones_like(result)
    by_self, by_src = scatter_reduce_backward(ops, ones, self, dim, index, src, reduce, include, result)
    return ops.scatter_add(ops.mul(by_self, self_t), dim, index, ops.mul(by_src, src_t))


def _of_slices(ops: Any, index: Any, dim: int, source: Any) -> Any:
    """The index of `scatter_reduce` for that of `index_reduce`."""
    if ops is kernels:
        return kernels.index_of_slices(index, dim, source.shape)
    return wrap(kernels.index_of_slices(index._numbers_, dim, tuple(source.shape)))


def index_reduce_backward(
    ops: Any, grad: Any, self: Any, dim: int, index: Any, source: Any, reduce: str, include_self: bool, result: Any
) -> tuple[Any, Any]:
    """The gradients of `self` and `source`."""
    index = _of_slices(ops, index, dim, source)
    return scatter_reduce_backward(ops, grad, self, dim, index, source, reduce, include_self, result)


def index_reduce_jvp(
    ops: Any, self: Any, self_t: Any, dim: int, index: Any, source: Any, source_t: Any, reduce: str,
    include_self: bool, result: Any,
) -> Any:  # fmt: skip
    """The tangent of `index_reduce`."""
    index = _of_slices(ops, index, dim, source)
    return scatter_reduce_jvp(ops, self, self_t, dim, index, source, source_t, reduce, include_self, result)
