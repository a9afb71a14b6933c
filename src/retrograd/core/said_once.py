"""Warnings that are said once in a process."""

from __future__ import annotations

import warnings

from .where import users_level

_said: set[str] = set()


def say_once(message: str) -> None:
    """Warn of something, the first time."""
    if message not in _said:
        _said.add(message)
        warnings.warn(message, UserWarning, stacklevel=users_level())
