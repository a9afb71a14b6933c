"""``torch.__config__``: what this package is made of."""

from __future__ import annotations

import platform

import numpy as np

from .backends import fast
from .core import compiled as core
from .core.threads import get_num_interop_threads, get_num_threads
from .version import __version__

__all__ = ["parallel_info", "show"]


def show() -> str:
    """What computes, in words."""
    compiled = "installed" if fast.is_available() else "not installed"
    used = "compiled" if core.library is not None else f"Python ({core.reason})"
    return (
        f"retrograd {__version__}:\n  - Python {platform.python_version()}\n  - NumPy {np.__version__}\n"
        f"  - compiled kernels (retrograd[fast]): {compiled}\n"
        f"  - core (operators and the engine's loop): {used}\n"
        "  - CUDA: not used\n"
    )


def parallel_info() -> str:
    """How many threads compute."""
    return (
        f"ATen/Parallel:\n\tat::get_num_threads() : {get_num_threads()}\n"
        f"\tat::get_num_interop_threads() : {get_num_interop_threads()}\n"
    )


def _cxx_flags() -> str:
    """How the compiled kernels were built: the package itself is not compiled."""
    return ""
