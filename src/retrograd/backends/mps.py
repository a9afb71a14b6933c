"""``torch.backends.mps``: Apple's devices, which are not here."""

from __future__ import annotations


def is_built() -> bool:
    """Was this built for it?"""
    return False


def is_available() -> bool:
    """Is there such a device?"""
    return False


def is_macos13_or_newer(minor: int = 0) -> bool:
    """Is the operating system one of those that have it? Nobody asked it."""
    return False


def is_macos_or_newer(major: int, minor: int) -> bool:
    """The same for another version."""
    return False
