"""The engine: runs a backward pass.

One call is one `GraphTask`.  First a walk over the graph counts how many gradients each node will get.  Then the
loop (`run_pass`): take the ready node that comes first, run it, add what it gives to the buffers of the next nodes, and
put those that now have everything into the queue.  There are four loops, and they do the same:

* `run_pass`, the plain one, for passes that somebody watches (anomaly mode, the log);
* `run_pass_fast` (fast_loop.py), the same with its calls written out, for all others;
* `run_on_devices` (device_threads.py), for passes whose nodes belong to several threads;
* `run_rows` (func/rows.py), for passes over many gradients at once.

The rules stand outside of them: how a node is run in node_call.py (`run_node`), what a gradient must look like in
validation.py, what becomes of one that arrives in graph_task.py (`deliver`) and input_buffer.py, which node comes
first in ready_queue.py.

Note [Arrays and Tensors]
An ordinary pass works on bare arrays: nothing is recorded, so a Tensor around each gradient would only cost.
Under ``create_graph=True`` (or when something else must see the operations, such as an open dual level) the same loop
runs the nodes' other namespace, on Tensors.

Nothing here recurses, and nothing is written to the graph, but for saved tensors that are let go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core import where
from ..core.description import NoArray
from ..core.devices import accelerators
from ..core.late import transforms
from ..core.quiet import is_quiet, once, quietly
from ..core.state import ThreadState, local, process
from ..kernels import ndarray
from ..tensor import Tensor, wrap
from ..tensor.special import bare, boxed
from .anomaly_mode import current_anomaly, explain_error
from .basic_nodes import GraphRoot
from .device_threads import has_nodes_of_devices, run_on_devices
from .edge import EdgeTuple
from .execution_log import is_logged, log, logging_each
from .fast_loop import run_pass_fast
from .forward_operators import hide_levels
from .graph_task import GraphTask, new_task
from .intercept import catch_up, learn_modes
from .node import Node, connected_by_hand, number
from .node_call import Call, call_node, run_node
from .ready_queue import ReadyQueue
from .saved_variable import freed_by
from .validation import validate_array, validate_tensor
from .worker_threads import MAX_DEPTH, pool

#: `Engine.run_backward` with its arguments checked: run_backward.py, which is made of the engine, says so.
run_as_engine: Any = None

#: What runs a pass: `run_pass` and those that stand in for it.
Loop = Callable[[ThreadState, GraphTask, Node, Sequence, bool, Call], None]


def run_pass(
    state: ThreadState, task: GraphTask, node: Node, grads: Sequence[Any], as_tensors: bool, call: Call
) -> None:
    """Run a pass. `node` is ready with `grads`; ends when nothing is ready any more.

    `call` runs a node and its hooks: `call_node`, or that with somebody who watches.
    """
    queue = ReadyQueue()
    queue.push(node, grads, task)
    del grads
    while queue:
        node, grads, _ = queue.pop()
        edges, outputs = run_node(state, task, node, grads, as_tensors, call)
        for edge, grad in zip(edges, outputs, strict=True):
            if edge is not None:
                ready = task.deliver(edge, grad, as_tensors)
                if ready is not None:
                    queue.push(edge[0], ready, task)
        # Nothing of this round may keep a gradient alive: AccumulateGrad keeps what nobody else holds.
        grads = outputs = grad = ready = None  # type: ignore[assignment]


class Engine:
    """Runs backward passes, on the thread that asks for them."""

    __slots__ = ("override_stale_capture_stream", "warn_on_accumulate_grad_stream_mismatch")

    def __init__(self) -> None:
        self.warn_on_accumulate_grad_stream_mismatch: bool = True
        self.override_stale_capture_stream: bool = False

    def execute(
        self,
        roots: Sequence[EdgeTuple],
        grads: Sequence[Any],
        keep_graph: bool,
        create_graph: bool,
        accumulate_grad: bool,
        wanted: Sequence[EdgeTuple] = (),
        outputs: Any = (),
    ) -> list[Tensor | None]:
        """Differentiate the `roots`, whose own gradients are `grads`; give back the gradients of `wanted`.

        A gradient may be a bare array if nothing intercepts operators, and it has the root's shape and dtype.
        With `accumulate_grad`, gradients end in ``.grad`` and `wanted` only restricts which. `outputs`: the tensor
        or tensors that the roots are the edges of.
        """
        if not roots:
            return [] if accumulate_grad else [None] * len(wanted)
        state = local.state
        interceptor = state.interceptor
        if interceptor is not None:
            learn_modes(state)
            interceptor = state.interceptor
        modes, observers = state.known_modes, state.observers
        outer = state.graph_task
        depth = 0 if outer is None else outer.reentrant_depth + 1
        create_graph = create_graph and not state.inference  # which records nothing, and makes inference tensors
        as_tensors = create_graph or state.inference or bool(observers and _need_tensors(observers))

        root: Any = roots[0][0]
        array: Any = grads[0]
        given: Sequence[Any] = ()
        if array.__class__ is not ndarray:
            given = grads
            try:
                array = array._numbers_
            except NoArray:
                # Of a batch: all nodes need Tensors.
                as_tensors = as_tensors or array._transparent_ or array._needs_tensors_
                array = array._memory_
        first: Sequence[Any]
        if (
            len(roots) == 1
            and array.__class__ is root.array_class  # first: `shape` and `dtype` of a custom function are the user's
            and (not as_tensors or (given and given[0].__class__ is Tensor))
            and array.shape == root.shape
            and array.dtype is root.dtype
        ):
            first = (given[0] if as_tensors else array,)  # loss.backward(): `_root` without the call
        else:
            given = [wrap(g) if g.__class__ is ndarray else g for g in grads]
            special: list[Any] = [g for g in given if g._special_ is not None]
            as_tensors = as_tensors or any(g._transparent_ or g._needs_tensors_ for g in special)
            root, first = _root(roots, given, as_tensors)
        freed = None if keep_graph else freed_by(where.user_call(3))
        task = new_task(keep_graph, create_graph, depth, freed, given)
        if wanted:
            # Nodes below everything that is wanted lead to nothing that is wanted.
            if connected_by_hand:
                number(root, anew=True)
            minimum = 0
            for edge in wanted:
                if not edge[0].next_edges:
                    break  # a leaf, below which there is nothing
            else:
                minimum = min([edge[0].topological_nr for edge in wanted])
            task.init_exec_info(task.compute_dependencies(root, minimum), wanted, accumulate_grad)
        else:
            task.compute_dependencies(root, 0)

        # Modes of this thread that a hook enters and does not leave end with the pass.
        grad_enabled, saved_tensors_hooks = state.grad_enabled, state.saved_tensors_hooks
        node_before = state.current_node
        try:
            state.grad_enabled = create_graph
            state.graph_task = task
            if observers and process.dual_levels:
                hide_levels(state, outputs, given)
            run: Loop = run_pass_fast
            call: Call = call_node
            if observers or accelerators or log.level:  # who watches the nodes, and threads that run them
                run, call = _how_to_run(state, task)
            elif as_tensors and state.batch_levels and not (create_graph or accumulate_grad or state.inference):
                rows = transforms("rows")
                run = rows.run_rows if rows.can_run(task) else run
            try:
                if depth and depth % MAX_DEPTH == 0:  # Note [Reentrant backward]
                    pool.run(once, run, state, task, root, first, as_tensors, call)
                elif is_quiet():
                    run(state, task, root, first, as_tensors, call)
                else:
                    quietly(run, state, task, root, first, as_tensors, call)
            except Exception as error:
                if process.modes:
                    explain_error(state, error)
                raise
            if task.final_callbacks is not None:
                for callback in task.final_callbacks:  # grows if a callback queues another
                    callback()
        finally:
            state.grad_enabled, state.saved_tensors_hooks = grad_enabled, saved_tensors_hooks
            if state.observers is not observers or state.interceptor is not interceptor:
                state.known_modes, state.observers, state.interceptor = modes, observers, interceptor
                if not observers and modes is not process.modes:
                    state.interceptor = catch_up
            state.graph_task, state.current_node = outer, node_before
        if accumulate_grad:
            return []
        captured = task.captured or ()
        if as_tensors:
            return list(captured)
        if getattr(task, "boxes", None) is not None:
            return [task.boxes.box(g) for g in captured]
        # A gradient that no node has changed is the caller's own tensor, with its history.
        own: dict[int, Any] = {}
        for tensor in given:
            own[id(bare(tensor))] = tensor
        results: list[Any] = []
        for g in captured:
            results.append(None if g is None else own[id(g)] if id(g) in own else boxed(g))
        return results

    def run_backward(
        self,
        tensors: Sequence[Any],
        grad_tensors: Sequence[Any],
        keep_graph: bool,
        create_graph: bool,
        inputs: Sequence[Any] | None = None,
        allow_unreachable: bool = False,
        accumulate_grad: bool = False,
    ) -> tuple[Tensor | None, ...] | None:
        """What ``backward()`` and ``grad()`` are made of in torch: the gradients of `inputs`, or all into ``.grad``.

        >>> import retrograd as torch
        >>> x = torch.tensor([1., 2.], requires_grad=True)
        >>> y = x * x
        >>> run = torch.autograd.Variable._execution_engine.run_backward
        >>> run((y,), (torch.ones(2),), True, False, (x,))
        (tensor([2., 4.]),)
        >>> run((y,), (torch.ones(2),), False, False, accumulate_grad=True); x.grad
        tensor([2., 4.])
        """
        return run_as_engine(
            tensors, grad_tensors, keep_graph, create_graph, inputs or (), allow_unreachable, accumulate_grad
        )

    @staticmethod
    def get_default_engine() -> Engine:
        """The engine: there is one."""
        return engine

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


def _root(roots: Sequence[EdgeTuple], grads: Sequence[Tensor], as_tensors: bool) -> tuple[Node, Sequence[Any]]:
    """The node to start from and its gradients: the one root itself, or a GraphRoot above them."""
    checked = [_checked(edge, grad, as_tensors) for edge, grad in zip(roots, grads, strict=True)]
    if len(roots) > 1:
        return GraphRoot(tuple(roots), checked), ()
    root, input_nr = roots[0]
    first = [None] * len(root.input_metadata)
    first[input_nr] = checked[0]
    return root, first


def _checked(edge: EdgeTuple, grad: Tensor, as_tensors: bool) -> Any:
    """The gradient of a root in the form in which gradients travel."""
    return validate_tensor(grad, edge, *edge) if as_tensors else validate_array(bare(grad), edge, *edge)


def _need_tensors(observers: Sequence[Any]) -> bool:
    """Must a pass run on Tensors even if it is not recorded, since somebody has to see its operators?"""
    return any(getattr(observer, "needs_tensors", False) for observer in observers)


def _how_to_run(state: ThreadState, task: GraphTask) -> tuple[Loop, Call]:
    """The loop of a pass when something rare may be on, and what calls its nodes."""
    call: Call = call_node
    anomaly = current_anomaly()
    if anomaly is not None:
        call = anomaly.watch(call)
    for observer in state.observers:
        around = getattr(observer, "around_nodes", None)
        if around is not None:
            call = around(call)
    if is_logged():
        call = logging_each(call)
    for observer in state.observers:
        watch_pass = getattr(observer, "watch_pass", None)  # a recording: explorer/record.py
        if watch_pass is not None:
            call = watch_pass(state, task, call)
    if accelerators and has_nodes_of_devices(task):
        task.warn_on_stream_mismatch = engine.warn_on_accumulate_grad_stream_mismatch
        return run_on_devices, call
    return run_pass_fast if call is call_node else run_pass, call


engine: Engine = Engine()
