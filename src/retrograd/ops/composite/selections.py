"""Products and combinations of vectors, runs of equal elements, places in a shape, reductions into places."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from ..._generated import functions as table
from ...kernels.dims import normalize_dim
from ...kernels.promotion import scalar_name, unsupported
from ...tensor import Tensor, fresh, wrap
from ..registry import composite
from .index import asked_for
from .shape import meshgrid


@composite(method=False)
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """Every combination of one element from each vector, as rows.

    >>> import retrograd as torch
    >>> torch.cartesian_prod(torch.tensor([1, 2]), torch.tensor([3, 4]))
    tensor([[1, 3],
            [1, 4],
            [2, 3],
            [2, 4]])
    """
    for tensor in tensors:
        if tensor._data.ndim != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(tensor._data.shape)}")
    if len(tensors) == 1:
        return tensors[0]
    grids = meshgrid(*tensors, indexing="ij")
    return table.stack([grid.reshape(-1) for grid in grids], 1)


@composite(method=False)
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Every choice of `r` elements of a vector, as rows.

    >>> import retrograd as torch
    >>> torch.combinations(torch.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    if input._data.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input._data.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return fresh(np.empty(0, input._data.dtype))
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    chosen = np.array(list(choose(range(input._data.shape[0]), r)), np.int64).reshape(-1, r)
    return table.index_select(input, 0, wrap(chosen.reshape(-1))).reshape(chosen.shape)


@composite()
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """`input` with runs of equal elements, or of equal slices along `dim`, made one.

    >>> import retrograd as torch
    >>> torch.unique_consecutive(torch.tensor([1, 1, 2, 1]))
    tensor([1, 2, 1])
    """
    if input._data.dtype.kind == "c":
        unsupported("unique", input._data.dtype)
    found = table._unique_consecutive(input, return_inverse, return_counts, dim)
    return asked_for(found, return_inverse, return_counts)


@composite(method=False)
def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """The coordinates, in a tensor of that shape, of elements counted in row-major order."""
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    if indices._data.dtype.kind not in "iu":
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    if any(n < 0 for n in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {sizes}")
    results = []
    rest = indices._data.astype(np.int64)
    for n in reversed(sizes):
        results.append(fresh(np.asarray(np.remainder(rest, n))))
        rest = np.asarray(np.floor_divide(rest, n))
    return tuple(reversed(results))


@composite(out=True)
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """`nonzero` with exactly `size` rows: cut, or filled up with `fill_value`."""
    found = table.nonzero(input)._data[:size]
    rows = np.full((size, found.shape[1]), fill_value, np.int64)
    rows[: len(found)] = found
    return fresh(rows)


# ---------------------------------------------------------------------------------------------------- reduced to places

_REDUCTIONS = ("prod", "mean", "amax", "amin")


@composite()
def index_reduce(
    input: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
    out: Tensor | None = None,
) -> Tensor:
    """`input` with the slices of `source` reduced into its slices at `index` along `dim`."""
    expanded = _index_for(input, dim, index, source, reduce)
    return table.scatter_reduce(input, dim, expanded, source, reduce, include_self=include_self, out=out)


@composite(space="Tensor")
def index_reduce_(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """In-place `index_reduce`."""
    expanded = _index_for(input, dim, index, source, reduce)
    return table.scatter_reduce_(input, dim, expanded, source, reduce, include_self=include_self)


def _index_for(input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str) -> Tensor:
    """The index of `scatter_reduce` that means the same: one for every element of `source`."""
    if reduce not in _REDUCTIONS:
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    if index._data.ndim > 1:
        raise IndexError("index_reduce_(): Index is supposed to be a vector")
    if input._data.dtype.kind in "bc":
        unsupported("index_func_", input._data.dtype)
    if source._data.dtype != input._data.dtype:
        raise RuntimeError(
            f"index_reduce_(): self ({scalar_name(input._data.dtype)}) and source "
            f"({scalar_name(source._data.dtype)}) must have the same scalar type"
        )
    if index._data.dtype not in (np.int32, np.int64):
        raise RuntimeError(
            f"index_reduce_(): Expected dtype int32/int64 for index but got: {scalar_name(index._data.dtype)}"
        )
    mine, theirs = list(input._data.shape), list(source._data.shape)
    dim = normalize_dim(dim, len(mine))
    count = theirs[dim] if len(theirs) > dim else 1
    if index._data.size != count:
        raise RuntimeError(
            f"index_reduce_(): Number of indices ({index._data.size}) should be equal to source.size(dim): ({count}), "
            f"for dim: {dim}"
        )
    if len(mine) != len(theirs) or mine[:dim] + mine[dim + 1 :] != theirs[:dim] + theirs[dim + 1 :]:
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = "
            f"{mine} source.shape = {theirs}"
        )
    sizes = [1] * max(len(theirs), 1)
    sizes[dim] = -1
    data = index._data.astype(np.int64).reshape(sizes)
    return wrap(np.broadcast_to(data, source._data.shape or (1,)).reshape(source._data.shape).copy())
