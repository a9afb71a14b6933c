"""``torch.profiler.itt``: marks for Intel's profiler, which is not here."""

from __future__ import annotations

from typing import NoReturn

__all__ = ["is_available", "mark", "range", "range_pop", "range_push"]


def is_available() -> bool:
    """Is Intel's profiler here?"""
    return False


def _refuse(msg: str = "") -> NoReturn:
    """Raises: there is no such profiler here."""
    raise RuntimeError("ITT functions not installed. Are you sure you have a ITT build? There is none of this package")


range_push = range_pop = mark = range = _refuse
