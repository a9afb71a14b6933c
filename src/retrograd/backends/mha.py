"""``torch.backends.mha``: a faster path of attention that is not here."""

from __future__ import annotations

from typing import Any

from .absent import Flags

enabled: bool = True


def is_available() -> bool:
    """Is it here?"""
    return False


def flags(**values: Any) -> Flags:
    """Set switches for the length of a block."""
    return Flags(globals(), values)


def get_fastpath_enabled() -> bool:
    """Is the faster path switched on?"""
    return enabled


def set_fastpath_enabled(value: bool) -> None:
    """Switch the faster path on or off."""
    global enabled
    enabled = bool(value)
