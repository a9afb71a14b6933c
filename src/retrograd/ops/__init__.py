"""The operators: how they are declared, checked and found.

``ops.namespace`` has them all by name; ``ops.aten`` is torch's way to one overload of an operator.
"""

from __future__ import annotations

from typing import Any


def load_library(path: Any) -> None:
    """``torch.ops.load_library``: operators in C++, of which there can be none here."""
    raise OSError(
        f"Could not load this library: {path}. It is compiled for torch, and retrograd has no C++: define its "
        "operators in Python with torch.library.custom_op"
    )


def __getattr__(name: str) -> Any:
    if name in ("aten", "prim"):  # torch.ops.aten
        from . import overload  # everything else in this package is below it

        return getattr(overload, name)
    if name == "profiler":  # torch.ops.profiler
        from importlib import import_module

        return import_module("..profiler.handles", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
