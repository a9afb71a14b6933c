"""The history of a result whose graph the captured step has used up."""

from __future__ import annotations

from typing import Any

from ..autograd.node import Node
from ..core.state import local
from ..tensor import Tensor


class CapturedBackward(Node):
    """Stands where the step's own graph ended: a second backward pass has nothing to go through."""

    __slots__ = ()

    def apply(self, edges: tuple[Any, ...], grads: Any) -> tuple[Any, ...]:
        raise RuntimeError(
            "Trying to backward through the graph a second time: this is the result of a captured function, which has "
            "called backward() on it already. Call it with retain_graph=True inside, or return it detached"
        )

    apply_tensors = apply


def ended(result: Tensor) -> None:
    """Give a result such a history."""
    node: Any = CapturedBackward()
    node.next_edges = ()
    state = local.state
    node.sequence_nr = state.sequence_nr
    state.sequence_nr += 1
    node.extras = None
    array = result._memory_
    node.shape, node.dtype, node.array_class = array.shape, array.dtype, array.__class__
    result._edge_ = (node, 0)
