"""The derivative along a direction, from a graph that is there already: a sweep over its nodes, from the leaves up.

`functional.jvp` has recorded what it differentiates.  As in torch, the product of the Jacobian with a
vector can be had from that by two backward passes, of which the first is recorded; but most nodes say as well what a
small change of their inputs does:

* a node that works on each element multiplies by the same number in both directions, so that its own formula, given a
  tangent instead of a gradient, gives a tangent;
* what a node with one number as its result has for each input is the gradient of that number: the change is their inner
  product with the tangents;
* views and products have a formula here.

Where a node is none of these, `tangents` gives nothing, and the passes have to do it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from .. import kernels
from .._generated import nodes
from ..autograd.accumulate_grad import AccumulateGrad
from ..autograd.edge import gradient_edge
from ..core.description import NoArray
from ..tensor import Tensor
from .rows import GENERATED, ROWS, _has_hooks, _register, _same, _saved

#: (node, which of its inputs, the tangent of that) -> its part of the tangent of the result
Formula = Callable[[Any, int, Any], Any]


def tangents(outputs: Sequence[Any], inputs: Sequence[Tensor], vectors: Sequence[Tensor]) -> list[Any] | None:
    """What `outputs` change by where the leaves `inputs` change by `vectors`; of an output without history, None.

    None for all where a node has no formula for it.
    """
    if not ROWS:
        _register()
    vectors_of = [vector._memory_ for vector in vectors]
    made: dict[Any, Any] = {}
    for tensor, vector in zip(inputs, vectors, strict=True):
        edge = gradient_edge(tensor)
        plain = vector.__class__ is Tensor and vector._memory_.dtype.kind == "f"
        if edge is None or not plain or edge[0].__class__ is not AccumulateGrad or edge[0] in made:
            return None
        made[edge[0]] = vector._numbers_
    roots = [None if output is None else gradient_edge(output) for output in outputs]
    order = _in_order([root[0] for root in roots if root is not None])
    if order is None:
        return None
    try:
        for node in order:
            if node.next_edges:
                made[node] = _tangent(node, made)
    except (NoArray, _NoFormula):
        return None
    found: list[Any] = []
    for root in roots:
        array: Any = None if root is None else made.get(root[0])
        own = array is None or (array.flags.owndata and not any(array is other for other in (*found, *vectors_of)))
        found.append(array if own else array.copy())
    return found


#: When a node was made, among those of its thread.
_made: Any = attrgetter("sequence_nr")


class _NoFormula(Exception):
    """A node that there is no formula of."""


def _in_order(roots: list[Any]) -> list[Any] | None:
    """All nodes below, each after those that it leads to; None if one of them is not to be swept over."""
    seen = list(dict.fromkeys(roots))
    known = set(seen)
    leaves: list[Any] = []
    inner: list[Any] = []
    for node in seen:  # grows while it is walked
        if node.array_class is not np.ndarray or node.dtype.kind != "f":
            return None
        if node.extras is not None and _has_hooks(node):
            return None
        edges = node.next_edges
        if not edges:
            leaves.append(node)
            continue
        if node.__class__.__module__ != GENERATED:
            return None  # somebody's own
        inner.append(node)
        for edge in edges:
            if edge is not None:
                below = edge[0]
                if below.sequence_nr >= node.sequence_nr and below.next_edges:
                    return None  # made by another thread: the numbers do not tell the order
                if below not in known:
                    known.add(below)
                    seen.append(below)
    inner.sort(key=_made)
    return leaves + inner


def _tangent(node: Any, made: dict[Any, Any]) -> Any:
    """The tangent of what a node is the history of: the sum of what those of its inputs make of it."""
    formula = _FORMULAS.get(node.__class__)
    if formula is None:
        if ROWS.get(node.__class__) is not _same:
            return _number(node, made)
        formula = _element
    total = None
    position = -1
    for edge in node.next_edges:
        position += 1
        tangent = None if edge is None else made.get(edge[0])
        if tangent is not None:
            part = formula(node, position, tangent)
            total = part if total is None else total + part
    if total is None:
        return None
    if total.shape != node.shape or total.dtype != node.dtype:
        raise _NoFormula
    return total


def _element(node: Any, position: int, tangent: Any) -> Any:
    shape = node.shape
    if tangent.shape != shape:
        tangent = np.broadcast_to(tangent, shape)
    if tangent.dtype is not node.dtype:
        tangent = tangent.astype(node.dtype)
    edges = node.next_edges
    if len(edges) > 1:
        edges = tuple([edge if i == position else None for i, edge in enumerate(edges)])
    part = node.apply(edges, (tangent,))[position]
    if part is None:
        return np.zeros(shape, node.dtype)
    if part.__class__ is not np.ndarray or part.shape != shape:
        part = np.broadcast_to(part, shape)
    return part if part.dtype is node.dtype else part.astype(node.dtype)


def _number(node: Any, made: dict[Any, Any]) -> Any:
    """The tangent of a number: its gradient times the tangents of what it was made of."""
    if node.shape != ():
        raise _NoFormula
    edges = node.next_edges
    given = [None if edge is None else made.get(edge[0]) for edge in edges]
    wanted = tuple([None if tangent is None else edge for edge, tangent in zip(edges, given, strict=True)])
    if not any(wanted):
        return None
    found = node.apply(wanted, (kernels.ones((), node.dtype),))
    total = 0.0
    for gradient, tangent in zip(found, given, strict=True):
        if gradient is not None and tangent is not None:
            if gradient.shape != tangent.shape:
                raise _NoFormula
            total = total + np.multiply(gradient, tangent).sum()
    return np.asarray(total, node.dtype)


def _reshape(node: Any, position: int, tangent: Any) -> Any:
    return tangent.reshape(node.shape)


def _expand(node: Any, position: int, tangent: Any) -> Any:
    return np.broadcast_to(tangent, node.shape)


def _transpose(node: Any, position: int, tangent: Any) -> Any:
    return tangent.swapaxes(node.dim0_, node.dim1_) if tangent.ndim else tangent


def _t(node: Any, position: int, tangent: Any) -> Any:
    return tangent.T


def _mv(node: Any, position: int, tangent: Any) -> Any:
    return kernels.mv(tangent, _saved(node, "vec")) if position == 0 else kernels.mv(_saved(node, "self"), tangent)


def _mm(node: Any, position: int, tangent: Any) -> Any:
    return kernels.mm(tangent, _saved(node, "mat2")) if position == 0 else kernels.mm(_saved(node, "self"), tangent)


def _addmm(node: Any, position: int, tangent: Any) -> Any:
    if position == 0:
        return np.broadcast_to(tangent if node.beta_ == 1 else tangent * tangent.dtype.type(node.beta_), node.shape)
    part = kernels.mm(tangent, _saved(node, "mat2")) if position == 1 else kernels.mm(_saved(node, "mat1"), tangent)
    return part if node.alpha_ == 1 else part * part.dtype.type(node.alpha_)


_FORMULAS: dict[type, Formula] = {
    getattr(nodes, name): formula
    for formula, names in (
        (_reshape, ("ViewBackward0", "ReshapeAliasBackward0", "UnsqueezeBackward0", "SqueezeBackward0",
                    "SqueezeBackward1")),
        (_expand, ("ExpandBackward0",)),
        (_transpose, ("TransposeBackward0",)),
        (_t, ("TBackward0",)),
        (_mv, ("MvBackward0",)),
        (_mm, ("MmBackward0",)),
        (_addmm, ("AddmmBackward0",)),
    )
    for name in names
}  # fmt: skip


__all__ = ["tangents"]
