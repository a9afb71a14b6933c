"""``torch.backends.mkl``: not here; products go to the BLAS that NumPy was built with."""

from __future__ import annotations

from typing import Any

from .absent import Flags

VERBOSE_OFF = 0
VERBOSE_ON = 1


def is_available() -> bool:
    """Is it here?"""
    return False


def flags(**values: Any) -> Flags:
    """Set switches for the length of a block."""
    return Flags(globals(), values)
