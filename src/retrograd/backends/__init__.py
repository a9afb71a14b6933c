"""What computes, and whether it is used. Torch's libraries are not here: each says so, and its switches do nothing."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from . import fast

#: Torch's, imported by who asks for them.
_TORCHS = ("cpu", "cuda", "cudnn", "mha", "miopen", "mkl", "mkldnn", "mps", "nnpack", "openmp", "opt_einsum")

__all__ = ["fast", *_TORCHS]


def __getattr__(name: str) -> Any:
    if name in _TORCHS:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
