"""What a recording consists of: pieces of memory, arrays in them, and calls."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any
from weakref import ref

import numpy as np
from numpy.lib.array_utils import byte_bounds

from ..core import compiled
from ..core.where import Location


def address(array: np.ndarray) -> int:
    """Where the first element of an array lies."""
    return array.__array_interface__["data"][0] if compiled.library is None else compiled.library.address(array)


def bounds(array: np.ndarray) -> tuple[int, int]:
    """Where the memory of an array begins and ends."""
    if not array.flags.c_contiguous:
        return byte_bounds(array)
    start = address(array)
    return start, start + array.nbytes


class Storage:
    """A piece of memory: `kind` is "new" (made by the step), "argument", "outside", or "number" (a constant).

    Its address is looked up when somebody asks for it (known_memory.py): for most of what a step makes, nobody does.
    The `array` is the one that owns the memory, or by which it came; None if it is gone.
    """

    __slots__ = ("_start", "held", "kind", "number", "size")

    def __init__(self, number: int, array: Any, size: int, kind: str, start: int | None = None) -> None:
        self.number: int = number
        self.held: Any = array  # or a weak reference to it
        self.size: int = size
        self.kind: str = kind
        self._start: int | None = start

    @property
    def array(self) -> Any:
        held = self.held
        return held() if held.__class__ is ref else held

    @property
    def is_constant(self) -> bool:
        """May what is in it be the same in every run? Then it is held."""
        return isinstance(self.held, np.ndarray) and self.kind in ("new", "number")

    def let_die(self) -> None:
        """Hold the array no longer than the step does: nobody will ask what was in it."""
        if self.kind == "new" and self.held.__class__ is np.ndarray and self.held.base is None:
            self.held = ref(self.held)

    @property
    def start(self) -> int:
        if self._start is None:
            self._start = address(self.array)
        return self._start


def living(storages: list[Storage]) -> list[Storage]:
    """Those whose memory is still there."""
    if compiled.library is not None:
        return compiled.library.living(storages)
    return [storage for storage in storages if storage.array is not None]


class Value:
    """An array as a part of a storage. The `array` itself is kept if it is of the world, a number, or empty."""

    __slots__ = ("array", "dtype", "key", "offset", "shape", "storage", "strides")

    def __init__(self, storage: Storage, offset: int, array: np.ndarray) -> None:
        self.storage: Storage = storage
        self.offset: int = offset
        self.shape: tuple[int, ...] = array.shape
        self.strides: tuple[int, ...] = array.strides
        self.dtype: np.dtype = array.dtype
        self.array: Any = array if storage.kind in _THERE or not array.size else None
        #: Two values with the same key are the same part of the same memory.
        self.key: tuple[Any, ...] = storage.number, offset, self.shape, self.strides, self.dtype

    def __getattr__(self, name: str) -> Any:
        """The key, of a value that the compiled core has made without one."""
        if name != "key":
            raise AttributeError(name)
        self.key = self.storage.number, self.offset, self.shape, self.strides, self.dtype
        return self.key

    def move(self, storage: Storage) -> None:
        """Be the same part of another storage."""
        self.storage = storage
        self.key = storage.number, self.offset, self.shape, self.strides, self.dtype

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def is_contiguous(self) -> bool:
        """Does it lie row by row, without gaps?"""
        step = self.dtype.itemsize
        for size, stride in zip(reversed(self.shape), reversed(self.strides)):
            if stride != step and size != 1:
                return not all(self.shape)
            step *= size
        return True

    def within(self, buffer: Any, start: int = 0) -> np.ndarray:
        """This array, where its storage begins at `start` of a buffer."""
        return np.ndarray(self.shape, self.dtype, buffer, start + self.offset, self.strides)

    def __repr__(self) -> str:
        return f"s{self.storage.number}+{self.offset}:{self.dtype.str}{list(self.shape)}"


#: Kinds of storages that are there when a program is made.
_THERE = ("outside", "number")


def bytes_of(array: np.ndarray) -> np.ndarray:
    """The memory of an array that has no gaps, whatever the order of its dimensions, for views of it."""
    if array.flags.c_contiguous:
        return array
    return array.transpose(sorted(range(array.ndim), key=lambda d: -array.strides[d]))


class Call:
    """One call: `args` and `kwargs` hold Values where arrays were; `results` are new memory, `writes` old."""

    __slots__ = (
        "args", "function", "impure", "kind", "kwargs", "looks", "may_raise", "name", "reads", "results",
        "where", "writes",
    )  # fmt: skip

    def __init__(
        self, kind: str, name: str, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any],
        where: Location | None = None, reads: Sequence[Value] = (), results: Sequence[Value | None] = (),
        writes: Sequence[Value] = (),
    ) -> None:  # fmt: skip
        self.kind: str = kind  # "ufunc", "reduce", "copy", "product", "opaque" or "python"
        self.name: str = name
        self.function: Any = function
        self.args: tuple[Any, ...] = args
        self.kwargs: dict[str, Any] = kwargs
        self.where: Location | None = where
        self.reads: Sequence[Value] = reads
        self.results: Sequence[Value | None] = results
        self.writes: Sequence[Value] = writes
        self.impure: bool = False
        self.may_raise: bool = kind in _MAY_RAISE
        #: Does it look at values, and refuse some? Then it is made even if nobody reads what it gives.
        self.looks: bool = False


_MAY_RAISE = ("opaque", "python")
