"""``torch.backends.miopen``: AMD's library of networks, not here. Its switches may be set and change nothing."""

from __future__ import annotations

from typing import Any

from .absent import Flags

immediate: bool = False


def set_flags(_immediate: bool) -> tuple[bool]:
    """Set the switch; the value before."""
    global immediate
    before, immediate = immediate, bool(_immediate)
    return (before,)


def flags(**values: Any) -> Flags:
    """Set switches for the length of a block."""
    return Flags(globals(), values)
