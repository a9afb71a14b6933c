"""The engine's loop again, for passes that nobody watches on one thread, with the calls written out.

It does what `run_pass` of engine.py does, in the same order: read that first.  `tests/autograd/test_loops.py` holds the
two against each other on random graphs.  The plain loop takes more than twice as long for a chain of small operations
(and half as long again when the pass is recorded), so each short cut here is one that was measured, alone:

* a node from which nothing is captured is called here, and directly if it has no hooks; others are left to `run_node`;
* a gradient that is already as the next node expects it is not handed to `validate_array` (6 to 9 % of a pass);
* a node that waits for one gradient gets no InputBuffer (14 %), and what arrives for a leaf that is used many
  times is added without a call (8 %);
* the node that became ready first does not go through the queue if nothing else is ready (10 %);
* what NumPy's operators make of 0-d arrays, its scalars, stays so on the way to nodes whose formulas are made of signs
  (`takes_scalars`): arithmetic on them takes a tenth of the time (a fifth of a program on numbers).
"""

from __future__ import annotations

from heapq import heappop, heappush, heappushpop
from typing import TYPE_CHECKING, Any

from numpy import asarray, dtype, float32, float64, generic, ndarray

from ..core.description import NoArray
from ..core.devices import OutOfMemoryError
from ..kernels import accumulate
from .input_buffer import InputBuffer
from .node_call import Call, apply_special, run_late_hooks, run_node, validated, wanted_edges
from .validation import validate_array, validate_tensor

if TYPE_CHECKING:
    from ..core.state import ThreadState
    from .graph_task import GraphTask


#: Scalars that stand for arrays, and the dtype of those.
_SCALARS: dict[type, Any] = {cls: dtype(cls) for cls in (float32, float64)}


def _as_scalars(node: Any, grads: Any) -> Any:
    """The gradients that a pass begins with, for a node that takes scalars."""
    grad = grads[0]
    whole = len(grads) == 1 and node.shape == () and node.dtype in _SCALARS.values()
    return (grad[()],) if whole and grad.__class__ is node.array_class is ndarray else grads


def _as_arrays(grads: Any) -> Any:
    """Gradients as all others want them."""
    return [asarray(grad) if isinstance(grad, generic) else grad for grad in grads]


def run_pass_fast(
    state: ThreadState, task: GraphTask, node: Any, grads: Any, as_tensors: bool, call: Call,
    stopped: list[Any] | None = None,
) -> None:  # fmt: skip
    """`run_pass` where `call` is `call_node`. `stopped` gets what is left of a pass that runs out of a device's memory:
    Note [Out of memory] in suspended.py."""
    outputs: Any
    grad: Any
    array: Any
    ready: Any
    buffer: Any
    entry: Any
    dependencies, not_ready, exec_info = task.dependencies, task.not_ready, task.exec_info
    keep_graph, freed, complete = task.keep_graph, task.freed, task.complete
    # As that of a ReadyQueue: (-sequence_nr, arrival, node, grads). `turn` is the arrival of the first node of a round.
    heap: list[tuple[int, int, Any, Any]] = []
    arrival = turn = 0
    if node.takes_scalars and not as_tensors:
        grads = _as_scalars(node, grads)

    outputs = following = None
    try:
        while True:
            # ------------------------------------------------------------------------------------------- run the node
            edges = node.next_edges
            if exec_info is None or (complete and edges):
                whole = True  # does it run, and hands out nothing before?
            else:
                info = exec_info[node]
                whole = info.needed and info.captures is None
                edges = () if not whole else wanted_edges(edges, exec_info)
            if whole:
                state.current_node = node
                if node.extras is not None:
                    outputs = call(node, edges, _as_arrays(grads) if node.takes_scalars else grads, as_tensors)
                elif as_tensors:
                    outputs = node.apply_tensors(edges, grads)
                else:
                    try:
                        outputs = node.apply(edges, grads)
                    except NoArray:
                        outputs = apply_special(node, edges, _as_arrays(grads) if node.takes_scalars else grads)
                if state.late_hooks:
                    outputs = run_late_hooks(state, node, validated(node, outputs, as_tensors), len(grads), as_tensors)
            elif node.extras is None and not info.needed and info.captures is not None and not node.takes_scalars:
                state.current_node = node  # a leaf whose gradient is asked for: `run_node` without the call
                for input_nr, position in info.captures:
                    task.captured[position] = grads[input_nr]  # type: ignore[index]
                outputs = ()
            else:
                if node.takes_scalars:
                    grads = _as_arrays(grads)
                edges, outputs = run_node(state, task, node, grads, as_tensors, call)

            # ------------------------------------------------------------------- hand its gradients to the next nodes
            following = None
            if edges:  # else a leaf's, which hands on and has saved nothing
                position = -1
                for edge in edges:
                    position += 1
                    if edge is None:
                        if exec_info is not None and not complete and outputs[position] is not None:
                            validated(node, outputs, as_tensors)  # what is not wanted must be right all the same
                        continue
                    successor, input_nr = edge
                    grad = outputs[position]
                    array_class = successor.array_class  # None: several inputs
                    if grad is None:
                        pass
                    elif as_tensors:
                        array = grad._memory_
                        if (
                            array.__class__ is not array_class
                            or array.shape != successor.shape
                            or array.dtype is not successor.dtype
                        ):
                            grad = validate_tensor(grad, edge, node, position)
                        array = None
                    elif (
                        grad.__class__ is not array_class
                        or grad.shape != successor.shape
                        or grad.dtype is not successor.dtype
                    ):
                        if (
                            not successor.takes_scalars
                            or successor.shape != ()
                            or _SCALARS.get(grad.__class__) is not successor.dtype
                        ):
                            grad = validate_array(grad, edge, node, position)
                    waiting = dependencies[successor]
                    if waiting == 1:
                        if array_class is not None:
                            ready = (grad,)
                        else:
                            ready = [None] * len(successor.input_metadata)
                            ready[input_nr] = grad
                    elif successor in not_ready:
                        buffer = not_ready[successor]
                        if buffer.owned == 1 and array_class is not None and grad is not None:
                            # The leaf that is used many times: InputBuffer.add without the call.
                            ready = buffer.grads[0]
                            try:
                                accumulate(ready, grad, ready)
                            except NoArray:
                                buffer.add(0, grad, as_tensors)
                        else:
                            buffer.add(input_nr, grad, as_tensors)
                        waiting = buffer.waiting - 1
                        if waiting:
                            buffer.waiting = waiting
                            continue
                        ready = buffer.grads
                        del not_ready[successor]
                    else:
                        number = 1 if array_class is not None else len(successor.input_metadata)
                        buffer = not_ready[successor] = InputBuffer(number, waiting - 1)
                        buffer.grads[input_nr] = grad
                        continue
                    if following is None:
                        following, following_grads = successor, ready
                    else:
                        arrival += 1
                        heappush(heap, (-successor.sequence_nr, arrival, successor, ready))
                if whole and not keep_graph:  # not before all has passed validation
                    node.release_variables(freed)

            # -------------------------------------------------------------------------------------- choose the next one
            # Nothing of this round may keep a gradient alive: AccumulateGrad keeps what nobody else holds.
            outputs = grad = grads = ready = buffer = None
            if following is not None:
                if heap:
                    entry = heappushpop(heap, (-following.sequence_nr, turn, following, following_grads))
                    arrival = turn = arrival + 1
                    node, grads = entry[2], entry[3]
                    entry = None
                else:
                    node, grads = following, following_grads
                following_grads = None
            elif heap:
                entry = heappop(heap)
                node, grads = entry[2], entry[3]
                entry = None
            else:
                return
    except OutOfMemoryError:
        if stopped is not None:
            left = [(one, list(given)) for _, _, one, given in heap]
            handing = []
            if outputs is None:
                left.append((node, list(grads)))
            else:
                if following is not None:
                    left.append((following, list(following_grads)))
                handing.append((node.array_class, edges[position:], outputs[position:]))
            stopped += left, handing
        raise
