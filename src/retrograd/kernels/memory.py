"""Copies, other dtypes, filling, and gradients that go through the storage which tensors lie in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import compiled
from .compiled import SHARED
from .dtypes import convert
from .promotion import broadcast_shape, cast_number
from .shape import expand
from .storage import _check_channels, as_strided, dense_like, storage_offset, strides


def alias(a: np.ndarray) -> np.ndarray:
    """Another array object on the same memory."""
    return a[...]


def contiguous(a: np.ndarray) -> np.ndarray:
    """`a` itself where it is contiguous, else a contiguous copy."""
    return a if a.flags.c_contiguous else row_major(a)


def row_major(a: np.ndarray) -> np.ndarray:
    """A contiguous copy."""
    if a.size > SHARED and (fast := compiled.copied(a)) is not None:
        return fast
    return a.copy()


def clone(a: np.ndarray, memory_format: Any = None) -> np.ndarray:
    """A copy of `a` that has its order of dimensions in memory, without the gaps and overlaps.

    With ``memory_format=contiguous_format`` the copy is row-major whatever the order of `a`, with ``channels_last``
    its dimension 1 is innermost.
    """
    if memory_format is not None:
        name = str(memory_format)
        if "contiguous" in name:
            return row_major(a)
        if "channels_last" in name:
            return np.moveaxis(np.moveaxis(_check_channels(a, name), 1, -1).copy(), -1, 1)
    if a.flags.c_contiguous:
        return row_major(a)
    if _numpy_knows_the_layout(a):
        return a.copy("K")
    result = dense_like(a, a.dtype)
    result[...] = a
    return result


def to_dtype(a: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """`a` with elements of `dtype`: `a` itself where they are already; the imaginary part is dropped silently."""
    if a.dtype == dtype:
        return a
    plain = a.flags.c_contiguous or _numpy_knows_the_layout(a)
    if a.dtype.num >= 256 or dtype.num >= 256 or dtype.names is not a.dtype.names:
        values = convert(a, dtype)
        if plain:
            return values
    else:
        values = a.real if a.dtype.kind == "c" and dtype.kind not in "cb" else a
        if plain:
            return values.astype(dtype)
    result = dense_like(a, dtype)
    result[...] = values
    return result


def _numpy_knows_the_layout(a: np.ndarray) -> bool:
    """Does a copy in NumPy's K order lie as torch's does?"""
    return 0 not in a.strides and 1 not in a.shape


def to_copy(a: np.ndarray, dtype: np.dtype | None = None) -> np.ndarray:
    """A copy of `a` with elements of `dtype`."""
    return clone(a) if dtype is None or a.dtype == dtype else to_dtype(a, dtype)


def fill(a: np.ndarray, value: Any, out: np.ndarray | None = None) -> np.ndarray:
    """`value`, a number or a 0-d array, in the shape and dtype of `a`."""
    if getattr(value, "ndim", 0):
        raise RuntimeError(f"fill_ only supports 0-dimension value tensor but got tensor with {value.ndim} dimensions.")
    if getattr(value, "dtype", None) is not a.dtype:
        value = cast_number(value, a.dtype)
    result = np.empty_like(a) if out is None else out
    result[...] = value
    return result


def zero(a: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Zeros in the shape and dtype of `a`: their bits are 0, also where a dtype has no number 0."""
    return fill(a, np.zeros((), a.dtype), out)


def copy(a: np.ndarray, src: np.ndarray, non_blocking: bool = False, out: np.ndarray | None = None) -> np.ndarray:
    """`src` expanded to the shape of `a` and converted to its dtype."""
    if src.shape != a.shape:
        broadcast_shape(a, src)
    if src.dtype.num >= 256 or a.dtype.num >= 256 or src.dtype.names is not a.dtype.names:
        src = convert(src, a.dtype)
    source = expand(src, a.shape)
    if source.dtype.kind == "c" and a.dtype.kind not in "cb":
        source = source.real
    result = np.empty_like(a) if out is None else out
    if not (source.dtype is result.dtype and compiled.copied_into(result, source)):
        np.copyto(result, source, casting="unsafe")
    return result


def as_strided_backward(
    grad: np.ndarray,
    input_shape: Sequence[int],
    input_strides: Sequence[int],
    input_offset: int,
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: int | None = None,
) -> np.ndarray:
    """The gradient of the tensor that ``as_strided(size, stride, storage_offset)`` was taken of.

    `grad` is added up in the storage that both tensors lie in, and read out there with the strides of the input.
    Where several elements of the input are one element of the storage, each gets its share.
    """
    geometry = (tuple(input_shape), tuple(input_strides), input_offset)
    offset = input_offset if storage_offset is None else storage_offset
    return through_storage(grad, (tuple(size), tuple(stride), offset), geometry, geometry)


#: Sizes, strides and offset, in elements: where the elements of an array lie in its storage.
Geometry = tuple[tuple[int, ...], tuple[int, ...], int]


def through_storage(a: np.ndarray, source: Geometry, target: Geometry, shared: Geometry) -> np.ndarray:
    """`a` written to an empty storage as an array of geometry `source`, read from it as one of geometry `target`.

    Elements written to the same place add up. What lies in a place is divided by the number of elements that an array
    of geometry `shared` has there.  With `source` and `target` exchanged it is the transpose of this linear map.
    """
    start = min(source[2], target[2])
    length = max(_extent(source, start), _extent(target, start), _extent(shared, start))
    storage = np.zeros_like(a, shape=(length,), order="C")
    np.add.at(storage, _places(source[0], source[1], source[2] - start), a.reshape(-1))
    if _overlaps(shared[0], shared[1]):
        shares = np.bincount(_places(shared[0], shared[1], shared[2] - start), minlength=length)
        storage /= np.maximum(shares, 1).astype(storage.real.dtype)
    return as_strided(storage, target[0], target[1], target[2] - start).copy()


def _extent(geometry: Geometry, start: int) -> int:
    # How many places of the storage, counted from `start`, an array of this geometry needs.
    shape, steps, offset = geometry
    return 0 if 0 in shape else offset - start + 1 + sum((n - 1) * s for n, s in zip(shape, steps))


def geometry(a: np.ndarray) -> Geometry:
    """Where the elements of `a` lie in its storage."""
    return a.shape, strides(a), storage_offset(a)


def as_strided_geometry(
    a: np.ndarray, size: Sequence[int], stride: Sequence[int], storage_offset: int | None, geometry: Geometry
) -> np.ndarray:
    """`as_strided`, told the geometry of `a` as well, which its derivative needs."""
    return as_strided(a, size, stride, storage_offset)


def _places(shape: Sequence[int], steps: Sequence[int], first: int) -> np.ndarray:
    # The place in the storage of every element, in the order of the elements.
    places = np.full((1,) * len(shape), first, dtype=np.int64)
    for d, (n, s) in enumerate(zip(shape, steps)):
        places = places + (np.arange(n) * s).reshape([n if i == d else 1 for i in range(len(shape))])
    return places.reshape(-1)


def _overlaps(shape: Sequence[int], steps: Sequence[int]) -> bool:
    # False only where it is certain that no two elements are in one place.
    reach = 0
    for s, n in sorted((s, n) for s, n in zip(steps, shape) if n != 1):
        if s <= reach:
            return True
        reach += s * (n - 1)
    return False
