"""Saved tensors of a device in pinned host memory, copied there and back beside the computation: `save_on_cpu`.

Copies have a stream of their own.  On the way out it waits for the stream that computed the tensor, and the device's
memory is free as soon as the copy is done.  A backward pass needs the tensors in the reverse of the order in which they
were saved: whoever asks for one has the few before it fetched as well, so that they are there when their turn comes.

A program is far ahead of its device, and what it has let go is not free before the device has come to it.  So both ways
a program waits as soon as more than a few tensors are under way (`Window`): else they would all be there at once.
"""

from __future__ import annotations

import weakref
from collections import deque
from typing import Any

from ..tensor import Tensor, wrap
from .streams import on_stream_of

#: How many tensors are fetched before they are asked for.
AHEAD = 1
#: How many tensors may be under way, and how many bytes if they are small.
MOST, FEW_BYTES = 2, 1 << 22


class Window:
    """Tensors under way, each with the event after which its memory is free."""

    def __init__(self) -> None:
        self.under_way: deque[tuple[Any, int]] = deque()
        self.bytes = 0

    def add(self, event: Any, size: int) -> None:
        """One more; wait for the first ones if they are too many."""
        self.under_way.append((event, size))
        self.bytes += size
        while len(self.under_way) > MOST and self.bytes > FEW_BYTES:
            first, least = self.under_way.popleft()
            self.bytes -= least
            first.synchronize()


class Kept:
    """A saved tensor in host memory, and on the device again once it is fetched."""

    __slots__ = ("__weakref__", "before", "fetched", "host", "place", "window")

    def __init__(self, tensor: Tensor, last: Kept | None, window: Window) -> None:
        array: Any = tensor._numbers_
        self.place: Any = array.place
        now, copies = self.place.class_now(), self.place.class_of_copies()
        self.place.join(now, copies)
        with on_stream_of(copies):
            self.host: Any = self.place.to_host(array, non_blocking=True)
        self.place.use_on(array, copies)
        window.add(self.place.mark(copies), array.nbytes)
        self.window = window
        #: On the device again, if it is.
        self.fetched: Any = None
        #: The one that was saved before this one.
        self.before: Any = None if last is None else weakref.ref(last)

    def fetch(self) -> None:
        """Begin to copy it back."""
        if self.fetched is None:
            with on_stream_of(self.place.class_of_copies()):
                self.fetched = self.place.from_host(self.host, non_blocking=True)

    def give(self) -> Tensor:
        """The tensor, on the current stream; those before it are on their way."""
        self.fetch()
        array, self.fetched = self.fetched, None
        now, copies = self.place.class_now(), self.place.class_of_copies()
        self.window.add(self.place.mark(now), array.nbytes)  # what was given before has been used up to here
        self.place.join(copies, now)
        self.place.use_on(array, now)
        one = self
        for _ in range(AHEAD):
            found = None if one.before is None else one.before()
            if found is None:
                break
            one = found
            one.fetch()
        return wrap(array)


class Offload:
    """What `save_on_cpu` does with one tensor after the other."""

    def __init__(self) -> None:
        self.last: Any = None
        self.window: Window = Window()

    def pack(self, tensor: Tensor) -> Kept:
        """Send a tensor to the host."""
        made = Kept(tensor, None if self.last is None else self.last(), self.window)
        self.last = weakref.ref(made)
        return made
