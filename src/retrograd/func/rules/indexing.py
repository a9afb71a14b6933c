"""Subscripts, and reading and writing at positions."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._generated import functions as generated
from ...kernels.dims import normalize_dim
from ...ops.composite.index import index_put as composite_index_put
from ...ops.composite.index import index_put_ as composite_index_put_
from ...tensor import Tensor
from ...tensor import wrap as plain
from ..batched import RULES, Level, dynamic_shape, front, is_batched, not_inplace, spread, wrap
from .patterns import flattened, padded, put, shifted, writes

Function = Callable[..., Any]
_ALL = builtins.slice(None)


# ----------------------------------------------------------------------------------------------------------- subscripts


def _is_mask(index: Tensor) -> bool:
    return index._memory_.dtype.kind == "b" or index._memory_.dtype == np.uint8


def _indices(item: Any, level: Level) -> list[Tensor]:
    """An entry of a key that is no int, slice, None or Ellipsis, as one tensor of positions per dimension."""
    if not isinstance(item, Tensor):
        array = np.asarray(item)
        item = plain(array.astype(np.int64) if not array.size else array)
    if not _is_mask(item):
        return [item]
    if is_batched(item, level):
        raise dynamic_shape("index", "a mask chooses another number of elements in each example")
    return list(item.nonzero().unbind(1)) if item._memory_.ndim else [item.nonzero().reshape(-1)]


def _apart(self: Tensor, key: Any, level: Level) -> tuple[Tensor, list[Tensor | None] | None]:
    """``self[key]`` as a view of `self` and the positions of an indexing of it, one per dimension; None if no more."""
    items: list[Any] = list(key) if isinstance(key, tuple) else [key]
    entries: list[Any] = []
    for item in items:
        if item is None or item is Ellipsis or (isinstance(item, (builtins.slice, int)) and not isinstance(item, bool)):
            entries.append(item)
        elif isinstance(item, Tensor) and not item._memory_.ndim and item._special_ is None and not _is_mask(item):
            entries.append(item)  # an int, but one that a result of `index` depends on
        else:
            entries += _indices(item, level)
    taken = sum(entry is not None and entry is not Ellipsis for entry in entries)
    if taken > self._memory_.ndim:
        raise IndexError(f"too many indices for tensor of dimension {self._memory_.ndim}")
    if not any(entry is Ellipsis for entry in entries):
        entries.append(Ellipsis)
    at = next(i for i, entry in enumerate(entries) if entry is Ellipsis)
    entries[at : at + 1] = [_ALL] * (self._memory_.ndim - taken)

    view, dim = self, 0
    positions: list[Tensor | None] = []
    for entry in entries:
        if entry is None:
            view = generated.unsqueeze(view, dim)
        elif isinstance(entry, builtins.slice):
            if entry != _ALL:
                bounds = entry.start, entry.stop, entry.step
                start, stop, step = [None if b is None else b.__index__() for b in bounds]
                view = generated.slice(view, dim, start, stop, 1 if step is None else step)
        elif isinstance(entry, int):
            view = generated.select(view, dim, entry)
            continue
        else:
            positions.append(entry)
            dim += 1
            continue
        positions.append(None)
        dim += 1
    return view, positions if any(p is not None for p in positions) else None


def _getitem(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    self, key = args
    view, positions = _apart(self, key, level)
    if positions is None:
        return generated.alias(view) if view is self else view
    return _read(level, view, positions)


def _layout(positions: Sequence[Tensor | None]) -> tuple[int, int, bool]:
    """How many dimensions the indices have together, where they begin, and whether they stand side by side."""
    given = [i for i, position in enumerate(positions) if position is not None]
    ndim = max(positions[i]._memory_.ndim for i in given)  # type: ignore[union-attr]
    return ndim, given[0], given[-1] - given[0] == len(given) - 1


def _of_examples(level: Level, positions: Sequence[Tensor | None], ndim: int) -> list[Any]:
    """The indices as a key, those that are batched with the examples in front."""
    return [
        _ALL if p is None else padded(front(p), ndim) if is_batched(p, level) else p  # type: ignore[arg-type]
        for p in positions
    ]


def _counter(level: Level, ndim: int) -> Tensor:
    return plain(np.arange(level.size).reshape(level.size, *(1,) * ndim))


def _read(level: Level, view: Tensor, positions: list[Tensor | None]) -> Any:
    ndim, begin, side_by_side = _layout(positions)
    some = any(is_batched(p, level) for p in positions)
    key = _of_examples(level, positions, ndim)
    if not some:
        if not is_batched(view, level):
            return view[tuple(key)]
        return wrap(front(view)[(_ALL, *key)], level, 0 if side_by_side else ndim)  # type: ignore[arg-type]
    if not is_batched(view, level):
        return wrap(view[tuple(key)], level, begin if side_by_side else 0)
    result = front(view)[(_counter(level, ndim), *key)]  # type: ignore[arg-type]
    if side_by_side and begin:
        # The examples and the indices stand in front; the indices belong behind what stood before them.
        rest = range(1 + ndim + begin, result._memory_.ndim)
        result = generated.permute(result, 0, *range(1 + ndim, 1 + ndim + begin), *range(1, 1 + ndim), *rest)
    return wrap(result, level)


def _setitem(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    self, key, value = args
    if isinstance(key, Tensor) and key._memory_.dtype.kind == "b" and is_batched(key, level):
        _write_mask(level, self, key, value)
        return
    view, positions = _apart(self, key, level)
    if positions is not None:
        _put_in_place(level, view, positions, _as_written(value, view), False)
        return
    if not isinstance(value, Tensor):
        view.fill_(value)
        return
    if is_batched(value, level) and not is_batched(view, level):
        raise not_inplace("copy_", view)
    value = _as_written(value, view)
    while value._memory_.ndim > view._memory_.ndim and value._memory_.shape[0] == 1:
        value = generated.select(value, 0, 0)
    view.copy_(value)


def _write_mask(level: Level, self: Tensor, mask: Tensor, value: Any) -> None:
    """``x[mask] = value`` with a mask per example: only for one value, which goes to all that are chosen."""
    if not is_batched(self, level):
        raise not_inplace("index_put_", self)
    if isinstance(value, Tensor) and value._memory_.size != 1:
        raise dynamic_shape("index_put_", "a mask chooses another number of elements in each example")
    missing = self._memory_.ndim - mask._memory_.ndim
    for _ in range(missing):
        mask = generated.unsqueeze(mask, -1)
    if isinstance(value, Tensor):
        generated.copy_(self, generated.where_self(mask, value.reshape(()).to(self._memory_.dtype), self))
    else:
        generated.masked_fill_Scalar_(self, mask, value)


def _as_written(value: Any, target: Tensor) -> Any:
    if isinstance(value, Tensor) and value._memory_.dtype != target._memory_.dtype:
        return value.to(target._memory_.dtype)
    return value


# ------------------------------------------------------------------------------------------------------------ index_put


def _tensors(indices: Sequence[Any], level: Level) -> list[Tensor | None]:
    """The indices of the operators, arrays or tensors, masks resolved."""
    found: list[Tensor | None] = []
    for index in indices:
        if index is None:
            found.append(None)
        else:
            found += _indices(index if isinstance(index, Tensor) else plain(index), level)
    return found


def _index(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return _read(level, args[0], _tensors(args[1], level))


def _put_in_place(level: Level, target: Tensor, positions: list[Tensor | None], values: Any, accumulate: bool) -> None:
    """Write (or add) `values` to a tensor at positions."""
    if not is_batched(target, level):
        raise not_inplace("index_put_", target)
    ndim, begin, side_by_side = _layout(positions)
    key = [_counter(level, ndim), *_of_examples(level, positions, ndim)]
    value = front(target)  # type: ignore[arg-type]
    if isinstance(values, Tensor):
        batched = spread(values, level)
        shape = np.broadcast_shapes(*[p._memory_.shape for p in positions if p is not None])
        rest = [n for n, p in zip(target._memory_.shape, [*positions, *[None] * target._memory_.ndim]) if p is None]
        before = begin if side_by_side else 0
        region = (*rest[:before], *shape, *rest[before:])
        batched = generated.expand(padded(batched, len(region)), level.size, *region)
        if before:  # as memory has it: the indices in front
            order = [*range(1 + before, 1 + before + ndim), *range(1, 1 + before)]
            batched = generated.permute(batched, 0, *order, *range(1 + before + ndim, batched._memory_.ndim))
        values = batched
    composite_index_put_(value, [None if k is _ALL else k for k in key], values, accumulate)


def _index_put(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    target, indices, values, *rest = args
    accumulate = bool(rest[0]) if rest else kwargs.get("accumulate", False)
    one = indices[0] if len(indices) == 1 else None
    mask = isinstance(one, Tensor) and is_batched(one, level) and _is_mask(one) and not accumulate
    if not (function.__name__ == "index_put_" or writes(function)):  # (or a wrapper of it, whose record is none)
        copied = spread(target, level).clone()
        target = wrap(copied, level)
    if mask:
        _write_mask(level, target, one, values)  # type: ignore[arg-type]
    else:
        _put_in_place(level, target, _tensors(indices, level), values, accumulate)
    return target


def _index_backward(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    grad, sizes, indices = args
    zeros = wrap(_zeros(grad, (level.size, *sizes)), level)
    _put_in_place(level, zeros, _tensors(indices, level), grad, True)
    return zeros


def _zeros(like: Tensor, shape: Sequence[int]) -> Tensor:
    """Zeros of a shape, batched as `like` is at the levels outside."""
    value = like.value if hasattr(like, "value") else like
    return value.new_zeros(tuple(shape))


# ------------------------------------------------------------------------------------------------ along a dimension


def _at(position: int, *tensors: int, sizes: int | None = None) -> Any:
    """Operators whose `tensors` lie alike, along the dimension given at `position`."""

    def apply(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        inner = list(args)
        ndim = args[tensors[0]]._memory_.ndim if sizes is None else len(args[sizes])
        for i in tensors:
            value = spread(args[i], level)
            inner[i] = generated.unsqueeze(value, 1) if value._memory_.ndim == 1 else value
        inner[position] = shifted(args[position], ndim)
        if sizes is not None:
            inner[sizes] = (level.size, *(args[sizes] or (1,)))
        in_place = writes(function)
        if in_place and not is_batched(args[0], level):
            raise not_inplace(function.__name__, args[0])
        result = function(*inner, **kwargs)
        if in_place:
            return args[0]
        number = ndim == 0 and (sizes is not None or args[tensors[-1]]._memory_.ndim == 0)
        return wrap(generated.view(result, (level.size,)) if number else result, level)

    return apply


def _placed(index: Tensor, ndim: int, dim: int) -> Tensor:
    """A batch of vectors of positions, along dimension `dim` of values of `ndim` dimensions with the examples in
    front."""
    shape = [1] * ndim
    shape[0], shape[dim] = index._memory_.shape
    return generated.view(index, tuple(shape))


def _index_select(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    self, dim, index = args
    ndim = self._memory_.ndim
    if ndim == 0:  # a number has one place
        self, ndim, dim = generated.unsqueeze(self, 0), 1, 0
        return generated.squeeze_dim(function(self, dim, index.reshape(-1)), 0)
    at = normalize_dim(dim, ndim)
    if not is_batched(index, level):
        return wrap(function(front(self), at + 1, index), level)
    positions: list[Tensor | None] = [None] * ndim
    positions[at] = index.reshape(-1)
    return _read(level, self, positions)


def _index_select_backward(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    grad, sizes, dim, index = args
    if not sizes:
        return grad.sum().reshape(())
    positions: list[Tensor | None] = [None] * len(sizes)
    positions[normalize_dim(dim, len(sizes))] = index.reshape(-1)
    zeros = wrap(_zeros(grad if is_batched(grad, level) else index, (level.size, *sizes)).to(grad.dtype), level)
    _put_in_place(level, zeros, positions, grad, True)
    return zeros


def _index_write(kind: str) -> Any:
    """index_add and index_copy."""

    def apply(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        target, dim, index, source = args
        in_place = writes(function)
        if not is_batched(target, level):
            if in_place:
                raise not_inplace(function.__name__, args[0])
            target = wrap(spread(target, level).clone(), level)
        elif not in_place:
            target = target.clone()
        ndim = target._memory_.ndim
        place = generated.unsqueeze(target, 0) if ndim == 0 else target
        positions: list[Tensor | None] = [None] * (ndim or 1)
        positions[normalize_dim(dim, ndim)] = index.reshape(-1)
        if isinstance(source, Tensor) and not source._memory_.ndim:
            source = source.reshape(1)
        if kind == "add" and kwargs.get("alpha", 1) != 1:
            source = source * kwargs["alpha"]
        _put_in_place(level, place, positions, _as_written(source, target), kind == "add")
        return args[0] if in_place else target

    return apply


def _index_fill(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The places along the dimension that are named, be it twice, take one value."""
    target, dim, index, value = args
    if writes(function) and not is_batched(target, level):
        raise not_inplace(function.__name__, args[0])
    ndim = target._memory_.ndim
    at = normalize_dim(dim, ndim)
    count = target._memory_.shape[at] if ndim else 1
    places = index.reshape(-1)
    places = generated.where_self(places < 0, places + count, places)
    chosen = (plain(np.arange(count)).reshape(-1, 1) == places).any(-1)
    chosen = chosen.reshape((-1, *(1,) * (ndim - at - 1)) if ndim else ())
    value = value.to(target.dtype) if isinstance(value, Tensor) else value
    if isinstance(value, Tensor):
        result = generated.where_self(chosen, value, target)
    else:
        result = generated.masked_fill_Scalar(target, chosen, value)
    return target.copy_(result) if writes(function) else result


def _take(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    self, index = args
    flat = wrap(flattened(front(self)), level) if is_batched(self, level) else self.reshape(-1)
    return _read(level, flat, [index])


def _put(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    self, index, source, *rest = args
    accumulate = bool(rest[0]) if rest else kwargs.get("accumulate", False)
    in_place = writes(function)
    if in_place and not is_batched(self, level):
        raise not_inplace(function.__name__, args[0])
    value = spread(self, level)
    flat = wrap(flattened(value).clone(), level)
    _put_in_place(level, flat, [index.reshape(-1)], source.reshape(-1), accumulate)
    result = wrap(flat.value.reshape(value._memory_.shape), level)
    return self.copy_(result) if in_place else result


def _selecting_backward(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    grad, dim, indices, sizes, keepdim = args
    values = [spread(grad, level), spread(indices, level)]
    if not sizes:
        return wrap(values[0], level)
    return wrap(function(values[0], shifted(dim, len(sizes)), values[1], (level.size, *sizes), keepdim), level)


# ---------------------------------------------------------------------------------------------------- searching, masks


def _searchsorted(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    edges, values = args
    sorter = kwargs.get("sorter")
    if not is_batched(edges, level) and (sorter is None or not is_batched(sorter, level)):
        if edges._memory_.ndim == 1:
            return wrap(function(edges, values.value, **kwargs), level, values.bdim)
    rows = spread(edges, level)
    named = dict(kwargs)
    if sorter is not None:
        named["sorter"] = spread(sorter, level)
    if not isinstance(values, Tensor):
        values = plain(np.asarray(values, edges._memory_.dtype))
    given = spread(values, level)
    if edges._memory_.ndim == 1:
        shape = given._memory_.shape
        return wrap(function(rows, flattened(given), **named).reshape(shape), level)
    return wrap(function(rows, given, **named), level)


def _bucketize(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return generated.searchsorted(args[1], args[0], side=None, sorter=None, **kwargs)


def _dynamic(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    raise dynamic_shape(function.__name__, "the shape of the result depends on the values of an example")


def _masked_select(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """With a mask that all examples share."""
    self, mask = args
    if is_batched(mask, level):
        return _dynamic(level, function, args, kwargs)
    shape = np.broadcast_shapes(self._memory_.shape, mask._memory_.shape)
    return _read(level, self.expand(shape), list(mask.expand(shape).nonzero().unbind(1))) if shape else (
        self.reshape(1)[mask.reshape(1)])


def _masked_scatter(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The places that a mask chooses take from the source in order: the running count of them says which element."""
    self, mask, source = args
    shape = np.broadcast_shapes(self._memory_.shape, mask._memory_.shape)
    chosen = mask.expand(shape).reshape(-1)
    flat = source.reshape(-1)
    order = (chosen.cumsum(0) - 1).clamp(0, max(flat._memory_.shape[0] - 1, 0))
    result = generated.where_self(chosen, flat[order], self.expand(shape).reshape(-1)).reshape(shape)
    return self.copy_(result) if writes(function) else result


def register() -> None:
    RULES[Tensor.__getitem__] = _getitem  # type: ignore[attr-defined]
    RULES[Tensor.__setitem__] = _setitem  # type: ignore[attr-defined]
    put(_index, "index")
    put(_index_put, "index_put")
    RULES[composite_index_put] = RULES[composite_index_put_] = _index_put
    put(_index_backward, "index_backward")
    put(_at(1, 0, 2), "gather")
    put(_at(2, 0, 3, sizes=1), "gather_backward")
    put(_at(1, 0, 2, 3), "scatter_src", "scatter_add", "scatter_reduce")
    put(_at(1, 0, 2), "scatter_value")
    put(_index_select, "index_select")
    put(_index_select_backward, "index_select_backward")
    put(_index_write("add"), "index_add")
    put(_index_write("copy"), "index_copy")
    put(_index_fill, "index_fill_int_Scalar", "index_fill_int_Tensor")
    put(_take, "take")
    put(_put, "put")
    put(_selecting_backward, "value_selecting_reduction_backward")
    put(_searchsorted, "searchsorted")
    put(_bucketize, "bucketize")
    put(_masked_select, "masked_select")
    put(_dynamic, "nonzero", "argwhere", "_unique2", "unique_dim", "_unique_consecutive")
    put(_masked_scatter, "masked_scatter")
