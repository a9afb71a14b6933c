"""What people need around the autograd system: checkpointing, hook handles, dispatch modes, data loading."""

from __future__ import annotations

from typing import Any

from . import checkpoint, dlpack, hooks
from .swap import swap_tensors

#: Imported by who uses them.
_ON_DEMAND = ("benchmark", "cpp_extension", "data", "deterministic", "model_zoo", "safetensors", "serialization")

_BESIDES = ("_device", "_mode_utils", "_pytree", "_traceback", "collect_env", "weak")

__all__ = ["checkpoint", "dlpack", "hooks", "swap_tensors", *_ON_DEMAND]


def __getattr__(name: str) -> Any:
    if name in _ON_DEMAND or name in _BESIDES:
        from importlib import import_module

        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
