"""Joining, repeating, flipping, padding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._generated import functions as generated
from ...kernels.dims import normalize_dim
from ...tensor import Tensor
from ..batched import Level, front, is_batched, spread, wrap
from .patterns import flattened, leading, put, shifted
from .views import _sizes

Function = Callable[..., Any]


def _values(tensors: Any, level: Level) -> list[Tensor]:
    return [spread(tensor, level) for tensor in tensors]


def _cat(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    tensors, dim = args
    # An empty vector goes with everything.
    ndim = max(tensor._memory_.ndim for tensor in tensors)
    if any(tensor._memory_.ndim != ndim for tensor in tensors):
        tensors = [tensor for tensor in tensors if tensor._memory_.shape != (0,)]
    if ndim == 0:
        raise RuntimeError("zero-dimensional tensor (at position 0) cannot be concatenated")
    return wrap(function(_values(tensors, level), shifted(dim, ndim)), level)


def _stack(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    tensors, dim = args
    return wrap(function(_values(tensors, level), normalize_dim(dim, tensors[0]._memory_.ndim + 1) + 1), level)


def _flip(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    first, *dims = args
    ndim = first._memory_.ndim
    found = [shifted(dim, ndim) for dim in (_sizes(dims) if dims else ())]
    value = front(first)
    return wrap(function(value, *found) if found and ndim else value.clone(), level)


def _roll(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    first, shifts, dims = args
    value, ndim = front(first), first._memory_.ndim
    if dims is not None and (isinstance(dims, int) or len(dims)):
        found = [shifted(dim, ndim) for dim in ((dims,) if isinstance(dims, int) else dims)]
        return wrap(function(value, shifts, found), level)
    flat = function(flattened(value), shifts, [1])
    return wrap(flat.reshape(value._memory_.shape), level)


def _rot90(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    first, k, dims = args
    ndim = first._memory_.ndim
    return wrap(function(front(first), k, [shifted(dim, ndim) for dim in dims]), level)


def _repeat(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    first, *given = args
    repeats = _sizes(given)
    value, shape = front(first), first._memory_.shape
    missing = len(repeats) - len(shape)
    if missing > 0:
        value = generated.view(value, (level.size, *(1,) * missing, *shape))
    return wrap(function(value, 1, *repeats), level)


def _diag_embed(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    first, offset, dim1, dim2 = args
    ndim = first._memory_.ndim + 1
    return wrap(function(front(first), offset, shifted(dim1, ndim), shifted(dim2, ndim)), level)


def _backward(*dims: int) -> Any:
    """The gradients of views: zeros of the input's sizes (at position 1), with the gradient in its place."""

    def apply(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        first, sizes = args[0], args[1]
        inner = [front(first), (level.size, *sizes), *args[2:]]
        for position in dims:
            inner[position] = shifted(inner[position], len(sizes))
        return wrap(function(*inner, **kwargs), level)

    return apply


def _matrix(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """tril and triu: of the last two dimensions, which must be those of an example."""
    if args[0]._memory_.ndim < 2:
        name = function.__name__.rstrip("_")
        raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
    return leading(level, function, args, kwargs)


def _pad(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    first, pad, value = args
    if len(pad) > 2 * first._memory_.ndim:
        raise RuntimeError(
            f"Length of pad should be no more than twice the number of dimensions of the input. Pad length is "
            f"{len(pad)} while the input has {first._memory_.ndim} dimensions."
        )
    return wrap(function(front(first), pad, value), level)


def register() -> None:
    put(_cat, "cat")
    put(_stack, "stack")
    put(_flip, "flip")
    put(_roll, "roll")
    put(_rot90, "rot90")
    put(_repeat, "repeat")
    put(_diag_embed, "diag_embed")
    put(_backward(2), "select_backward", "slice_backward", "unfold_backward")
    put(_backward(3, 4), "diagonal_backward")
    put(_matrix, "tril", "triu")
    put(_pad, "constant_pad_nd")


__all__ = ["is_batched", "register"]
