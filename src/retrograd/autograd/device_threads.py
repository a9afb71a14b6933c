"""How the engine calls a node when something rare is on: on the thread of its device, or watched by anomaly mode.

Note [Device threads]
CPU nodes run on the thread that called ``backward()``.  Each accelerator has a thread of its own, on which the nodes
that take its gradients run (their `AccumulateGrad` included), whoever calls: work for one device is queued in one
place, in order.  The caller waits for each node, which for an accelerator means until its kernels are launched; the
device thread works on the caller's state (Note [Borrowed thread state], worker_threads.py), so modes, errors and
reentrant passes are as on the CPU.  A reentrant pass that starts on a device thread stays there with all its nodes: if
two such threads waited for each other, none would go on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..devices import accelerators, device_of_array_class
from .anomaly_mode import anomaly_of
from .state import ThreadState
from .worker_threads import pool

if TYPE_CHECKING:
    from .node import Node

#: call(node, edges, grads, as_tensors) -> the gradients of the inputs
Call = Callable[["Node", tuple, Sequence, bool], Sequence]


def special_call(state: ThreadState, call: Call) -> Call | None:
    """What a pass uses to run its nodes; None if the plain `call` will do."""
    special = _on_device_threads(state, call)
    anomaly = anomaly_of(state)
    if anomaly is not None:
        special = anomaly.watch(special)
    return None if special is call else special


def _on_device_threads(state: ThreadState, call: Call) -> Call:
    if not state.multithreading or not accelerators:
        return call

    def run(node: Node, edges: tuple, grads: Sequence, as_tensors: bool) -> Sequence:
        thread = device_thread_of(node)
        if thread is None or state.on_device_thread is not None:
            return call(node, edges, grads, as_tensors)
        state.on_device_thread = thread
        try:
            return pool.named(thread).run(call, node, edges, grads, as_tensors)
        finally:
            state.on_device_thread = None

    return run


def device_thread_of(node: Any) -> str | None:
    """The name of the thread that a node runs on; None for the CPU: the thread that calls."""
    if node.shape is not None:
        array_class = node.array_class
    elif node.num_inputs:
        array_class = node.input_metadata[0][2]
    else:
        return None
    device = device_of_array_class(array_class)
    return None if device.type == "cpu" else str(device)
