"""``torch.backends.nnpack``: not here."""

from __future__ import annotations

from typing import Any

from .absent import Flags

enabled = True


def is_available() -> bool:
    """Is it here?"""
    return False


def flags(**values: Any) -> Flags:
    """Set switches for the length of a block."""
    return Flags(globals(), values)
