"""Backward passes over several devices: CPU nodes on the thread that called, each accelerator's nodes on its own.

Note [Device threads]
Each accelerator has one thread, which runs the nodes that take its gradients (their `AccumulateGrad` included),
whoever calls ``backward()``: work for one device is queued in one place, in the order of `ReadyQueue`.  The threads of
a pass run at the same time; what they share (the buffers of waiting nodes, the count of nodes that are queued or
running) is in one `DevicePass`, behind its lock.  A pass all of whose nodes belong to the calling thread does not
come here: the engine's loop runs it, without a lock.  The same loop runs a pass whose nodes all belong to one stream of
one device and in which no code of a user runs, which alone could tell the thread (`run_whole`).  Without threads
(``set_multithreading_enabled(False)``) all nodes run on the calling thread, still each on its stream: Note [Streams] in
streams.py.

Modes: each node gets a copy of the state that the calling thread had when the pass began (grad mode, anomaly mode,
saved-tensor hooks, dual levels, ...) and runs in a copy of its context, so that what a hook enters and does not leave
ends with the node.  Sequence numbers are those of the thread that the node runs on.

Errors: the first one ends the pass; nodes that are queued are dropped, those that are running finish, and the caller
gets the error.

Reentrant passes: a pass that starts on a device thread keeps that thread busy, so the thread goes on to serve its
queue from within, until the inner pass is done.  (Two such threads that only waited for each other's nodes would
wait for ever.)  The CPU nodes of such a pass run on that thread as well.

Threads are daemons and are started when first used; a forked child starts its own.  A thread ends when its queue says
so (the shutdown task, which comes before everything else): when its device goes, and when the interpreter does.
"""

from __future__ import annotations

import atexit
import contextvars
import os
import threading
from collections.abc import Sequence
from typing import Any

from ..core.devices import OutOfMemoryError, device_of_array_class, when_a_device_goes
from ..core.state import ThreadState, local, process
from . import suspended
from .accumulate_grad import AccumulateGrad
from .anomaly_mode import explain_error
from .fast_loop import run_pass_fast
from .graph_task import GraphTask
from .intercept import learn_modes
from .node import Node
from .node_call import Call, call_node, run_node
from .ready_queue import SharedReadyQueue
from .streams import Leaves, class_of_node, hand_over, on_stream_of, place_of_class


def device_thread_of(node: Any) -> str | None:
    """The name of the thread that a node runs on; None for the CPU: the thread that calls."""
    array_class = node.array_class
    classes = (array_class,) if array_class is not None else [metadata[2] for metadata in node.input_metadata]
    for array_class in classes:
        device = device_of_array_class(array_class)
        if device.type != "cpu":
            return str(device)
    return None


def _classes(task: GraphTask, root: Any) -> set[Any]:
    """The classes of all arrays that the nodes of a pass take."""
    found: set[Any] = {node.array_class for node in task.dependencies}
    found.add(root.array_class)
    if None in found:
        found.discard(None)
        for node in (root, *task.dependencies):
            if node.array_class is None:
                found.update(metadata[2] for metadata in node.input_metadata)
    return found


def has_nodes_of_devices(task: GraphTask) -> bool:
    """Does a pass have nodes that do not belong to the CPU?"""
    return any(device_of_array_class(one).type != "cpu" for one in _classes(task, task.root))


def run_on_devices(
    state: ThreadState, task: GraphTask, node: Node, grads: Sequence[Any], as_tensors: bool, call: Call
) -> None:
    """The engine's loop over several threads; the arguments are those of the plain one."""
    before = suspended.take(task, as_tensors) if suspended.passes else None
    if before is None and call is call_node and node.input_metadata:  # one root, whose stream has its gradient
        classes = _classes(task, node)
        if len(classes) == 1 and run_whole(state, task, node, grads, as_tensors, classes.pop()):
            return
    run = DevicePass(state, task, as_tensors, call)
    try:
        if before is not None:
            run.go_on(before)
        else:
            run.outstanding = 1
            for grad in grads:
                if grad is not None:
                    hand_over(grad, node, False)
            grad = None
            run.queue_for(node).push(node, list(grads), run)
        del grads  # AccumulateGrad steals what nobody else holds
        run.finish()
    except OutOfMemoryError:
        suspended.suspend(task, run.left, run.handing, run.reached, as_tensors)
        raise
    run.leaves.join(task.captured)


def run_whole(
    state: ThreadState, task: GraphTask, node: Node, grads: Sequence[Any], as_tensors: bool, array_class: Any
) -> bool:
    """A pass all of whose nodes belong to one stream of one device, and in which no code of a user runs: nobody can
    tell on which thread, and it is this one, by the engine's own loop. False: it is to be run node by node."""
    if place_of_class(array_class) is None or node.extras is not None:
        return False
    nodes = task.dependencies
    for one in nodes:
        if one.extras is not None:
            return False
    reached = [suspended.before_leaf(one) for one in nodes if one.__class__ is AccumulateGrad]
    if _runs_users_code(state, node, nodes, reached):
        return False
    for grad in grads:
        if grad is not None:
            hand_over(grad, node, False)
    grad = None
    stopped: list[Any] = []
    place = place_of_class(array_class)
    adding = _adding(nodes) if task.exec_info is None and not as_tensors else None
    if adding is not None:
        place.adds_to(adding)
    try:
        with on_stream_of(array_class):
            run_pass_fast(state, task, node, grads, as_tensors, call_node, stopped)
    except OutOfMemoryError:
        if stopped:
            left, handing = stopped
            suspended.suspend(task, left, handing, reached, as_tensors)
        raise
    finally:
        if adding is not None:
            place.adds_to(None)
    leaves = Leaves()
    leaves.classes[array_class] = None
    leaves.join(task.captured)
    return True


def _adding(nodes: dict[Any, int]) -> set[Any] | None:
    """The nodes of a pass that add what they get to something, and those that hand it on to such a leaf: Note [Pending
    gradients] in arrays/own/pending.py."""
    found = set()
    for one, count in nodes.items():
        meta = one.variable._grad_meta_ if one.__class__ is AccumulateGrad else None
        if count > 1 or (meta is not None and meta.grad is not None):
            found.add(one)
    if found:
        turning = [one for one in nodes if one.__class__.__name__ == "TBackward0"]
        found.update([one for one in turning if one.next_edges[0] is not None and one.next_edges[0][0] in found])
    return found or None


#: Classes of nodes that run none but our own code, and those of which nobody knows.
_known_nodes: dict[type, bool] = {}


def _runs_users_code(state: ThreadState, root: Node, nodes: Any, leaves: list[Any]) -> bool:
    """May something in a pass without hooks look at the thread that it runs on: a node, or a hook of a leaf?"""
    if process.modes or state.saved_tensors_hooks:
        return True
    for kind in {one.__class__ for one in nodes} | {root.__class__}:
        known = _known_nodes.get(kind)
        if known is None:
            known = _known_nodes[kind] = kind.__module__.startswith("retrograd._generated.") or kind is AccumulateGrad
        if not known:
            return True
    return any(leaf.variable._grad_meta_.post_accumulate_grad_hooks is not None for leaf, _ in leaves)


class DevicePass:
    """One backward pass while it runs on several threads: Note [Device threads]."""

    def __init__(self, state: ThreadState, task: GraphTask, as_tensors: bool, call: Call) -> None:
        self.task = task
        # Otherwise made at their first use, which two threads could have at once.
        if task.final_callbacks is None:
            task.hook_data, task.final_callbacks = {}, []
        self.as_tensors = as_tensors
        self.call = call
        self.reentrant_depth: int = task.reentrant_depth
        self.modes: ThreadState = state.copy()
        self.context: contextvars.Context = contextvars.copy_context()
        self.lock: Any = threading.Lock()
        #: How many nodes are queued or running: the pass is done when none is.
        self.outstanding: int = 0
        self.done: bool = False
        #: The first error; nodes that are still queued when there is one are dropped.
        self.error: BaseException | None = None
        self.failed: bool = False
        self.told_to_stop: bool = False
        self.multithreading: Any = state.multithreading
        self.warn: bool = getattr(task, "warn_on_stream_mismatch", False)
        self.leaves: Leaves = Leaves()
        #: What is left of it when it runs out of memory: Note [Out of memory].
        self.left: list[tuple[Node, list[Any]]] = []
        self.handing: list[tuple[Any, Any, Any]] = []
        self.reached: list[tuple[Any, Any]] = []
        #: What the calling thread serves: its CPU nodes, and on a device thread that device's nodes of all passes.
        name = state.on_device_thread
        self.own_queue: SharedReadyQueue = SharedReadyQueue() if name is None else threads.queue_of(name)

    def queue_for(self, node: Node) -> SharedReadyQueue:
        name = device_thread_of(node) if self.multithreading else None
        return self.own_queue if name is None else threads.queue_of(name)

    def go_on(self, before: suspended.Suspended) -> None:
        """Queue what is left of a pass that ran out of memory."""
        self.outstanding = len(before.left) + len(before.handing)
        left, before.left = before.left, []
        for node, grads in left:
            self.queue_for(node).push(node, grads, self)
        for array_class, edges, outputs in before.handing:
            self.run(_Handing(array_class, edges, outputs), [])

    def finish(self) -> None:
        """Run the calling thread's share until every thread is done."""
        own = self.own_queue
        try:
            while not self.done:
                if not serve(own):  # for the device thread, below this pass on its stack
                    self.told_to_stop = True
            if self.error is not None:
                raise self.error
        except BaseException:
            # Of an interrupt, the other threads hear this way. What failed has been explained where it ran.
            self.failed = True
            local.state.current_node = None
            raise
        finally:
            self.error = None  # no circle of error, traceback, frame, pass
            if self.told_to_stop:
                own.push_shutdown()

    def run(self, node: Node | _Handing, grads: list[Any]) -> None:
        """Run one node on this thread, and queue those that are ready then. `grads` is emptied."""
        if self.failed:
            if isinstance(self.error, OutOfMemoryError):
                if isinstance(node, _Handing):
                    self.handing.append((node.array_class, node.edges, node.outputs))
                else:
                    self.left.append((node, grads[:]))
        else:
            before = local.state
            state = local.state = self.modes.copy()
            state.on_device_thread, state.sequence_nr = before.on_device_thread, before.sequence_nr
            learn_modes(state)
            try:
                # A copy: a context can be entered only once at a time, and threads have it in common.
                self.context.copy().run(self._run, state, node, grads)
            except BaseException as error:
                with self.lock:
                    if not self.failed:
                        self.failed, self.error = True, error
            finally:
                before.sequence_nr = state.sequence_nr
                local.state = before
        with self.lock:
            self.outstanding -= 1
            last = self.done = self.outstanding == 0
        if last:  # one thread alone wakes the caller: a second entry would stay in its queue
            self.own_queue.wake(self)

    def drop(self, node: Node, grads: list[Any], why: str) -> None:
        """A node cannot run: the pass ends."""
        with self.lock:
            if not self.failed:
                self.failed, self.error = True, RuntimeError(why)
        self.run(node, grads)

    def _run(self, state: ThreadState, node: Node | _Handing, grads: list[Any]) -> None:
        try:
            if isinstance(node, _Handing):
                with on_stream_of(node.array_class):
                    self._hand_on(node.array_class, node.edges, node.outputs)
                return
            given: Any = tuple(grads)
            grads.clear()
            leaf = suspended.before_leaf(node)
            with on_stream_of(class_of_node(node)):
                try:
                    edges, outputs = run_node(state, self.task, node, given, self.as_tensors, self.call)
                except OutOfMemoryError:
                    self.left.append((node, list(given)))
                    raise
                del given
                if leaf is not None:
                    self.reached.append(leaf)
                info = None if self.task.exec_info is None else self.task.exec_info.get(node)
                if not node.next_edges or (info is not None and info.captures is not None):
                    self.leaves.add(node)
                self._hand_on(class_of_node(node), edges, outputs)
        except Exception as error:
            if process.modes:
                explain_error(state, error)
            raise

    def _hand_on(self, made_on: Any, edges: tuple[Any, ...], outputs: Sequence[Any]) -> None:
        """Add what a node gave to the buffers of the next ones, and queue those that are ready then."""
        for position, (edge, grad) in enumerate(zip(edges, outputs, strict=True)):
            if edge is None:
                continue
            if grad is not None:
                hand_over(grad, edge[0], self.warn)
            with self.lock, on_stream_of(class_of_node(edge[0])):
                try:
                    ready = self.task.deliver(edge, grad, self.as_tensors)
                except OutOfMemoryError:
                    self.handing.append((made_on, edges[position:], outputs[position:]))
                    raise
                if ready is None:
                    continue
                self.outstanding += 1
            self.queue_for(edge[0]).push(edge[0], ready, self)


class _Handing:
    """In the place of a node: gradients that are still to be handed on."""

    def __init__(self, array_class: Any, edges: Any, outputs: Any) -> None:
        self.array_class, self.edges, self.outputs = array_class, edges, outputs


def serve(queue: SharedReadyQueue) -> bool:
    """Wait for the next entry of a queue and see to it; False if it says to stop."""
    node, grads, run = queue.pop()
    if node is not None:
        run.run(node, grads)
    return run is not None


class DeviceThreads:
    """The threads of the accelerators, each with its queue."""

    def __init__(self) -> None:
        self.reset()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.reset)
        when_a_device_goes.append(lambda device: self.end(str(device)))
        atexit.register(self.end_all)

    def reset(self) -> None:
        """Forget all threads: a forked child does not have them."""
        self.lock: Any = threading.Lock()
        self.queues: dict[str, SharedReadyQueue] = {}
        self.running: dict[str, threading.Thread] = {}

    def queue_of(self, name: str) -> SharedReadyQueue:
        """The queue of a device, whose thread is running."""
        queue = self.queues.get(name)
        if queue is None:
            with self.lock:
                queue = self.queues.get(name)
                if queue is None:
                    queue = SharedReadyQueue()
                    title = f"retrograd: {name}"
                    thread = threading.Thread(target=_work, args=(name, queue), name=title, daemon=True)
                    thread.start()
                    self.queues[name], self.running[name] = queue, thread
        return queue

    def end(self, name: str) -> None:
        """End the thread of a device, when it has done the node that it is running; what is queued is not done."""
        with self.lock:
            queue, thread = self.queues.pop(name, None), self.running.pop(name, None)
        if queue is not None and thread is not None:
            queue.push_shutdown()
            if thread is not threading.current_thread():
                thread.join(timeout=10)

    def end_all(self) -> None:
        """End all threads: the interpreter is about to."""
        for name in list(self.queues):
            self.end(name)


def _work(name: str, queue: SharedReadyQueue) -> None:
    local.state.on_device_thread = name
    while serve(queue):
        pass
    while queue:
        node, grads, run = queue.pop()
        if node is not None:
            run.drop(node, grads, f"the device {name} has gone while a backward pass was waiting for its thread")


threads: DeviceThreads = DeviceThreads()
