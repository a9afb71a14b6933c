"""Settings of torch's compilers, which are not here: programs set them, and read what they have set."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any


class Settings:
    """Takes any setting, and groups of settings below it; what was never set reads as a group, which is false.

    >>> config = Settings("config")
    >>> config.cache_size_limit = 64
    >>> config.cache_size_limit, bool(config.triton)
    (64, False)
    """

    def __init__(self, name: str) -> None:
        self.__dict__["_name"] = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        group = Settings(f"{self._name}.{name}")
        self.__dict__[name] = group
        return group

    def __setattr__(self, name: str, value: Any) -> None:
        self.__dict__[name] = value

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return f"<settings {self._name}: nothing in retrograd reads them>"

    @contextlib.contextmanager
    def patch(self, changes: Any = None, value: Any = None, **more: Any) -> Iterator[None]:
        """Other settings for the length of a block."""
        wanted = {**({changes: value} if isinstance(changes, str) else changes or {}), **more}
        before = dict(self.__dict__)
        self.__dict__.update(wanted)
        try:
            yield
        finally:
            self.__dict__.clear()
            self.__dict__.update(before)
