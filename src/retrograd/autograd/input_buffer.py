"""InputBuffer: the gradients that a node is waiting for.

A gradient is added the moment it arrives.  The first one is kept as it is: it may belong to somebody else.
The sum of two is ours, so that a third is added to it in place (unless the sum is itself being recorded).
"""

from __future__ import annotations

from typing import Any

from numpy import generic

from .. import kernels
from ..core.description import NoArray
from ..tensor.special import bare, boxed


class InputBuffer:
    """The gradients of one waiting node: `grads` has one place an input, None until something arrives there."""

    __slots__ = ("grads", "owned", "waiting")

    def __init__(self, size: int, waiting: int) -> None:
        self.grads: list[Any] = [None] * size
        #: Bit i is set when grads[i] is a sum that this buffer made.
        self.owned: int = 0
        #: How many gradients are still to come.
        self.waiting: int = waiting

    @property
    def buffer(self) -> list[Any]:
        """What has arrived so far, by input."""
        return self.grads

    @property
    def num_inputs(self) -> int:
        return len(self.grads)

    def get(self, position: int) -> Any:
        """The sum of what has arrived at `position` so far, an array or a Tensor; None if nothing has."""
        return self.grads[position]

    __getitem__ = get

    def __len__(self) -> int:
        return len(self.grads)

    def variables(self) -> list[Any]:
        """All of them, when the last has come: they are the caller's now."""
        grads, self.grads = self.grads, [None] * len(self.grads)
        self.owned = 0
        return grads

    def add(self, position: int, grad: Any, as_tensors: bool) -> None:
        """Add a gradient (an array, or a Tensor when `as_tensors`) to what arrived at `position` before."""
        if grad is None:
            return
        grads = self.grads
        old = grads[position]
        if old is None:
            grads[position] = grad
        elif as_tensors:
            grads[position] = old + grad if old._special_ is None or grad._special_ is not None else grad + old
        else:
            try:
                if self.owned >> position & 1:
                    kernels.accumulate(old, grad, old)
                elif isinstance(old, generic) and isinstance(grad, generic):
                    grads[position] = old + grad  # type: ignore[operator]
                else:
                    grads[position] = kernels.add(old, grad)
                    self.owned |= 1 << position
            except NoArray:
                first, second = boxed(old), boxed(grad)
                # A plain one comes first: what it and a special one give is plain.
                grads[position] = bare(first + second if second._special_ is not None else second + first)
                self.owned &= ~(1 << position)
