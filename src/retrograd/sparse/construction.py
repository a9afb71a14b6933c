"""New sparse tensors, and how they become tensors of other layouts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import kernels
from ..core import layout as layouts
from ..core.devices import as_device, default
from ..kernels import BscArray, BsrArray, CompressedArray, CscArray, CsrArray, SparseArray
from ..ops import namespace as ops
from ..ops.arguments import argument
from ..tensor import Tensor, wrap
from ..tensor.sparse import AnySparse, CompressedTensor, SparseTensor
from .derivatives import FromValues, ToCompressed, empty_array, on, to_coo, to_dense
from .invariants import check_compressed, check_coo, wanted

KINDS: dict[Any, type[CompressedArray]] = {
    layouts.sparse_csr: CsrArray, layouts.sparse_csc: CscArray, layouts.sparse_bsr: BsrArray,
    layouts.sparse_bsc: BscArray,
}  # fmt: skip


def _tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor, itself if it is one that is so already."""
    tensor = data if isinstance(data, Tensor) else ops.tensor(data, device=device)
    if dtype is not None and tensor.dtype is not dtype:
        tensor = tensor.to(dtype)
    return tensor if device is None or tensor.device == device else tensor.to(device)


def _index_array(name: str, indices: Any, values: Tensor) -> np.ndarray:
    """Indices, where the values are."""
    tensor = _tensor(indices, None, None if values._memory_.__class__ is np.ndarray else values.device)
    array = tensor._numbers_
    if array.dtype.kind not in "iuf":
        raise RuntimeError(f"{name} must be an int64 tensor, but got {tensor.dtype}")
    if values._memory_.__class__ is np.ndarray and hasattr(array, "place"):
        array = array.get()
    return array


def _finish(result: Any, requires_grad: bool) -> Any:
    return result.requires_grad_() if requires_grad else result


def sparse_coo_tensor(
    indices: Any = None,
    values: Any = None,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
    pin_memory: bool = False,
) -> Any:
    where = None if device is None else as_device(device)
    if values is None:  # sparse_coo_tensor(size)
        if indices is not None and size is not None:
            raise TypeError(
                "sparse_coo_tensor() received an invalid combination of arguments - got (indices, None, size): give "
                "values as well, or the size alone"
            )
        shape = _sizes("sparse_coo_tensor", indices if size is None else size)
        made = empty_array(shape, np.dtype(ops.empty(0, dtype=dtype)._memory_.dtype))
        result = on(made)
        where = default.device if where is None else where
        return _finish(result if where is None or where.place is None else result.to(where), requires_grad)
    of_values = _tensor(values, dtype, where)
    at = _index_array("indices", indices, of_values)
    if at.ndim != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(at.shape)}")
    if not of_values.ndim:
        of_values = of_values.unsqueeze(0) if not isinstance(values, Tensor) else of_values.expand(at.shape[1])
    at = at.astype(np.int64, copy=False)
    if size is None:
        size = _inferred_size(at, of_values)
    shape = _sizes("sparse_coo_tensor", size)
    check_coo(at, of_values.shape, shape, bool(is_coalesced), wanted(check_invariants) is not False)
    like = SparseArray(at, np.empty_like(of_values._numbers_, shape=(at.shape[1], *of_values.shape[1:])), shape)
    like.coalesced = bool(is_coalesced) or at.shape[1] < 2
    return _finish(FromValues.apply(of_values, like), requires_grad)


def _sizes(name: str, size: Any) -> tuple[int, ...]:
    """A shape that a user gave: ints, none of them negative."""
    shape = tuple(argument("int[]", name, "size", 3, size))
    if any(n < 0 for n in shape):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(shape)}: {list(shape)}")
    return shape


def _inferred_size(at: np.ndarray, values: Tensor) -> tuple[int, ...]:
    if at.shape[1]:
        least = at.min(1)
        if (least < 0).any():
            dim = int(np.argmax(least < 0))
            raise RuntimeError(f"found negative index {least[dim]} for dim {dim}")
        sizes = (at.max(1) + 1).tolist()
    else:
        sizes = [0] * at.shape[0]
    return (*sizes, *values.shape[1:])


def sparse_compressed(
    layout: Any, starts: Any, places: Any, values: Any, size: Any, dtype: Any, device: Any, requires_grad: bool,
    check_invariants: bool | None,
) -> Any:  # fmt: skip
    """A tensor of one of the compressed layouts."""
    where = None if device is None else as_device(device)
    kind = KINDS.get(layout)
    if kind is None:
        raise RuntimeError(
            f"sparse_compressed_tensor: expected layout to be one of sparse_csr, sparse_csc, sparse_bsr, sparse_bsc "
            f"but "
            f"got {layout}"
        )
    of_values = _tensor(values, dtype, where)
    named = ("compressed indices", starts), ("plain indices", places)
    lines, at = (_index_array(name, one, of_values) for name, one in named)
    if at.dtype.kind == "f" or lines.dtype.kind == "f":
        lines, at = lines.astype(np.int64), at.astype(np.int64)
    if size is None:
        size = _inferred_compressed_size(kind, lines, at, of_values)
    shape = _sizes("sparse_compressed_tensor", size)
    check_compressed(kind, lines, at, of_values.shape, shape, wanted(check_invariants))
    like = kind(lines.copy(), at.copy(), np.empty_like(of_values._numbers_), shape)
    return _finish(FromValues.apply(of_values, like), requires_grad)


def _inferred_compressed_size(
    kind: type[CompressedArray], starts: np.ndarray, places: np.ndarray, values: Tensor
) -> tuple[int, ...]:
    batch = starts.shape[:-1]
    block = values.shape[len(batch) + 1 : len(batch) + 3] if kind.blocks else (1, 1)
    sizes = [starts.shape[-1] - 1, int(places.max()) + 1 if places.size else 0]
    if not kind.by_rows:
        sizes.reverse()
    dense = values.shape[len(batch) + 1 + 2 * kind.blocks :]
    return (*batch, sizes[0] * block[0], sizes[1] * block[1], *dense)


def spdiags(diagonals: Tensor, offsets: Tensor, shape: Sequence[int], layout: Any = None) -> Any:
    """A sparse matrix with the rows of `diagonals` on its diagonals.

    >>> import retrograd as torch
    >>> torch.sparse.spdiags(torch.tensor([[1., 2.], [3., 4.]]), torch.tensor([0, -1]), (2, 2)).to_dense()
    tensor([[1., 0.],
            [3., 2.]])
    """
    rows = diagonals if diagonals.ndim == 2 else diagonals.unsqueeze(0)
    at = offsets.cpu()._numbers_.reshape(-1)
    if diagonals.ndim not in (1, 2):
        raise RuntimeError("Diagonals must be vector or matrix")
    if len(shape) != 2:
        raise RuntimeError("Output shape must be 2d")
    if offsets.ndim > 1:
        raise RuntimeError("Offsets must be scalar or vector")
    if at.dtype != np.int64:
        raise RuntimeError(f"Offset Tensor must have dtype Long but got {offsets.dtype}")
    if at.size != rows.shape[0]:
        raise RuntimeError(f"Number of diagonals ({rows.shape[0]}) does not match the number of offsets ({at.size})")
    if len(set(at.tolist())) != at.size:
        raise RuntimeError("Offset tensor contains duplicate values")
    m, n = (int(size) for size in shape)
    if layout not in (None, layouts.sparse_coo, layouts.sparse_csr, layouts.sparse_csc):
        raise RuntimeError(f"Only output layouts (Sparse, SparseCsc, SparseCsr) are supported, got {layout}")
    which, row, column = [], [], []
    for number, offset in enumerate(at.tolist()):
        columns = np.arange(max(0, offset), min(n, m + offset, rows.shape[1]))
        which.append(np.full(columns.size, number))
        row.append(columns - offset)
        column.append(columns)
    indices = np.stack([np.concatenate(row), np.concatenate(column)]) if row else np.zeros((2, 0), np.int64)
    taken = rows[wrap(np.concatenate(which)), wrap(indices[1])] if row else rows.reshape(-1)
    like = SparseArray(
        _index_array("indices", wrap(indices), rows), np.empty_like(rows._numbers_, shape=indices.shape[1]), (m, n)
    )
    result = FromValues.apply(taken, like)
    return result if layout in (None, layouts.sparse_coo) else to_layout(result, layout)


# ---------------------------------------------------------------------------------------------------------- conversions


def to_sparse(tensor: Any, sparse_dim: int | None = None, *, layout: Any = None, blocksize: Any = None,
              dense_dim: int | None = None) -> Any:  # fmt: skip
    if sparse_dim is not None and not isinstance(sparse_dim, int):
        layout, sparse_dim = sparse_dim, None
    if sparse_dim is not None and dense_dim is not None:
        raise TypeError("to_sparse() takes sparse_dim or dense_dim, not both: the one says what the other is")
    if layout is not None and layout is not layouts.sparse_coo:
        return to_layout(tensor, layout, blocksize, dense_dim)
    if blocksize is not None:
        _block(blocksize)
        raise RuntimeError("to_sparse for Strided to Sparse conversion does not use specified blocksize")
    if isinstance(tensor, SparseTensor):
        if sparse_dim is not None and sparse_dim != tensor._memory_.sparse_dim:
            raise RuntimeError(
                "to_sparse: conversion from Sparse to Sparse with sparse_dim argument !=self.sparse_dim() is not "
                "supported"
            )
        return tensor
    if isinstance(tensor, CompressedTensor):
        if sparse_dim is not None and sparse_dim != 2:
            raise RuntimeError(f"to_sparse: sparse_dim of a compressed tensor must be 2, but got {sparse_dim}")
        return to_coo(tensor)
    if sparse_dim is None:
        sparse_dim = tensor.ndim - (dense_dim or 0)
    if not 0 <= sparse_dim <= tensor.ndim or (tensor.ndim and not sparse_dim):
        raise (
            IndexError(
                f"sparse_dim argument must be in >0 when self.dim()>0: to_sparse of a tensor with {tensor.ndim} "
                f"dimensions "
                f"got sparse_dim {sparse_dim}"
            )
            if sparse_dim <= 0
            else RuntimeError(f"sparse_dim argument must be in range [1, {tensor.ndim}], but got {sparse_dim}")
        )
    return to_coo(tensor, sparse_dim)


def _block(blocksize: Any) -> tuple[int, int]:
    block = (blocksize, blocksize) if isinstance(blocksize, int) else tuple(int(n) for n in blocksize)
    if len(block) != 2 or min(block) < 1:
        got = len(block) if len(block) != 2 else list(block)
        raise RuntimeError(f"blocksize needs to be a tuple of two positive ints, but got {got}")
    return block  # type: ignore[return-value]


def to_layout(tensor: Any, layout: Any, blocksize: Any = None, dense_dim: int | None = None) -> Any:
    """Any tensor in any layout."""
    if layout is None or layout is layouts.strided:
        return to_dense(tensor)
    if layout is layouts.sparse_coo:
        return to_sparse(tensor)
    kind = KINDS[layout]
    name = f"to_{layout.name}"
    if kind.blocks:
        if blocksize is None:
            if isinstance(tensor, CompressedTensor) and tensor._memory_.blocks:
                blocksize = tensor._memory_.blocksize
            else:
                raise RuntimeError(f"{name}: conversion to {kind.layout_name} requires blocksize")
        block = _block(blocksize)
    else:
        if blocksize is not None:
            raise RuntimeError(f"{name}: conversion to {kind.layout_name} does not use specified blocksize")
        block = (1, 1)
    array = tensor._memory_
    if dense_dim is not None and not 0 <= dense_dim <= max(array.ndim - 2, 0):
        raise RuntimeError(
            f"{name}: dense_dim argument must be in [0,{array.ndim - 2}] range, but {dense_dim} is given"
        )
    if isinstance(array, SparseArray):
        if array.sparse_dim != 2:
            raise RuntimeError(
                f"{name}: conversion from Sparse to {kind.layout_name} for input tensors with sparse_dim()!=2 is not "
                "supported"
            )
        if dense_dim is not None:
            raise RuntimeError(f"{name}: conversion from Sparse does not use specified dense_dim")
    elif isinstance(array, CompressedArray):
        if dense_dim not in (None, array.dense_dim):
            raise RuntimeError(f"{name}: conversion from {array.layout_name} does not use specified dense_dim")
        if array.kind is kind and array.blocksize == block:
            return tensor
    dense = (array.dense_dim if isinstance(array, CompressedArray) else 0) if dense_dim is None else dense_dim
    if not isinstance(tensor, AnySparse) and tensor.ndim < dense + 2:
        raise RuntimeError(
            f"{name}: conversion from Strided to {kind.layout_name} requires a tensor of at least {dense + 2} "
            f"dimensions, but got {tensor.ndim}"
        )
    return ToCompressed.apply(tensor, kind, block, dense)


# -------------------------------------------------------------------------------------------- gradients that are sparse


def embedding_sparse_gradient(grad: Tensor, indices: Tensor, num_weights: int, padding_idx: int) -> Any:
    """As the kernel of this name, where the gradient is itself part of a graph."""
    rows = indices._numbers_.reshape(-1)
    width = grad.shape[-1]
    values = grad.reshape(rows.size, width)
    if padding_idx >= 0:
        kept = np.flatnonzero(rows != padding_idx)
        if kept.size != rows.size:
            rows, values = rows[kept], values.index_select(0, wrap(kept))
    like = SparseArray(
        rows[None].astype(np.int64), np.empty_like(grad._numbers_, shape=(rows.size, width)), (num_weights, width)
    )
    return FromValues.apply(values, like)


def gather_sparse_gradient(grad: Tensor, shape: Any, dim: int, index: Tensor) -> Any:
    """The same for `gather`."""
    like = kernels.gather_sparse_gradient(np.empty_like(grad._numbers_), tuple(shape), dim, index._numbers_)
    return FromValues.apply(grad.reshape(-1), like)
