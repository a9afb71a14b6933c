"""Tensors in memory that a process shares with those it forks."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np


def shared_copy(array: np.ndarray) -> np.ndarray:
    """A copy of `array`, laid out as it is, that processes forked from now on see and write to as well."""
    if not array.nbytes:
        return array.copy()
    region = mmap.mmap(-1, array.nbytes)  # anonymous, and shared
    order = np.argsort([-abs(step) for step in array.strides], kind="stable")
    flat = np.frombuffer(region, array.dtype).reshape([array.shape[d] for d in order])
    result = flat.transpose(np.argsort(order))
    result[...] = array
    return result


def is_shared(array: Any) -> bool:
    """Does `array` lie in memory of `shared_copy`?"""
    while isinstance(array, np.ndarray):
        if not array.nbytes:
            return True
        array = array.base
    return isinstance(array.obj if isinstance(array, memoryview) else array, mmap.mmap)
