"""What people need around the autograd system: checkpointing, hook handles, dispatch modes, data loading."""

from __future__ import annotations

from typing import Any

from . import checkpoint, dlpack, hooks
from .swap import swap_tensors

__all__ = ["checkpoint", "data", "dlpack", "hooks", "safetensors", "serialization", "swap_tensors"]


def __getattr__(name: str) -> Any:
    if name in ("data", "safetensors", "serialization"):  # imported by who uses them
        from importlib import import_module

        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
