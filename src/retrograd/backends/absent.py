"""A library of torch's that is not here: what programs ask of it, and switches that they may set."""

from __future__ import annotations

import contextlib
from typing import Any


class Flags(contextlib.ContextDecorator):
    """Switches of a module, for the length of a block."""

    def __init__(self, module: dict[str, Any], values: dict[str, Any]) -> None:
        unknown = [name for name in values if name not in module or name.startswith("_")]
        if unknown:
            raise TypeError(f"flags() got an unexpected keyword argument '{unknown[0]}'")
        self.module = module
        self.values = values

    def __enter__(self) -> None:
        self.before: dict[str, Any] = {name: self.module[name] for name in self.values}
        self.module.update(self.values)

    def __exit__(self, *exc_info: object) -> None:
        self.module.update(self.before)
