"""Nodes that belong to no operator: the root of a run, and errors that wait in the graph."""

from __future__ import annotations

from collections.abc import Sequence

from .node import MultiOutputNode, TensorNode, init_node


class GraphRoot(MultiOutputNode):
    """Where a backward pass with several outputs starts: hands each given gradient to its output's edge."""

    __slots__ = ("grads",)

    def __init__(self, edges: tuple, grads: Sequence) -> None:
        init_node(self, edges)
        self.grads = tuple(grads)

    def apply(self, edges: tuple, grads: Sequence) -> tuple:
        return self.grads

    apply_tensors = apply


class Identity(MultiOutputNode):
    """Passes its gradients on; stands in for a leaf that no graph uses."""

    __slots__ = ()

    def __init__(self, edges: tuple = ()) -> None:
        init_node(self, edges)

    def apply(self, edges: tuple, grads: Sequence) -> tuple:
        return tuple(grads)

    apply_tensors = apply


class Error(TensorNode):
    """Raises when a gradient reaches it: the backward of something that has none."""

    __slots__ = ("message",)

    def __init__(self, message: str, edges: tuple = ()) -> None:
        init_node(self, edges)
        self.message = message

    def apply_tensors(self, edges: tuple, grads: Sequence) -> tuple:
        raise RuntimeError(self.message)


class DelayedError(Error):
    """Stands between a result and its history: the result can be used, but not differentiated.

    >>> import retrograd
    >>> from retrograd.autograd.basic_nodes import DelayedError
    """

    __slots__ = ()

    def __call__(self, *tensors):
        """Aliases of `tensors` whose backward raises the message."""
        from .edge import collect_next_edges
        from .node import set_history

        init_node(self, collect_next_edges(*tensors))
        results = []
        for tensor in tensors:
            result = tensor.detach()
            set_history(result, self)
            results.append(result)
        return results[0] if len(results) == 1 else tuple(results)
