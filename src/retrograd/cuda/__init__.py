"""``torch.cuda``: devices, streams, memory and generators of CUDA devices, by CuPy (``retrograd[cuda]``).

CuPy is loaded when a program first asks for a device; where it is not installed, or finds none, there is no device, and
what needs one says so. docs/CUDA.md is the guide.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ..core.devices import OutOfMemoryError, accelerators
from ..core.devices import device as _device
from ..ops.tensor_types import CUDA_TYPES
from ._places import count, found, place
from .memory import (
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_stats,
    memory_summary,
    reset_max_memory_allocated,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)
from .random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from .streams import Event, Stream, current_stream, default_stream, devices_index, set_stream, stream, use_index

__all__ = [
    "CUDAGraph", "Event", "OutOfMemoryError", "Stream", "amp", "current_device", "current_stream", "default_stream",
    "device", "device_count", "device_of", "empty_cache", "get_device_capability", "get_device_name",
    "get_device_properties", "get_rng_state", "get_rng_state_all", "graph", "graph_pool_handle", "init",
    "initial_seed", "ipc_collect", "is_available", "is_bf16_supported", "is_current_stream_capturing",
    "is_initialized", "make_graphed_callables", "manual_seed", "manual_seed_all", "max_memory_allocated",
    "max_memory_reserved", "mem_get_info", "memory_allocated", "memory_reserved", "memory_stats", "memory_summary",
    "reset_max_memory_allocated", "reset_peak_memory_stats", "seed", "seed_all", "set_device",
    "set_per_process_memory_fraction", "set_rng_state", "set_rng_state_all", "set_stream", "stream", "synchronize",
    *CUDA_TYPES,
]  # fmt: skip


def is_available() -> bool:
    """Is there a CUDA device to compute on?

    >>> import retrograd as torch
    >>> isinstance(torch.cuda.is_available(), bool)
    True
    """
    return device_count() > 0


def device_count() -> int:
    """How many CUDA devices there are to compute on."""
    return count()


def is_initialized() -> bool:
    """Is a CUDA device in use?"""
    return any(known.type == "cuda" for known in accelerators)


def init() -> None:
    """Make the CUDA devices ready, which the first use of one does as well."""
    place(None)


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Can the CUDA device compute in bfloat16? `including_emulation`: by way of float32, which any can."""
    if not count() or not found():
        return False
    return including_emulation or get_device_capability()[0] >= 8


def is_tf32_supported() -> bool:
    """Can the CUDA device multiply in the 19 bits of TF32?"""
    return bool(count() and found()) and get_device_capability()[0] >= 8


def ipc_collect() -> None:
    """Give back memory that other processes have let go: none is shared."""


def current_device() -> int:
    """The number of the CUDA device in use by this thread."""
    place(None)
    return devices_index()


def set_device(device: Any) -> None:
    """Use another CUDA device in this thread; a negative number: nothing changes."""
    if isinstance(device, int) and device < 0:
        return
    use_index(place(device).index)


def synchronize(device: Any = None) -> None:
    """Wait until a CUDA device has done all that it was told, on all streams."""
    where = place(device)
    where.activate()
    where.refuse_if_captured("synchronize()")
    where.module.cuda.Device(where.physical).synchronize()
    where.check_faults()


def get_device_properties(device: Any = None) -> Any:
    """What a CUDA device is like."""
    where = place(device)
    raw = where.module.cuda.runtime.getDeviceProperties(where.physical)
    name = raw["name"]
    return SimpleNamespace(
        name=name.decode() if isinstance(name, bytes) else str(name),
        major=raw["major"],
        minor=raw["minor"],
        total_memory=raw["totalGlobalMem"],
        multi_processor_count=raw["multiProcessorCount"],
        warp_size=raw["warpSize"],
        max_threads_per_multi_processor=raw["maxThreadsPerMultiProcessor"],
        is_integrated=raw["integrated"],
        L2_cache_size=raw["l2CacheSize"],
        shared_memory_per_block=raw["sharedMemPerBlock"],
    )


def get_device_name(device: Any = None) -> str:
    """What a CUDA device is called."""
    return get_device_properties(device).name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Which generation a CUDA device is of: major and minor number."""
    properties = get_device_properties(device)
    return properties.major, properties.minor


class device:
    """Within the block, another CUDA device is the current one; as in torch, nothing where there is none.

    A negative number, or None: nothing changes.
    """

    def __init__(self, device: Any) -> None:
        if isinstance(device, _device):
            device = -1 if device.type != "cuda" else device
        nothing = device is None or (isinstance(device, int) and device < 0) or not count() or not found()
        self.idx: int = -1 if nothing else place(device).index
        self.prev_idx: int = -1

    def __enter__(self) -> None:
        if self.idx >= 0:
            self.prev_idx = devices_index()
            use_index(self.idx)

    def __exit__(self, *exc_info: object) -> None:
        if self.idx >= 0:
            use_index(self.prev_idx)


class device_of(device):
    """Within the block, the device of a tensor or storage is the current one."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device() if getattr(obj, "is_cuda", False) else -1)


globals().update(CUDA_TYPES)
#: Imported when they are asked for.
_GRAPHS = ("CUDAGraph", "graph", "graph_pool_handle", "is_current_stream_capturing", "make_graphed_callables")
_initialized = False


def __getattr__(name: str) -> Any:
    if name in ("amp", "nvtx", "graphs"):  # `amp` is the older home of mixed precision
        from importlib import import_module

        return import_module("." + name, __name__)
    if name in _GRAPHS:
        from importlib import import_module

        return getattr(import_module(".graphs", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
