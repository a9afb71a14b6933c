"""CopySlices: the history of a base whose view was written to in place.

The base's value is now its old value, except in the view, which holds the result of the in-place operation.  So,
going backward: the gradient of the old base is the incoming one with the view's part replaced by what the
operation's own node makes of that part, and the operation's other inputs get what that node gives them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import kernels
from ..tensor import wrap
from ..tensor.lazy_conjugation import apply_bits
from .edge import gradient_edge
from .node import Node, init_node
from .saved_variable_errors import freed_error
from .view_meta import Step, replay_on_array, replay_on_tensor

if TYPE_CHECKING:
    from ..tensor import Tensor
    from .saved_variable import Freed


class CopySlices(Node):
    """Runs the node of an in-place operation on the part of the gradient that belongs to the view."""

    __slots__ = ("bits", "fn", "like", "replay")

    #: The node of the in-place operation. Its first edge, to the view's old value, is not followed.
    fn: Node
    replay: tuple[Step, ...]
    #: An array of the base's layout without its memory: how to lay out the gradient, so that the steps apply to it.
    like: Any
    #: What the replayed part of the gradient is to be read as, see Note [Lazy conjugation]; None: as it is.
    bits: tuple[bool, bool] | None

    def __init__(
        self, base: Tensor, replay: tuple[Step, ...], fn: Node, bits: tuple[bool, bool] | None = None
    ) -> None:
        init_node(self, (base._edge_ or gradient_edge(base), *fn.next_edges[1:]))
        data = base._memory_
        self.shape: tuple[int, ...] | None = data.shape
        self.dtype: Any = data.dtype
        self.array_class: type[Any] | None = data.__class__
        self.replay = replay
        self.fn = fn
        self.bits = bits
        self.like = kernels.layout_of(data)

    def name(self) -> str:
        return "torch::autograd::CopySlices"

    def apply(self, edges: tuple[Any, ...], grads: Sequence[Any]) -> tuple[Any, ...]:
        self._check_not_freed()
        grad = grads[0]
        if grad is None:
            return (None,) * len(edges)
        result = kernels.empty_of_layout(self.like, grad)
        result[...] = grad
        part = replay_on_array(self.replay, result)
        values = part.copy() if self.bits is None else apply_bits(self.bits, part)
        outputs = self.fn.apply(self._edges_of_fn(edges), (values,))
        if edges[0] is not None:
            new = 0 if outputs[0] is None else outputs[0]
            part[...] = new if self.bits is None else apply_bits(self.bits, new)
        return (result if edges[0] is not None else None, *outputs[1:])

    def apply_tensors(self, edges: tuple[Any, ...], grads: Sequence[Any]) -> tuple[Any, ...]:
        self._check_not_freed()
        grad = grads[0]
        if grad is None:
            return (None,) * len(edges)
        if grad._special_ is not None:
            result = grad.new_empty(grad.shape)
        else:
            result = wrap(kernels.empty_of_layout(self.like, grad._numbers_))
        result.copy_(grad)
        part = replay_on_tensor(self.replay, result)
        outputs = self.fn.apply_tensors(self._edges_of_fn(edges), (part.clone(),))
        if edges[0] is not None:
            if outputs[0] is None:
                part.zero_()
            else:
                part.copy_(outputs[0])
        return (result if edges[0] is not None else None, *outputs[1:])

    def _edges_of_fn(self, edges: tuple[Any, ...]) -> tuple[Any, ...]:
        # The node computes the gradient of the view's old value if it has a formula for it at all.
        first = self.fn.next_edges[0]
        return (first or edges[0] if edges[0] is not None else None, *edges[1:])

    def release_variables(self, freed: Freed) -> None:
        # Only the reference: in a recorded pass the node may stand in the graph on its own as well (as the history of
        # an output that it has saved), and then runs a second time.
        if isinstance(self.fn, Node):
            self.fn = freed  # type: ignore[assignment]

    def _check_not_freed(self) -> None:
        if not isinstance(self.fn, Node):
            raise freed_error(self, self.fn)
