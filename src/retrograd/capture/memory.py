"""The memory of a program that runs: the arena, the arrays that outlive a run, and views of them all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .program import Program
from .runtime import Runtime, runtime
from .values import Value, bytes_of


class Memory:
    """Real arrays for the values of a program."""

    def __init__(self, program: Program) -> None:
        self.program: Program = program
        plan = program.plan
        raw = np.zeros(plan.arena + 64, np.uint8)
        start = -raw.__array_interface__["data"][0] % 64
        self.arena: np.ndarray = raw[start : start + plan.arena]
        self.own: dict[int, np.ndarray] = {}
        #: Views by where they lie and what they look like, and by the values themselves, which are read several times.
        self._views: dict[Any, np.ndarray] = {}
        self.by_value: dict[Value, np.ndarray] = {}
        for value in program.arguments:
            self._allocate(value)
        for number in program.kept - program.fresh:
            storage = program.storages[number]
            self.own[number] = np.zeros(storage.size, np.uint8)

        #: Who hands out memory for what kernels make, if that is much.
        self.shared: Runtime | None = runtime() if program.makes_much else None
        if self.shared is not None:
            self.shared.serve(self)

    def around(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """`run`, with the arrays that kernels make in shared memory."""
        shared = self.shared
        if shared is None or not shared.has_memory:
            return run
        enter, leave = shared.enter, shared.leave

        def inside(*args: Any) -> Any:
            before = enter()
            try:
                return run(*args)
            finally:
                leave(before)

        return inside

    def _allocate(self, value: Value) -> None:
        storage = value.storage
        if storage.number not in self.own:
            self.own[storage.number] = np.zeros(storage.size, np.uint8)

    def view(self, value: Value) -> Any:
        """The array of a value; None if it has no memory here."""
        if value.array is not None:
            return value.array
        known = self.by_value.get(value)
        if known is not None:
            return known
        number = value.storage.number
        if number in self.program.fresh:
            return value.within(self.own[number]) if number in self.own else None
        offset = self.program.plan.offsets.get(number)
        if offset is not None:
            key = "arena", offset + value.offset, value.shape, value.strides, value.dtype
        else:
            key = value.key
        found = self._views.get(key)
        if found is None:
            if offset is not None:
                found = value.within(self.arena, offset)
            elif number in self.own:
                found = value.within(self.own[number])
            elif number in self.program.constants:
                found = value.within(bytes_of(value.storage.array))
            else:
                return None  # it is not in this memory
            self._views[key] = found
        self.by_value[value] = found
        return found

    def address(self, value: Value) -> int:
        return self.view(value).__array_interface__["data"][0]

    @property
    def nbytes(self) -> int:
        return self.arena.nbytes + sum(array.nbytes for array in self.own.values())
