"""How a node is run: with its hooks, for what is asked of it, and what it saved let go.

The rules stand here for every loop over the nodes of a pass: the plain one (engine.py), that of passes over several
threads (device_threads.py), and the fast one (fast_loop.py), which has the most frequent case of `run_node` written
out and calls it for all others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..core.description import NoArray
from ..core.state import ThreadState, local
from ..tensor.special import bare, boxed
from .hooks import run_post_hooks, run_pre_hooks, run_tensor_hooks
from .node import TensorNode
from .validation import validate_array, validate_tensor

if TYPE_CHECKING:
    from .graph_task import GraphTask
    from .node import Node

#: call(node, edges, grads, as_tensors) -> the gradients of the inputs
Call = Callable[["Node", tuple[Any, ...], Sequence[Any], bool], Sequence[Any]]


def run_node(
    state: ThreadState, task: GraphTask, node: Node, grads: Sequence[Any], as_tensors: bool, call: Call
) -> tuple[tuple[Any, ...], Sequence[Any]]:
    """Run a node that is ready: its edges (None where no gradient is wanted), and the gradient that goes along each.

    `call` is `call_node`, or that with somebody who watches.
    """
    state.current_node = node
    edges = node.next_edges
    if task.exec_info is not None:
        info = task.exec_info[node]
        if not info.needed and node.extras is not None:  # of a node that is called, its hooks are called with it
            grads = run_tensor_hooks(node.extras, grads, as_tensors)
            state.grad_enabled = task.create_graph
        if info.captures is not None:
            for input_nr, position in info.captures:
                task.captured[position] = grads[input_nr]  # type: ignore[index]
        if not info.needed:
            return (), ()
        edges = wanted_edges(edges, task.exec_info)
    outputs: Sequence[Any] = validated(node, call(node, edges, grads, as_tensors), as_tensors)
    if state.late_hooks:
        outputs = run_late_hooks(state, node, outputs, len(grads), as_tensors)
    if not task.keep_graph:
        node.release_variables(task.freed)  # type: ignore[arg-type]
    return edges, outputs


def call_node(node: Node, edges: tuple[Any, ...], grads: Sequence[Any], as_tensors: bool) -> Sequence[Any]:
    """Call a node, with its hooks if it has some."""
    extras = node.extras
    if extras is None:
        return apply_node(node, edges, grads, as_tensors)
    state = local.state
    recording = state.grad_enabled
    grads = run_tensor_hooks(extras, grads, as_tensors)
    grads = run_pre_hooks(extras, grads, as_tensors)
    outputs = apply_node(node, edges, grads, as_tensors)
    if extras.post_hooks:
        outputs = run_post_hooks(extras, validated(node, outputs, as_tensors), grads, as_tensors)
    state.grad_enabled = recording  # a mode that a hook has set is about this node alone
    return outputs


def apply_node(node: Node, edges: tuple[Any, ...], grads: Sequence[Any], as_tensors: bool) -> Sequence[Any]:
    """Run the formula of a node, without hooks."""
    if as_tensors:
        return node.apply_tensors(edges, grads)
    try:
        return node.apply(edges, grads)
    except NoArray:
        return apply_special(node, edges, grads)


def apply_special(node: Node, edges: tuple[Any, ...], grads: Sequence[Any]) -> Sequence[Any]:
    """A node whose formula cannot compute with a special tensor (Note [Special tensors]), a gradient or one that it has
    saved: its other form can.

    Called where the formula has raised. One that was on Tensors in any case has a reason of its own.
    """
    if isinstance(node, TensorNode):
        raise
    outputs = node.apply_tensors(edges, [None if grad is None else boxed(grad) for grad in grads])
    return [None if grad is None else bare(grad) for grad in outputs]


def validated(node: Node, outputs: Sequence[Any], as_tensors: bool) -> list[Any]:
    """What a node gave, as the nodes behind its edges expect it, wanted or not; what goes nowhere, as it is."""
    validate = validate_tensor if as_tensors else validate_array
    result = list(outputs)
    for position, edge in enumerate(node.next_edges):
        if edge is not None and result[position] is not None and not edge[0].is_sink:
            result[position] = validate(result[position], edge, node, position)
    return result


def run_late_hooks(
    state: ThreadState, node: Node, outputs: Sequence[Any], num_inputs: int, as_tensors: bool
) -> Sequence[Any]:
    """Post-hooks that were registered while the node was running. What came in may be gone: they see None for it."""
    state.late_hooks = False
    assert node.extras is not None
    return run_post_hooks(node.extras, outputs, (None,) * num_inputs, as_tensors)


def wanted_edges(edges: tuple[Any, ...], exec_info: dict[Any, Any]) -> tuple[Any, ...]:
    """`edges` without those that lead to nothing that was asked for."""
    result = []
    for edge in edges:
        info = None if edge is None else exec_info.get(edge[0])
        result.append(edge if info is not None and (info.needed or info.captures is not None) else None)
    return tuple(result)
