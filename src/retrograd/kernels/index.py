"""Indexing with arrays: reading, writing and adding at places that are known only at run time.

`index` and `index_put` are what ``x[key]`` becomes after `indexing_key.parse_index`; gather, scatter and the
``index_*`` family address along one dimension.  Adding at repeated places is the backward pass of all the reading ones,
so it is done in one place, `add_at`.  Sorting and searching are in `sort.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import compiled
from .compiled import LARGE
from .dims import normalize_dim
from .promotion import as_array, broadcast_shape, cast_number, element, scalar_name, unsupported
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
        try:
            shape = a[key].shape
        except (IndexError, ValueError):
            raise _why_not(a, key) from None
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {shape_text(values.shape)} cannot be broadcast to indexing result "
            f"of shape {shape_text(shape)}"
        ) from None
    return a


def _is_mask(indices: Sequence[np.ndarray | None]) -> bool:
    """Is this one mask, and nothing else?"""
    given = [i for i in indices if i is not None]
    return len(given) == 1 and given[0].dtype.kind == "b"


def index_backward(grad: np.ndarray, sizes: Sequence[int], indices: Sequence[np.ndarray | None]) -> np.ndarray:
    """The gradient of `index`: zeros of the input's size, with `grad` added at the indices."""
    return index_put_(np.zeros_like(grad, shape=tuple(sizes), order="C"), indices, grad, True)


def getitem(a: np.ndarray, basic: tuple, advanced: Sequence[np.ndarray | None] | None) -> np.ndarray:
    """``a[key]`` for a key in the two parts that `indexing_key.parse_index` gives."""
    part = a[basic]
    return part if advanced is None else index(part, advanced)


def setitem(
    a: np.ndarray,
    basic: tuple,
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
        if values.dtype.kind == "c" and part.dtype.kind not in "bc":
            values = values.real
    else:
        values = element(values, part.dtype)
    part[...] = values
    return result


def _key(a: np.ndarray, indices: Sequence[np.ndarray | None]) -> tuple:
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


def _why_not(a: np.ndarray, key: tuple) -> Exception:
    # The error of torch for a key that NumPy refused.
    places, _ = _places(key)
    shapes = []
    for dim, i in places:
        n = a.shape[dim]
        outside = i[(i < -n) | (i >= n)]
        if outside.size:
            return IndexError(f"index {int(outside.flat[0])} is out of bounds for dimension {dim} with size {n}")
        shapes.append(shape_text(i.shape))
    return IndexError(
        "shape mismatch: indexing tensors could not be broadcast together with shapes " + ", ".join(shapes)
    )


def _places(key: tuple) -> tuple[list[tuple[int, np.ndarray]], int]:
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


def add_at(a: np.ndarray, key: tuple, values: Any) -> None:
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


# ------------------------------------------------------------------------------------------------------ along a dim


def gather(a: np.ndarray, dim: int, index: np.ndarray, sparse_grad: bool = False) -> np.ndarray:
    """For every element of `index`, the element of `a` at that position along `dim` and its own along the others."""
    dim = normalize_dim(dim, a.ndim)
    if index.size == 0:
        return np.empty_like(a, shape=index.shape, order="C")
    _check_integer("gather(): Expected dtype int32/int64 for index", index)
    if (index.ndim or 1) != (a.ndim or 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as input tensor")
    flat = a.ndim == 0
    if flat:
        a = a.reshape(1)
    shape = index.shape if index.ndim else (1,)
    for d, (i, n) in enumerate(zip(shape, a.shape)):
        if d != dim and i > n:
            raise RuntimeError(
                f"Size does not match at dimension {d} expected index {shape_text(index.shape)} to be no larger than "
                f"self {shape_text(a.shape)} apart from dimension {dim}"
            )
    _check_bounds(index, dim, a.shape[dim])
    if index.size > LARGE:
        if (fast := compiled.gather(a, dim, index)) is not None:
            return fast
        if _has_rows(a, dim, index):
            result = np.empty_like(a, shape=index.shape)
            for row, at, into in _rows(a, index, result):
                row.take(at, out=into, mode="clip")  # they are in bounds; the other modes copy `out`
            return result
    return as_array(a[_along(index.reshape(shape), dim)]).reshape(index.shape)


_LONG_ROW = 128  # elements; for fewer, a call for each row costs more than one for all


def _is_apart(a: np.ndarray, index: np.ndarray, source: np.ndarray) -> bool:
    """Whether `source` has the shape of `index` and nothing that a write to `a` changes."""
    return source.shape == index.shape and source.dtype == a.dtype and not np.may_share_memory(a, source)


def _has_rows(a: np.ndarray, dim: int, index: np.ndarray) -> bool:
    """Whether `index` addresses long rows of `a`, the rows of both being side by side."""
    return (
        dim == a.ndim - 1 and a.shape[:dim] == index.shape[:dim] and index.shape[dim] >= _LONG_ROW
        and type(a) is np.ndarray and a.flags.c_contiguous and index.flags.c_contiguous
    )  # fmt: skip


def _rows(*arrays: np.ndarray) -> Any:
    """The rows along the last dimension of each array, together."""
    return zip(*[a.reshape(-1, a.shape[-1]) for a in arrays])


def gather_backward(grad: np.ndarray, sizes: Sequence[int], dim: int, index: np.ndarray) -> np.ndarray:
    """The gradient of `gather`: zeros of the input's size, with `grad` added where it read."""
    result = np.zeros_like(grad, shape=tuple(sizes), order="C")
    if not index.size:
        return result
    if not result.ndim:
        result[...] = np.add.reduce(grad, None)
        return result
    return scatter_add(result, dim, index, grad, result)


def scatter(
    a: np.ndarray,
    dim: int,
    index: np.ndarray,
    src: Any,
    reduce: str | None = None,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """A copy of `a` with `src` (an array or a number) written where `gather` would read."""
    if reduce not in (None, "add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    dim = _check_scatter(a, dim, index, src)
    result = _target(a, out)
    if index.size == 0:
        return result
    index = index if index.ndim else index.reshape(1)
    if hasattr(src, "dtype") and src.ndim:
        src = src[tuple([slice(n) for n in index.shape])]
    elif not hasattr(src, "dtype"):
        src = np.asarray(cast_number(src, a.dtype))
    place = result if result.ndim else result.reshape(1)
    if index.size > LARGE and reduce != "multiply" and _is_apart(place, index, src):
        if compiled.scatter(place, dim, index, src, reduce == "add"):
            return result
        if _has_rows(place, dim, index) and place.dtype.kind != "b":
            for row, at, values in _rows(place, index, src):
                if reduce is None:
                    row[at] = values
                else:
                    np.add.at(row, at, values)
            return result
    key = _along(index, dim)
    if reduce is None:
        place[key] = src
    elif reduce == "add":
        add_at(place, key, src)
    else:
        np.multiply.at(place, key, src)
    return result


def scatter_add(
    a: np.ndarray, dim: int, index: np.ndarray, src: np.ndarray, out: np.ndarray | None = None
) -> np.ndarray:
    """A copy of `a` with `src` added where `gather` would read."""
    return scatter(a, dim, index, src, "add", out)


_REDUCTIONS = {"sum": np.add, "mean": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}


def scatter_reduce(
    a: np.ndarray,
    dim: int,
    index: np.ndarray,
    src: np.ndarray,
    reduce: str,
    include_self: bool = True,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """A copy of `a` with `src` combined, as `reduce` says, with what is where `gather` would read.

    Without `include_self` the elements of `a` that are written to do not take part.
    """
    ufunc = _REDUCTIONS.get(reduce)
    if ufunc is None:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    dim = _check_scatter(a, dim, index, src)
    if (reduce == "mean" and a.dtype.kind == "b") or (reduce in ("amax", "amin") and a.dtype.kind == "c"):
        unsupported(f"scatter_gather_tensor_cpu_reduce_{reduce}", a.dtype)
    result = _target(a, out)
    if index.size == 0:
        return result
    place = result if result.ndim else result.reshape(1)
    index = index if index.ndim else index.reshape(1)
    src = src[tuple([slice(n) for n in index.shape])] if src.ndim else src
    key = _along(index, dim)
    if not include_self:
        if reduce in ("amax", "amin"):
            place[key] = src  # any one of them will do to begin with
        else:
            place[key] = 1 if reduce == "prod" else 0
    if ufunc is np.add:
        add_at(place, key, src)
    else:
        ufunc.at(place, key, src)
    if reduce == "mean":
        count = np.ones_like(place) if include_self else np.zeros_like(place)
        np.add.at(count, key, 1)
        np.maximum(count, 1, out=count)
        if place.dtype.kind in "iu":
            np.floor_divide(place, count, out=place)
        else:
            np.divide(place, count, out=place)
    return result


def _check_scatter(a: np.ndarray, dim: int, index: np.ndarray, src: Any) -> int:
    dim = normalize_dim(dim, a.ndim)
    _check_integer("scatter(): Expected dtype int32/int64 for index", index)
    is_array = hasattr(src, "dtype")
    if is_array and src.dtype != a.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    if index.size == 0:
        return dim
    if (index.ndim or 1) != (a.ndim or 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as self tensor")
    if is_array and (src.ndim or 1) != (index.ndim or 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    too_large = any(d != dim and i > n for d, (i, n) in enumerate(zip(index.shape, a.shape)))
    if is_array:
        too_large = too_large or any(i > n for i, n in zip(index.shape, src.shape or (1,)))
    if too_large:
        also = f" and to be no larger size than src {shape_text(src.shape)}" if is_array else ""
        raise RuntimeError(
            f"Expected index {shape_text(index.shape)} to be no larger than self {shape_text(a.shape)} apart from "
            f"dimension {dim}{also}"
        )
    _check_bounds(index, dim, a.shape[dim] if a.ndim else 1)
    return dim


def _along(index: np.ndarray, dim: int) -> tuple:
    # The key that addresses `index` along `dim` and its own position along the other dimensions.
    n = index.ndim
    if n == 1:
        return (index,)
    shape = index.shape
    return tuple([index if d == dim else np.arange(shape[d]).reshape((-1,) + (1,) * (n - 1 - d)) for d in range(n)])


def _check_integer(message: str, index: np.ndarray, error: type[Exception] = RuntimeError) -> None:
    if index.dtype.kind != "i" or index.dtype.itemsize < 4:
        raise error(message)


def _check_bounds(index: np.ndarray, dim: int, n: int, error: type[Exception] = RuntimeError, who: str = "") -> None:
    if index.size and (int(index.min()) < 0 or int(index.max()) >= n):
        wrong = int(index[(index < 0) | (index >= n)].flat[0])
        raise error(f"{who}index {wrong} is out of bounds for dimension {dim} with size {n}")


def index_select(a: np.ndarray, dim: int, index: np.ndarray) -> np.ndarray:
    """The parts of `a` at the positions `index` along `dim`."""
    _check_integer("index_select(): Expected dtype int32 or int64 for index", index)
    if index.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    dim = normalize_dim(dim, a.ndim)
    if index.size:
        n = a.shape[dim] if a.ndim else 1
        if int(index.min()) < 0 or int(index.max()) >= n:
            raise IndexError("index out of range in self")
    if not a.ndim:
        if index.size != 1:
            raise RuntimeError(f"index_select(): Index to scalar can have only 1 value, got {index.size} value(s)")
        return a.copy()
    return a.take(index if index.ndim else index.reshape(1), dim)


def index_select_backward(grad: np.ndarray, sizes: Sequence[int], dim: int, index: np.ndarray) -> np.ndarray:
    """The gradient of `index_select`: zeros of the input's size, with the parts of `grad` added at the positions."""
    result = np.zeros_like(grad, shape=tuple(sizes), order="C")
    return index_add(result, dim, index, grad, 1, result)


def index_add(
    a: np.ndarray, dim: int, index: np.ndarray, source: np.ndarray, alpha: Any = 1, out: np.ndarray | None = None
) -> np.ndarray:
    """A copy of `a` with `alpha` times the parts of `source` added at the positions `index` along `dim`."""
    dim = normalize_dim(dim, a.ndim)
    _check_integer("index_add_(): Expected dtype int32/int64 for index but got: " + scalar_name(index.dtype), index)
    if index.ndim > 1:
        raise IndexError(
            f"index_add_(): Index is supposed to be a vector, but got dim: {index.ndim} with type: "
            f"{scalar_name(index.dtype)} and size: {shape_text(index.shape)}"
        )
    if source.dtype != a.dtype:
        raise RuntimeError(
            f"index_add_(): self ({scalar_name(a.dtype)}) and source ({scalar_name(source.dtype)}) must have the same "
            "scalar type"
        )
    parts = source.shape[dim] if source.ndim > dim else 1
    if index.size != parts:
        raise RuntimeError(
            f"index_add_(): Number of indices ({index.size}) should be equal to source.size(dim): ({parts}), for "
            f"dim: {dim}"
        )
    if a.ndim != source.ndim or a.shape[:dim] + a.shape[dim + 1 :] != source.shape[:dim] + source.shape[dim + 1 :]:
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = "
            f"{shape_text(a.shape)} source.shape = {shape_text(source.shape)}"
        )
    _check_bounds(index, dim, a.shape[dim] if a.ndim else 1)
    result = _target(a, out)
    if alpha.__class__ is not int or alpha != 1:
        source = np.multiply(source, cast_number(alpha, a.dtype))
    if not a.ndim:
        result += source.sum(dtype=source.dtype)
        return result
    if source.size > LARGE and _is_apart(result, source, source):
        if compiled.index_add(result, dim, index.reshape(-1), source):
            return result
        if dim and _has_rows(result, dim, source) and a.dtype.kind != "b":
            for row, values in _rows(result, source):
                np.add.at(row, index.reshape(-1), values)
            return result
    # Moved to the front, the dimension can be added to row by row.
    place, parts_first = np.moveaxis(result, dim, 0), np.moveaxis(source, dim, 0)
    rows = index.reshape(-1)
    if place.flags.c_contiguous:
        add_at(place, (rows,), parts_first)
    elif rows.size and source.size >= 1024 and 4 * source.size >= a.size and a.dtype.kind != "b":
        sums = np.zeros_like(place, order="C")
        flat = sums.reshape(len(sums), -1)
        add_rows(flat, rows, parts_first.reshape(rows.size, flat.shape[1]))
        place += sums
    else:
        np.add.at(place, rows, parts_first)
    return result


def index_copy(
    a: np.ndarray, dim: int, index: np.ndarray, source: np.ndarray, out: np.ndarray | None = None
) -> np.ndarray:
    """A copy of `a` with the parts of `source` at the positions `index` along `dim`."""
    dim = normalize_dim(dim, a.ndim)
    if index.ndim > 1:
        raise IndexError(f"index_copy_(): Index should have dimension 1 or 0 (got {index.ndim})")
    if index.dtype != np.int64:
        raise RuntimeError(f"index_copy_(): Expected a long tensor for index, but got {scalar_name(index.dtype)}")
    if source.dtype != a.dtype:
        raise RuntimeError(
            "index_copy_(): self and source expected to have the same dtype, but got (self) "
            f"{scalar_name(a.dtype)} and (source) {scalar_name(source.dtype)}"
        )
    mine, theirs = a.shape[:dim] + a.shape[dim + 1 :], source.shape[:dim] + source.shape[dim + 1 :]
    if mine != theirs:
        raise RuntimeError(
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: "
            f"{' '.join(map(str, mine))} at dimension {dim} and source slice shape: {' '.join(map(str, theirs))} at "
            f"dimension {dim if source.ndim else 0}."
        )
    parts = source.shape[dim] if source.ndim else 1
    if index.size != parts:
        raise IndexError(
            f"index_copy_(): Number of indices ({index.size}) should be equal to source.size(dim) ({parts})"
        )
    _check_bounds(index, dim, a.shape[dim] if a.ndim else 1, IndexError, "index_copy_(): ")
    result = _target(a, out)
    if a.ndim:
        result[(_ALL,) * dim + (index.reshape(-1),)] = source
    elif index.size:
        result[...] = source.reshape(-1)[-1]
    return result


def index_fill(a: np.ndarray, dim: int, index: np.ndarray, value: Any, out: np.ndarray | None = None) -> np.ndarray:
    """A copy of `a` with `value` at the positions `index` along `dim`; they may be negative."""
    dim = normalize_dim(dim, a.ndim)
    if index.dtype != np.int64:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if index.ndim > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    if getattr(value, "ndim", 0):
        raise RuntimeError(
            f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
        )
    if a.dtype.kind != "c" and (isinstance(value, complex) or getattr(value, "dtype", a.dtype).kind == "c"):
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
    fill = cast_number(value, a.dtype)
    n = a.shape[dim] if a.ndim else 1
    if index.size and (int(index.min()) < -n or int(index.max()) >= n):
        wrong = int(index[(index < -n) | (index >= n)].flat[0])
        raise IndexError(f"index {wrong} is out of bounds for dimension {dim} with size {n}")
    result = _target(a, out)
    place = result if a.ndim else result.reshape(1)
    place[(_ALL,) * dim + (index.reshape(-1),)] = fill
    return result


def take_along_dim(a: np.ndarray, indices: np.ndarray, dim: int | None = None) -> np.ndarray:
    """As `gather`, the other dimensions broadcast; along the flattened array without a `dim`."""
    if dim is None:
        return gather(a.reshape(-1), 0, indices.reshape(-1))
    dim = normalize_dim(dim, a.ndim)
    if a.ndim != indices.ndim:
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{a.ndim} dimensions for input, and {indices.ndim} dimensions for indices"
        )
    if not a.ndim:
        return gather(a, dim, indices)
    mine, theirs = list(a.shape), list(indices.shape)
    mine[dim] = theirs[dim] = 1
    common = list(broadcast_shape(np.empty(mine, bool), np.empty(theirs, bool)))
    mine, theirs = common[:], common
    mine[dim], theirs[dim] = a.shape[dim], indices.shape[dim]
    return gather(expand(a, mine), dim, expand(indices, theirs))


def value_selecting_reduction_backward(
    grad: np.ndarray, dim: int, indices: np.ndarray, sizes: Sequence[int], keepdim: bool
) -> np.ndarray:
    """The gradient of a reduction along `dim` that picked the elements at `indices`."""
    sizes = tuple(sizes)
    if not sizes:
        return grad.reshape(()).copy()
    dim = normalize_dim(dim, len(sizes))
    if not keepdim:
        at = (_ALL,) * dim + (None,)
        grad, indices = grad[at], indices[at]
    result = np.zeros_like(grad, shape=sizes, order="C")
    if indices.size:
        result[_along(indices, dim)] = grad
    return result


# ------------------------------------------------------------------------------------------------------ flat, masked


def take(a: np.ndarray, index: np.ndarray) -> np.ndarray:
    """The elements of the flattened `a` at `index`."""
    if index.dtype != np.int64:
        raise RuntimeError(f"take(): Expected a long tensor for index, but got {scalar_name(index.dtype)}")
    if not a.size and index.size:
        raise IndexError("take(): tried to take from an empty tensor")
    _check_flat(index, a.size)
    return as_array(a.reshape(-1).take(index))


def put(
    a: np.ndarray, index: np.ndarray, source: np.ndarray, accumulate: bool = False, out: np.ndarray | None = None
) -> np.ndarray:
    """A copy of `a` with `source` at (or added to) the places `index` of the flattened array."""
    if index.dtype != np.int64:
        raise RuntimeError(f"put_(): Expected a long tensor for index, but got {scalar_name(index.dtype)}")
    if source.dtype != a.dtype:
        raise RuntimeError(
            "put_(): self and source expected to have the same dtype, but got self.dtype = "
            f"{scalar_name(a.dtype)} and source.dtype = {scalar_name(source.dtype)}"
        )
    if source.size != index.size:
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{source.size}, index.numel() = {index.size}"
        )
    _check_flat(index, a.size)
    result = _target(a, out)
    places, values = index.reshape(-1), source.reshape(-1)
    if result.flags.c_contiguous:
        flat = result.reshape(-1)
        if accumulate:
            add_at(flat, (places,), values)
        else:
            flat[places] = values
    else:
        if places.size:
            key = np.unravel_index(np.where(places < 0, places + a.size, places), a.shape)
            if accumulate:
                np.add.at(result, key, values)
            else:
                result[key] = values
    return result


def _check_flat(index: np.ndarray, n: int) -> None:
    if index.size and (int(index.min()) < -n or int(index.max()) >= n):
        wrong = int(index[(index < -n) | (index >= n)].flat[0])
        raise IndexError(f"out of range: tried to access index {wrong} on a tensor of {n} elements.")


def masked_select(a: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """The elements of `a` where `mask` is True, in one dimension."""
    if mask.dtype.kind != "b":
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    if a.shape != mask.shape:
        # Torch has the mask for the first operand in its message.
        shape = broadcast_shape(mask, a)
        a, mask = expand(a, shape), expand(mask, shape)
    return a[mask]


def masked_scatter(a: np.ndarray, mask: np.ndarray, source: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """A copy of `a` with the first elements of `source`, in order, where `mask` is True."""
    if mask.dtype.kind != "b":
        raise RuntimeError(
            f"masked_scatter_ only supports boolean masks, but got mask with dtype {scalar_name(mask.dtype)}"
        )
    if source.dtype != a.dtype:
        raise RuntimeError(
            f"masked_scatter: expected self and source to have same dtypes but got {scalar_name(a.dtype)} and "
            f"{scalar_name(source.dtype)}"
        )
    shape = broadcast_shape(a, mask)
    if mask.shape != shape:
        mask = expand(mask, shape)
    if a.shape != shape:
        a = expand(a, shape)
    count = int(np.count_nonzero(mask))
    if source.size < count:
        raise RuntimeError("Number of elements of source < number of ones in mask")
    result = _target(a, out)
    result[mask] = source.reshape(-1)[:count]
    return result


def nonzero(a: np.ndarray) -> np.ndarray:
    """The indices of the nonzero elements, one per row."""
    if not a.ndim:
        return np.empty((int(bool(a)), 0), dtype=np.int64)
    found = a.nonzero()
    if a.ndim == 1:
        return found[0].reshape(-1, 1)
    return np.stack(found, axis=1)


argwhere = nonzero


def one_hot(a: np.ndarray, num_classes: int = -1) -> np.ndarray:
    """A new last dimension that is 1 at the class in `a`, and 0 elsewhere."""
    if a.dtype != np.int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if a.size == 0:
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        return np.zeros_like(a, shape=(*a.shape, num_classes), order="C")
    if int(a.min()) < 0:
        raise RuntimeError("Class values must be non-negative.")
    if num_classes == -1:
        num_classes = int(a.max()) + 1
    elif num_classes < 1 or int(a.max()) >= num_classes:
        raise RuntimeError("Class values must be smaller than num_classes.")
    result = np.zeros_like(a, shape=(*a.shape, num_classes), order="C")
    flat = result.reshape(math.prod(a.shape), num_classes)
    flat[np.arange(a.size), a.reshape(-1)] = 1
    return result


def tril_indices(row: int, col: int, offset: int = 0, dtype: np.dtype | None = None) -> np.ndarray:
    """The indices of the lower triangle of a matrix, as two rows."""
    return _triangle_indices(np.tril_indices, row, col, offset, dtype, widest=row + offset)


def triu_indices(row: int, col: int, offset: int = 0, dtype: np.dtype | None = None) -> np.ndarray:
    """The indices of the upper triangle of a matrix, as two rows."""
    return _triangle_indices(np.triu_indices, row, col, offset, dtype, highest=col - offset)


def _triangle_indices(
    indices: Any, row: int, col: int, offset: int, dtype: np.dtype | None, highest: int = 2**63, widest: int = 2**63
) -> np.ndarray:
    """Only `highest` rows and `widest` columns reach into the triangle: the memory is in proportion to these."""
    for name, n in (("row", row), ("col", col)):
        if n < 0:
            raise RuntimeError(f"{name} must be non-negative, got {n}")
    row, col = min(row, max(highest, 0)), min(col, max(widest, 0))
    return np.stack(indices(row, offset, col)).astype(dtype or np.int64, copy=False)
