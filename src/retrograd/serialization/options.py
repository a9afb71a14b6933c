"""Settings of `save` and `load` by torch's functions; the values are in ``utils.serialization.config``."""

from __future__ import annotations

import threading
from enum import Enum
from typing import Any

from ..utils.serialization import config


class LoadEndianness(Enum):
    """The byte order of a file that does not say its own."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


def get_default_load_endianness() -> LoadEndianness | None:
    """The byte order that files are taken to have which do not say theirs; None is little."""
    return config.load.endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Choose the byte order of files that do not say theirs."""
    if not isinstance(endianness, LoadEndianness) and endianness is not None:
        raise TypeError(
            "Invalid argument type in function set_default_load_endianness: expected a LoadEndianness or None, got "
            + type(endianness).__name__
        )
    config.load.endianness = endianness


def get_crc32_options() -> bool:
    """Does `save` write checksums?"""
    return config.save.compute_crc32


def set_crc32_options(compute_crc32: bool) -> None:
    """Choose whether `save` computes checksums, which `load` compares."""
    if not isinstance(compute_crc32, bool):
        raise TypeError(f"set_crc32_options(): argument must be bool, not {type(compute_crc32).__name__}")
    config.save.compute_crc32 = compute_crc32


def get_default_mmap_options() -> int | None:
    """``mmap.MAP_PRIVATE`` or ``mmap.MAP_SHARED``: see `set_default_mmap_options`."""
    return config.load.mmap_flags


class set_default_mmap_options:
    """Choose what ``load(..., mmap=True)`` does when a tensor is written to; also for the length of a ``with`` block.

    ``mmap.MAP_PRIVATE`` changes the tensor alone, ``mmap.MAP_SHARED`` the file too.
    """

    def __init__(self, flags: int) -> None:
        import mmap

        if not hasattr(mmap, "MAP_PRIVATE"):
            raise RuntimeError("Changing the default mmap options is currently not supported for Windows")
        if flags not in (mmap.MAP_PRIVATE, mmap.MAP_SHARED):
            raise ValueError(
                "Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, "
                f"but got {flags}"
            )
        self.before: int | None = config.load.mmap_flags
        config.load.mmap_flags = flags

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc_info: object) -> None:
        config.load.mmap_flags = self.before


class _Local(threading.local):
    skip_data = False


_local = _Local()


def data_is_skipped() -> bool:
    """Are we within `skip_data`?"""
    return _local.skip_data


class skip_data:
    """Within the ``with`` block `save` leaves room for the memory of tensors, and `load` leaves it as it finds it.

    >>> import io, retrograd as torch
    >>> file = io.BytesIO()
    >>> with torch.serialization.skip_data():
    ...     torch.save(torch.ones(2), file)
    >>> torch.load(io.BytesIO(file.getvalue()))
    tensor([0., 0.])
    """

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        if materialize_fake_tensors:
            raise RuntimeError("skip_data(): there are no fake tensors here to materialize")

    def __enter__(self) -> None:
        self.before: Any = _local.skip_data
        _local.skip_data = True

    def __exit__(self, *exc_info: object) -> None:
        _local.skip_data = self.before
