"""Memory that processes share: `Tensor.share_memory_` moves to it, and what a DataLoader's workers send lies in it."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np


class SharedMap(mmap.mmap):
    """A stretch of memory that a forked process sees as we do, and that goes with the last array on it."""


class FileMap(mmap.mmap):
    """A file that is mapped into memory, and written to with it."""

    #: Its name.
    path: str


def file_of(root: Any) -> str | None:
    """The name of the file that an array that owns its memory has it in common with, if there is one."""
    owner = _owner(root)
    return owner.path if isinstance(owner, FileMap) else None


def shared_array(octets: int) -> np.ndarray:
    """New bytes in shared memory."""
    return np.frombuffer(SharedMap(-1, max(octets, 1)), np.uint8, octets)


def is_shared(root: Any) -> bool:
    """Does an array that owns its memory have it in common with other processes?"""
    return isinstance(_owner(root), (SharedMap, FileMap))


def _owner(root: Any) -> Any:
    owner = getattr(root, "base", None)
    while isinstance(owner, memoryview):
        owner = owner.obj
    return owner
