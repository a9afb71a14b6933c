"""Streams in backward passes: which work on a device waits for which.

Note [Streams]
A device does what it is told in *streams*: in the order in which it was told within one, in any order across two,
unless one waits for an event of the other.  A forward pass may use several, and its backward pass has to be as safe:

* A node has its stream with the class of its result (Note [Arrays of a device] in arrays/device_array.py): the one
  that was
  current when the operator ran.  Its backward, with all its hooks, runs on that stream (`on_stream_of`), whichever
  thread runs it, and so what it saved is where it was computed.
* A gradient goes from the stream of the node that made it to that of the node that takes it.  If these are two, the
  second waits for the first (`hand_over`), and the memory is not given to others before the second has read it (Note
  [Memory and streams] in arrays/memory.py).  Gradients that meet are added on the stream of the node that takes them.
* The gradients that the caller gives are on the caller's current stream; the root's stream waits for it.
* When all is done, the caller's current streams wait for the streams on which leaves got their gradients, and on which
  gradients for ``grad()`` were kept (`Leaves`).  What comes after ``backward()`` needs no wait of its own.
* The accumulator of a leaf has the stream that was current when it was made.  If a gradient comes from another one
  there is a wait that a program can avoid, and a warning says so.

Nodes of the CPU have no stream; passes without a node of a device never come here.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..core.where import users_level
from ..kernels import libraries
from .accumulate_grad import AccumulateGrad


def place_of_class(array_class: Any) -> Any:
    """Where arrays of a class lie; None for those that have no streams."""
    return getattr(array_class, "place", None)


def class_of_node(node: Any) -> Any:
    """The class of a node's result, of several that of the first on a device; of a sparse one that of its values."""
    array_class = node.array_class
    if array_class is not None:
        return getattr(array_class, "of_arrays", array_class)
    for metadata in node.input_metadata:
        if place_of_class(metadata[2]) is not None:
            return getattr(metadata[2], "of_arrays", metadata[2])
    return None


@contextmanager
def on_stream_of(array_class: Any) -> Iterator[None]:
    """Within the block, the stream of a class of arrays is the current one of its device."""
    place = place_of_class(array_class)
    if place is None:
        yield
        return
    before, clone = place.class_now(), libraries.here.clone
    place.use_class(array_class)
    libraries.here.clone = place.kernels
    try:
        yield
    finally:
        libraries.here.clone = clone
        place.use_class(before)


def hand_over(grad: Any, taker: Any, warn: bool) -> None:
    """Make the stream of the node `taker` wait for the current one, on which `grad` was computed."""
    array = getattr(grad, "_memory_", grad)
    place = place_of_class(array.__class__)
    if place is None:
        return
    taken = class_of_node(taker)
    if place_of_class(taken) is not place:
        return
    made = place.class_now()
    if made is taken:
        return
    place.join(made, taken)
    place.use_on(array, taken)
    if warn and isinstance(taker, AccumulateGrad):
        warnings.warn(
            "The AccumulateGrad node's stream does not match the stream of the node that produced the incoming "
            "gradient. This costs a wait that can be avoided, and breaks the capture of a graph: make the leaf, and "
            "use it first, on the stream on which the rest runs. "
            "torch.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(False) turns this warning off",
            UserWarning,
            stacklevel=users_level(),
        )


class Leaves:
    """The streams of a pass on which leaves got gradients, or gradients were kept."""

    def __init__(self) -> None:
        self.classes: dict[Any, None] = {}

    def add(self, node: Any) -> None:
        """A node has run at whose stream the pass may end."""
        array_class = class_of_node(node)
        if place_of_class(array_class) is not None:
            self.classes[array_class] = None

    def join(self, captured: Sequence[Any] | None) -> None:
        """Make the current streams of this thread wait for them."""
        for array_class in self.classes:
            place = array_class.place
            place.join(array_class, place.class_now())
        for grad in captured or ():
            if grad is not None:
                array = getattr(grad, "_memory_", grad)
                place = place_of_class(array.__class__)
                if place is not None and array.__class__ is not place.class_now():
                    place.use_on(array, place.class_now())
