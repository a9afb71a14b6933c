"""``torch.__config__``: what this package is made of."""

from __future__ import annotations

import platform

import numpy as np

__all__ = ["parallel_info", "show"]


def show() -> str:
    """What computes, in words."""
    from .backends import fast  # few ask
    from .core import compiled as core  # few ask
    from .version import __version__  # few ask

    compiled = "installed" if fast.is_available() else "not installed"
    return (
        f"retrograd {__version__}:\n  - Python {platform.python_version()}\n  - NumPy {np.__version__}\n"
        f"  - compiled kernels (retrograd[fast]): {compiled}\n"
        f"  - core (operators and the engine's loop): {'Python' if core.library is None else 'compiled'}\n  - CUDA: not used\n"
    )


def parallel_info() -> str:
    """How many threads compute."""
    from .core.threads import get_num_interop_threads, get_num_threads  # few ask

    return (
        f"ATen/Parallel:\n\tat::get_num_threads() : {get_num_threads()}\n"
        f"\tat::get_num_interop_threads() : {get_num_interop_threads()}\n"
    )
