"""Operators by the names that programs call them by where the public function of the same name does more.

>>> import retrograd as torch
>>> from retrograd import _VF
>>> _VF.unique_dim(torch.tensor([[1], [1]]), 0)[0]
tensor([[1]])
"""

from __future__ import annotations

from typing import Any

from ._generated import functions
from .ops.registry import SPACES

__all__: list[str] = []


def __getattr__(name: str) -> Any:
    found = getattr(functions, name, None) or SPACES["torch"].get(name)
    if found is None or name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found
