"""What a kernel finds to be wrong with its operands: known when somebody next waits for the device, as in torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ..places import Place

#: What is wrong: a class, or the row of a table, that is not there.
CLASSES, ROWS = 1, 2
_LATER = (
    "(An operation on the device that ran before this one was given it; indices are not looked at before somebody "
    "waits for the device)"
)


class Faults:
    """Two numbers of the host that kernels write to: is something wrong, and which index it was."""

    def __init__(self, place: Place) -> None:
        place.activate()
        self._held: Any = place.module.cuda.alloc_pinned_memory(16)
        self.numbers: np.ndarray = np.frombuffer(self._held, np.int64, 2)
        self.numbers[:] = 0
        self.address: int = self.numbers.__array_interface__["data"][0]

    def check(self) -> None:
        """Raise where a kernel that is done has found an index that is out of bounds."""
        kind = self.numbers[0]
        if kind:
            wrong = int(self.numbers[1])
            self.numbers[:] = 0
            if kind == ROWS:
                raise IndexError(f"index out of range in self: embedding was given {wrong}. {_LATER}")
            raise IndexError(f"Target {wrong} is out of bounds. {_LATER}")
