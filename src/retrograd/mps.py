"""``torch.mps``: Apple's accelerators, which are not here."""

from __future__ import annotations

from .core.devices import device as _device
from .core.devices import refuse_device

__all__ = [
    "current_allocated_memory", "device_count", "driver_allocated_memory", "empty_cache", "manual_seed", "seed",
    "synchronize",
]  # fmt: skip


def device_count() -> int:
    """How many there are.

    >>> import retrograd as torch
    >>> torch.mps.device_count()
    0
    """
    return 0


def manual_seed(seed: int) -> None:
    """Seed the generators of the devices: nothing to do where there is none."""
    int(seed)


def seed() -> None:
    """Seed them from the operating system: nothing to do where there is none."""


def empty_cache() -> None:
    """Give back unused memory of the devices: nothing to do where there is none."""


def current_allocated_memory() -> int:
    """Bytes in use on the device."""
    return 0


driver_allocated_memory = current_allocated_memory


def synchronize() -> None:
    """Wait for the device."""
    refuse_device(_device("mps"))
