"""What a recording consists of: pieces of memory, arrays in them, and calls."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.where import Location


class Storage:
    """A piece of memory: `kind` is "new" (made by the step), "argument", "outside", or "number" (a constant)."""

    __slots__ = ("array", "kind", "number", "start", "stop")

    def __init__(self, number: int, array: Any, start: int, stop: int, kind: str) -> None:
        self.number: int = number
        self.array: Any = array  # that owns the memory, or the one by which it came
        self.start: int = start
        self.stop: int = stop
        self.kind: str = kind


class Value:
    """An array as a part of a storage."""

    __slots__ = ("array", "dtype", "offset", "shape", "storage", "strides")

    def __init__(self, storage: Storage, offset: int, array: np.ndarray) -> None:
        self.storage: Storage = storage
        self.offset: int = offset
        self.shape: tuple[int, ...] = array.shape
        self.strides: tuple[int, ...] = array.strides
        self.dtype: np.dtype = array.dtype
        self.array: np.ndarray = array

    @property
    def key(self) -> tuple[Any, ...]:
        return self.storage.number, self.offset, self.shape, self.strides, self.dtype.str

    def __repr__(self) -> str:
        return f"s{self.storage.number}+{self.offset}:{self.dtype.str}{list(self.shape)}"


class Call:
    """One call: `args` and `kwargs` hold Values where arrays were; `results` are new memory, `writes` old."""

    __slots__ = (
        "args", "function", "impure", "kind", "kwargs", "looks", "may_raise", "name", "reads", "results",
        "where", "writes",
    )  # fmt: skip

    def __init__(self, kind: str, name: str, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.kind: str = kind  # "ufunc", "reduce", "copy", "product", "opaque" or "python"
        self.name: str = name
        self.function: Any = function
        self.args: tuple[Any, ...] = args
        self.kwargs: dict[str, Any] = kwargs
        self.reads: list[Value] = []
        self.results: list[Value | None] = []
        self.writes: list[Value] = []
        self.impure: bool = False
        self.may_raise: bool = kind in ("opaque", "python")
        #: Does it look at values, and refuse some? Then it is made even if nobody reads what it gives.
        self.looks: bool = False
        self.where: Location | None = None
