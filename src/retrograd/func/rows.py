"""Backward passes over many gradients at once, on bare arrays: `jacrev`, ``is_grads_batched``, ``vectorize=True``.

Such a pass starts with batched gradients (Note [Batched tensors] in batched.py), and each of its nodes could run its
formula on batched tensors, operator by operator, each by its rule.  Where one level is all there is, and nobody
watches, gradients travel as arrays instead, with the rows along the first dimension:

* a node whose operator works on each element has a formula that does so too, and what it has saved broadcasts against
  the rows as it is;
* views and products have a formula for rows here (`ROWS`);
* any other node runs on batched tensors, by the rules.

`run_rows` is a loop of the engine (autograd/engine.py) and does what `run_pass` there does.  Gradients that nodes with
hooks would see are Tensors, so that a pass with such a node is left to the other loops.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import kernels
from .._generated import nodes
from ..autograd.edge import gradient_edge
from ..autograd.fast_loop import run_pass_fast
from ..autograd.node_call import wanted_edges
from ..autograd.saved_variable import unpack_array
from ..autograd.validation import _check_expandable
from ..core.description import NoArray
from ..core.records import records
from ..core.state import local
from ..kernels.compiled import LARGE
from ..tensor import Tensor
from ..tensor import wrap as plain
from .batched import RULES, BatchedTensor, Level, spread, wrap
from .rules import load
from .rules.patterns import elementwise

if TYPE_CHECKING:
    from ..autograd.graph_task import GraphTask
    from ..autograd.node import Node
    from ..core.state import ThreadState

#: The module of the nodes that are not somebody's own.
GENERATED: str = nodes.MulBackward0.__module__

Formula = Callable[[Any, tuple[Any, ...], Any], Sequence[Any]]


def level_of_rows(grads: Sequence[Tensor]) -> Level | None:
    """The one level at which these gradients of roots are batched, if they can travel as arrays."""
    found: Level | None = None
    for grad in grads:
        if grad.__class__ is BatchedTensor:
            if (found is not None and grad.level is not found) or grad.value.__class__ is not Tensor:  # type: ignore[attr-defined]
                return None
            found = grad.level  # type: ignore[attr-defined]
        elif grad.__class__ is not Tensor:
            return None
    return found


def can_run(task: GraphTask) -> bool:
    """May this pass be run on rows?"""
    if level_of_rows(task.given) is None or (task.root.extras is not None and _has_hooks(task.root)):
        return False
    for node in (task.root, *task.dependencies):
        if node.extras is not None and _has_hooks(node):
            return False
        if any([metadata[2] is not np.ndarray for metadata in node.input_metadata]):
            return False  # the gradient of a special tensor
    return True


#: As many elements may the rows of a node's gradient have for them all to be computed at once, unasked.
_MANY = 1 << 20


def can_be_many(outputs: Sequence[Tensor]) -> bool:
    """Can nobody tell a pass over all rows of the Jacobian of `outputs` from one for each?

    There are no hooks and nobody's own functions, and not too many elements.
    """
    state = local.state
    if state.observers or state.batch_levels or any(output.__class__ is not Tensor for output in outputs):
        return False
    rows = sum([output._memory_.size for output in outputs])
    below = own_nodes(outputs)
    return below is not None and not any(
        [rows * math.prod(metadata[0]) > _MANY for node in below for metadata in node.input_metadata]
    )


def own_nodes(outputs: Sequence[Tensor]) -> list[Any] | None:
    """The nodes below `outputs`; None if one has hooks, or is somebody's own."""
    edges = [gradient_edge(output) for output in outputs]
    seen = list(dict.fromkeys([edge[0] for edge in edges if edge is not None]))
    known = set(seen)
    for node in seen:  # grows while it is walked
        if node.extras is not None and _has_hooks(node):
            return None
        if node.next_edges and node.__class__.__module__ != GENERATED:
            return None
        for edge in node.next_edges:
            if edge is not None and edge[0] not in known:
                known.add(edge[0])
                seen.append(edge[0])
    return seen


def _has_hooks(node: Any) -> bool:
    extras = node.extras
    return bool(extras.tensor_hooks or extras.retains_grad or extras.pre_hooks or extras.post_hooks or extras.shown)


def run_rows(
    state: ThreadState, task: GraphTask, root: Node, first: Sequence[Any], as_tensors: bool, call: Any
) -> None:
    """Run a pass from `root`, whose gradients are the batched tensors `first`; what is captured is batched, too."""
    try:
        done = _run(state, task, root, first)
    except NoArray:  # a node has to do with a special tensor
        run_pass_fast(state, task, root, first, as_tensors, call)
        return
    if not task.keep_graph:
        for node in done:
            node.release_variables(task.freed)  # type: ignore[arg-type]


def _run(state: ThreadState, task: GraphTask, root: Node, first: Sequence[Any]) -> list[Node]:
    """The nodes that were run."""
    done: list[Node] = []
    level: Any = level_of_rows(task.given)
    if not ROWS:
        _register()
    exec_info, dependencies, captured = task.exec_info, task.dependencies, task.captured
    waiting: dict[Any, tuple[int, list[Any]]] = {}
    arrival = 0
    heap: list[tuple[int, int, Any, list[Any]]] = []
    node: Any = root
    grads = [None if grad is None else spread(grad, level)._numbers_ for grad in first]
    while True:
        edges = node.next_edges
        needed = True
        if exec_info is not None:
            info = exec_info[node]
            if info.captures is not None and captured is not None:
                for input_nr, position in info.captures:
                    found = grads[input_nr]
                    captured[position] = None if found is None else wrap(plain(found), level)
            needed = info.needed
            edges = () if not needed else edges if task.complete else wanted_edges(edges, exec_info)
        if needed:
            state.current_node = node
            outputs = _outputs(node, edges, grads, level)
            for position, edge in enumerate(edges):
                if edge is None:
                    continue
                successor, input_nr = edge
                grad = outputs[position]
                if grad is not None:
                    grad = _fitted(grad, edge, node, position, level.size)
                count, arrived = waiting.get(successor) or (dependencies[successor], [None] * _inputs(successor))
                if grad is not None:
                    arrived[input_nr] = grad if arrived[input_nr] is None else np.add(arrived[input_nr], grad)
                if count > 1:
                    waiting[successor] = count - 1, arrived
                    continue
                waiting.pop(successor, None)
                arrival += 1
                heappush(heap, (-successor.sequence_nr, arrival, successor, arrived))
            done.append(node)
        if not heap:
            return done
        _, _, node, grads = heappop(heap)


def _inputs(node: Any) -> int:
    return 1 if node.array_class is not None else len(node.input_metadata)


def _outputs(node: Any, edges: tuple[Any, ...], grads: list[Any], level: Level) -> Sequence[Any]:
    """What a node gives for rows of gradients: arrays."""
    formula = ROWS.get(node.__class__)
    grad = grads[0] if formula is not None and node.array_class is np.ndarray else None  # (not of several outputs)
    if grad is not None and grad.size <= LARGE * level.size:
        try:
            return formula(node, edges, grad)  # type: ignore[misc]
        except NoArray:  # it has saved a special tensor
            pass
    given = [None if grad is None else wrap(plain(grad), level) for grad in grads]
    return [None if one is None else spread(one, level)._numbers_ for one in node.apply_tensors(edges, given)]


def _fitted(grad: Any, edge: Any, node: Any, position: int, size: int) -> Any:
    """Rows of gradients as the next node expects them: `validate_array`."""
    successor, input_nr = edge
    if successor.array_class is np.ndarray:
        shape, dtype = successor.shape, successor.dtype
    else:
        shape, dtype, _ = successor.input_metadata[input_nr]
    have = grad.shape[1:]
    if have != shape:
        _check_expandable(have, shape, node, position)
        missing = (1,) * (len(have) - len(shape))
        grad = kernels.sum_to_size(grad, (size, *missing, *shape)).reshape(size, *shape)
    if dtype is not None and grad.dtype is not dtype and grad.dtype != dtype:
        grad = kernels.to_dtype(grad, dtype)
    return grad


# ------------------------------------------------------------------------------------------------------------- formulas

#: Class of nodes -> its formula for rows. Filled when the first pass of this kind runs, read-only after that.
ROWS: dict[type, Formula] = {}


def _same(node: Any, edges: tuple[Any, ...], grad: Any) -> Sequence[Any]:
    """Its formula works on each element."""
    return [None if one is None else _with_rows(one, grad) for one in node.apply(edges, (grad,))]


def _with_rows(array: Any, grad: Any) -> Any:
    """A gradient in which the rows have no part, such as zeros, for each of them."""
    return array if array.__class__ is np.ndarray and array.shape == grad.shape else np.broadcast_to(array, grad.shape)


def _saved(node: Any, name: str) -> Any:
    """The array that a node has saved."""
    value = getattr(node, name + "_")
    return value._numbers_ if value._vc_ is None else unpack_array(node, name, value)


def _reshape(node: Any, edges: tuple[Any, ...], grad: Any) -> Sequence[Any]:
    return (grad.reshape(len(grad), *node.self_shape),)


def _squeeze(node: Any, edges: tuple[Any, ...], grad: Any) -> Sequence[Any]:
    shape, dim = node.shape, node.dim_
    dim = dim % len(shape)
    return (grad.reshape(len(grad), *shape[:dim], *shape[dim + 1 :]),)


def _t(node: Any, edges: tuple[Any, ...], grad: Any) -> Sequence[Any]:
    return (grad.transpose(0, 2, 1) if grad.ndim == 3 else grad,)


def _transpose(node: Any, edges: tuple[Any, ...], grad: Any) -> Sequence[Any]:
    ndim = grad.ndim - 1
    return (grad if ndim == 0 else grad.swapaxes(node.dim0_ % ndim + 1, node.dim1_ % ndim + 1),)


def _sum(node: Any, edges: tuple[Any, ...], grad: Any) -> Sequence[Any]:
    """``x.sum()``."""
    shape = node.self_shape
    return (np.broadcast_to(grad.reshape(len(grad), *(1,) * len(shape)), (len(grad), *shape)),)


def _times_first(grad: Any, matrix: Any) -> Any:
    """``grad @ matrix`` of each row: all of them under each other are one product."""
    rows, n, k = grad.shape
    return kernels.mm(grad.reshape(rows * n, k), matrix).reshape(rows, n, matrix.shape[1])


def _times_second(matrix: Any, grad: Any) -> Any:
    """``matrix @ grad`` of each row."""
    return kernels.bmm(np.broadcast_to(matrix, (len(grad), *matrix.shape)), grad)


def _mm(node: Any, edges: tuple[Any, ...], grad: Any) -> Sequence[Any]:
    first = second = None
    if edges[0] is not None:
        first = _times_first(grad, _saved(node, "mat2").conj().T)
    if edges[1] is not None:
        second = _times_second(_saved(node, "self").conj().T, grad)
    return first, second


def _addmm(node: Any, edges: tuple[Any, ...], grad: Any) -> Sequence[Any]:
    bias = first = second = None
    alpha, beta = node.alpha_.conjugate(), node.beta_.conjugate()
    if edges[0] is not None:
        bias = grad if beta == 1 else np.multiply(grad, beta, dtype=grad.dtype)
    if edges[1] is not None:
        first = _times_first(grad, _saved(node, "mat2").conj().T)
        first = first if alpha == 1 else np.multiply(first, alpha, dtype=first.dtype)
    if edges[2] is not None:
        second = _times_second(_saved(node, "mat1").conj().T, grad)
        second = second if alpha == 1 else np.multiply(second, alpha, dtype=second.dtype)
    return bias, first, second


def _mv(node: Any, edges: tuple[Any, ...], grad: Any) -> Sequence[Any]:
    matrix = vector = None
    if edges[0] is not None:
        matrix = grad[:, :, None] * _saved(node, "vec").conj()
    if edges[1] is not None:
        vector = kernels.mm(grad, _saved(node, "self").conj())
    return matrix, vector


def _register() -> None:
    if not RULES:
        load()
    found: dict[type, Formula] = {}
    for function, record in records().items():
        if RULES.get(function) is elementwise:
            for name in record.nodes:
                found[getattr(nodes, name)] = _same
    for formula, names in (
        (_same, ("CloneBackward0",)),
        (_reshape, ("ViewBackward0", "ReshapeAliasBackward0", "SqueezeBackward0", "SqueezeBackward1")),
        (_squeeze, ("UnsqueezeBackward0",)),
        (_t, ("TBackward0",)),
        (_transpose, ("TransposeBackward0",)),
        (_sum, ("SumBackward0",)),
        (_mm, ("MmBackward0",)),
        (_addmm, ("AddmmBackward0",)),
        (_mv, ("MvBackward0",)),
    ):
        for name in names:
            found[getattr(nodes, name)] = formula
    ROWS.update(found)


__all__ = ["can_be_many", "can_run", "level_of_rows", "own_nodes", "run_rows"]
