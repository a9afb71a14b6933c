"""Rules of operators that are themselves nearly compositions: distances, parts replaced, losses of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._generated import functions as generated
from ...kernels.dims import normalize_dim
from ...tensor import Tensor
from ..batched import Level, front, is_batched, not_inplace, reshaped, spread, wrap
from ..fallback import loop
from .linear_algebra import _alike
from .networks import _images
from .patterns import folded, over, put, unfolded, writes

Function = Callable[..., Any]

# ------------------------------------------------------------------------------------------------------------ distances


def _dist(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    a, b, p = args
    return generated._norm(a - b, p, None, False)


def _pdist(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    rows, p = args
    first, second = np.triu_indices(rows._memory_.shape[0], 1)
    return generated._norm(rows[first] - rows[second], p, [1], False)


def _renorm(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    first, p, dim, most = args
    kept = normalize_dim(dim, first._memory_.ndim)
    others = [d for d in range(first._memory_.ndim) if d != kept]
    norms = generated._norm(first, p, others, True) if others else first.abs()
    factor = generated.where_self(norms > most, most / (norms + 1e-7), 1.0).to(first.dtype)
    result = first * factor
    return first.copy_(result) if writes(function) else result


# ------------------------------------------------------------------------------------------------------- parts replaced


def _replaced(view: Callable[..., Tensor]) -> Any:
    """A copy with another tensor in place of a part of it."""

    def apply(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        first, source, *where = args
        result = wrap(spread(first, level).clone(), level)
        part = view(result, *where)
        if part._memory_.shape != source._memory_.shape:
            raise RuntimeError(
                f"expected src to have a size equal to that of the part of self: src size = {list(source.shape)}, "
                "slice "
                f"size = {list(part.shape)}"
            )
        part.copy_(source)
        return result

    return apply


def _narrow_copy(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    first, dim, start, length = args
    return generated.slice(first, dim, start, start + length, 1).clone()


def _block_diag(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    blocks = [block.reshape((1,) * (2 - block._memory_.ndim) + block._memory_.shape) for block in args[0]]
    width, before, rows = sum(block._memory_.shape[1] for block in blocks), 0, []
    dtype = np.result_type(*[block._memory_.dtype for block in blocks])
    for block in blocks:
        own = block._memory_.shape[1]
        rows.append(generated.constant_pad_nd(block.to(dtype), (before, width - before - own), 0))
        before += own
    return generated.cat(rows, 0)


def _index_reduce(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    target, dim, index, source, reduce = args
    if writes(function) and not is_batched(target, level):
        raise not_inplace(function.__name__, args[0])
    shape = [1] * (source._memory_.ndim or 1)
    shape[normalize_dim(dim, target._memory_.ndim)] = -1
    places = index.reshape(tuple(shape)).expand(source._memory_.shape or (1,))
    source = source.reshape(source._memory_.shape or (1,))
    number = not target._memory_.ndim
    result = generated.scatter_reduce(target.reshape(1) if number else target, dim, places, source, reduce, **kwargs)
    result = result.reshape(()) if number else result
    return target.copy_(result) if writes(function) else result


# ------------------------------------------------------------------------------------------------------- losses of rows


def _row_loss(reduction_at: int, weight_at: int | None = None) -> Any:
    """Losses of rows: those of all examples together, then reduced over each example."""

    def apply(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        input, target = args[:2]
        if weight_at is not None and args[weight_at] is not None and is_batched(args[weight_at], level):
            return loop(level, function, args, kwargs)
        rows, labels = spread(input, level), spread(target, level)
        if not input._memory_.ndim:  # one class
            rows = generated.unsqueeze(rows, 1)
        inner = list(args)
        reduction, inner[reduction_at] = inner[reduction_at], 0
        several = input._memory_.ndim > 1
        inner[:2] = [folded(rows), folded(labels)] if several else [rows, labels]
        losses = function(*inner)
        if several:
            losses = reshaped(losses, (level.size, input._memory_.shape[0]))
            if reduction:
                losses = (generated.mean_dim if reduction == 1 else generated.sum_dim_IntList)(losses, [1], False)
        return wrap(losses, level)

    return apply


# --------------------------------------------------------------------------------------------------------------- others


def _trilinear(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    tensors, expands, summed = args[:3], args[3:6], args[6]
    factors = [_with_dims(tensor, dims) for tensor, dims in zip(tensors, expands, strict=True)]
    product = factors[0] * factors[1] * factors[2]
    return generated.sum_dim_IntList(product, list(summed), False) if len(summed) else product


def _with_dims(tensor: Tensor, dims: Sequence[int]) -> Tensor:
    for dim in sorted(dims):
        tensor = generated.unsqueeze(tensor, dim)
    return tensor


def _affine_grid(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    theta, size, align = args
    result = function(folded(front(theta)), (level.size * size[0], *size[1:]), align)
    return wrap(unfolded(result, level.size), level)


def _attention(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    query, key, value, *rest = args
    mask = kwargs.get("attn_mask")
    if mask is not None:
        shape = (*query._memory_.shape[:-1], key._memory_.shape[-2])
        kwargs = {**kwargs, "attn_mask": folded(spread(mask.expand(shape), level))}
    result = function(*[folded(spread(one, level)) for one in (query, key, value)], *rest, **kwargs)
    return wrap(unfolded(result, level.size), level)


def register() -> None:
    over(2, "_norm")
    put(_dist, "_dist")
    put(_alike(), "_cdist", "_euclidean_dist")
    put(_pdist, "_pdist")
    put(_renorm, "_renorm")
    put(_replaced(generated.select), "_select_scatter")
    put(_replaced(generated.slice), "_slice_scatter")
    put(_replaced(generated.diagonal), "_diagonal_scatter")
    put(_narrow_copy, "_narrow_copy")
    put(_block_diag, "_block_diag")
    put(_index_reduce, "_index_reduce")
    put(_row_loss(5, 4), "multi_margin_loss")
    put(_row_loss(2), "multilabel_margin_loss")
    put(_images(tensors=2), "_max_unpool2d", "_max_unpool3d")
    put(_trilinear, "_trilinear")
    put(_affine_grid, "_affine_grid_generator")
    put(_images(whole=3), "channel_shuffle")
    put(_attention, "_attention")
