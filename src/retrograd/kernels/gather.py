"""Kernels that read and write at positions along a dimension: gather, scatter, index_add, take and their like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import compiled
from .compiled import LARGE, SHARED, is_within
from .dims import normalize_dim
from .index import _ALL, _is_apart, _target, add_at, add_rows
from .promotion import as_array, broadcast_shape, cast_number, scalar_name, unsupported
from .shape import expand
from .storage import shape_text


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


def _along(index: np.ndarray, dim: int) -> tuple[Any, ...]:
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
    if index.size and not is_within(index, 0, n):
        wrong = int(index[(index < 0) | (index >= n)].flat[0])
        raise error(f"{who}index {wrong} is out of bounds for dimension {dim} with size {n}")


def index_select(a: np.ndarray, dim: int, index: np.ndarray) -> np.ndarray:
    """The parts of `a` at the positions `index` along `dim`."""
    _check_integer("index_select(): Expected dtype int32 or int64 for index", index)
    if index.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    dim = normalize_dim(dim, a.ndim)
    if not a.ndim and index.size != 1:
        raise RuntimeError(f"index_select(): Index to scalar can have only 1 value, got {index.size} value(s)")
    if index.size:
        n = a.shape[dim] if a.ndim else 1
        if not is_within(index, 0, n):
            if not n:
                raise RuntimeError("index_select(): self indexing axis dim should be positive")
            if not a.size:  # found by another loop of torch's, with other words
                wrong = index[(index < 0) | (index >= n)].reshape(-1)[0]
                raise RuntimeError(f"INDICES element is out of DATA bounds, id={wrong} axis_dim={n}")
            raise IndexError("index out of range in self")
    if not a.ndim:
        return a.copy()
    if not dim and a.size > SHARED and (fast := compiled.rows_at(a, index.reshape(-1))) is not None:
        return fast
    return a.take(index if index.ndim else index.reshape(1), dim)


def index_select_backward(grad: np.ndarray, sizes: Sequence[int], dim: int, index: np.ndarray) -> np.ndarray:
    """The gradient of `index_select`: zeros of the input's size, with the parts of `grad` added at the positions."""
    if dim in (0, -len(sizes)) and tuple(grad.shape[1:]) == tuple(sizes[1:]) and type(grad) is np.ndarray:
        fast = compiled.rows_added(grad, index.reshape(-1), sizes[0]) if grad.ndim else None
        if fast is not None:
            return fast
    result = compiled.zeros(tuple(sizes), grad.dtype) if type(grad) is np.ndarray else None
    if result is None:
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
    if a.ndim > 1:
        _check_bounds(index, dim, a.shape[dim])
    elif index.size and not is_within(index, 0, a.size if a.ndim else 1):
        raise IndexError("index out of range in self")
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
    if a.dtype.kind not in "cW" and (isinstance(value, complex) or getattr(value, "dtype", a.dtype).kind in "cW"):
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
    fill = cast_number(value, a.dtype)
    n = a.shape[dim] if a.ndim else 1
    if index.size and not is_within(index, -n, n):
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
    if index.size and not is_within(index, -n, n):
        wrong = int(index[(index < -n) | (index >= n)].flat[0])
        raise IndexError(f"out of range: tried to access index {wrong} on a tensor of {n} elements.")


def index_reduce(
    a: np.ndarray,
    dim: int,
    index: np.ndarray,
    source: np.ndarray,
    reduce: str,
    include_self: bool = True,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """`a` with the slices of `source` reduced into its slices at `index` along `dim`."""
    return scatter_reduce(a, dim, index_of_slices(index, dim, source.shape), source, reduce, include_self, out=out)


def index_of_slices(index: np.ndarray, dim: int, shape: Sequence[int]) -> np.ndarray:
    """The index of `scatter_reduce` that says for every element what `index` says for the slices along `dim`."""
    if not shape:
        return index.astype(np.int64).reshape(())
    sizes = [1] * len(shape)
    sizes[dim] = -1
    return np.ascontiguousarray(np.broadcast_to(index.astype(np.int64).reshape(sizes), tuple(shape)))
