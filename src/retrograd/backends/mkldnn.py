"""``torch.backends.mkldnn``: not here. Its switches may be set and change nothing."""

from __future__ import annotations

from typing import Any

from .absent import Flags

enabled = True
deterministic = False
allow_tf32 = True
VERBOSE_OFF = 0
VERBOSE_ON = 1
VERBOSE_ON_CREATION = 2


def is_available() -> bool:
    """Is it here?"""
    return False


def flags(**values: Any) -> Flags:
    """Set switches for the length of a block."""
    return Flags(globals(), values)
