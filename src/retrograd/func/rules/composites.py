"""Rules of functions that are composed of operators and yet need one: because they make tensors, or compute on
arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._generated import functions as generated
from ...ops.registry import DECLARED
from ...tensor import Tensor
from ...tensor.special import all_values
from ..batched import RULES, Level, is_batched, reshaped, spread, wrap
from ..fallback import loop
from .patterns import folded, padded, shifted_all, unfolded

Function = Callable[..., Any]


def _declare(rule: Any, space: str, *names: str) -> None:
    for name in names:
        RULES[DECLARED[space][name]] = rule


def _like(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``zeros_like(x)``: as many as there are examples, so that each can write to its own."""
    kwargs = dict(kwargs)
    first, *rest = args if args else (kwargs.pop("input"),)
    if not is_batched(first, level):  # full_like(x, a value per example)
        first = wrap(spread(first, level), level)
    if (rest and isinstance(rest[0], Tensor)) or isinstance(kwargs.get("fill_value"), Tensor):
        value = kwargs.pop("fill_value") if "fill_value" in kwargs else rest[0]
        return function(first, 0, **kwargs).copy_(value)
    return wrap(function(first.value, *rest, **kwargs), level, first.bdim)


def _new(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``x.new_zeros(size)``: likewise."""
    first, *rest = args
    if "size" in kwargs:
        kwargs = {**kwargs, "size": (level.size, *kwargs["size"])}
        return wrap(function(first.value, *rest, **kwargs), level)
    if function.__name__ == "new_full":
        size, *rest = rest
        if isinstance(rest[0] if rest else kwargs.get("fill_value"), Tensor):
            return NotImplemented
        return wrap(function(first.value, (level.size, *size), *rest, **kwargs), level)
    size = rest[0] if len(rest) == 1 and not isinstance(rest[0], int) else rest
    return wrap(function(first.value, (level.size, *size), **kwargs), level)


def _new_strided(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    first, size, stride = args
    span = 1 + sum((n - 1) * step for n, step in zip(size, stride, strict=True)) if 0 not in size else 0
    return wrap(function(first.value, (level.size, *size), (span, *stride), **kwargs), level)


def _where(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if len(args) + len(kwargs) == 1:
        raise RuntimeError(
            "Attempted to vmap over aten::where with one argument, which gives the places of what is not zero: their "
            "number "
            "may be another for each example. Use torch.where(condition, a, b), or masks"
        )
    return NotImplemented


def _own_first(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Functions that copy their first argument and write to it: it has to be each example's own."""
    first, *rest = args
    if is_batched(first, level):
        return NotImplemented
    return function(wrap(spread(first, level), level), *rest, **kwargs)


def _as_strided(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    first, size, stride, *rest = args
    offset = rest[0] if rest else kwargs.get("storage_offset")
    if len(size) != len(stride):
        raise RuntimeError(
            f"Tensor.as_strided(size, stride, ...): size and stride must have the same length! Got size {list(size)} "
            "and "
            f"stride {list(stride)}"
        )
    value = first.value
    check_place(first, size, stride, offset)
    return wrap(function(value, (level.size, *size), (value.stride(first.bdim), *stride), offset), level)


def check_place(tensor: Any, size: Any, stride: Any, offset: int | None) -> None:
    """Is a view by strides of the first example within that? Else it would reach into the next one."""
    start = tensor.storage_offset()
    begin = start if offset is None else offset

    def end(first: int, sizes: Any, strides: Any) -> int:
        if 0 in sizes:
            return first
        return first + 1 + sum((n - 1) * step for n, step in zip(sizes, strides, strict=True))

    wanted, there = end(begin, size, stride), end(start, tensor.shape, tensor.stride())
    if wanted > begin and (begin < start or wanted > there):
        raise RuntimeError(
            f"result = tensor.as_strided({list(size)}, {list(stride)}, {begin}) can access memory outside of `tensor`: "
            f"it reads from {begin} to {wanted}, and an example of shape {list(tensor.shape)} lies from {start} to "
            f"{there}. This is not supported inside of vmap, where the next example lies behind it: write it as a "
            "sequence of view operations (narrow, select, unfold), or take the view outside"
        )


def _as_strided_scatter(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    first, source, *where = args
    result = wrap(spread(first, level).clone(), level)
    result.as_strided(*where, **kwargs).copy_(source)
    return result


def _isin(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Compare all with all."""
    given = dict(zip(("elements", "test_elements"), args, strict=False)) | kwargs
    elements, tests = [given.get(name, given.get(name[:-1])) for name in ("elements", "test_elements")]
    if not isinstance(elements, Tensor) or not isinstance(tests, Tensor):
        return loop(level, function, args, kwargs)
    found = (elements.unsqueeze(-1) == tests.reshape(-1)).any(-1)
    return ~found if given.get("invert") else found


def _attention(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Attention takes any leading dimensions."""
    ndim = max(value._memory_.ndim for value in args[:3])
    inner = [padded(spread(v, level), ndim) if isinstance(v, Tensor) else v for v in args]
    named = {k: padded(spread(v, level), ndim) if isinstance(v, Tensor) else v for k, v in kwargs.items()}
    if named.get("dropout_p", args[4] if len(args) > 4 else 0.0):
        return NotImplemented
    return wrap(function(*inner, **named), level)


def _cross_entropy(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Classes of which none is ignored, all counting alike: the rows of all examples together."""
    if len(args) != 2 or not kwargs.keys() <= {"reduction"}:
        return NotImplemented
    input, target = args
    reduction = kwargs.get("reduction", "mean")
    shape = input._memory_.shape
    if len(shape) != 2 or target._memory_.shape != shape[:1] or reduction not in ("none", "mean", "sum"):
        return NotImplemented
    if target._memory_.dtype.kind not in "iu" or (all_values(target) < 0).any() or not shape[0]:
        return NotImplemented
    losses = function(folded(spread(input, level)), folded(spread(target, level)), reduction="none")
    if shape[0] == 1 and reduction != "none":
        return wrap(losses, level)  # the mean of one
    losses = reshaped(losses, (level.size, shape[0]))
    if reduction != "none":
        losses = (generated.mean_dim if reduction == "mean" else generated.sum_dim_IntList)(losses, [1], False)
    return wrap(losses, level)


def _grid_sample(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """More images, and more grids, of the same kind."""
    images, grid, *rest = args
    result = function(folded(spread(images, level)), folded(spread(grid, level)), *rest, **kwargs)
    return wrap(unfolded(result, level.size), level)


def _hash_tensor(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Over the dimensions of an example."""
    named = dict(kwargs)
    input, *rest = args if args else (named.pop("input"),)
    dims = rest[0] if rest else named.pop("dim", ())
    value, ndim = spread(input, level), input._memory_.ndim
    if not ndim:
        value, ndim, dims = generated.unsqueeze(value, 1), 1, ()
        named.pop("keepdim", None)
    elif not input._memory_.size and dims in (None, (), []):
        return NotImplemented  # each example refuses
    return wrap(function(value, shifted_all(dims, ndim), **named), level)


def _of_all(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """One answer for all examples: by these functions programs ask what to do next."""
    (input,) = (*args, *kwargs.values())
    return function(input.value)


def register() -> None:
    _declare(_like, "torch", "zeros_like", "ones_like", "empty_like", "full_like")
    _declare(_new, "Tensor", "new_zeros", "new_ones", "new_empty", "new_full")
    _declare(_new_strided, "Tensor", "new_empty_strided")
    _declare(_where, "torch", "where")
    _declare(_own_first, "torch", "select_scatter", "slice_scatter", "diagonal_scatter")
    _declare(_as_strided, "torch", "as_strided")
    _declare(_as_strided_scatter, "torch", "as_strided_scatter")
    _declare(_isin, "torch", "isin")
    _declare(_hash_tensor, "torch", "hash_tensor")
    _declare(_of_all, "torch", "_is_all_true", "_is_any_true")
    _declare(_attention, "nn.functional", "scaled_dot_product_attention")
    _declare(_grid_sample, "nn.functional", "grid_sample")
    _declare(_cross_entropy, "nn.functional", "cross_entropy")
    _declare(loop, "torch", "nonzero_static", "embedding_bag")

