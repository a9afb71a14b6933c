"""Sums and norms of sparse tensors, and softmax over their values."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import kernels
from ..autograd.function import Function
from ..kernels import SparseArray
from ..kernels.dims import normalize_dim
from ..ops import namespace as ops
from ..tensor import Tensor, wrap
from ..tensor.sparse import AnySparse, SparseTensor
from .derivatives import FromValues, coalesced, linear, named, to_coo, to_layout_of, values_of, with_values
from .forms import both, coo


@named("SumBackward0")
@linear(0)
class _Sum(Function):
    """The sum of all elements; its gradient is that of every element, be there a value or not."""

    @staticmethod
    def forward(ctx: Any, tensor: Any) -> Tensor:
        ctx.shape = tuple(tensor.shape)
        return ops.sum(wrap(tensor._memory_.values))

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad.expand(ctx.shape)


def _dims(input: Any, dim: Any) -> tuple[int, ...]:
    given = (dim,) if isinstance(dim, int) else tuple(dim)
    found = tuple(normalize_dim(d, input._memory_.ndim) for d in given)
    if len(set(found)) != len(found):
        raise RuntimeError(
            f"dim {next(d for d in found if found.count(d) > 1)} appears multiple times in the list of dims"
        )
    return found


def sum_over(input: Any, dim: Any = None, dtype: Any = None, keepdim: bool = False) -> Any:
    """The sum over dimensions: a sparse tensor, unless no sparse dimension is left."""
    if dtype is not None:
        input = input.to(dtype)
    if dim is None or (not isinstance(dim, int) and not len(dim)):
        total = _Sum.apply(input)
        return total.reshape((1,) * input._memory_.ndim) if keepdim else total
    dims = _dims(input, dim)
    if not isinstance(input, SparseTensor):
        if not keepdim:
            raise RuntimeError("reduction operations on CSR tensors with keepdim=False is unsupported")
        summed = sum_over(to_coo(input), dim, None, True)
        return to_layout_of(coalesced(summed), input._memory_) if isinstance(summed, AnySparse) else summed
    array = input._memory_
    n = array.sparse_dim
    values = values_of(input)
    of_values = tuple(d - n + 1 for d in dims if d >= n)
    if of_values:
        values = values.sum(of_values, keepdim)
    gone = [d for d in dims if d < n]
    if len(gone) == n and not keepdim:
        return values.sum(0)
    shape = tuple(1 if d in dims else size for d, size in enumerate(array.shape))
    indices = array.indices
    if keepdim:
        indices = indices.copy()
        indices[gone] = 0
    else:
        indices = np.delete(indices, gone, axis=0)
        shape = tuple(size for d, size in enumerate(array.shape) if d not in dims)
    like = SparseArray(indices, np.empty_like(values._numbers_), shape, array.coalesced and not gone)
    return coalesced(FromValues.apply(values, like))


@both("sum")
def sum(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, **aliases: Any) -> Any:
    dim, keepdim = aliases.get("axis", dim), aliases.get("keepdims", keepdim)
    if dtype is None and input._memory_.dtype.kind in "biu":
        dtype = ops.sum(ops.zeros(0, dtype=input.dtype)).dtype
    return sum_over(input, dim, dtype, keepdim)


@both("sum_dim_IntList")
def _sum_dims(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    return sum(input, dim, keepdim, dtype=dtype)


@both()
def sum_to_size(input: Any, *size: Any) -> Any:
    shape = tuple(size[0] if len(size) == 1 and not isinstance(size[0], int) else size)
    extra = input._memory_.ndim - len(shape)
    dims = [d for d, n in enumerate(input.shape) if d < extra or (shape[d - extra] == 1 and n != 1)]
    summed = sum_over(input, dims, None, True) if dims else input
    for _ in range(extra):
        summed = summed.squeeze(0)
    return summed


@coo("norm", "linalg_vector_norm", "native_norm")
def norm(input: Any, p: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    whole = tuple(range(input._memory_.ndim))
    if dim is not None and len(dim if not isinstance(dim, int) else (dim,)) and _dims(input, dim) != whole:
        raise RuntimeError(
            f"norm_sparse currently only supports full reductions, so 'dim' must either be empty or contain all "
            f"dimensions of the input, but got {dim}"
        )
    p = 2 if p is None or p == "fro" else p
    values = values_of(coalesced(input))
    if p == 0 and dtype is None:
        return ops.norm(values, 0)
    result = ops.norm(values if dtype is None else values.to(dtype), p)
    return result.reshape((1,) * input._memory_.ndim) if keepdim else result


@coo()
def any(input: Any, dim: Any = None, keepdim: bool = False) -> Tensor:
    if dim is not None:
        return NotImplemented
    return ops.any(values_of(coalesced(input)))


# -------------------------------------------------------------------------------------------------------------- softmax


def softmax(input: Any, dim: int, dtype: Any = None, logarithm: bool = False) -> Any:
    """Softmax over the values along `dim`; what has no value counts as minus infinity."""
    if dtype is not None:
        input = input.to(dtype)
    elif input._memory_.dtype.kind in "biu":
        raise RuntimeError(f"\"softmax\" not implemented for '{input._type_name_()[:-6]}'")
    one = coalesced(input)
    array = one._memory_
    at = normalize_dim(dim, array.ndim)
    values = values_of(one)
    if at >= array.sparse_dim:
        function = ops.log_softmax if logarithm else ops.softmax
        return with_values(one, function(values, at - array.sparse_dim + 1))
    if not array.nnz:
        return with_values(one, values * 1)
    others = np.delete(array.indices, at, axis=0)
    shape = array.shape[:at] + array.shape[at + 1 : array.sparse_dim]
    group = np.unique(kernels.coordinates_to_numbers(others, shape), return_inverse=True)[1].reshape(-1)
    count = int(group.max()) + 1
    # The largest of each group is taken off, for the sake of precision alone: it has no gradient.
    most = np.full_like(array.values, -np.inf, shape=(count, *array.values.shape[1:]))
    np.maximum.at(most, group, array.values)
    index = wrap(group)
    shifted = values - wrap(most[group])
    exponentials = shifted.exp()
    zeros = values.new_zeros((count, *array.values.shape[1:]))
    sums = zeros.index_add(0, index, exponentials)
    if logarithm:
        return with_values(one, shifted - sums.log().index_select(0, index))
    return with_values(one, exponentials / sums.index_select(0, index))
