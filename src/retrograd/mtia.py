"""``torch.mtia``: Meta's accelerators, which are not here."""

from __future__ import annotations

from typing import Any

from .core.devices import device as _device
from .core.devices import refuse_device

__all__ = [
    "current_device", "device_count", "empty_cache", "is_available", "manual_seed", "manual_seed_all",
    "memory_allocated", "seed", "synchronize",
]  # fmt: skip


def is_available() -> bool:
    """Is there such a device?

    >>> import retrograd as torch
    >>> torch.mtia.is_available()
    False
    """
    return False


def device_count() -> int:
    """How many there are."""
    return 0


def manual_seed(seed: int) -> None:
    """Seed the generators of the devices: nothing to do where there is none."""
    int(seed)


manual_seed_all = manual_seed


def seed() -> None:
    """Seed them from the operating system: nothing to do where there is none."""


def empty_cache() -> None:
    """Give back unused memory of the devices: nothing to do where there is none."""


def memory_allocated(device: Any = None) -> int:
    """Bytes in use on a device."""
    return 0


def current_device() -> int:
    """The device in use."""
    refuse_device(_device("mtia"))


def synchronize(device: Any = None) -> None:
    """Wait for a device."""
    refuse_device(_device("mtia"))
