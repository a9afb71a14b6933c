"""``torch.distributed.distributed_c10d``: where torch defines the functions of `torch.distributed`."""

from __future__ import annotations

import sys
from typing import Any, NewType

from . import process_group

#: The name of a group of processes, among the types of an operator's arguments a string.
GroupName = NewType("GroupName", str)


def __getattr__(name: str) -> Any:
    for module in (sys.modules[str(__package__)], process_group):
        if hasattr(module, name) and not name.startswith("__"):
            return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
