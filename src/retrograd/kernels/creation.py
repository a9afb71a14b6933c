"""New arrays: filled, uninitialised, and laid out like another one."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy import empty, ndarray

from .arithmetic import multiply_add
from .compiled import on_threads
from .promotion import cast_number, refuse_stored

#: ``accumulate(total, more, total)`` adds in place two arrays of one shape and dtype: the engine's innermost step.
accumulate: Any = on_threads(np.add)


def linspace(start: Any, end: Any, steps: int, dtype: np.dtype) -> ndarray:
    """`steps` points from `start` to `end`: those of the second half are counted from the end."""
    if dtype not in (np.float32, np.float64) or steps < 2:
        return np.linspace(start, end, steps).astype(dtype)
    first, last = (dtype.type(cast_number(number, dtype)) for number in (start, end))
    step = (last - first) / dtype.type(steps - 1)
    points = np.arange(steps).astype(dtype)
    half = steps // 2
    points[:half] = multiply_add(points[:half], step, first)
    points[half:] = multiply_add((steps - 1) - points[half:], -step, last)
    return points


def one_like(a: ndarray) -> ndarray:
    """`ones_like` for an array of one element, quicker."""
    result = a.copy()
    result[()] = 1  # (`fill` takes twice as long)
    return result


def repeated(a: ndarray, shape: Sequence[int]) -> ndarray:
    """A 0-d array repeated: as new memory where that is quicker than a view, else as a view with strides 0."""
    if a.__class__ is ndarray and prod(shape) <= 4096:
        result = empty(shape, a.dtype)
        result[...] = a
        return result
    return np.broadcast_to(a, shape)


def ones(shape: tuple[int, ...], dtype: Any) -> ndarray:
    """An array of ones."""
    return np.ones(shape, dtype)


def zeros(shape: tuple[int, ...], dtype: Any) -> ndarray:
    """An array of zeros."""
    return np.zeros(shape, dtype)


def zeros_like(a: ndarray) -> ndarray:
    """Zeros of the same shape and dtype."""
    return np.zeros_like(a)


def ones_like(a: ndarray) -> ndarray:
    """Ones of the same shape and dtype."""
    return np.ones_like(a)


def new_zeros(a: ndarray, size: tuple[int, ...]) -> ndarray:
    """Zeros of another shape, with the dtype (and library) of `a`."""
    return np.zeros_like(a, shape=tuple(size))


def is_dense(a: ndarray) -> bool:
    """Does `a` fill its memory without gaps or overlaps, in some order of dimensions?"""
    flags = a.flags
    if flags.c_contiguous or flags.f_contiguous:
        return True
    expected = a.itemsize
    for stride, size in sorted(zip(a.strides, a.shape, strict=True)):
        if size == 1:
            continue
        if stride != expected:
            return False
        expected *= size
    return True


def grad_layout_strides(a: ndarray) -> tuple[int, ...]:
    """The strides that the gradient of a leaf with array `a` should have: its own if it is dense, else row-major."""
    flags = a.flags
    if flags.c_contiguous or is_dense(a):
        return a.strides
    strides, step = [], a.itemsize
    for size in reversed(a.shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def empty_with_layout_of(a: ndarray, dtype: Any) -> ndarray:
    """Uninitialised memory in the layout of `grad_layout_strides`."""
    return np.empty_like(a, dtype=dtype, order="K" if is_dense(a) else "C", subok=False)


def layout_of(a: ndarray) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
    """Shape and strides of a dense array; no strides for one that is not, or that is row-major."""
    return (a.shape, None if a.flags.c_contiguous or not is_dense(a) else a.strides)


def empty_of_layout(layout: tuple[tuple[int, ...], tuple[int, ...] | None], like: ndarray) -> ndarray:
    """Uninitialised memory in a layout of `layout_of`, with the dtype of `like`."""
    shape, strides = layout
    if strides is None:
        return np.empty_like(like, shape=shape, order="C", subok=False)
    order = sorted(range(len(shape)), key=lambda d: -strides[d])
    memory = np.empty_like(like, shape=tuple(shape[d] for d in order), order="C", subok=False)
    return memory.transpose(tuple(sorted(range(len(order)), key=order.__getitem__)))


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
    if dtype is not None:
        refuse_stored(indices.__name__, dtype)
    row, col = min(row, max(highest, 0)), min(col, max(widest, 0))
    return np.stack(indices(row, offset, col)).astype(dtype or np.int64, copy=False)
