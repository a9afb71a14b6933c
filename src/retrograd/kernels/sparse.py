"""Arrays of few values: coordinates and the values at them (COO), and the compressed forms of matrices.

These classes hold what a sparse tensor holds, as an array is what a plain tensor holds.  They are no arrays: kernels
other than those in this file raise `NoArray` for them (core/description.py).  A backward pass hands them from node to
node as it does arrays.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.description import Description
from . import compiled
from .compiled import LARGE
from .index import add_rows

__all__ = [
    "BscArray", "BsrArray", "CompressedArray", "CscArray", "CsrArray", "SparseArray", "add_at_coordinates",
    "add_sparse", "coalesce", "coordinates_to_numbers", "embedding_sparse_gradient", "first_of_each",
    "gather_sparse_gradient", "multiply_sparse", "multiply_sparse_dense", "sampled_products", "values_at",
]  # fmt: skip


@functools.cache
def _tensors() -> Any:
    from ..tensor import sparse  # tensors are made of arrays

    return sparse


def _settle(array: Any, values: Any) -> None:
    """Values of a device make an array of that device: its class says so, as that of any array does."""
    place = getattr(values, "place", None)
    if place is not None:
        array.__class__ = place.class_of_description(array.kind, values.__class__)


class SparseArray(Description):
    """Values at coordinates: `indices` has one row a sparse dimension, and a column for each of the `values`.

    The values may be arrays themselves, over the dense dimensions, which come last.  Unless it is `coalesced`,
    coordinates may come in any order and more than once: their values are then to be added.
    """

    __slots__ = ("_matrix", "coalesced", "indices", "values")

    layout_name = "Sparse"
    parts: tuple[str, ...] = ("indices", "values")
    #: The class of such arrays on the CPU; each device has one of its own, which is derived from it.
    kind: type[SparseArray]

    def __init__(self, indices: Any, values: Any, shape: tuple[int, ...], coalesced: bool = False) -> None:
        super().__init__(shape, values.dtype)
        if values.__class__ is not np.ndarray:
            _settle(self, values)
        self.indices: np.ndarray = indices
        self.values: np.ndarray = values
        self.coalesced: bool = coalesced
        #: The same as a matrix of SciPy's, once something is multiplied by it.
        self._matrix: Any = None

    def become(self, other: SparseArray) -> None:
        """Hold what `other` holds: all tensors on this one see it."""
        self.indices, self.values, self.coalesced = other.indices, other.values, other.coalesced
        self.shape, self.strides, self._matrix = other.shape, other.strides, None

    @property
    def sparse_dim(self) -> int:
        return self.indices.shape[0]

    @property
    def nnz(self) -> int:
        return self.indices.shape[1]

    def with_values(self, values: Any) -> SparseArray:
        """The same coordinates with other values."""
        return SparseArray(self.indices, values, self.shape[: self.sparse_dim] + values.shape[1:], self.coalesced)

    def matrix(self) -> Any:
        """SciPy's matrix (CSR) of a two-dimensional one; kept, since those who multiply do it again and again.

        Only where the values lie is kept: they may be written to.
        """
        if self._matrix is None:
            from scipy.sparse import csr_array

            rows, columns = self.indices
            order = None if self.coalesced else np.argsort(rows, kind="stable")
            starts = np.zeros(self.shape[0] + 1, np.int64)
            np.cumsum(np.bincount(rows, minlength=self.shape[0]), out=starts[1:])
            index = np.int32 if max(self.nnz, *self.shape) < 2**31 else np.int64
            places = (columns if order is None else columns[order]).astype(index)
            self._matrix = csr_array((self._ordered(order), places, starts.astype(index)), shape=self.shape), order
        made, order = self._matrix
        made.data = self._ordered(order)
        return made

    def _ordered(self, order: Any) -> np.ndarray:
        values = self.values if order is None else self.values[order]
        return np.ascontiguousarray(
            values.astype(np.float32) if values.dtype.kind == "V" or values.itemsize == 2 else values
        )

    def as_tensor(self) -> Any:
        return _tensors().SparseTensor.on(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return self.kind, (self.indices, self.values, self.shape, self.coalesced)


class CompressedArray(Description):
    """Matrices of which the rows (or columns) are compressed: those before `starts[i + 1]` and not before `starts[i]`.

    `places` are the columns (or rows) of the values.  There may be batch dimensions before the matrix, with as many
    values in each, and dense dimensions after it.  In the forms BSR and BSC each value is a block.
    """

    __slots__ = ("_matrix", "places", "starts", "values")

    parts: tuple[str, ...] = ("starts", "places", "values")
    kind: type[CompressedArray]
    #: Are the rows compressed, or the columns? Are values blocks?
    by_rows: bool = True
    blocks: bool = False

    def __init__(self, starts: Any, places: Any, values: Any, shape: tuple[int, ...]) -> None:
        super().__init__(shape, values.dtype)
        if values.__class__ is not np.ndarray:
            _settle(self, values)
        self.starts: np.ndarray = starts
        self.places: np.ndarray = places
        self.values: np.ndarray = values
        self._matrix: Any = None

    def become(self, other: CompressedArray) -> None:
        """Hold what `other` holds: all tensors on this one see it."""
        self.starts, self.places, self.values = other.starts, other.places, other.values
        self.shape, self.strides, self._matrix = other.shape, other.strides, None

    @property
    def batch_dim(self) -> int:
        return self.starts.ndim - 1

    @property
    def dense_dim(self) -> int:
        return len(self.shape) - self.batch_dim - 2

    @property
    def nnz(self) -> int:
        return self.places.shape[-1]

    @property
    def blocksize(self) -> tuple[int, int]:
        at = self.batch_dim + 1
        return self.values.shape[at : at + 2] if self.blocks else (1, 1)  # type: ignore[return-value]

    def with_values(self, values: Any) -> CompressedArray:
        """The same places with other values."""
        return self.kind(self.starts, self.places, values, self.shape)

    def matrix(self) -> Any:
        """SciPy's matrix of one that has neither batch nor dense dimensions."""
        if self._matrix is None:
            from scipy import sparse

            kind = (
                (sparse.bsr_array if self.by_rows else None)
                if self.blocks
                else (sparse.csr_array if self.by_rows else sparse.csc_array)
            )
            if kind is None:
                from_coo = self.to_coo()
                return from_coo.matrix()
            self._matrix = kind((self.values, self.places, self.starts), shape=self.shape)
        return self._matrix

    def to_coo(self) -> SparseArray:
        """The same by coordinates, in their order."""
        batch, counts = self.starts.shape[:-1], np.diff(self.starts, axis=-1)
        groups = math.prod(batch)
        lines = self.starts.shape[-1] - 1
        line = np.repeat(np.tile(np.arange(lines), groups), counts.reshape(-1)).astype(np.int64)
        place = self.places.reshape(-1).astype(np.int64)
        values = self.values.reshape(groups * self.nnz, *self.values.shape[len(batch) + 1 :])
        of_batch = [index.reshape(-1).repeat(self.nnz) for index in np.indices(batch)]
        first, second = (line, place) if self.by_rows else (place, line)
        if self.blocks:
            r, c = self.blocksize
            row, column = np.indices((r, c)).reshape(2, -1)
            n = first.size
            first = (first[:, None] * r + row).reshape(-1)
            second = (second[:, None] * c + column).reshape(-1)
            of_batch = [index.repeat(r * c) for index in of_batch]
            values = values.reshape(n * r * c, *values.shape[3:])
        indices = np.stack([*of_batch, first, second]) if first.size else np.zeros((len(batch) + 2, 0), np.int64)
        found = SparseArray(indices, values, self.shape)
        return found if _is_sorted(indices, self.shape) is False else _marked(found)

    def as_tensor(self) -> Any:
        return _tensors().CompressedTensor.on(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return self.kind, (self.starts, self.places, self.values, self.shape)


class CsrArray(CompressedArray):
    __slots__ = ()
    layout_name = "SparseCsr"


class CscArray(CompressedArray):
    __slots__ = ()
    layout_name = "SparseCsc"
    by_rows = False


class BsrArray(CompressedArray):
    __slots__ = ()
    layout_name = "SparseBsr"
    blocks = True


class BscArray(CompressedArray):
    __slots__ = ()
    layout_name = "SparseBsc"
    by_rows = False
    blocks = True


for _kind in (SparseArray, CsrArray, CscArray, BsrArray, BscArray):
    _kind.kind = _kind  # type: ignore[attr-defined]


# ---------------------------------------------------------------------------------------------------------- coordinates


def coordinates_to_numbers(indices: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """One number for each column of coordinates, in their order."""
    numbers = np.zeros(indices.shape[1], np.int64)
    for row, size in zip(indices, shape, strict=False):
        numbers *= size
        numbers += row
    return numbers


def _is_sorted(indices: np.ndarray, shape: Sequence[int]) -> bool:
    """Is every coordinate after the one before it?"""
    numbers = indices[0] if len(indices) == 1 else coordinates_to_numbers(indices, shape)
    return bool((numbers[1:] > numbers[:-1]).all())


def _marked(a: SparseArray) -> SparseArray:
    a.coalesced = True
    return a


def first_of_each(a: SparseArray) -> tuple[SparseArray, np.ndarray]:
    """A coalesced array of the coordinates, with the first of the values at each, and which ones these are."""
    first = np.unique(coordinates_to_numbers(a.indices, a.shape), return_index=True)[1]
    return SparseArray(a.indices.take(first, 1), a.values.take(first, 0), a.shape, True), first


def coalesce(a: SparseArray) -> SparseArray:
    """The same with each coordinate once, in order."""
    if a.coalesced:
        return a
    if a.nnz < 2:
        return SparseArray(a.indices, a.values, a.shape, True)
    numbers = a.indices[0] if a.sparse_dim == 1 else coordinates_to_numbers(a.indices, a.shape)
    order = np.argsort(numbers)
    ordered = numbers[order]
    is_first = np.empty(ordered.size, bool)
    is_first[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    firsts = order[is_first]
    if firsts.size == order.size:
        return SparseArray(a.indices.take(order, 1), a.values.take(order, 0), a.shape, True)
    # The first value at each place, to which the others are added.
    values = a.values.take(firsts, 0)
    more = np.flatnonzero(~is_first)
    group, others = np.cumsum(is_first)[more] - 1, a.values.take(order[more], 0)
    if values.dtype == bool:
        np.logical_or.at(values, group, others)
    elif values.size:
        add_rows(values.reshape(firsts.size, -1), group, others.reshape(group.size, -1))
    return SparseArray(a.indices.take(firsts, 1), values, a.shape, True)


def values_at(a: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """The values of an array at coordinates."""
    if not len(indices):
        return np.repeat(a[None], indices.shape[1], 0)
    return a[tuple(indices)]


def add_at_coordinates(a: np.ndarray, b: SparseArray, alpha: Any = 1) -> np.ndarray:
    """Add `b`, times `alpha`, to an array, in place."""
    if not b.nnz or not b.values.size:
        return a
    lines = math.prod(b.shape[: b.sparse_dim])
    if b.sparse_dim == 1 and b.values.size > LARGE and alpha.__class__ in (int, float) and a.flags.c_contiguous:
        rows, whole = b.indices[0], a.reshape(lines, -1)
        if not np.may_share_memory(a, b.values) and compiled.index_add(whole, 0, rows, b.values, alpha):
            return a
    if not b.coalesced and (lines > _MOST_MARKS or not a.flags.c_contiguous or a.dtype == bool):
        b = coalesce(b)
    values = b.values.astype(a.dtype, copy=False)  # first: -1 times a uint8 is no small number
    if alpha.__class__ is not int or alpha != 1:
        values = values * np.asarray(alpha).astype(a.dtype)
    if not b.sparse_dim:
        a += values.sum(0)
    elif b.sparse_dim > 1 and b.coalesced:
        a[tuple(b.indices)] += values
    elif b.coalesced:
        _add_to_rows(a, b.indices[0], values)
    else:
        rows, values = coordinates_to_numbers(b.indices, b.shape), values.reshape(b.nnz, -1)
        whole = a.reshape(lines, -1)
        if b.nnz < lines:
            # Every row marks its place: those whose mark was written over come again, and are added afterwards.
            marks, numbers = np.empty(lines, np.int32), np.arange(b.nnz, dtype=np.int32)
            marks[rows] = numbers
            again = np.flatnonzero(marks[rows] != numbers)
            if again.size:
                once = np.flatnonzero(marks[rows] == numbers)
                _add_to_rows(whole, rows[once], values[once])
                rows, values = rows[again], values[again]
            else:
                _add_to_rows(whole, rows, values)
                return a
        add_rows(whole, rows, values)
    return a


#: Of how many places it is worth to keep a mark for each.
_MOST_MARKS = 1 << 24


def _add_to_rows(a: np.ndarray, rows: np.ndarray, values: np.ndarray) -> None:
    """Add to rows of an array, each of which comes once."""
    part = a.take(rows, 0)
    part += values
    a[rows] = part


def add_sparse(a: SparseArray, b: SparseArray) -> SparseArray:
    """The coordinates of both; coalesced if both are.

    As in torch, those that both have become one where both are sorted and their values lie in one piece; else they
    stand one after the other, as long as there are not more of them than elements.
    """
    together = a.coalesced and b.coalesced
    dense = a.values.flags.c_contiguous and b.values.flags.c_contiguous
    if dense and a.indices.shape == b.indices.shape and np.array_equal(a.indices, b.indices):
        return SparseArray(a.indices, a.values + b.values, a.shape, together)
    indices = np.concatenate([a.indices, b.indices], 1)
    values = np.concatenate([a.values, b.values])
    result = SparseArray(indices, values, a.shape)
    if together or (not dense and indices.shape[1] > math.prod(a.shape)):
        return coalesce(result)
    if dense and a.sparse_dim and (merged := _merge_sorted(a, b)) is not None:
        places, number = merged
        sums = np.zeros_like(values, shape=(number, *values.shape[1:]))
        add_rows(sums.reshape(number, -1), places, values.reshape(len(places), -1))
        of_each = np.empty_like(indices, shape=(len(indices), number))
        of_each[:, places] = indices
        return SparseArray(of_each, sums, a.shape)
    return result


def _merge_sorted(a: SparseArray, b: SparseArray) -> tuple[np.ndarray, int] | None:
    """Where the coordinates of `a`, then those of `b`, stand when both are merged, and how many there are; None where
    they are not sorted.  What comes several times in both meets in pairs."""
    numbers = [coordinates_to_numbers(one.indices, one.shape) for one in (a, b)]
    if any((n[1:] < n[:-1]).any() for n in numbers):
        return None
    # Each number with how often it came before in its own list: only what agrees in both is one.
    turns = [np.arange(len(n)) - np.searchsorted(n, n) for n in numbers]
    keys = np.concatenate([np.stack(pair) for pair in zip(numbers, turns, strict=True)], 1)
    _, places = np.unique(keys, axis=1, return_inverse=True)
    places = places.reshape(-1)
    return places, int(places.max()) + 1 if places.size else 0


# ------------------------------------------------------------------------------------------------------------- products


def multiply_sparse_dense(a: Any, b: np.ndarray, adjoint: bool = False) -> np.ndarray:
    """The product of a sparse matrix (or its adjoint) and an array of one or two dimensions."""
    matrix = a.matrix()
    if adjoint:
        matrix = (matrix.conj() if a.dtype.kind == "c" else matrix).T
    result = matrix @ (b.astype(np.float32) if matrix.dtype != b.dtype else b)
    return result if result.dtype == b.dtype else result.astype(b.dtype)


def multiply_sparse(a: SparseArray, b: SparseArray) -> SparseArray:
    """The product of two sparse matrices, with a value wherever their values meet, be it zero."""
    first, second = a.matrix(), b.matrix()
    product = first @ second
    # SciPy leaves out sums that are zero: where there is one, the product of ones says.
    ones = [
        one.__class__((np.ones(one.data.size), one.indices, one.indptr), shape=one.shape) for one in (first, second)
    ]
    places = ones[0] @ ones[1]
    for one in (product, places):
        one.sort_indices()
    indices = [
        np.stack([np.repeat(np.arange(one.shape[0]), np.diff(one.indptr)), one.indices.astype(np.int64)])
        for one in (product, places)
    ]
    shape = (a.shape[0], b.shape[1])
    values = product.data
    if product.nnz != places.nnz:
        values = np.zeros(places.nnz, product.dtype)
        of_product, of_places = (coordinates_to_numbers(at, shape) for at in indices)
        values[np.searchsorted(of_places, of_product)] = product.data
    return SparseArray(indices[1], values.astype(a.dtype, copy=False), shape, True)


def sampled_products(a: np.ndarray, b: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """The elements of ``a @ b.T`` at rows and columns."""
    if a.dtype.kind == "V" or a.itemsize == 2:
        return sampled_products(a.astype(np.float32), b.astype(np.float32), rows, columns).astype(a.dtype)
    result = np.empty(rows.size, np.result_type(a, b))
    width = max(1, a.shape[1])
    block = max(1, 1 << 18 >> max(0, width.bit_length() - 1))
    for start in range(0, rows.size, block):
        part = slice(start, start + block)
        np.einsum("ij,ij->i", a.take(rows[part], 0), b.take(columns[part], 0), out=result[part])
    return result


# -------------------------------------------------------------------------------------------- gradients that are sparse


def embedding_sparse_gradient(
    grad: np.ndarray, indices: np.ndarray, num_weights: int, padding_idx: int = -1
) -> SparseArray:
    """The gradient of `embedding` for its weight: the rows of `grad` at their indices, not yet added up."""
    width = grad.shape[-1]
    rows = indices.reshape(-1)
    values = grad.reshape(rows.size, width)
    if padding_idx >= 0:
        used = rows != padding_idx
        if not used.all():
            rows, values = rows[used], values[used]
    return SparseArray(np.array(rows[None], np.int64), values, (num_weights, width))


def gather_sparse_gradient(grad: np.ndarray, shape: tuple[int, ...], dim: int, index: np.ndarray) -> SparseArray:
    """The gradient of `gather`: the elements of `grad` where they were read."""
    if not shape:
        return SparseArray(np.zeros((0, grad.size), np.int64), grad.reshape(-1), shape)
    coordinates = np.indices(index.shape or (1,)).reshape(len(shape), -1)
    coordinates[dim] = index.reshape(-1)
    return SparseArray(coordinates, grad.reshape(-1), shape)
