"""Warnings that are said once in a process, unless every one is asked for."""

from __future__ import annotations

import warnings

from .where import users_level

_said: set[str] = set()


class Settings:
    """What ``set_warn_always`` was last given."""

    always = False


def say_once(message: str) -> None:
    """Warn of something, the first time; each time where `Settings.always` is set."""
    if Settings.always or message not in _said:
        _said.add(message)
        warnings.warn(message, UserWarning, stacklevel=users_level())
