"""What `save` and `load` do unless they are told otherwise: process-wide, as torch has it.

>>> from retrograd.utils.serialization import config
>>> config.save.compute_crc32, config.load.mmap
(True, False)
"""

from __future__ import annotations

import mmap as _mmap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class save:
    """Settings of `torch.save`."""

    #: Write checksums?
    compute_crc32: bool = True
    #: The memory of each storage begins at a multiple of so many bytes of the file.
    storage_alignment: int = 64


class load:
    """Settings of `torch.load`."""

    #: Map files into memory unless ``mmap=`` says otherwise?
    mmap: bool = False
    #: What a mapped file does when its memory is written to: MAP_PRIVATE copies, MAP_SHARED changes the file.
    mmap_flags: int | None = getattr(_mmap, "MAP_PRIVATE", None)
    #: The byte order of files that do not say theirs; None is little.
    endianness: Any = None
    #: Torch can compute where the memory of a storage lies instead of reading it; here it is always read.
    calculate_storage_offsets: bool = False


@contextmanager
def patch(settings: dict[str, Any]) -> Iterator[None]:
    """``with config.patch({"save.compute_crc32": False}):``: settings for a while."""
    groups = {"save": save, "load": load}
    before = {}
    for name in settings:
        group, _, field = name.partition(".")
        if group not in groups or not hasattr(groups[group], field):
            raise AttributeError(f"there is no setting {name!r}")
        before[name] = getattr(groups[group], field)
    try:
        for name, value in settings.items():
            setattr(groups[name.partition(".")[0]], name.partition(".")[2], value)
        yield
    finally:
        for name, value in before.items():
            setattr(groups[name.partition(".")[0]], name.partition(".")[2], value)
