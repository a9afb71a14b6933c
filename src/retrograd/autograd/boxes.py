"""Boxes: the Tensors in which hooks see the gradients of one backward pass.

Gradients travel as arrays, and most are never seen by user code.  One that hooks see is boxed, and what hooks see of it
is one object, as in torch, where the gradient itself is a tensor: a second hook gets what the first one got or
returned, and so does the next node's, if the gradient goes on as it is; ``grad()`` hands out that object too.

A box is remembered weakly, because it keeps its array alive, and with it a gradient that nobody needs any more (or that
a leaf could keep: Note [Ownership]).  Who does not hold a box cannot tell it from another on the same array, unless
there is more to it than the array: an attribute that a hook has set, a history.  Such a box is kept to the end.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from typing import Any

from ..tensor import Tensor
from ..tensor.special import bare, boxed


class Boxes:
    """The boxes of one pass: by the array, whose identity is good for as long as its box lives."""

    __slots__ = ("_kept", "_known")

    def __init__(self, given: Iterable[Tensor] = ()) -> None:
        self._known: dict[int, weakref.ref[Tensor]] = {}
        self._kept: dict[int, Tensor] = {}
        for tensor in given:  # what the caller started the pass with is its own box
            self._known[id(bare(tensor))] = weakref.ref(tensor)

    def box(self, grad: Any) -> Any:
        """`grad` as hooks see it; an undefined gradient is None for hooks too."""
        if grad is None:
            return None
        reference = self._known.get(id(grad))
        box = None if reference is None else reference()
        if box is None or bare(box) is not grad:
            box = boxed(grad)
            self._known[id(grad)] = weakref.ref(box)
        return box

    def unbox(self, boxes: Sequence[Any]) -> list[Any]:
        """The arrays in which the gradients travel on, after hooks have seen or made `boxes`."""
        return [None if box is None else self._open(box) for box in boxes]

    def _open(self, box: Tensor) -> Any:
        array = bare(box)
        self._known[id(array)] = weakref.ref(box)
        own_class = box.__class__ is not Tensor and box._special_ is None
        if own_class or box.__dict__ or box._edge_ is not None or box._grad_meta_ is not None:
            self._kept[id(box)] = box
        return array
