"""Memory by its address: whatever a call returns lies in a `Storage` that is known already (a view) or in a new one.

What a step makes is held as long as the step holds it, so memory may be used again: whoever is found at an address is
asked whether it is still there.  Arrays that it has not seen come from outside,
and are read where they lie.  NumPy takes longer to tell an address than to add small arrays, so those of new memory are
asked for when the first array comes that nobody knows.
"""

from __future__ import annotations

import bisect

import numpy as np

from .errors import CaptureError, refuse
from .values import Storage, Value, address, bounds, living


class KnownMemory:
    """The storages of a recording."""

    def __init__(self) -> None:
        self.storages: list[Storage] = []
        self._starts: list[int] = []
        self._by_start: list[Storage] = []
        #: Storages whose address nobody has asked for yet.
        self.unplaced: list[Storage] = []

    def add_storage(self, array: np.ndarray, kind: str, whole: bool = True) -> Storage:
        if not array.size:
            storage = Storage(len(self.storages), array, 0, kind, 0)
            self.storages.append(storage)
            return storage
        owner = array
        while whole and isinstance(getattr(owner, "base", None), np.ndarray):
            owner = owner.base  # type: ignore[assignment]
        start, stop = bounds(owner)
        low, high = (start, stop) if array is owner else bounds(array)
        if low < start or high > stop:
            owner, start, stop = array, low, high
        storage = Storage(len(self.storages), owner, stop - start, kind, start)
        self.storages.append(storage)
        self._place(storage)
        return storage

    def _place(self, storage: Storage) -> None:
        position = bisect.bisect_right(self._starts, storage.start)
        self._starts.insert(position, storage.start)
        self._by_start.insert(position, storage)

    def find(self, array: np.ndarray) -> Value | None:
        """The value that an array is, if its memory is known."""
        if not array.size:
            return None
        if self.unplaced:
            for storage in living(self.unplaced):  # of another nobody can come with a part
                self._place(storage)
            self.unplaced.clear()
        low, high = bounds(array)
        position = bisect.bisect_right(self._starts, low) - 1
        while position >= 0 and self._by_start[position].array is None:  # its memory is another's now
            del self._starts[position], self._by_start[position]
            position -= 1
        if position < 0:
            return None
        storage = self._by_start[position]
        begin = self._starts[position]
        if low >= begin + storage.size:
            return None
        if high > begin + storage.size:
            raise CaptureError("cannot capture arrays that share a part of their memory in a way that is not known")
        return Value(storage, address(array) - begin, array)

    def made(self, array: np.ndarray, kind: str = "new") -> Value:
        """The value of an array that was just made and owns its memory."""
        size = array.nbytes
        if array.base is not None or not size:
            return self.value(array, kind)
        storages = self.storages
        storage = Storage(len(storages), array, size, kind)
        storages.append(storage)
        self.unplaced.append(storage)
        return Value(storage, 0, array)

    def part(self, whole: Value, array: np.ndarray) -> Value:
        """The value of a view of what is known."""
        storage = self.storages[whole.storage.number]  # not that of an earlier recording
        return Value(storage, address(array) - storage.start if array.size else 0, array)

    def value(self, array: np.ndarray, kind: str = "outside") -> Value:
        found = self.find(array)
        if found is None:
            if array.dtype.hasobject:
                raise refuse(f"an array of {array.dtype}", "use a dtype of numbers")
            storage = self.add_storage(array, kind)
            found = Value(storage, address(array) - storage.start if array.size else 0, array)
        return found
