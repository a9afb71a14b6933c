"""Kernels that a device has for itself, in place of those of ``kernels/``: Note [Kernels for another library].

By module and name, as they stand there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels.storage import needed_elements
from . import own_ldl, own_random
from .own.overlay import AROUND, COMPILED


def _address(a: Any) -> int:
    return a.ptr


def restride(a: Any, shape: tuple[int, ...], byte_strides: tuple[int, ...]) -> Any:
    """A view of `shape` and `byte_strides` that starts at the first element of `a`."""
    return a.restride(tuple(shape), tuple(byte_strides))


def as_strided(a: Any, size: Any, stride: Any, storage_offset: int | None = None) -> Any:
    """A view with this `size`, this `stride` (in elements) and this offset from the start of the storage of `a`."""
    shape, item = tuple(size), a.itemsize
    whole = a if a.base is None else a.base
    offset = (_address(a) - _address(whole)) // item if storage_offset is None else storage_offset
    needed = needed_elements(shape, stride, offset, item)
    if needed * item > whole.nbytes:
        raise RuntimeError(
            f"setStorage: sizes {list(shape)}, strides {list(stride)}, storage offset {offset}, and itemsize {item} "
            f"requiring a storage size of {needed * item} are out of bounds for storage of size {whole.nbytes}"
        )
    return whole.restride(shape, tuple([s * item for s in stride]), offset * item, a.dtype)


def _nothing(a: Any, dim: int, start: int | None) -> Any:
    """A slice without elements, where it begins."""
    n = a.shape[dim]
    first = 0 if start is None else max(start + n, 0) if start < 0 else min(start, n)
    shape = (*a.shape[:dim], 0, *a.shape[dim + 1 :])
    root = a if a.base is None else a.base
    offset = _address(a) - _address(root) + first * a.strides[dim]
    return root.restride(shape, a.strides, min(offset, root.nbytes), a.dtype)


_ROWS = 16  # of a triangular system that are solved one by one, before products take over


def _trsm(a: Any, b: Any, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
    """The triangular system for every matrix of the broadcast batch: all at once, in products."""
    numpy = a.place.numpy
    batch = a.place.kernels.modules["decompositions"]._batch(a, b)
    shape = (*batch, *b.shape[-2:])
    result = numpy.empty(shape, b.dtype)
    if not result.size:
        return result
    a, b = numpy.broadcast_to(a, (*batch, *a.shape[-2:])), numpy.broadcast_to(b, shape)
    if left:
        _solve_rows(a, b, result, upper, unitriangular)
    else:
        a, b = a.swapaxes(-1, -2), b.swapaxes(-1, -2)
        _solve_rows(a, b, result.swapaxes(-1, -2), not upper, unitriangular)
    return result


def _solve_rows(a: Any, b: Any, x: Any, upper: bool, unitriangular: bool) -> None:
    """One half of the rows, then the other without what the first have to do with it; few rows one by one."""
    n = a.shape[-1]
    if n > _ROWS:
        middle = n // 2
        first, last = (slice(middle, None), slice(middle)) if upper else (slice(middle), slice(middle, None))
        _solve_rows(a[..., first, first], b[..., first, :], x[..., first, :], upper, unitriangular)
        rest = b[..., last, :] - a[..., last, first] @ x[..., first, :]
        _solve_rows(a[..., last, last], rest, x[..., last, :], upper, unitriangular)
        return
    for i in reversed(range(n)) if upper else range(n):
        done = slice(i + 1, None) if upper else slice(None, i)
        row = b[..., i, :] - (a[..., i, None, done] @ x[..., done, :])[..., 0, :]
        x[..., i, :] = row if unitriangular else row / a[..., i, i, None]


_FEW = 64  # columns up to which all matrices are eliminated at once, column by column


def _lu(a: Any) -> tuple[Any, Any, Any]:
    """LU in one matrix, pivots counted from 1, and LAPACK's info, for every matrix."""
    numpy, ours = a.place.numpy, a.place.kernels.modules["decompositions"]
    k = min(a.shape[-2:])
    pivots, info = numpy.empty((*a.shape[:-2], k), np.int32), ours._no_info(a)
    factor = getattr(a.place.library_of("scipy.linalg"), "lu_factor", None)
    if not a.size or k <= _FEW or factor is None:
        return ours._eliminate(a.copy(), pivots, info)
    lu = numpy.empty(a.shape, a.dtype)
    a.place.activate()
    for index in np.ndindex(*a.shape[:-2]):
        made, places = factor(a[index].raw)
        lu[index], pivots[index] = a.place.wrap(made), a.place.wrap(places) + 1
    zero = numpy.diagonal(lu, axis1=-2, axis2=-1) == 0
    info[...] = numpy.where(zero.any(-1), zero.argmax(-1) + 1, 0)
    return lu, pivots, info


def _cholesky_each(a: Any, info: Any) -> Any:
    """One by one, where one of them is not positive."""
    low, by_columns = a.place.numpy.empty(a.shape, a.dtype), a.place.kernels.modules["decompositions"]
    for index in np.ndindex(*a.shape[:-2]):
        low[index], info[index] = by_columns._cholesky_by_columns(a[index])
    return low


# ------------------------------------------------------------------------------------------------------ sparse matrices


def multiply_sparse_dense(a: Any, b: Any, adjoint: bool = False) -> Any:
    """The product of a sparse matrix (or its adjoint) and an array of one or two dimensions: by cuSPARSE where there is
    one for the dtype, else what each value gives is added where it belongs."""
    place, numpy = b.place, b.place.numpy
    by_coordinates = a if hasattr(a, "indices") else a.to_coo()
    (rows, columns), values = by_coordinates.indices, by_coordinates.values
    if adjoint:
        rows, columns, values = columns, rows, values.conj()
    if values.itemsize == 2 or values.dtype.kind == "V":
        values = values.astype(np.float32)
    right = b.reshape(b.shape[0], -1).astype(values.dtype, copy=False)
    shape = a.shape[::-1] if adjoint else a.shape
    result = _by_cusparse(place, values, rows, columns, shape, right) if values.dtype.char in "fdFD" else None
    if result is None:
        result = numpy.zeros((shape[0], right.shape[1]), values.dtype)
        if values.size:
            numpy.add.at(result, rows, values[:, None] * right.take(columns, 0))
    return result.reshape(shape[0], *b.shape[1:]).astype(b.dtype, copy=False)


def _by_cusparse(place: Any, values: Any, rows: Any, columns: Any, shape: tuple[int, ...], right: Any) -> Any:
    """The product by CuPy's sparse matrices; None where there are none, or for these."""
    found = place.library_of("scipy.sparse")
    if found is None or not values.size or not right.size or max(values.size, *shape) >= 2**31:
        return None
    place.activate()
    index = [one.astype(np.int32).raw for one in (rows, columns)]
    matrix = found.coo_matrix((place.numpy.ascontiguousarray(values).raw, tuple(index)), shape=shape).tocsr()
    return place.wrap(matrix @ right.raw)


def multiply_sparse(a: Any, b: Any) -> Any:
    """The product of two sparse matrices, with a value wherever their values meet, be it zero: every value of the first
    once for each value in the row of the second that it meets, then all that belong to one place added."""
    numpy, sparse = a.values.place.numpy, a.values.place.kernels.modules["sparse"]
    a, b = sparse.coalesce(a), sparse.coalesce(b)
    (rows, inner), (of_rows, columns) = a.indices, b.indices
    counts = numpy.bincount(of_rows, minlength=b.shape[0]) if of_rows.size else numpy.zeros(b.shape[0], np.int64)
    firsts = numpy.cumsum(counts) - counts
    times = counts[inner]
    first = numpy.repeat(numpy.arange(rows.size), times)
    step = numpy.arange(first.size) - numpy.repeat(numpy.cumsum(times) - times, times)
    second = numpy.repeat(firsts[inner], times) + step
    indices = numpy.stack([rows[first], columns[second]]).astype(np.int64)
    wide = np.float32 if a.values.itemsize == 2 else a.values.dtype
    values = a.values.astype(wide)[first] * b.values.astype(wide)[second]
    made = sparse.coalesce(sparse.SparseArray(indices, values, (a.shape[0], b.shape[1])))
    return made if wide == a.values.dtype else made.with_values(made.values.astype(a.values.dtype))


def sampled_products(a: Any, b: Any, rows: Any, columns: Any) -> Any:
    """The elements of ``a @ b.T`` at rows and columns."""
    wide = np.float32 if a.itemsize == 2 else a.dtype
    products = a.take(rows, 0).astype(wide, copy=False) * b.take(columns, 0).astype(wide, copy=False)
    return products.sum(1).astype(a.dtype, copy=False)


def on_threads(ufunc: Any) -> Any:
    """The same: a device has its own way to share elements out."""
    return ufunc


#: No array of a device is large: what kernels do with large ones (blocks, compiled kernels) is for the CPU's cache.
_NEVER = 1 << 62

OVERLAY: dict[str, dict[str, Any]] = {
    **AROUND,
    "storage": {"_address": _address, "restride": restride, "as_strided": as_strided},
    "shape": {"_nothing": _nothing},
    "decompositions": {"_trsm": _trsm, "_lu": _lu, "_cholesky_each": _cholesky_each,
                       "_lapack": own_ldl.lapack},
    "random": own_random.OVERLAY,
    "sparse": {"multiply_sparse_dense": multiply_sparse_dense, "multiply_sparse": multiply_sparse,
               "sampled_products": sampled_products},
    "compiled": {"on_threads": on_threads, "LARGE": _NEVER, "takes": lambda *arrays: False,
                 "library": lambda: None, "is_used": lambda: False, **COMPILED},
}  # fmt: skip
