"""Nodes that belong to no operator: the root of a run, and errors that wait in the graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .edge import collect_next_edges, gradient_edge
from .node import MultiOutputNode, Node, TensorNode, init_node, set_history

if TYPE_CHECKING:
    from ..tensor import Tensor


class GraphRoot(MultiOutputNode):
    """Where a backward pass with several outputs starts: hands each given gradient to its output's edge."""

    __slots__ = ("grads",)

    def __init__(self, edges: tuple[Any, ...], grads: Sequence[Any]) -> None:
        init_node(self, edges)
        self.grads: tuple[Any, ...] = tuple(grads)

    def apply(self, edges: tuple[Any, ...], grads: Sequence[Any]) -> tuple[Any, ...]:
        return self.grads

    apply_tensors = apply


class Identity(MultiOutputNode):
    """Passes its gradients on; stands in for a leaf that no graph uses."""

    __slots__ = ()

    def __init__(self, edges: tuple[Any, ...] = ()) -> None:
        init_node(self, edges)

    def apply(self, edges: tuple[Any, ...], grads: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(grads)

    apply_tensors = apply


def _stand_before(node: MultiOutputNode, tensors: tuple[Any, ...]) -> Any:
    """Aliases of `tensors` whose gradients go through `node` first."""
    init_node(node, collect_next_edges(*tensors))
    results = []
    for tensor in tensors:
        result = tensor.detach()
        set_history(result, node)
        results.append(result)
    return results[0] if len(results) == 1 else tuple(results)


class Error(TensorNode):
    """Raises when a gradient reaches it: the backward of something that has none."""

    __slots__ = ("message",)

    def __init__(self, message: str, num_inputs: int = 0) -> None:
        init_node(self, ())
        self.message: str = message

    def name(self) -> str:
        return "torch::autograd::Error"

    def apply_tensors(self, edges: tuple[Any, ...], grads: Sequence[Any]) -> tuple[Any, ...]:
        raise RuntimeError(self.message)


class NotImplementedInPlace(Node):
    """The history of a tensor that an operator without a derivative has written to."""

    __slots__ = ("operation",)

    def __init__(self, tensor: Tensor, operation: str) -> None:
        init_node(self, (gradient_edge(tensor),))
        data = tensor._memory_
        self.shape: tuple[int, ...] | None = data.shape
        self.dtype: Any = data.dtype
        self.array_class: type[Any] | None = data.__class__
        self.operation: str = operation

    def name(self) -> str:
        return "torch::autograd::NotImplemented"

    def apply(self, edges: tuple[Any, ...], grads: Sequence[Any]) -> tuple[Any, ...]:
        raise RuntimeError(
            f"derivative for aten::{self.operation} is not implemented: write to a copy without history, "
            "x.detach().clone()"
        )

    apply_tensors = apply


class DelayedError(Error):
    """Stands between results and their history: they can be used, but not differentiated.

    >>> import retrograd as torch
    >>> from retrograd.autograd.basic_nodes import DelayedError
    >>> y = DelayedError("no derivative of this", 1)(torch.ones(2, requires_grad=True))
    >>> y.sum().backward()
    Traceback (most recent call last):
    RuntimeError: no derivative of this
    """

    __slots__ = ()

    def __call__(self, *tensors: Any) -> Any:
        """Aliases of `tensors` whose backward raises the message."""
        return _stand_before(self, tensors)


class UndefinedGrad(MultiOutputNode):
    """Passes nothing on: what it stands before gets undefined gradients."""

    __slots__ = ()

    def __init__(self) -> None:
        init_node(self, ())

    def name(self) -> str:
        return "torch::autograd::UndefinedGradBackward"

    def __call__(self, *tensors: Any) -> Any:
        """Aliases of `tensors` that give no gradient back."""
        return _stand_before(self, tensors)

    def apply(self, edges: tuple[Any, ...], grads: Sequence[Any]) -> tuple[Any, ...]:
        return (None,) * len(edges)

    apply_tensors = apply
