"""Looking at graphs: gradient edges as users hold them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .node import Node

if TYPE_CHECKING:
    from ..tensor import Tensor

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "save_on_cpu",
    "saved_tensors_hooks",
]


class GradientEdge(NamedTuple):
    """Where the gradient of a tensor goes; may stand for the tensor in ``backward()`` and ``grad()``."""

    node: Node
    output_nr: int
    #: Keeps alive what the node alone does not (a leaf, for its accumulator).
    ownership_token: object | None = None


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The gradient edge of a tensor that requires grad.

    >>> import retrograd as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> torch.autograd.graph.get_gradient_edge(x * 2).node.name()
    'MulBackward0'
    """
    from .edge import gradient_edge

    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    edge = gradient_edge(tensor)
    assert edge is not None
    return GradientEdge(*edge)


from .saved_tensors_hooks import (  # noqa: E402 (it needs tensors, which need this module's Node)
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    save_on_cpu,
    saved_tensors_hooks,
)
