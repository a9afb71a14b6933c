"""Large arrays: a compiled kernel where there is one, else a block at a time.

A kernel of several NumPy steps that goes over a large array step by step reads and writes memory in each.  Taken in
blocks, what one step leaves is still in the cache when the next one reads it.  `pointwise` is for kernels of single
elements, `rows` for those along the last dimension: they call the kernel that called them again, with small parts.
`row_blocks` gives the blocks to kernels that return more than one array.

Blocks on several threads were measured and are slower: between two steps a thread has to wait for the interpreter,
longer than a step takes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy import ndarray

from . import compiled

_BLOCK = 1 << 18  # elements
_FEW = 1 << 20  # elements that stay in the last cache, so that blocks save nothing


def pointwise(
    name: str, kernel: Callable[..., ndarray], arrays: tuple[ndarray, ...], *args: Any, number: float | None = None
) -> ndarray | None:
    """``kernel(*arrays, *args)``, each element computed from those at its place; None where the arrays are not of one
    shape and contiguous, or too small for it.  The compiled kernel is called `name` and may take a number."""
    if not _are_large(arrays):
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


def rows(name: str, kernel: Callable[..., ndarray], arrays: tuple[ndarray, ...], dim: int) -> ndarray | None:
    """``kernel(*arrays, dim)``, each row along `dim` computed from those at its place; None where `dim` is not the last
    or the arrays are not of one shape and contiguous, or too small for it."""
    shape = arrays[0].shape
    if dim != len(shape) - 1 or not _are_large(arrays):
        return None
    result = compiled.rows(name, *arrays)
    flat = [a.reshape(-1, shape[-1]) for a in arrays]
    if result is not None or arrays[0].size <= _FEW or len(flat[0]) == 1:
        return result
    for block in row_blocks(flat[0]):
        part = kernel(*[a[block] for a in flat], 1)
        if result is None:
            result = np.empty(flat[0].shape, part.dtype)
        result[block] = part
    assert result is not None
    return result.reshape(shape)


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


def _are_large(arrays: tuple[Any, ...]) -> bool:
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


def dots(x: ndarray, y: ndarray) -> ndarray:
    """The sum of the products along the last dimension, by the dot product of BLAS."""
    return np.vecdot(x, y) if type(x) is ndarray else np.einsum("...i,...i->...", x, y)
