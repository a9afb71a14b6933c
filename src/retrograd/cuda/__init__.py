"""``torch.cuda``: what programs ask before they decide for a device.

A device is there if a library of arrays was registered for it (core/devices.py); this package brings none for CUDA, so
that the answer is no, and what needs a device says so.
"""

from __future__ import annotations

from typing import Any, NoReturn

from ..core.devices import OutOfMemoryError, accelerators
from ..ops.tensor_types import CUDA_TYPES

__all__ = [
    "Event", "OutOfMemoryError", "Stream", "amp", "current_device", "current_stream", "default_stream", "device",
    "device_count", "empty_cache", "get_device_capability", "get_device_name", "get_device_properties", "get_rng_state",
    "get_rng_state_all", "init", "initial_seed", "ipc_collect", "is_available", "is_bf16_supported", "is_initialized",
    "manual_seed", "manual_seed_all", "max_memory_allocated", "max_memory_reserved", "mem_get_info", "memory_allocated",
    "memory_reserved", "memory_summary", "reset_max_memory_allocated", "reset_peak_memory_stats", "seed", "seed_all",
    "set_device", "set_rng_state", "set_rng_state_all", "stream", "synchronize", *CUDA_TYPES,
]  # fmt: skip


def is_available() -> bool:
    """Is there a CUDA device to compute on?

    >>> import retrograd as torch
    >>> "cuda" if torch.cuda.is_available() else "cpu"
    'cpu'
    """
    return device_count() > 0


def device_count() -> int:
    """How many CUDA devices there are to compute on."""
    return sum(device.type == "cuda" for device in accelerators)


def is_initialized() -> bool:
    """Is a CUDA device in use?"""
    return is_available()


def manual_seed(seed: int) -> None:
    """Seed the generators of the CUDA devices: as in torch, nothing to do where there is none."""
    int(seed)


manual_seed_all = manual_seed


def empty_cache() -> None:
    """Give back unused memory of the CUDA devices: as in torch, nothing to do where there is none."""


def memory_allocated(device: Any = None) -> int:
    """Bytes in use on a CUDA device: as in torch, 0 where there is none."""
    return 0


max_memory_allocated = max_memory_reserved = memory_reserved = memory_allocated


def reset_peak_memory_stats(device: Any = None) -> None:
    """Forget the highest number of bytes: as in torch, nothing to do where there is no device."""


reset_max_memory_allocated = reset_peak_memory_stats


def ipc_collect() -> None:
    """Give back memory that other processes have let go: nothing to do where there is no device."""


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Can the CUDA device compute in bfloat16? There is none."""
    return False


def get_rng_state_all() -> list:
    """The states of the generators of all CUDA devices."""
    return []


def set_rng_state_all(new_states: Any) -> None:
    """Set the states of the generators of all CUDA devices."""
    if len(new_states) > device_count():
        _refuse()


def seed() -> None:
    """Seed the generator of the CUDA device from the operating system: nothing to do where there is none."""


seed_all = seed


def get_rng_state(device: Any = "cuda") -> NoReturn:
    """The state of the generator of a CUDA device."""
    _refuse()


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Set the state of the generator of a CUDA device: as in torch, nothing to do where there is none."""


def current_device() -> NoReturn:
    """The CUDA device in use."""
    _refuse()


def synchronize(device: Any = None) -> NoReturn:
    """Wait for a CUDA device."""
    _refuse()


def _refusing(name: str, doc: str) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        _refuse()

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = doc
    return refuse


init: Any = _refusing("init", "Prepare the CUDA devices.")
set_device: Any = _refusing("set_device", "Use another CUDA device.")
get_device_name: Any = _refusing("get_device_name", "What a CUDA device is called.")
get_device_capability: Any = _refusing("get_device_capability", "What a CUDA device can do.")
get_device_properties: Any = _refusing("get_device_properties", "What a CUDA device is like.")
mem_get_info: Any = _refusing("mem_get_info", "Free and total memory of a CUDA device.")
memory_summary: Any = _refusing("memory_summary", "The memory of a CUDA device in words.")
current_stream: Any = _refusing("current_stream", "The stream in use.")
default_stream: Any = _refusing("default_stream", "The stream that is used if no other is.")
initial_seed: Any = _refusing("initial_seed", "The seed of the generator of the CUDA device.")


class Stream:
    """A queue of work for a CUDA device: refused, there is none."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse()


class Event:
    """A mark in a queue of work for a CUDA device: refused, there is none."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse()


class device:
    """A CUDA device within a block; as in torch, nothing where there is none."""

    def __init__(self, device: Any) -> None:
        self.idx = -1

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc_info: object) -> None:
        pass


class stream(device):
    """A stream within a block; as in torch, nothing where there is no device."""


globals().update(CUDA_TYPES)
_initialized = False


def __getattr__(name: str) -> Any:
    if name in ("amp", "memory", "nvtx", "random", "streams"):  # `amp` is the older home of mixed precision
        from importlib import import_module

        return import_module("." + name, __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _refuse() -> NoReturn:
    raise AssertionError(
        "Torch not compiled with CUDA enabled: this version computes on the CPU with NumPy. Ask "
        "torch.cuda.is_available() first"
    )
