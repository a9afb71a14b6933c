"""Reading and writing at positions along a dimension."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ... import kernels
from ..._generated import functions as generated
from ...core.where import users_level
from ...kernels.dims import normalize_dim
from ...kernels.promotion import scalar_name, unsupported
from ...tensor import Tensor
from ...tensor.beside import beside
from ...tensor.special import all_values, like_array
from ..registry import composite
from ..support import not_a_tensor, number
from .index import _LONG


@composite()
def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """`input` with `value` (a number or a 0-d tensor) at the positions `index` along `dim`."""
    if isinstance(value, Tensor):
        return generated.index_fill_int_Tensor(input, dim, index, value)
    return generated.index_fill_int_Scalar(input, dim, index, number("index_fill", "value", 4, value))


@composite(space="Tensor")
def index_fill_(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """`index_fill` in place."""
    if isinstance(value, Tensor):
        return generated.index_fill_int_Tensor_(input, dim, index, value)
    return generated.index_fill_int_Scalar_(input, dim, index, number("index_fill_", "value", 4, value))


@composite()
def scatter(
    input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None,
    out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """`input` with `src` (a tensor or a number) written where ``gather(input, dim, index)`` would read.

    >>> import retrograd as torch
    >>> torch.zeros(3).scatter(0, torch.tensor([2, 0]), torch.tensor([5., 6.]))
    tensor([6., 0., 5.])
    """
    source = _scatter_source(src, value)
    if reduce is not None:
        name = _scatter_reduction(reduce, source)
        source = source if isinstance(source, Tensor) else _filled_like(index, source, input)
        return generated.scatter_reduce(input, dim, index, source, name, out=out)
    if isinstance(source, Tensor):
        return generated.scatter_src(input, dim, index, source, out=out)
    return generated.scatter_value(input, dim, index, number("scatter", "value", 4, source), out=out)


@composite(space="Tensor")
def scatter_(
    input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None
) -> Tensor:
    """`scatter` in place."""
    source = _scatter_source(src, value)
    if reduce is not None:
        name = _scatter_reduction(reduce, source)
        source = source if isinstance(source, Tensor) else _filled_like(index, source, input)
        return generated.scatter_reduce_(input, dim, index, source, name)
    if isinstance(source, Tensor):
        return generated.scatter_src_(input, dim, index, source)
    return generated.scatter_value_(input, dim, index, number("scatter_", "value", 4, source))


def _scatter_source(src: Any, value: Any) -> Any:
    if (src is None) == (value is None):
        raise TypeError("scatter(): expected exactly one of 'src' (a Tensor) and 'value' (a number)")
    return value if src is None else src


def _scatter_reduction(reduce: str, source: Any) -> str:
    if reduce not in ("add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    if isinstance(source, Tensor):
        warnings.warn(
            "The reduce argument of torch.scatter with Tensor src is deprecated and will be removed in a future "
            "PyTorch release. Use torch.scatter_reduce instead for more reduction options.",
            UserWarning,
            stacklevel=users_level(),
        )
    return "sum" if reduce == "add" else "prod"


def _filled_like(index: Tensor, value: Any, like: Tensor) -> Tensor:
    # A number as the source of a scatter.
    number = kernels.cast_number(value, like._memory_.dtype)
    return beside(like, np.full_like(like_array(like), number, shape=index._memory_.shape))


@composite()
def take_along_dim(
    input: Tensor, indices: Tensor, dim: int | None = None, *, out: Tensor | None = None
) -> Tensor:
    """As `gather`, the other dimensions broadcast; along the flattened tensor without a `dim`.

    >>> import retrograd as torch
    >>> x = torch.tensor([[3., 1.], [2., 4.]])
    >>> torch.take_along_dim(x, x.argmax(1, keepdim=True), 1)
    tensor([[3.],
            [4.]])
    """
    if not isinstance(indices, Tensor):
        raise not_a_tensor("take_along_dim", "indices", 2, indices)
    if indices._memory_.dtype != _LONG:
        raise RuntimeError(
            "torch.take_along_dim(): dtype of indices should be Long but got "
            + kernels.scalar_name(indices._memory_.dtype)
        )
    if dim is None:
        return generated.gather(input.reshape(-1), 0, indices.reshape(-1), out=out)
    n = input._memory_.ndim
    dim = normalize_dim(dim, n)
    if n != indices._memory_.ndim:
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{n} dimensions for input, and {indices._memory_.ndim} dimensions for indices"
        )
    if not n:
        return generated.gather(input, dim, indices, out=out)
    mine, theirs = list(input._memory_.shape), list(indices._memory_.shape)
    along, mine[dim], theirs[dim] = (mine[dim], theirs[dim]), 1, 1
    common = list(kernels.broadcast_shape(np.empty(mine, bool), np.empty(theirs, bool)))
    mine, theirs = common[:], common
    mine[dim], theirs[dim] = along
    return generated.gather(input.expand(mine), dim, _from_start(indices, along[0]).expand(theirs), out=out)


def _from_start(indices: Tensor, n: int) -> Tensor:
    """Indices of which some may count from the end."""
    return generated.where_self(indices < 0, indices + n, indices) if (all_values(indices) < 0).any() else indices


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
    _check_index_reduce(input, dim, index, source, reduce)
    return generated._index_reduce(input, dim, index, source, reduce, include_self=include_self, out=out)


@composite(space="Tensor")
def index_reduce_(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """In-place `index_reduce`."""
    _check_index_reduce(input, dim, index, source, reduce)
    return generated._index_reduce_(input, dim, index, source, reduce, include_self=include_self)


def _check_index_reduce(input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str) -> None:
    if reduce not in _REDUCTIONS:
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    if index._memory_.ndim > 1:
        raise IndexError("index_reduce_(): Index is supposed to be a vector")
    if input._memory_.dtype.kind in "bcW":
        unsupported("index_func_", input._memory_.dtype)
    if source._memory_.dtype != input._memory_.dtype:
        raise RuntimeError(
            f"index_reduce_(): self ({scalar_name(input._memory_.dtype)}) and source "
            f"({scalar_name(source._memory_.dtype)}) must have the same scalar type"
        )
    if index._memory_.dtype not in (np.int32, np.int64):
        raise RuntimeError(
            f"index_reduce_(): Expected dtype int32/int64 for index but got: {scalar_name(index._memory_.dtype)}"
        )
    mine, theirs = list(input._memory_.shape), list(source._memory_.shape)
    dim = normalize_dim(dim, len(mine))
    count = theirs[dim] if len(theirs) > dim else 1
    if index._memory_.size != count:
        raise RuntimeError(
            f"index_reduce_(): Number of indices ({index._memory_.size}) should be equal to source.size(dim): ({count})"
            f", for dim: {dim}"
        )
    if len(mine) != len(theirs) or mine[:dim] + mine[dim + 1 :] != theirs[:dim] + theirs[dim + 1 :]:
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = "
            f"{mine} source.shape = {theirs}"
        )
