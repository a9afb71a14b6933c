"""``torch.xpu``: Intel's accelerators, which are not here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .core.absent_device import (
    device_count,
    empty_cache,
    is_available,
    manual_seed,
    memory_allocated,
    refusing,
    seed,
)

__all__ = [
    "current_device", "device_count", "empty_cache", "is_available", "manual_seed", "manual_seed_all",
    "memory_allocated", "seed", "synchronize",
]  # fmt: skip

manual_seed_all = manual_seed
#: The device in use, and waiting for it.
current_device: Callable[..., Any] = refusing("xpu")
synchronize: Callable[..., Any] = refusing("xpu")
