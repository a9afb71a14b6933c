"""``torch.accelerator``: the accelerator of this machine, whichever it is.

CUDA's devices, where there are some; else one for which somebody registered a library of arrays (core/devices.py).
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


def _cuda() -> Any:
    """`retrograd.cuda`, if its devices are what there is; None where somebody registered an array class, or nobody."""
    from . import cuda  # not before an accelerator is asked for

    return cuda if (not accelerators or accelerators[0].type == "cuda") and cuda.is_available() else None


def is_available() -> bool:
    """Is there an accelerator to compute on?

    >>> import retrograd as torch
    >>> torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
    device(type='cpu')
    """
    return bool(accelerators) or _cuda() is not None


def device_count() -> int:
    """How many devices the accelerator has."""
    return len(accelerators) if is_available() else 0


def current_accelerator(check_available: bool = False) -> _device | None:
    """The kind of the accelerator, as a device without an index; None where there is none."""
    if not is_available():
        return None
    return _device(accelerators[0].type)


def _first() -> _device:
    if is_available():
        return accelerators[0]
    raise RuntimeError(
        "Cannot access accelerator device when none is available. Ask torch.accelerator.is_available() first"
    )


def current_device_index() -> int:
    """The index of the device in use."""
    found, cuda = _first(), _cuda()
    return (found.index or 0) if cuda is None else cuda.current_device()


current_device_idx = current_device_index


def set_device_index(device: Any, /) -> None:
    """Use another device of the accelerator, if it has more than the one in use."""
    found, cuda = _first(), _cuda()
    index = device if isinstance(device, int) else _device(device).index or 0
    if cuda is not None:
        if index >= 0:
            cuda.set_device(index)
        return
    if index >= 0 and index != (found.index or 0):
        raise RuntimeError(f"there is no device {index}: the accelerator has {device_count()}, and works on {found}")


set_device_idx = set_device_index


def synchronize(device: Any = None, /) -> None:
    """Wait until the device has done what it was given."""
    _first()
    if (cuda := _cuda()) is not None:
        cuda.synchronize(device)


def current_stream(device: Any = None, /) -> Any:
    """The queue of work in use; None where operators come back when they are done."""
    _first()
    return None if (cuda := _cuda()) is None else cuda.current_stream(device)


def set_stream(stream: Any) -> None:
    """Use another queue of work: refused where there are none."""
    _first()
    if (cuda := _cuda()) is None:
        raise RuntimeError("there are no streams here: operators come back when they are done")
    cuda.set_stream(stream)


class device_index:
    """A device of the accelerator within a block; None stands for the one in use.

    >>> import retrograd as torch
    >>> with torch.accelerator.device_index(None):
    ...     pass
    """

    def __init__(self, device: int | None, /) -> None:
        self.idx = device
        self.before: list[int] = []

    def __enter__(self) -> None:
        if self.idx is not None:
            self.before.append(current_device_index())
            set_device_index(self.idx)

    def __exit__(self, *exc_info: object) -> None:
        if self.before:
            set_device_index(self.before.pop())


def empty_cache() -> None:
    """Give back memory that is kept for later; without CUDA there is none."""
    if (cuda := _cuda()) is not None:
        cuda.empty_cache()


def memory_stats(device_index: Any = None, /) -> dict[str, Any]:
    """What is known of the accelerator's memory; nothing without CUDA."""
    return {} if (cuda := _cuda()) is None else cuda.memory_stats(device_index)


def memory_allocated(device_index: Any = None, /) -> int:
    """Bytes in use on the accelerator: 0 where there is none."""
    return 0 if (cuda := _cuda()) is None else cuda.memory_allocated(device_index)


def max_memory_allocated(device_index: Any = None, /) -> int:
    """The most bytes that were in use on the accelerator: 0 where there is none."""
    return 0 if (cuda := _cuda()) is None else cuda.max_memory_allocated(device_index)


def memory_reserved(device_index: Any = None, /) -> int:
    """Bytes that were taken from the accelerator, in use or kept for later: 0 where there is none."""
    return 0 if (cuda := _cuda()) is None else cuda.memory_reserved(device_index)


def max_memory_reserved(device_index: Any = None, /) -> int:
    """The most bytes that were taken from the accelerator: 0 where there is none."""
    return 0 if (cuda := _cuda()) is None else cuda.max_memory_reserved(device_index)


def reset_peak_memory_stats(device_index: Any = None, /) -> None:
    """Begin anew to look for the highest number of bytes."""
    if (cuda := _cuda()) is not None:
        cuda.reset_peak_memory_stats(device_index)


reset_accumulated_memory_stats = reset_peak_memory_stats
