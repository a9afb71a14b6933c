"""Pinned memory of the host, which devices read and write by themselves."""

from __future__ import annotations

import math
import weakref
from typing import Any

import numpy as np

from ..core import devices


def copy(module: Any, array: np.ndarray) -> np.ndarray:
    """A copy in such memory."""
    made = empty(module, array.shape, array.dtype)
    made[...] = array
    return made


def empty(module: Any, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An array in such memory, of the library's pool: a block that was let go is given out again."""
    size = math.prod(shape) * dtype.itemsize
    if not size:
        return np.empty(shape, dtype)
    whole = np.frombuffer(module.cuda.alloc_pinned_memory(size), np.uint8, size)
    made = whole.view(dtype).reshape(shape)
    address = made.__array_interface__["data"][0]
    entry = (address, address + size)
    devices.pinned_memory.append(entry)
    weakref.finalize(whole.base if not isinstance(whole.base, memoryview) else whole, _unpinned, entry)
    return made


def _unpinned(entry: tuple[int, int]) -> None:
    if entry in devices.pinned_memory:
        devices.pinned_memory.remove(entry)
