"""``torch.cuda``: what programs ask before they decide for a device.

A device is there if a library of arrays was registered for it (core/devices.py); this package brings none for CUDA, so
that the answer is no, and what needs a device says so.
"""

from __future__ import annotations

from typing import Any, NoReturn

from .core.devices import accelerators

__all__ = [
    "current_device", "device_count", "empty_cache", "is_available", "is_initialized", "manual_seed", "manual_seed_all",
    "synchronize",
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


def current_device() -> NoReturn:
    """The CUDA device in use."""
    _refuse()


def synchronize(device: Any = None) -> NoReturn:
    """Wait for a CUDA device."""
    _refuse()


def _refuse() -> NoReturn:
    raise AssertionError(
        "Torch not compiled with CUDA enabled: this version computes on the CPU with NumPy. Ask "
        "torch.cuda.is_available() first"
    )
