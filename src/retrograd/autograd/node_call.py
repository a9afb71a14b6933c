"""How a node is run: with its hooks, for what is asked of it, and what it saved let go.

The engine's loop has the common case of `run_node` inline; passes over several threads (device_threads.py) call it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..core.state import ThreadState, local
from .hooks import run_post_hooks, run_pre_hooks, run_tensor_hooks
from .validation import validate_array, validate_tensor

if TYPE_CHECKING:
    from .graph_task import GraphTask
    from .node import Node

#: call(node, edges, grads, as_tensors) -> the gradients of the inputs
Call = Callable[["Node", tuple, Sequence, bool], Sequence]


def run_node(
    state: ThreadState, task: GraphTask, node: Node, grads: Sequence, as_tensors: bool, call: Call
) -> tuple[tuple, Sequence]:
    """Run a node that is ready: its edges (None where no gradient is wanted) and the gradient of each."""
    edges = node.next_edges
    state.current_node = node
    if task.exec_info is not None:
        info = task.exec_info[node]
        if node.extras is not None and not info.needed:
            grads = run_tensor_hooks(node.extras, grads, as_tensors)
        if info.captures is not None:
            for input_nr, position in info.captures:
                task.captured[position] = grads[input_nr]  # type: ignore[index]
        if not info.needed:
            return (), ()
        edges = wanted_edges(edges, task.exec_info)
    outputs = call(node, edges, grads, as_tensors)
    if state.late_hooks:
        outputs = run_late_hooks(state, node, edges, outputs, len(grads), as_tensors)
    if not task.keep_graph:
        node.release_variables(task.freed)  # type: ignore[arg-type]
    return edges, outputs


def call_node(node: Node, edges: tuple, grads: Sequence, as_tensors: bool) -> Sequence:
    """Call a node, with its hooks if it has some."""
    if node.extras is not None:
        return call_with_hooks(node, edges, grads, as_tensors)
    return node.apply_tensors(edges, grads) if as_tensors else node.apply(edges, grads)


def call_with_hooks(node: Node, edges: tuple, grads: Sequence, as_tensors: bool) -> Sequence:
    extras: Any = node.extras
    state = local.state
    recording = state.grad_enabled
    grads = run_tensor_hooks(extras, grads, as_tensors)
    grads = run_pre_hooks(extras, grads, as_tensors)
    outputs: Sequence = node.apply_tensors(edges, grads) if as_tensors else node.apply(edges, grads)
    if extras.post_hooks:
        outputs = run_post_hooks(extras, _validated(node, edges, outputs, as_tensors), grads, as_tensors)
    state.grad_enabled = recording  # a mode that a hook has set is about this node alone
    return outputs


def run_late_hooks(
    state: ThreadState, node: Node, edges: tuple, outputs: Sequence, num_inputs: int, as_tensors: bool
) -> Sequence:
    """Post-hooks that were registered while the node was running. What came in may be gone: they see None for it."""
    state.late_hooks = False
    extras: Any = node.extras
    return run_post_hooks(extras, _validated(node, edges, outputs, as_tensors), (None,) * num_inputs, as_tensors)


def wanted_edges(edges: tuple, exec_info: dict) -> tuple:
    """`edges` without those that lead to nothing that was asked for."""
    result = []
    for edge in edges:
        info = None if edge is None else exec_info.get(edge[0])
        result.append(edge if info is not None and (info.needed or info.captures is not None) else None)
    return tuple(result)


def _validated(node: Node, edges: tuple, outputs: Sequence, as_tensors: bool) -> list:
    """What a node gave, as the next nodes expect it: hooks see it so (and what goes nowhere, as it is)."""
    validate = validate_tensor if as_tensors else validate_array
    return [
        grad if grad is None or edge is None else validate(grad, edge[0].input_metadata[edge[1]], node, position)
        for position, (edge, grad) in enumerate(zip(edges, outputs, strict=True))
    ]
