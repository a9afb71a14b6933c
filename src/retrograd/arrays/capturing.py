"""Streams that are being captured: what they are told is written down as a graph, and not done.

Note [Captured graphs]
While a stream is captured, launches on it become nodes of a graph, which is launched as a whole later, as often as one
likes (``torch.cuda.CUDAGraph``).  A graph has addresses in it, and so:

* Its memory is its own.  A stream that is captured has a pool for itself (`private` in memory.py), which nobody else is
  given memory from, and which lives as long as the graph.  Within the graph memory is used again as ever.
* What a kernel reads of the host is read once, now: constants (an ``arange``, the numbers of an index) are copied at
  once, outside of the graph, into memory that the graph never writes to, and are kept with it.
* Nothing can be asked of the values, since there are none yet: what would wait for the device, or needs the host,
  raises and names the operation and the line.
* What happens on the host before each launch of the graph (the count of an optimizer's steps, numbers that are drawn)
  is in a list, `before`.

Another stream that waits for one that is captured is captured with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.where import user_location
from . import memory

if TYPE_CHECKING:
    from .places import Place

#: What is captured, by the class of arrays, which tells the stream.
capturing: dict[Any, Capture] = {}


class NotCapturable(RuntimeError):
    """Something that cannot be in a graph."""


def refused(what: str, instead: str) -> NotCapturable:
    """The error for an operation, with the line of the user's code that is running."""
    return NotCapturable(
        f"CUDA error: operation not permitted when stream is capturing: {what} at {user_location(2)}. {instead}"
    )


class Capture:
    """A graph while it is made."""

    def __init__(self, place: Place, array_class: Any, pool: Any) -> None:
        self.place: Place = place
        self.pool: Any = pool
        self.classes: list[Any] = []
        #: Arrays that the graph reads and that are not of its pool.
        self.constants: list[Any] = []
        #: What is done on the host before each launch.
        self.before: list[Callable[[], None]] = []
        self.add(array_class)

    def add(self, array_class: Any) -> None:
        """One more stream belongs to it."""
        if array_class.stream is None:
            raise refused("waiting on the default stream", "Use streams of your own within a capture")
        self.classes.append(array_class)
        memory.private[array_class.stream.ptr] = self.pool
        capturing[array_class] = self

    def end(self) -> None:
        """It is made, or given up."""
        for array_class in self.classes:
            capturing.pop(array_class, None)
            memory.private.pop(array_class.stream.ptr, None)

    def constant(self, array: np.ndarray) -> Any:
        """An array of the library with the values of one of the host, copied now."""
        null = self.place.module.cuda.Stream.null
        null.use()
        try:
            raw = self.place.module.asarray(array)
            null.synchronize()
        finally:
            self.place.reactivate()
        self.constants.append(raw)
        return raw

    def constant_again(self, array: np.ndarray, fill: Callable[[], np.ndarray]) -> Any:
        """The same for values that `fill` gives anew before each launch."""
        raw = self.constant(array)

        def refill() -> None:
            raw.set(fill())

        self.before.append(refill)
        return raw


def capture_of(place: Place) -> Capture | None:
    """What the current stream of a place is captured as."""
    return capturing.get(place.class_now()) if capturing else None


def current() -> Capture | None:
    """What this thread is capturing, on whichever device."""
    for array_class, capture in capturing.items():
        if array_class.place.class_now() is array_class:
            return capture
    return None


def refuse_if_captured(place: Place, what: str, instead: str) -> None:
    """Raise where the current stream is captured."""
    if capturing and capturing.get(place.class_now()) is not None:
        raise refused(what, instead)


VALUES = "Its values are not there before the graph is launched: read them after it, or leave this out of the capture"
FROM_HOST = "Copy it before the capture, into a tensor that the graph reads, or from pinned memory with non_blocking"
