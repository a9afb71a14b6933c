"""The engine: runs a backward pass.

One call is one `GraphTask`.  First a walk over the graph counts how many gradients each node will get.  Then the
loop: take the ready node that comes first, run it, check what it gives against what the next nodes expect, add it
to their buffers, and put those that now have everything into the queue.

Note [Arrays and Tensors]
An ordinary pass works on bare arrays: nothing is recorded, so a Tensor around each gradient would only cost.
Under ``create_graph=True`` (or when something else must see the operations, such as an open dual level) the same loop
runs the nodes' other namespace, on Tensors.

Nothing here recurses, and nothing is written to the graph, but for saved tensors that are let go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush, heappushpop
from typing import Any

from ..core import where
from ..core.devices import accelerators
from ..core.quiet import is_quiet, once, quietly
from ..core.state import ThreadState, local
from ..kernels import accumulate
from ..tensor import Tensor, wrap
from .anomaly_mode import anomaly_of, explain_error
from .basic_nodes import GraphRoot
from .device_threads import needs_other_threads, run_on_devices
from .edge import EdgeTuple
from .execution_log import logged_at, logging_each
from .graph_task import GraphTask
from .hooks import run_tensor_hooks
from .input_buffer import InputBuffer
from .node import Node
from .node_call import call_node, call_with_hooks, run_late_hooks, wanted_edges
from .ready_queue import Entry
from .saved_variable import Freed
from .validation import validate_array, validate_tensor
from .worker_threads import MAX_DEPTH, pool


class Engine:
    """Runs backward passes, on the thread that asks for them."""

    __slots__ = ("override_stale_capture_stream", "warn_on_accumulate_grad_stream_mismatch")

    def __init__(self) -> None:
        self.warn_on_accumulate_grad_stream_mismatch = True
        self.override_stale_capture_stream = False

    def execute(
        self,
        roots: Sequence[EdgeTuple],
        grads: Sequence[Tensor],
        keep_graph: bool,
        create_graph: bool,
        accumulate_grad: bool,
        wanted: Sequence[EdgeTuple] = (),
        outputs: Any = (),
    ) -> list[Tensor | None]:
        """Differentiate the `roots`, whose own gradients are `grads`; give back the gradients of `wanted`.

        With `accumulate_grad`, gradients end in ``.grad`` and `wanted` only restricts which. `outputs`: the tensor
        or tensors that the roots are the edges of.
        """
        if not roots:
            return [] if accumulate_grad else [None] * len(wanted)
        state = local.state
        outer = state.graph_task
        depth = 0 if outer is None else outer.reentrant_depth + 1
        freed = None if keep_graph else Freed(where.user_location(2))
        create_graph = create_graph and not state.inference  # which records nothing, and makes inference tensors
        as_tensors = create_graph or state.needs_tensors or state.inference
        task = GraphTask(keep_graph, create_graph, depth, freed)

        root: Any = roots[0][0]
        array = grads[0]._data
        first: Sequence
        if (
            len(roots) == 1
            and not as_tensors
            and array.__class__ is root.array_class  # first: `shape` and `dtype` of a custom function are the user's
            and array.shape == root.shape
            and array.dtype is root.dtype
        ):
            first = (array,)  # loss.backward(): `_root` without the call
        else:
            root, first = _root(roots, grads, as_tensors)
        if wanted:
            # Nodes below everything that is wanted lead to nothing that is wanted.
            minimum = min(edge[0].topological_nr for edge in wanted)
            task.init_exec_info(task.compute_dependencies(root, minimum), wanted, accumulate_grad)
        else:
            task.compute_dependencies(root, 0)

        # Modes that a hook enters and does not leave end with the pass.
        modes = state.grad_enabled, state.saved_tensors_hooks, state.observers, state.interceptor
        node_before = state.current_node
        try:
            state.grad_enabled = create_graph
            state.graph_task = task
            if as_tensors and state.dual_levels:
                from .forward_operators import hide_levels

                hide_levels(state, outputs, grads)
            run, call = _run, None
            if state.observers or accelerators or logged_at:  # who watches the nodes, and threads that run them
                run, call = _how_to_run(state, task)
            try:
                if depth and depth % MAX_DEPTH == 0:  # Note [Reentrant backward]
                    pool.run(once, run, state, task, root, first, as_tensors, call)
                elif is_quiet():
                    run(state, task, root, first, as_tensors, call)
                else:
                    quietly(run, state, task, root, first, as_tensors, call)
            except Exception as error:
                if state.observers:
                    explain_error(state, error)
                raise
            if task.final_callbacks is not None:
                for callback in task.final_callbacks:  # grows if a callback queues another
                    callback()
        finally:
            state.grad_enabled, state.saved_tensors_hooks, state.observers, state.interceptor = modes
            state.graph_task, state.current_node = outer, node_before
        if accumulate_grad:
            return []
        captured = task.captured or ()
        if as_tensors:
            return list(captured)
        # A gradient that no node has changed is the caller's own tensor, with its history.
        given = {id(g._data): g for g in grads}
        return [None if g is None else given[id(g)] if id(g) in given else wrap(g) for g in captured]

    def queue_callback(self, callback: Callable[[], None]) -> None:
        """Call ``callback()`` when the backward pass that this thread is running has finished.

        Of passes inside passes, it is the innermost one. A callback may queue others. None runs if the pass fails.

        >>> import retrograd as torch
        >>> y = torch.ones(1, requires_grad=True) * 2
        >>> queue = torch.autograd.Variable._execution_engine.queue_callback
        >>> handle = y.register_hook(lambda grad: queue(lambda: print("done")))
        >>> y.backward()
        done
        """
        task = local.state.graph_task
        if task is None:
            raise RuntimeError("Final callbacks can only be installed during backward pass.")
        if task.final_callbacks is None:
            task.final_callbacks = []
        task.final_callbacks.append(callback)

    def is_checkpoint_valid(self) -> bool:
        """May a reentrant checkpoint run now? Not in a pass that computes only some gradients (``inputs=``)."""
        task = local.state.graph_task
        return task is None or task.exec_info is None


def _root(roots: Sequence[EdgeTuple], grads: Sequence[Tensor], as_tensors: bool) -> tuple[Node, Sequence]:
    """The node to start from and its gradients: the one root itself, or a GraphRoot above them."""
    if len(roots) == 1:
        root, input_nr = roots[0]
        first = _checked(root, input_nr, grads[0], as_tensors)
        if root.array_class is not None:
            return root, (first,)
        several = [None] * len(root.input_metadata)
        several[input_nr] = first
        return root, several
    checked = [_checked(node, input_nr, grad, as_tensors) for (node, input_nr), grad in zip(roots, grads)]
    return GraphRoot(tuple(roots), checked), ()


def _checked(node: Node, input_nr: int, grad: Tensor, as_tensors: bool) -> Any:
    """The gradient of a root in the form in which gradients travel."""
    if as_tensors:
        return validate_tensor(grad, node.input_metadata[input_nr], node, input_nr)
    array = grad._data
    if node.array_class is None or array.shape != node.shape or array.dtype is not node.dtype:
        return validate_array(array, node.input_metadata[input_nr], node, input_nr)
    return array


def _how_to_run(state: ThreadState, task: GraphTask) -> tuple[Any, Any]:
    """The loop of a pass when something rare is on, and what calls its nodes (None: nothing special)."""
    anomaly = anomaly_of(state)
    call: Any = None if anomaly is None else anomaly.watch(call_node)
    if logged_at:
        call = logging_each(call or call_node)
    return run_on_devices if accelerators and needs_other_threads(state, task) else _run, call


def _run(state: ThreadState, task: GraphTask, node: Any, grads: Any, as_tensors: bool, call: Any) -> None:
    """The loop. `node` is ready with `grads`; ends when nothing is ready any more.

    `call` runs a node when something rare is on, see `_how_to_run`.
    """
    outputs: Any
    grad: Any
    ready: Any
    buffer: Any
    entry: Any
    captured: Any = task.captured
    dependencies, not_ready, exec_info = task.dependencies, task.not_ready, task.exec_info
    keep_graph, freed, depth = task.keep_graph, task.freed, -task.reentrant_depth
    heap: list[Entry] = []  # as that of a ReadyQueue
    arrival = 0
    validate = validate_tensor if as_tensors else validate_array

    while True:
        # ------------------------------------------------------------------------------------------- run the node
        edges = node.next_edges
        extras = node.extras
        if exec_info is None:
            needed = True
        else:
            info = exec_info[node]
            needed = info.needed
            # As in `run_node`. Tensor hooks run here only if the node itself will not: they run once.
            if extras is not None and not needed:
                grads = run_tensor_hooks(extras, grads, as_tensors)
                state.grad_enabled = task.create_graph
            if info.captures is not None:
                for input_nr, position in info.captures:
                    captured[position] = grads[input_nr]
            if needed:
                edges = wanted_edges(edges, exec_info)
        if needed:
            state.current_node = node
            if extras is None and call is None:
                outputs = node.apply_tensors(edges, grads) if as_tensors else node.apply(edges, grads)
            elif call is None:
                outputs = call_with_hooks(node, edges, grads, as_tensors)
            else:
                outputs = call(node, edges, grads, as_tensors)
            if state.late_hooks:
                outputs = run_late_hooks(state, node, edges, outputs, len(grads), as_tensors)
            if not keep_graph:
                node.release_variables(freed)
        else:
            edges = ()

        # ----------------------------------------------------------------------- hand its gradients to the next nodes
        following = None
        if edges:
            position = -1
            for edge in edges:
                position += 1
                if edge is None:
                    continue
                successor, input_nr = edge
                grad = outputs[position]
                array_class = successor.array_class  # None: several inputs
                if grad is not None and (
                    as_tensors
                    or grad.__class__ is not array_class
                    or grad.shape != successor.shape
                    or grad.dtype is not successor.dtype
                ):
                    grad = validate(grad, successor.input_metadata[input_nr], node, position)
                if successor in not_ready:
                    buffer = not_ready[successor]
                    if buffer.owned == 1 and array_class is not None and grad is not None:
                        # The leaf that is used many times: InputBuffer.add without the call.
                        ready = buffer.grads[0]
                        accumulate(ready, grad, ready)
                    else:
                        buffer.add(input_nr, grad, as_tensors)
                    waiting = buffer.waiting - 1
                    if waiting:
                        buffer.waiting = waiting
                        continue
                    ready = buffer.grads
                    del not_ready[successor]
                else:
                    waiting = dependencies[successor]
                    if waiting > 1:
                        number = 1 if array_class is not None else len(successor.input_metadata)
                        buffer = not_ready[successor] = InputBuffer(number, waiting - 1)
                        buffer.grads[input_nr] = grad
                        continue
                    if array_class is not None:
                        ready = (grad,)
                    else:
                        ready = [None] * len(successor.input_metadata)
                        ready[input_nr] = grad
                if following is None:
                    following, following_grads = successor, ready
                else:
                    arrival += 1
                    heappush(heap, (1, depth, -successor.sequence_nr, arrival, successor, ready, task))

        # ------------------------------------------------------------------------------------------ choose the next one
        # Nothing of this round may keep a gradient alive: AccumulateGrad keeps what nobody else holds.
        outputs = grad = grads = ready = buffer = None
        if following is not None:
            if heap:
                # It became ready first: a negative number puts it before its equals (two leaves of one node).
                arrival += 1
                entry = heappushpop(
                    heap, (1, depth, -following.sequence_nr, -arrival, following, following_grads, task)
                )
                node, grads = entry[4], entry[5]
                entry = None
            else:
                node, grads = following, following_grads
            following_grads = None
        elif heap:
            entry = heappop(heap)
            node, grads = entry[4], entry[5]
            entry = None
        else:
            return


engine = Engine()
