"""Large arrays: a compiled kernel where there is one, else a block at a time.

A kernel of several NumPy steps that goes over a large array step by step reads and writes memory in each.  Taken in
blocks, what one step leaves is still in the cache when the next one reads it.  `pointwise` is for kernels of single
elements: it calls the kernel that called it again, with small parts.  `rows` is for those along the last dimension.
`row_blocks` gives the blocks to kernels that return more than one array.

Blocks on several threads were measured and are slower: between two steps a thread has to wait for the interpreter,
longer than a step takes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from numpy import ndarray

from . import compiled

_FLOAT32 = np.dtype(np.float32)
BLOCK = 1 << 15  # elements: a few arrays of so many stay in the cache of a core
_BLOCK = 1 << 18  # elements
_FEW = 1 << 20  # elements that stay in the last cache, so that blocks save nothing


def pointwise(
    name: str, kernel: Callable[..., ndarray], arrays: tuple[ndarray, ...], *args: Any, number: float | None = None
) -> ndarray | None:
    """``kernel(*arrays, *args)``, each element computed from those at its place; None where the arrays are not of one
    shape and contiguous, or too small for it.  The compiled kernel is called `name` and may take a number."""
    if not are_large(arrays):
        return None
    result = compiled.pointwise(name, *arrays, number=number)
    if result is not None or arrays[0].size <= _FEW:
        return result
    flat = [a.reshape(-1) for a in arrays]
    for first in range(0, flat[0].size, _BLOCK):
        part = kernel(*[a[first : first + _BLOCK] for a in flat], *args)
        if result is None:
            result = np.empty(flat[0].size, part.dtype)
        result[first : first + _BLOCK] = part
    assert result is not None
    return result.reshape(arrays[0].shape)


def pairs(fill: Callable[..., None], a: Any, b: Any) -> ndarray | None:
    """An array filled by ``fill(part of a, part of b, part of it)``; None where they are not large contiguous arrays of
    float32 of one shape.  `b` may be 0-d, and is one element then, or broadcast to the shape of `a`."""
    if not (type(a) is ndarray and type(b) is ndarray and a.dtype is b.dtype is _FLOAT32 and a.size > compiled.LARGE):
        return None
    if not a.flags.c_contiguous:
        return None
    if b.ndim and b.shape != a.shape:
        try:
            b = np.broadcast_to(b, a.shape)
        except ValueError:
            return None
    if b.ndim and not b.flags.c_contiguous:
        b = b.copy()
    result = np.empty(a.shape, _FLOAT32)
    x, y, r = a.reshape(-1), b.reshape(-1), result.reshape(-1)
    for first in range(0, r.size, BLOCK):
        part = slice(first, first + BLOCK)
        fill(x[part], y[part] if b.ndim else y, r[part])
    return result


def rows(name: str, fill: Callable[..., None], arrays: tuple[ndarray, ...], dim: int) -> ndarray | None:
    """An array filled by ``fill(*matrices, out)``, each row along `dim` computed from those at its place; None where
    `dim` is not the last or the arrays are not floats of one shape and contiguous, or too small for it."""
    shape = arrays[0].shape
    if dim == len(shape) - 1 and arrays[0].size <= compiled.LARGE and arrays[-1].shape == shape:
        return compiled.rows(name, *arrays)
    if dim != len(shape) - 1 or not are_large(arrays):
        return None
    result = compiled.rows(name, *arrays)
    if result is not None or arrays[0].dtype.char not in "fd" or any(a.dtype is not arrays[0].dtype for a in arrays):
        return result
    result = np.empty(shape, arrays[0].dtype)
    flat, into = [a.reshape(-1, shape[-1]) for a in arrays], result.reshape(-1, shape[-1])
    with long_rows(shape[-1]):
        for block in row_blocks(into):
            fill(*[a[block] for a in flat], into[block])
    return result


# Numbers as their bits, to choose between two without a branch for each: those cost more than all the rest.
BITS: dict[int, Any] = {1: np.dtype(np.int8), 2: np.dtype(np.int16), 4: np.dtype(np.int32), 8: np.dtype(np.int64)}


def where(condition: ndarray, x: ndarray, y: ndarray) -> ndarray:
    """``np.where`` of arrays of one dtype, faster where they are large, contiguous and of one shape (or 0-d)."""
    result = None
    if condition.size > compiled.LARGE and _can_choose(condition, x, y):
        result = compiled.where(condition, x, y)
        if result is None and x.dtype.itemsize in BITS:
            result = _choose(condition, x, y)
    return np.where(condition, x, y) if result is None else result


def _can_choose(condition: ndarray, x: ndarray, y: ndarray) -> bool:
    shape = condition.shape
    return condition.dtype == np.bool_ and x.dtype == y.dtype and all(
        type(a) is ndarray and a.flags.c_contiguous and (a.shape == shape or not a.ndim) for a in (condition, x, y)
    )


def _choose(condition: ndarray, x: ndarray, y: ndarray) -> ndarray:
    result = np.empty(condition.shape, x.dtype)
    bits = BITS[x.dtype.itemsize]
    into, flags = result.view(bits).reshape(-1), condition.view(np.int8).reshape(-1)
    # One element for all is repeated, for a block: its bits are taken beside those of the others.
    ones, others = (a.view(bits).reshape(-1) if a.ndim else np.full(_BLOCK, a).view(bits) for a in (x, y))
    for first in range(0, into.size, _BLOCK):
        part = into[first : first + _BLOCK]
        one = ones[first : first + _BLOCK] if x.ndim else ones[: part.size]
        other = others[first : first + _BLOCK] if y.ndim else others[: part.size]
        np.bitwise_xor(one, other, out=part)
        part &= np.negative(flags[first : first + _BLOCK], dtype=bits)  # all bits, or none
        part ^= other
    return result


def are_large(arrays: tuple[Any, ...]) -> bool:
    """Whether these are contiguous arrays of NumPy of one shape, and large."""
    shape = arrays[0].shape
    return arrays[0].size > compiled.LARGE and all(
        type(a) is ndarray and a.shape == shape and a.flags.c_contiguous for a in arrays
    )


def row_blocks(x: ndarray) -> Iterator[slice]:
    """The rows of `x`, as many at a time as stay in the cache; all at once of an array that is not NumPy's."""
    rows = x.shape[0]
    step = max(1, _BLOCK // max(math.prod(x.shape[1:]), 1)) if type(x) is ndarray else max(1, rows)
    for first in range(0, rows, step):
        yield slice(first, min(first + step, rows))


class long_rows:
    """Within it, arrays whose rows have `width` elements are combined with one number a row, or one row for all, in
    half the time.

    NumPy gathers rows that are shorter than its buffer there first, so that fewer loops do all the work.  For rows
    that are long enough for a loop of their own that is a copy for nothing, and a small buffer prevents it.
    """

    __slots__ = ("_before", "_width")

    def __init__(self, width: int) -> None:
        self._width = width
        self._before = 0

    def __enter__(self) -> None:
        if 256 <= self._width < 1 << 15:
            self._before = np.setbufsize(256)

    def __exit__(self, *_: object) -> None:
        if self._before:
            np.setbufsize(self._before)


_ONES = {np.dtype(t): np.ones(4096, t) for t in "fd"}


def ones(n: int, dtype: np.dtype) -> ndarray:
    """So many ones, to read."""
    found = _ONES.get(dtype)
    return np.ones(n, dtype) if found is None or n > 4096 else found[:n]


#: Elements of a matrix whose rows are summed, and numbers spread over them, by products: one of BLAS costs a third of a
#: sum along a dimension, or of a ufunc that broadcasts, until there is something to compute.
TINY = 512


@lru_cache(maxsize=256)
def ones_across(n: int, dtype: np.dtype) -> tuple[ndarray, ndarray]:
    """A column of so many ones, with which ``x.dot(column)`` are the sums of rows, and a row of them, with which
    ``sums.dot(row)`` has each as often as the row is long. To read."""
    return np.ones((n, 1), dtype), np.ones((1, n), dtype)


@lru_cache(maxsize=256)
def ones_along(n: int, dtype: np.dtype) -> ndarray:
    """So many ones, to read: ``ones.dot(x)`` are the sums of columns of `n` elements."""
    return np.ones(n, dtype)


@lru_cache(maxsize=256)
def shares_across(n: int, dtype: np.dtype) -> tuple[ndarray, ndarray, ndarray]:
    """A column of 1/n, with which ``x.dot(column)`` are the means of rows; a row of ones, with which ``means.dot(row)``
    has each as often as the row is long, to the last bit; and a row of 1/n. To read."""
    column = np.full((n, 1), 1 / n if n else 0, dtype)
    return column, np.ones((1, n), dtype), column.reshape(1, n)


@lru_cache(maxsize=256)
def as_0d(value: float, dtype: np.dtype) -> ndarray:
    """A number as an array, which costs a ufunc less than a number does. To read."""
    array = np.array(value, dtype)
    array.flags.writeable = False
    return array


def row_sums(x: ndarray) -> ndarray:
    """The sums of the rows of a matrix, as a column: a product with ones, by BLAS, where that is as exact."""
    if type(x) is ndarray and x.shape[1] <= 4096 and x.dtype.char in "fd":
        return np.dot(x, ones(x.shape[1], x.dtype)).reshape(-1, 1)
    return np.add.reduce(x, 1, keepdims=True)


_DOT = 1 << 14  # elements that BLAS may add up one after the other: of more, too many bits are lost


def dots(x: ndarray, y: ndarray) -> ndarray:
    """The sum of the products along the last dimension, by the dot product of BLAS."""
    if type(x) is not ndarray:
        return np.einsum("...i,...i->...", x, y)
    if (n := x.shape[-1]) <= _DOT:
        return np.vecdot(x, y)
    whole = n // 4096 * 4096
    parts = [a[..., :whole].reshape(*a.shape[:-1], -1, 4096) for a in (x, y)]
    return np.add.reduce(np.vecdot(*parts), -1) + np.vecdot(x[..., whole:], y[..., whole:])
