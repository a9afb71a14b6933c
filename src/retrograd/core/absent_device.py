"""What the modules of devices that are not here have in common: ``torch.mps``, ``torch.xpu`` and ``torch.mtia``.

There are none, so that nothing is to be seeded or freed; whoever needs one is refused in torch's words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .devices import device as _device
from .devices import refuse_device


def is_available() -> bool:
    """Is there such a device?

    >>> import retrograd as torch
    >>> torch.xpu.is_available()
    False
    """
    return False


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


def memory_allocated(device: Any = None) -> int:
    """Bytes in use on a device."""
    return 0


def refusing(kind: str) -> Callable[..., Any]:
    """A function that needs a device of this kind."""

    def needs_a_device(device: Any = None) -> Any:
        """Asks something of the device in use."""
        refuse_device(_device(kind))

    return needs_a_device
