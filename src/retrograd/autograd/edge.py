"""Edges: where a gradient goes.

An edge is the pair ``(node, input_nr)``: the gradient becomes input number `input_nr` of `node`.  It is a plain
tuple, since a graph has millions of them; a missing edge (the input does not require grad) is None.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ..core.meta import AutogradMeta
from .accumulate_grad import new_accumulator
from .node import Node, init_node
from .view_meta import view_edge

if TYPE_CHECKING:
    from ..tensor import Tensor

EdgeTuple: TypeAlias = "tuple[Node, int]"


class Sink(Node):
    """Stands where a tensor that requires grad has no way to pass its gradient on: no gradient is computed for it."""

    __slots__ = ()

    is_sink = True

    def __init__(self, tensor: Tensor) -> None:
        init_node(self, ())
        data = tensor._memory_
        self.shape: tuple[int, ...] | None = data.shape
        self.dtype: Any = data.dtype
        self.array_class: type[Any] | None = data.__class__

    def apply(self, edges: tuple[Any, ...], grads: Sequence[Any]) -> tuple[Any, ...]:
        return ()

    apply_tensors = apply


class Edge(NamedTuple):
    """An edge with names, for those who build graphs by hand. Equal to the plain tuple; ``Edge()`` leads nowhere.

    >>> import retrograd as torch
    >>> from retrograd.autograd.edge import Edge
    >>> y = torch.ones(1, requires_grad=True) * 2
    >>> Edge(y.grad_fn, 0).is_valid(), Edge().is_valid()
    (True, False)
    """

    function: Node | None = None
    input_nr: int = 0

    def is_valid(self) -> bool:
        """Does it lead anywhere?"""
        return self.function is not None


def gradient_edge(tensor: Tensor) -> EdgeTuple | None:
    """Where the gradient of `tensor` goes: its grad_fn, or the accumulator of a leaf; None if it requires no grad."""
    return tensor._edge_ or leaf_edge(tensor)


def leaf_edge(tensor: Tensor) -> EdgeTuple | None:
    """`gradient_edge` of a tensor without an edge of its own: a leaf, or a view."""
    meta: Any = tensor._grad_meta_
    if meta.__class__ is not AutogradMeta:  # which a leaf's is
        if meta is None:
            return None
        if meta.is_view:
            edge, vc = meta.edge, tensor._vc_
            if edge is not None and vc is not None and vc.version == meta.attr_version:
                return edge  # `view_edge` without the call
            base = meta.base
            if edge is None and base._edge_ is None and base._grad_meta_ is None and not meta.requires_grad:
                return None  # of a constant
            edge = view_edge(tensor)
            if edge is not None:
                return edge
            if not meta.requires_grad and tensor.requires_grad:
                # It requires grad because its base does, but was made where nothing is recorded: gradients end here.
                return (Sink(tensor), 0)
    if not meta.requires_grad:
        return None
    reference = meta.grad_accumulator
    if reference is not None:
        node = reference()
        if node is not None:
            return (node, 0)
    return (new_accumulator(tensor, meta, reference), 0)


def collect_next_edges(*tensors: Tensor) -> tuple[EdgeTuple | None, ...]:
    """The next edges of a node whose forward inputs were `tensors`."""
    return tuple(gradient_edge(tensor) for tensor in tensors)
