"""What captured programs share, compiled from runtime.c: memory for kernels, and threads for long loops.

A thread that runs a program has NumPy's arrays made in this memory meanwhile (NEP 49: the handler of a context).  The
functions that say so are in the table that NumPy gives to extensions; after the first use it is looked whether an array
does come from there, and where it does not, or without a C compiler, arrays are made as always.
"""

from __future__ import annotations

import ctypes
import functools
import weakref
from pathlib import Path
from typing import Any

import numpy as np

from ..core.threads import listeners, threads
from .compiling import compiled, compiler

#: Where PyDataMem_SetHandler is in NumPy's table of functions, since 1.22 and for good.
_SET_HANDLER = 304
_HANDLER_NAME = "retrograd_capture"


class Runtime:
    """The library, and the way to have arrays made in its memory."""

    def __init__(self) -> None:
        library = compiled(Path(__file__).with_name("runtime.c").read_text(encoding="utf-8"))
        self._library: Any = library
        self.share: int = ctypes.cast(library.retrograd_share, ctypes.c_void_p).value or 0
        self._programs: int = 0
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        handler = ctypes.addressof(ctypes.c_char.in_dll(library, "retrograd_handler"))
        self._capsule: Any = new(handler, b"mem_handler", None)
        self.has_memory: bool = False
        self._set: Any = _set_handler()
        if self._set is not None:
            before = self.enter()
            name = _name_of(np.empty(1))
            self.leave(before)
            self.has_memory = name == _HANDLER_NAME
        self._tell_threads()
        listeners.append(self._tell_threads)

    def _tell_threads(self) -> None:
        self._library.retrograd_use_threads(threads[0])

    def enter(self) -> Any:
        """Have this thread's arrays made here; gives what to `leave` with."""
        return self._set(self._capsule)

    def leave(self, before: Any) -> None:
        self._set(before)

    def serve(self, owner: Any) -> None:
        """Keep memory for programs as long as one of them is there."""
        if not self._programs:
            self._library.retrograd_serve()
        self._programs += 1
        weakref.finalize(owner, self._served).atexit = False

    def _served(self) -> None:
        self._programs -= 1
        if not self._programs:
            self._library.retrograd_trim()


def _set_handler() -> Any:
    """NumPy's function that says who hands out memory."""
    table = getattr(np._core._multiarray_umath, "_ARRAY_API", None)  # type: ignore[attr-defined]
    if table is None:
        return None
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    start = pointer(table, None)
    if not start:
        return None
    place = ctypes.cast(start, ctypes.POINTER(ctypes.c_void_p))[_SET_HANDLER]
    return ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(place) if place else None


def _name_of(array: np.ndarray) -> str | None:
    find = getattr(np._core.multiarray, "get_handler_name", None)  # type: ignore[attr-defined]
    return None if find is None else find(array)


@functools.cache
def runtime() -> Runtime | None:
    """The library, or None where it cannot be made."""
    if compiler() is None:
        return None
    try:
        return Runtime()
    except (OSError, RuntimeError, AttributeError):
        return None
