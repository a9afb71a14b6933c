"""How many threads an operator may use: one number for the whole process, as in torch.

BLAS is told at once.  The compiled kernels of `retrograd[fast]`, where installed, ask for the number in every call, or
are told (`listeners`).
The NumPy kernels themselves run on the calling thread.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

__all__ = ["get_num_interop_threads", "get_num_threads", "set_num_interop_threads", "set_num_threads"]


def _at_start() -> int:
    """What OMP_NUM_THREADS says, as it does for torch, else the number of processors this process may use."""
    asked = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if asked.isdecimal() and int(asked):
        return int(asked)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


#: Both are lists of one number, so that who imports them sees it change.
threads: list[int] = [_at_start()]
_interop_threads: list[int] = [_at_start()]
#: Called when the number changes.
listeners: list[Callable[[], None]] = []


def get_num_threads() -> int:
    """How many threads one operator may use.

    >>> import retrograd as torch
    >>> torch.get_num_threads() >= 1
    True
    """
    return threads[0]


def set_num_threads(int: Any) -> None:
    """Let one operator use so many threads."""
    threads[0] = _positive("set_num_threads", int)
    _tell_blas(threads[0])
    for listener in listeners:
        listener()


def get_num_interop_threads() -> int:
    """How many operators may run side by side; remembered, since here the caller's threads decide."""
    return _interop_threads[0]


def set_num_interop_threads(int: Any) -> None:
    """Remember how many operators may run side by side."""
    _interop_threads[0] = _positive("set_num_interop_threads", int)


def _positive(name: str, value: Any) -> Any:
    if type(value) is not int:
        raise RuntimeError(f"{name} expects an int, but got {type(value).__name__}")
    if value >= 2**63:
        raise ValueError(f"{name}: Overflow when unpacking long long, got {value}")
    if value < 1:
        raise RuntimeError(f"{name} expects a positive integer")
    return value


def _tell_blas(n: int) -> None:
    """Set the threads of the OpenBLAS that NumPy was linked with; another BLAS keeps its own setting."""
    import ctypes
    import importlib

    # Names are looked up in the extension module and in the libraries that it was linked with.
    library = ctypes.CDLL(importlib.import_module("numpy._core._multiarray_umath").__file__)
    for name in ("scipy_openblas_set_num_threads64_", "scipy_openblas_set_num_threads", "openblas_set_num_threads"):
        setter = getattr(library, name, None)
        if setter is not None:
            setter(ctypes.c_int(n))
            return
