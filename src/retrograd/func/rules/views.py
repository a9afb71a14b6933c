"""Views of examples are views of the values, with the examples in front."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._generated import functions as generated
from ...kernels.dims import normalize_dim
from ...tensor import wrap as plain
from ..batched import Level, front, wrap, wrap_all
from .composites import check_place
from .patterns import leading, put, rule, shifted

Function = Callable[..., Any]


def _sizes(size: Any) -> tuple[int, ...]:
    """The sizes of ``f(x, 2, 3)`` or ``f(x, (2, 3))``."""
    if isinstance(size, int):
        return (size,)
    if len(size) == 1 and isinstance(size[0], (tuple, list)):
        size = size[0]
    return tuple([n.__index__() for n in size])


def _inferred(size: tuple[int, ...], shape: Sequence[int]) -> tuple[int, ...]:
    """A size with its -1 filled in, where one example says it and a batch, which may be empty, would not."""
    if -1 not in size or size.count(-1) > 1:
        return size
    known = math.prod(n for n in size if n != -1)
    total = math.prod(shape)
    if known == 0 or total % known:
        return size  # refused by the operator
    return tuple([total // known if n == -1 else n for n in size])


def _view(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    first, size = args
    return wrap(function(front(first), (level.size, *_inferred(_sizes(size), first._memory_.shape))), level)


def _spread_view(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    first, *size = args
    return wrap(function(front(first), level.size, *_inferred(_sizes(size), first._memory_.shape)), level)


def _expand(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    first, *given = args
    size = _sizes(given)
    value, shape = front(first), first._memory_.shape
    missing = len(size) - len(shape)
    if missing > 0:
        value = generated.view(value, (level.size, *(1,) * missing, *shape))
    return wrap(generated.expand(value, level.size, *size), level)


def _squeeze(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    (first,) = args
    ones = [i + 1 for i, n in enumerate(first._memory_.shape) if n == 1]
    value = front(first)
    return wrap(generated.squeeze_dims(value, ones) if ones else generated.alias(value), level)


def _squeeze_dim(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    first, dim = args
    ndim, value = first._memory_.ndim, front(first)
    if ndim == 0:
        if dim not in (-1, 0):
            # (torch's type, of an example that is a number)
            raise RuntimeError(
                f"Dimension is out of range (expected to be in range of [-1, 0], but got {dim}): inside of vmap an "
                "example is a number here"
            )
        return wrap(generated.alias(value), level)
    return wrap(function(value, shifted(dim, ndim)), level)


def _squeeze_dims(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    first, dims = args
    ndim, value = first._memory_.ndim, front(first)
    found = [shifted(dim, ndim) for dim in ((dims,) if isinstance(dims, int) else dims)]
    if ndim == 0 or not found:
        return wrap(generated.alias(value), level)
    return wrap(function(value, found), level)


def _unsqueeze(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    first, dim = args
    return wrap(function(front(first), normalize_dim(dim, first._memory_.ndim + 1) + 1), level)


def _one_dim(position: int) -> Any:
    """Views along one dimension, which must be there."""

    def apply(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        first = args[0]
        ndim = first._memory_.ndim
        if ndim == 0:
            function(_number_like(first), *args[1:], **kwargs)  # refused in the operator's own words
            raise IndexError(f"{function.__name__}() cannot be applied to a 0-dim tensor.")
        inner = [front(first), *args[1:]]
        inner[position] = shifted(inner[position], ndim)
        return wrap_all(function(*inner, **kwargs), level)

    return apply


def _number_like(tensor: Any) -> Any:
    return plain(np.zeros((), tensor._memory_.dtype))


def _transpose(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    first, one, other = args
    ndim = first._memory_.ndim
    one, other = shifted(one, ndim), shifted(other, ndim)
    if ndim == 0 or one == other:
        return first
    return wrap(function(front(first), one, other), level)


def _t(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    (first,) = args
    ndim = first._memory_.ndim
    if ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {ndim}D")
    value = front(first)
    return wrap(generated.transpose(value, 1, 2) if ndim == 2 else generated.alias(value), level)


def _permute(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    first, *dims = args
    ndim = first._memory_.ndim
    order = _sizes(dims) if dims else ()
    if len(order) != ndim:
        raise RuntimeError(
            f"permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {ndim} is not equal to len(dims) = {len(order)}"
        )
    return wrap(function(front(first), 0, *[normalize_dim(dim, ndim) + 1 for dim in order]), level)


def _diagonal(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    first, offset, dim1, dim2 = args
    ndim = first._memory_.ndim
    return wrap(function(front(first), offset, shifted(dim1, ndim), shifted(dim2, ndim)), level)


def _unfold(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    first, dim, size, step = args
    ndim = first._memory_.ndim
    value = front(first)
    if ndim:
        return wrap(function(value, shifted(dim, ndim), size, step), level)
    # A number is unfolded to a vector of one.
    return wrap(function(generated.unsqueeze(value, 1), 1, size, step)[:, 0], level)


def _as_strided(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    first, size, stride, offset, _geometry = args
    check_place(first, size, stride, offset)
    return wrap(first.value.as_strided(
        (level.size, *size), (first.value.stride(first.bdim), *stride), offset
    ), level)


def _view_as_complex(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if not args[0]._memory_.ndim:
        raise RuntimeError("Input tensor must have one or more dimensions")
    return wrap(function(front(args[0])), level)


def register() -> None:
    put(_view, "view")
    put(_spread_view, "_reshape_alias", "_unsafe_view")
    put(_expand, "expand")
    put(_squeeze, "squeeze")
    put(_squeeze_dim, "squeeze_dim", "_squeeze_result")
    put(_squeeze_dims, "squeeze_dims")
    put(_unsqueeze, "unsqueeze")
    put(leading, "view_as_real", "view_dtype")
    put(_view_as_complex, "view_as_complex")
    put(_transpose, "transpose")
    put(_t, "t")
    put(_permute, "permute")
    put(_one_dim(1), "select", "slice", "unbind")
    put(_one_dim(2), "split_Tensor", "split_with_sizes", "unsafe_split_Tensor", "unsafe_split_with_sizes")
    put(_diagonal, "diagonal")
    put(_unfold, "unfold")
    put(_as_strided, "as_strided_geometry")


__all__ = ["register", "rule"]
