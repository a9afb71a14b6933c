"""Indexing with arrays: reading, writing and adding at places that are known only at run time.

`index` and `index_put` are what ``x[key]`` becomes after `indexing_key.parse_index`.  Adding at repeated places is the
backward pass of all kernels that read, also of those in `gather.py`, so it is done in one place, `add_at`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import compiled
from .compiled import LARGE
from .dtypes import convert
from .promotion import as_array, cast_number, element, scalar_name
from .shape import expand
from .storage import shape_text

_ALL = slice(None)


# ------------------------------------------------------------------------------------------------------ x[indices]


def index(a: np.ndarray, indices: Sequence[np.ndarray | None]) -> np.ndarray:
    """The elements of `a` at `indices`: one entry per dimension, None for all of it, a mask for as many as it has."""
    if len(indices) == 1 and indices[0] is not None:
        only = indices[0]
        if only.dtype == np.int64 and only.ndim and a.ndim and a.flags.c_contiguous:
            try:
                return a.take(only, 0)
            except IndexError:
                pass
    if not indices:
        raise IndexError("index(): at least one index must be provided")
    key = _key(a, indices)
    try:
        result = a[key]
    except (IndexError, ValueError):
        raise _why_not(a, key) from None
    if type(result) is not np.ndarray:
        return as_array(result)
    base = result.base
    # 0-d indices give a view, and an index behind a slice a result whose dimensions NumPy has exchanged.
    if result.flags.c_contiguous and (base is None or (base is not a and base is not a.base)):
        return result
    return result.copy()


def index_put(
    a: np.ndarray,
    indices: Sequence[np.ndarray | None],
    values: Any,
    accumulate: bool = False,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """A copy of `a` with `values` at `indices`, or with them added there."""
    return index_put_(_target(a, out), indices, values, accumulate)


def index_put_(
    a: np.ndarray, indices: Sequence[np.ndarray | None], values: Any, accumulate: bool = False
) -> np.ndarray:
    """Write `values` to `a` at `indices`, or add them there."""
    key = _key(a, indices)
    if hasattr(values, "dtype"):
        if values.dtype != a.dtype and values.size == 1 and _is_mask(indices):
            values = np.asarray(cast_number(values.reshape(()), a.dtype))  # as masked_fill does
        elif values.dtype != a.dtype:
            _check_values(a, key, values)
            raise RuntimeError(
                f"Index put requires the source and destination dtypes match, got {scalar_name(a.dtype)} for the "
                f"destination and {scalar_name(values.dtype)} for the source."
            )
    else:
        values = element(values, a.dtype)
    try:
        if accumulate:
            add_at(a, key, values)
        else:
            a[key] = values
    except (IndexError, TypeError, ValueError):
        _check_values(a, key, values)
        raise
    return a


def _check_values(a: np.ndarray, key: tuple[Any, ...], values: Any) -> None:
    """Refuse a key, or values that do not go where it leads, in torch's words."""
    try:
        shape = a[key].shape
    except (IndexError, ValueError):
        raise _why_not(a, key) from None
    try:
        fits = np.broadcast_shapes(values.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {shape_text(values.shape)} cannot be broadcast to indexing result "
            f"of shape {shape_text(shape)}"
        ) from None


def _is_mask(indices: Sequence[np.ndarray | None]) -> bool:
    """Is this one mask, and nothing else?"""
    given = [i for i in indices if i is not None]
    return len(given) == 1 and given[0].dtype.kind == "b"


def index_backward(grad: np.ndarray, sizes: Sequence[int], indices: Sequence[np.ndarray | None]) -> np.ndarray:
    """The gradient of `index`: zeros of the input's size, with `grad` added at the indices."""
    return index_put_(np.zeros_like(grad, shape=tuple(sizes), order="C"), indices, grad, True)


def getitem(a: np.ndarray, basic: tuple[Any, ...], advanced: Sequence[np.ndarray | None] | None) -> np.ndarray:
    """``a[key]`` for a key in the two parts that `indexing_key.parse_index` gives."""
    part = a[basic]
    return part if advanced is None else index(part, advanced)


def setitem(
    a: np.ndarray,
    basic: tuple[Any, ...],
    advanced: Sequence[np.ndarray | None] | None,
    values: Any,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """A copy of `a` with `values` at a key in the two parts that `indexing_key.parse_index` gives."""
    result = _target(a, out)
    part = result[basic]
    if advanced is not None:
        while hasattr(values, "dtype") and values.shape[:1] == (1,):
            values = values[0, ...]
        index_put_(part, advanced, values)
        return result
    if hasattr(values, "dtype"):
        while values.ndim > part.ndim and values.shape[0] == 1:
            values = values[0]
        if values.shape != part.shape:
            values = expand(values, part.shape)
        if values.dtype.num >= 256 or part.dtype.num >= 256:
            values = convert(values, part.dtype)
        elif values.dtype.kind == "c" and part.dtype.kind not in "bc":
            values = values.real
    else:
        values = element(values, part.dtype)
    part[...] = values
    return result


def _key(a: np.ndarray, indices: Sequence[np.ndarray | None]) -> tuple[Any, ...]:
    # The indices as a key for NumPy, whose rules for advanced indices are torch's.
    key: list[Any] = []
    used = 0
    for i in indices:
        if i is None:
            key.append(_ALL)
            used += 1
            continue
        kind = i.dtype.kind
        if kind == "u" and i.dtype == np.uint8:
            i, kind = i.astype(bool), "b"
        if kind == "b":
            if not i.ndim:
                i = i.reshape(1)
            for d, n in enumerate(i.shape):
                if used + d < a.ndim and n != a.shape[used + d]:
                    raise IndexError(
                        f"The shape of the mask {shape_text(i.shape)} at index {d} does not match the shape of the "
                        f"indexed tensor {shape_text(a.shape)} at index {used + d}"
                    )
            used += i.ndim
        elif kind == "i" and i.dtype.itemsize >= 4:
            used += 1
        else:
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
        key.append(i)
    if used > a.ndim:
        raise IndexError(f"too many indices for tensor of dimension {a.ndim}")
    return tuple(key)


def _why_not(a: np.ndarray, key: tuple[Any, ...]) -> Exception:
    # The error of torch for a key that NumPy refused.
    places, _ = _places(key)
    shapes = []
    for dim, i in places:
        n = a.shape[dim]
        outside = i[(i < -n) | (i >= n)]
        if outside.size and not n:
            return IndexError(
                f"index is out of bounds for dimension with size 0: index {int(outside.flat[0])}, dimension {dim}"
            )
        if outside.size:
            return IndexError(f"index {int(outside.flat[0])} is out of bounds for dimension {dim} with size {n}")
        shapes.append(shape_text(i.shape))
    return IndexError(
        "shape mismatch: indexing tensors could not be broadcast together with shapes " + ", ".join(shapes)
    )


def _places(key: tuple[Any, ...]) -> tuple[list[tuple[int, np.ndarray]], int]:
    # The integer indices of a key with their dimensions, masks resolved; and how many dimensions the key covers.
    places: list[tuple[int, np.ndarray]] = []
    dim = 0
    for k in key:
        if isinstance(k, slice):
            dim += 1
        elif k.dtype.kind == "b":
            for i in k.nonzero():
                places.append((dim, i))
                dim += 1
        else:
            places.append((dim, k))
            dim += 1
    return places, dim


def _target(a: np.ndarray, out: np.ndarray | None) -> np.ndarray:
    # Where an out-of-place kernel writes: a copy of `a`, or `out` holding one.
    if out is None:
        return a.copy()
    if out is not a:
        out[...] = a
    return out


# ------------------------------------------------------------------------------------------------------ adding


def add_at(a: np.ndarray, key: tuple[Any, ...], values: Any) -> None:
    """``a[key] += values``, adding once for every time that a place occurs in the key.

    NumPy's add.at is quick only for one index into a vector, so the key is turned into that where `a` allows it.
    """
    if a.dtype.kind == "b":
        np.logical_or.at(a, key, values)
        return
    if not a.flags.c_contiguous or not a.ndim or a.size < 64:
        np.add.at(a, key, values)
        return
    places, used = _places(key)
    shape = np.broadcast_shapes(*[i.shape for _, i in places])
    if len(places) == used:  # the first dimensions, all of them indexed: rows of what is left
        rows: Any = 0
        for (dim, i), n in zip(places, a.shape):
            if i.size:
                low = int(i.min())
                if low < -n or int(i.max()) >= n:
                    raise IndexError(f"index out of bounds for dimension {dim} with size {n}")
                if low < 0:
                    i = np.where(i < 0, i + n, i)
            rows = rows * n + i.astype(np.int64, copy=False)
        rest = a.shape[used:]
        values = _broadcast_values(values, shape + rest)
        width = math.prod(rest)
        if values.size:
            add_rows(a.reshape(-1, width), rows.reshape(-1), values.reshape(-1, width))
        return
    count = math.prod(shape) * math.prod([n for d, n in enumerate(a.shape) if all(d != p for p, _ in places)])
    if a.size > 4 * count:
        np.add.at(a, key, values)
        return
    # The place of every element in memory, found by indexing the places themselves.
    memory = np.arange(a.size).reshape(a.shape)[key]
    values = _broadcast_values(values, memory.shape)
    np.add.at(a.reshape(-1), memory.reshape(-1), values.reshape(-1))


def _broadcast_values(values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    while values.ndim > len(shape) and values.shape[0] == 1:
        values = values[0]
    return values if values.shape == shape else np.broadcast_to(values, shape)


def add_rows(a: np.ndarray, rows: np.ndarray, values: np.ndarray) -> None:
    """Add row i of the matrix `values` to row ``rows[i]`` of the contiguous matrix `a`; no row may be negative."""
    n, width = a.shape
    if values.size > LARGE and _is_apart(a, values, values) and compiled.index_add(a, 0, rows, values):
        return
    if width == 1:
        np.add.at(a.reshape(-1), rows, values.reshape(-1))
        return
    if values.size >= 1 << 15 and n <= 2 * len(rows) and width >= 4 and a.dtype.char in "fdFD":
        # Many rows on few: a product with a sparse matrix of ones is several times quicker.
        from scipy.sparse import csc_matrix

        ones = np.ones(len(rows), a.dtype)
        a += csc_matrix((ones, rows, np.arange(len(rows) + 1)), shape=(n, len(rows))) @ values
        return
    places = rows[:, None] * width + np.arange(width)
    np.add.at(a.reshape(-1), places.reshape(-1), values.reshape(-1))


def _is_apart(a: np.ndarray, index: np.ndarray, source: np.ndarray) -> bool:
    """Whether `source` has the shape of `index` and nothing that a write to `a` changes."""
    return source.shape == index.shape and source.dtype == a.dtype and not np.may_share_memory(a, source)
