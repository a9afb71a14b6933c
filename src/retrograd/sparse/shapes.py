"""Dimensions of sparse tensors: transposed, selected, joined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..kernels import BscArray, BsrArray, CscArray, CsrArray, SparseArray
from ..kernels.dims import normalize_dim
from ..ops import namespace as ops
from ..tensor import Tensor, wrap
from ..tensor.sparse import SparseTensor
from .derivatives import FromValues, Permute, to_coo, values_of
from .forms import both, compressed, coo

# ---------------------------------------------------------------------------------------------------------------- order


def _permuted(input: Any, dims: tuple[int, ...]) -> Any:
    n = input._memory_.sparse_dim
    if sorted(dims[:n]) != list(range(n)):
        raise RuntimeError(
            "transpose: a sparse dimension and a dense one cannot change places: the sparse ones come first (this "
            f"tensor has {n})"
        )
    return Permute.apply(input, dims)


@coo("transpose", "swapaxes", "swapdims")
def transpose(input: Any, dim0: int, dim1: int) -> Any:
    ndim = input._memory_.ndim
    a, b = normalize_dim(dim0, ndim), normalize_dim(dim1, ndim)
    dims = list(range(ndim))
    if ndim:
        dims[a], dims[b] = dims[b], dims[a]
    return _permuted(input, tuple(dims))


@both()
def t(input: Any) -> Any:
    if input._memory_.ndim > 2:
        raise RuntimeError(
            f"t() expects a tensor with <= 2 sparse and 0 dense dimensions, but self is {input._memory_.ndim}D"
        )
    return input if input._memory_.ndim < 2 else input.transpose(0, 1)


@coo()
def permute(input: Any, *dims: Any) -> Any:
    order = dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims
    ndim = input._memory_.ndim
    if len(order) != ndim:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {ndim} is not equal to len(dims) = {len(order)}"
        )
    found = tuple(normalize_dim(d, ndim) for d in order)
    if len(set(found)) != ndim:
        raise RuntimeError("permute(sparse_coo): duplicate dims are not allowed.")
    return _permuted(input, found)


_TRANSPOSED = {CsrArray: CscArray, CscArray: CsrArray, BsrArray: BscArray, BscArray: BsrArray}


@compressed("transpose", "swapaxes", "swapdims")
def _transpose_compressed(input: Any, dim0: int, dim1: int) -> Any:
    array = input._memory_
    a, b = sorted((normalize_dim(dim0, array.ndim), normalize_dim(dim1, array.ndim)))
    if a == b:
        return input
    if (a, b) != (array.batch_dim, array.batch_dim + 1):
        raise RuntimeError(
            f"transpose: a tensor of layout {input.layout} can have the two dimensions of its matrices transposed, but "
            f"got {dim0} and {dim1}"
        )
    kind = _TRANSPOSED[array.kind]
    shape = (*array.shape[:a], array.shape[b], array.shape[a], *array.shape[b + 1 :])
    values = values_of(input)
    if array.blocks:
        values = values.transpose(a + 1, b + 1)
    like = kind(array.starts, array.places, np.empty_like(array.values, shape=tuple(values.shape)), shape)
    return FromValues.apply(values, like)


@coo()
def unsqueeze(input: Any, dim: int) -> Any:
    array = input._memory_
    at = normalize_dim(dim, array.ndim + 1)
    values = values_of(input)
    shape = (*array.shape[:at], 1, *array.shape[at:])
    if at <= array.sparse_dim:
        indices = np.insert(array.indices, at, 0, axis=0)
        return _made(values, indices, shape, array.coalesced)
    return _made(values.unsqueeze(at - array.sparse_dim + 1), array.indices, shape, array.coalesced)


@coo("squeeze", "squeeze_dim", "squeeze_dims")
def squeeze(input: Any, dim: Any = None) -> Any:
    array = input._memory_
    dims = range(array.ndim) if dim is None else [dim] if isinstance(dim, int) else dim
    gone = sorted({normalize_dim(d, array.ndim) for d in dims if array.shape[normalize_dim(d, array.ndim)] == 1})
    n = array.sparse_dim
    indices = np.delete(array.indices, [d for d in gone if d < n], axis=0)
    values = values_of(input)
    for d in reversed([d for d in gone if d >= n]):
        values = values.squeeze(d - n + 1)
    shape = tuple([size for d, size in enumerate(array.shape) if d not in gone])
    return _made(values, indices, shape, array.coalesced)


def _made(values: Tensor, indices: np.ndarray, shape: tuple[int, ...], coalesced: bool = False) -> Any:
    """A sparse tensor of these values."""
    like = SparseArray(indices, np.empty_like(values._numbers_), shape, coalesced)
    return FromValues.apply(values, like)


@coo("view", "reshape", "expand", "flatten")
def _no_view(input: Any, *args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError(
        "reshape is not implemented for sparse tensors: Could not run 'aten::view' with arguments from the 'SparseCPU' "
        "backend. Write x.to_dense()"
    )


# ---------------------------------------------------------------------------------------------------------------- parts


@coo()
def select(input: Any, dim: int, index: int) -> Any:
    array = input._memory_
    if not array.ndim:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    at = normalize_dim(dim, array.ndim)
    size = array.shape[at]
    if not -size <= index < size:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(array.shape)} at dimension {at}"
        )
    number = index % size
    shape = array.shape[:at] + array.shape[at + 1 :]
    values = values_of(input)
    if at >= array.sparse_dim:
        return _made(values.select(at - array.sparse_dim + 1, number), array.indices, shape, array.coalesced)
    kept = np.flatnonzero(array.indices[at] == number)
    indices = np.delete(array.indices[:, kept], at, axis=0)
    taken = values.index_select(0, wrap(kept))
    if not len(indices):
        return taken.sum(0, dtype=taken.dtype)  # nothing sparse is left of it
    return _made(taken, indices, shape, array.coalesced)


@compressed("select")
def _select_compressed(input: Any, dim: int, index: int) -> Any:
    array = input._memory_
    at = normalize_dim(dim, array.ndim)
    if at >= array.batch_dim:
        return to_coo(input).select(dim, index)
    size = array.shape[at]
    if not -size <= index < size:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(array.shape)} at dimension {at}"
        )
    values = values_of(input).select(at, index)
    starts, places = (one.take(index % size, at) for one in (array.starts, array.places))
    shape = array.shape[:at] + array.shape[at + 1 :]
    like = array.kind(starts, places, np.empty_like(array.values, shape=tuple(values.shape)), shape)
    return FromValues.apply(values, like)


@both()
def unbind(input: Any, dim: int = 0) -> tuple[Any, ...]:
    return tuple(input.select(dim, index) for index in range(input.shape[dim]))


@coo()
def index_select(input: Any, dim: int, index: Tensor) -> Any:
    array = input._memory_
    at = normalize_dim(dim, array.ndim)
    wanted = index._numbers_
    if wanted.ndim != 1 or wanted.dtype.kind not in "iu":
        raise IndexError(
            "index_select() argument index must be 1-D long-tensor: its dtype is "
            f"{index.dtype}, and it has {wanted.ndim} dimensions"
        )
    size = array.shape[at]
    if wanted.size and (int(wanted.min()) < -size or int(wanted.max()) >= size):
        raise IndexError(f"index_select(): index contains out of range index for tensor of shape {list(array.shape)}")
    wanted = np.where(wanted < 0, wanted + size, wanted)
    shape = (*array.shape[:at], wanted.size, *array.shape[at + 1 :])
    values = values_of(input)
    if at >= array.sparse_dim:
        return _made(values.index_select(at - array.sparse_dim + 1, wrap(wanted)), array.indices, shape)
    # Every value once for each time that its place is wanted.
    order = np.argsort(wanted, kind="stable")
    ordered = wanted[order]
    first = np.searchsorted(ordered, array.indices[at], "left")
    times = np.searchsorted(ordered, array.indices[at], "right") - first
    numbers = np.repeat(np.arange(array.nnz, like=times), times)
    step = np.arange(numbers.size, like=numbers) - np.repeat(np.cumsum(times) - times, times)
    indices = array.indices[:, numbers]
    indices[at] = order[np.repeat(first, times) + step]
    return _made(values.index_select(0, wrap(numbers)), indices, shape)


@coo()
def narrow_copy(input: Any, dim: int, start: int, length: int) -> Any:
    array = input._memory_
    at = normalize_dim(dim, array.ndim)
    size = array.shape[at]
    start = start + size if start < 0 else start
    if not 0 <= start <= size or length < 0 or start + length > size:
        raise RuntimeError(
            f"Invalid range to narrow. range(start, start+length) must be a subset of range(0, {size}): start is "
            f"{start}, length is {length}"
        )
    shape = (*array.shape[:at], length, *array.shape[at + 1 :])
    values = values_of(input)
    if at >= array.sparse_dim:
        return _made(values.narrow(at - array.sparse_dim + 1, start, length), array.indices, shape, array.coalesced)
    kept = np.flatnonzero((array.indices[at] >= start) & (array.indices[at] < start + length))
    indices = array.indices[:, kept]
    indices[at] -= start
    return _made(values.index_select(0, wrap(kept)), indices, shape, array.coalesced)


# --------------------------------------------------------------------------------------------------------------- joined


@coo("cat", "concat", "concatenate")
def cat(tensors: Sequence[Any], dim: int = 0) -> Any:
    if not all(isinstance(one, SparseTensor) for one in tensors):
        index = next(i for i, one in enumerate(tensors) if not isinstance(one, SparseTensor))
        raise RuntimeError(
            f"Concatenating sparse tensors, but a dense tensor was found at position {index}: write x.to_sparse()"
        )
    first = tensors[0]._memory_
    at = normalize_dim(dim, first.ndim)
    for number, one in enumerate(tensors):
        array = one._memory_
        same = array.shape[:at] + array.shape[at + 1 :] == first.shape[:at] + first.shape[at + 1 :]
        if not same or array.sparse_dim != first.sparse_dim:
            raise RuntimeError(
                "All tensors must have the same shape: "
                f"{list(first.shape)} (except in the concatenating dimension), and the same numbers of sparse and "
                f"dense "
                f"dimensions, but found tensor of shape {list(array.shape)} and {array.sparse_dim} sparse dimensions "
                f"at "
                f"position {number}"
            )
    total = sum(one._memory_.shape[at] for one in tensors)
    shape = (*first.shape[:at], total, *first.shape[at + 1 :])
    offset, parts, values = 0, [], []
    for one in tensors:
        array = one._memory_
        indices = array.indices.copy()
        of_one = values_of(one)
        if at < array.sparse_dim:
            indices[at] += offset
        else:
            wide = list(of_one.shape)
            wide[at - array.sparse_dim + 1] = offset
            before = of_one.new_zeros(wide)
            wide[at - array.sparse_dim + 1] = total - offset - array.shape[at]
            of_one = ops.cat([before, of_one, of_one.new_zeros(wide)], at - array.sparse_dim + 1)
        parts.append(indices)
        values.append(of_one)
        offset += array.shape[at]
    return _made(ops.cat(values), np.concatenate(parts, 1), shape)


@coo()
def stack(tensors: Sequence[Any], dim: int = 0) -> Any:
    at = normalize_dim(dim, tensors[0]._memory_.ndim + 1)
    return cat([one.unsqueeze(at) for one in tensors], at)
