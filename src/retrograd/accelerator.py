"""``torch.accelerator``: the accelerator of this machine, whichever it is. This version brings none.

A device is there if a library of arrays was registered for it (core/devices.py).
"""

from __future__ import annotations

from typing import Any

from .core.devices import accelerators
from .core.devices import device as _device

__all__ = [
    "current_accelerator", "current_device_idx", "current_device_index", "current_stream", "device_count",
    "device_index", "empty_cache", "is_available", "max_memory_allocated", "max_memory_reserved", "memory_allocated",
    "memory_reserved", "memory_stats", "reset_accumulated_memory_stats", "reset_peak_memory_stats", "set_device_idx",
    "set_device_index", "set_stream", "synchronize",
]  # fmt: skip


def is_available() -> bool:
    """Is there an accelerator to compute on?

    >>> import retrograd as torch
    >>> torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
    device(type='cpu')
    """
    return bool(accelerators)


def device_count() -> int:
    """How many devices the accelerator has."""
    return len(accelerators)


def current_accelerator(check_available: bool = False) -> _device | None:
    """The kind of the accelerator, as a device without an index; None where there is none."""
    for found in accelerators:
        return _device(found.type)
    return None


def _first() -> _device:
    for found in accelerators:
        return found
    raise RuntimeError(
        "Cannot access accelerator device when none is available. Ask torch.accelerator.is_available() first"
    )


def current_device_index() -> int:
    """The index of the device in use."""
    return _first().index or 0


current_device_idx = current_device_index


def set_device_index(device: Any, /) -> None:
    """Use another device of the accelerator: `device` is the one in use already, or is refused."""
    found = _first()
    index = device if isinstance(device, int) else _device(device).index or 0
    if index >= 0 and index != (found.index or 0):
        raise RuntimeError(f"there is no device {index}: the accelerator has {device_count()}, and works on {found}")


set_device_idx = set_device_index


def synchronize(device: Any = None, /) -> None:
    """Wait until the device has done what it was given. Operators here come back when they are done."""
    _first()


def current_stream(device: Any = None, /) -> None:
    """The queue of work in use: there is none, operators here come back when they are done."""
    _first()


def set_stream(stream: Any) -> None:
    """Use another queue of work: refused, there are none."""
    _first()
    raise RuntimeError("there are no streams here: operators come back when they are done")


class device_index:
    """A device of the accelerator within a block; None stands for the one in use.

    >>> import retrograd as torch
    >>> with torch.accelerator.device_index(None):
    ...     pass
    """

    def __init__(self, device: int | None, /) -> None:
        self.idx = device

    def __enter__(self) -> None:
        if self.idx is not None:
            set_device_index(self.idx)

    def __exit__(self, *exc_info: object) -> None:
        pass


def empty_cache() -> None:
    """Give back unused memory: nothing to do, it is the operating system's as soon as a tensor is gone."""


def memory_stats(device_index: Any = None, /) -> dict[str, Any]:
    """What is known of the accelerator's memory: nothing."""
    return {}


def memory_allocated(device_index: Any = None, /) -> int:
    """Bytes in use on the accelerator: 0 where there is none."""
    return 0


max_memory_allocated = max_memory_reserved = memory_reserved = memory_allocated


def reset_peak_memory_stats(device_index: Any = None, /) -> None:
    """Forget the highest number of bytes: none is kept."""


reset_accumulated_memory_stats = reset_peak_memory_stats
