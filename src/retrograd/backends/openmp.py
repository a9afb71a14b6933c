"""``torch.backends.openmp``: not here."""

from __future__ import annotations


def is_available() -> bool:
    """Is it here?"""
    return False
