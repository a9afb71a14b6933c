"""``torch.mps``: Apple's accelerators, which are not here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .core.absent_device import device_count, empty_cache, manual_seed, memory_allocated, refusing, seed

__all__ = [
    "current_allocated_memory", "device_count", "driver_allocated_memory", "empty_cache", "manual_seed", "seed",
    "synchronize",
]  # fmt: skip

current_allocated_memory = driver_allocated_memory = memory_allocated
#: Waits for the device.
synchronize: Callable[..., Any] = refusing("mps")
