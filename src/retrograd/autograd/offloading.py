"""Saved tensors of a device in pinned host memory, copied there and back beside the computation: `save_on_cpu`.

Copies have a stream of their own.  On the way out it waits for the stream that computed the tensor, and the device's
memory
is free as soon as the copy is done.  A backward pass needs the tensors in the reverse of the order in which they were
saved: whoever asks for one has the few before it fetched as well, so that they are there when their turn comes.
"""

from __future__ import annotations

import weakref
from typing import Any

from ..tensor import Tensor, wrap
from .streams import on_stream_of

#: How many tensors are fetched before they are asked for.
AHEAD = 2


class Kept:
    """A saved tensor in host memory, and on the device again once it is fetched."""

    __slots__ = ("__weakref__", "before", "fetched", "host", "place")

    def __init__(self, tensor: Tensor, last: Kept | None) -> None:
        array: Any = tensor._numbers
        self.place: Any = array.place
        now, copies = self.place.class_now(), self.place.class_of_copies()
        self.place.join(now, copies)
        with on_stream_of(copies):
            self.host: Any = self.place.to_host(array, non_blocking=True)
        self.place.use_on(array, copies)
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

    def pack(self, tensor: Tensor) -> Kept:
        """Send a tensor to the host."""
        made = Kept(tensor, None if self.last is None else self.last())
        self.last = weakref.ref(made)
        return made
