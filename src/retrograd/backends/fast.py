"""The compiled kernels of `retrograd[fast]`: whether they are installed, and whether they are used.

>>> import retrograd as torch
>>> with torch.backends.fast.flags(enabled=False):
...     torch.backends.fast.is_enabled()
False
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from retrograd.kernels import compiled

__all__ = ["flags", "is_available", "is_enabled", "set_enabled"]


def is_available() -> bool:
    """Whether the compiled kernels are installed."""
    return compiled.library() is not None


def is_enabled() -> bool:
    """Whether large arrays go to the compiled kernels: they are installed and nobody turned them off."""
    return bool(compiled._state["enabled"]) and is_available()


def set_enabled(enabled: bool) -> None:
    """Use the compiled kernels, where installed, or NumPy alone; in the whole process."""
    compiled._state["enabled"] = bool(enabled)
    compiled.tell_threads()


@contextlib.contextmanager
def flags(enabled: bool = True) -> Iterator[None]:
    """`set_enabled` for the length of a block."""
    before = compiled._state["enabled"]
    set_enabled(enabled)
    try:
        yield
    finally:
        set_enabled(before)
