"""``torch.cpu``: the processor, by the names that accelerators have."""

from __future__ import annotations

import contextlib
from typing import Any

from . import amp

__all__ = [
    "amp", "current_device", "device_count", "is_available", "is_initialized", "set_device", "stream", "synchronize",
]  # fmt: skip


def is_available() -> bool:
    """Is there a processor?

    >>> import retrograd as torch
    >>> torch.cpu.is_available(), torch.cpu.device_count()
    (True, 1)
    """
    return True


is_initialized = is_available


def device_count() -> int:
    """How many processors tensors can be on."""
    return 1


def current_device() -> str:
    """The processor in use."""
    return "cpu"


def set_device(device: Any) -> None:
    """Use another processor: there is one."""


def synchronize(device: Any = None) -> None:
    """Wait until it has done what it was given: it has, when an operator comes back."""


def stream(stream: Any) -> Any:
    """A queue of work for a block: the processor has one."""
    return contextlib.nullcontext()
