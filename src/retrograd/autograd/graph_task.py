"""GraphTask: one call of ``backward()`` or ``grad()``.

It holds what the run needs to know of the graph without writing to it, so that several threads can run through the
same nodes at once: how many gradients each node still waits for, and what has arrived so far.

When only some gradients are asked for (``inputs=``), `exec_info` says which nodes lie on a path to them.
"""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Any

from ..core.state import local
from ..core.where import Location
from .accumulate_grad import AccumulateGrad
from .boxes import Boxes
from .input_buffer import InputBuffer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..tensor import Tensor
    from .edge import EdgeTuple
    from .node import Node
    from .saved_variable import Freed

_ids = count()  # gives no number twice without the GIL either: test_threads.py checks it


class ExecInfo:
    """What a selective run does with one node."""

    __slots__ = ("captures", "needed")

    def __init__(self) -> None:
        #: Run the node: a wanted gradient lies behind it.
        self.needed: bool = False
        #: (input_nr, position in the result of ``grad()``): gradients to hand out before the node runs.
        self.captures: list[tuple[int, int]] | None = None

    @property
    def should_execute(self) -> bool:
        return self.needed or self.captures is not None


_NEEDED = ExecInfo()
_NEEDED.needed = True


class GraphTask:
    """The state of one backward pass; `new_task` makes it."""

    keep_graph: bool
    #: Record the backward pass itself.
    create_graph: bool
    #: How many backward passes of this thread are waiting for this one.
    reentrant_depth: int
    #: Put into the slots of nodes whose saved tensors this run releases.
    freed: Freed | None
    #: The gradients of the roots, as the caller has them.
    given: Sequence[Tensor]
    id: int
    dependencies: dict[Node, int]
    not_ready: dict[Node, InputBuffer]
    exec_info: dict[Node, ExecInfo] | None
    captured: list[Any] | None
    #: Of a selective run: does every edge lead to something that is wanted, a leaf? Then every node with edges runs.
    complete: bool
    final_callbacks: list[Callable[[], None]] | None
    #: The node that the run starts from, and how many nodes below it have no edges; set when dependencies are counted.
    root: Node
    leaves: int
    #: What hooks on several tensors have seen of this run, see graph.py; not there until one asks.
    hook_data: dict[Any, Any]
    #: Warn of a gradient that comes to a leaf from another stream: set for passes over devices.
    warn_on_stream_mismatch: bool
    #: What hooks have seen of its gradients; not there until one sees something.
    boxes: Boxes

    __slots__ = (
        "__weakref__",
        "boxes",
        "captured",
        "complete",
        "create_graph",
        "dependencies",
        "exec_info",
        "final_callbacks",
        "freed",
        "given",
        "hook_data",
        "id",
        "keep_graph",
        "leaves",
        "not_ready",
        "reentrant_depth",
        "root",
        "warn_on_stream_mismatch",
    )


    @property
    def graph_roots(self) -> list[Node]:
        """The nodes of the tensors that are differentiated."""
        if self.root.input_metadata:
            return [self.root]
        return [edge[0] for edge in self.root.next_edges if edge is not None]  # of a GraphRoot

    @property
    def nodes_in_graph(self) -> set[Node]:
        """All nodes of the pass: below the roots, and those."""
        return {*self.dependencies, *self.graph_roots}

    @property
    def captured_vars(self) -> list[Any] | None:
        """The gradients that ``grad()`` will give back, as far as they are known."""
        return self.captured

    #: The streams on which leaves got gradients: arrays of NumPy have none.
    leaf_streams: frozenset[Any] = frozenset()

    def deliver(self, edge: EdgeTuple, grad: Any, as_tensors: bool) -> Sequence[Any] | None:
        """Add `grad` to what the node at `edge` has got; all its gradients, if this was the last that it waited for."""
        node, input_nr = edge
        buffer = self.not_ready.get(node)
        if buffer is None:
            buffer = self.not_ready[node] = InputBuffer(len(node.input_metadata), self.dependencies[node])
        buffer.add(input_nr, grad, as_tensors)
        buffer.waiting -= 1
        if buffer.waiting:
            return None
        del self.not_ready[node]
        return buffer.grads

    @property
    def called_at(self) -> Location | None:
        return None if self.freed is None else self.freed.where

    def will_execute(self, node: Node) -> bool:
        """Does this run reach `node`?"""
        if self.exec_info is None:
            return node in self.dependencies or node is self.root
        info = self.exec_info.get(node)
        return info is not None and info.should_execute

    def boxes_of_hooks(self) -> Boxes:
        """The Tensors in which hooks see the gradients of this run."""
        try:
            return self.boxes
        except AttributeError:
            self.boxes = Boxes(self.given)
            return self.boxes

    def of_hook(self, hook: Any, make: Callable[[], Any]) -> Any:
        """What `hook` keeps about this run, made by `make` when it first asks."""
        try:
            data = self.hook_data
        except AttributeError:
            data = self.hook_data = {}
        if hook not in data:
            data[hook] = make()
        return data[hook]

    def execution_order(self) -> list[Node]:
        """The nodes of this run in the order in which the engine takes them."""
        waiting = {node: 0 for node in self.dependencies}
        heap: list[tuple[int, int, Any]] = [(0, 0, self.root)]
        order: list[Node] = []
        number = 0
        while heap:
            node = heappop(heap)[2]
            if node.input_metadata:  # not the GraphRoot
                order.append(node)
            for edge in node.next_edges:
                if edge is None or edge[0] not in waiting:
                    continue
                successor = edge[0]
                info = None if self.exec_info is None else self.exec_info.get(successor)
                if self.exec_info is not None and (info is None or not info.should_execute):
                    continue
                waiting[successor] += 1
                if waiting[successor] == self.dependencies[successor]:
                    number += 1
                    heappush(heap, (-successor.sequence_nr, number, successor))
        return order

    def compute_dependencies(self, root: Node, min_topological_nr: int) -> list[Node]:
        """Count, for each node below `root`, the edges that lead to it; give the nodes back."""
        self.root = root
        dependencies = self.dependencies
        seen = [root]
        leaves = 0
        sinks = False
        for node in seen:  # grows while it is walked
            edges = node.next_edges
            if not edges:
                leaves += 1
                if node.__class__ is not AccumulateGrad and node.is_sink:
                    sinks = True
            for edge in edges:
                if edge is None:
                    continue
                successor = edge[0]
                if successor in dependencies:
                    dependencies[successor] += 1
                elif not min_topological_nr or successor.topological_nr >= min_topological_nr:
                    dependencies[successor] = 1
                    seen.append(successor)
        self.leaves = leaves
        if sinks:
            self._leave_out_sinks(seen)
        return seen

    def _leave_out_sinks(self, nodes: Sequence[Node]) -> None:
        """Run everything but dead ends, so that no formula computes a gradient for one."""
        self.exec_info = {node: ExecInfo() for node in nodes}
        for node, info in self.exec_info.items():
            info.needed = not node.is_sink

    def init_exec_info(self, nodes: Sequence[Node], wanted: Sequence[EdgeTuple], accumulate_grad: bool) -> None:
        """Mark the nodes that lead to the `wanted` edges. `nodes` are all those below the roots."""
        exec_info: dict[Node, ExecInfo] = {}
        self.exec_info = exec_info
        leaves = 0  # of those that are wanted; -1: something else is wanted, too
        for position, (node, input_nr) in enumerate(wanted):
            info = exec_info.get(node)
            if info is None:
                info = exec_info[node] = ExecInfo()
                if node.next_edges:
                    leaves = -1
                elif leaves >= 0 and node in self.dependencies:
                    leaves += 1
            if accumulate_grad:
                info.needed = True
            elif info.captures is None:
                info.captures = [(input_nr, position)]
            else:
                info.captures.append((input_nr, position))
        if not accumulate_grad:
            self.captured = [None] * len(wanted)
        if leaves == self.leaves:  # every path ends in one: most often these are all that is wanted
            self.complete = True
            self.exec_info = dict.fromkeys(self.dependencies, _NEEDED)
            self.exec_info[nodes[0]] = _NEEDED
            self.exec_info.update(exec_info)
            return
        # The root is looked up whatever lies behind it: ``grad(y, x, allow_unused=True)`` of an `x` that is not there.
        if nodes[0] not in exec_info:
            exec_info[nodes[0]] = ExecInfo()
        # From what is wanted up, over the edges that lead there.
        leading_to: dict[Node, list[Node]] = {}
        for node in nodes:
            for edge in node.next_edges:
                if edge is not None:
                    leading_to.setdefault(edge[0], []).append(node)
        marked = list(dict.fromkeys([node for node, _ in wanted]))
        for successor in marked:  # grows while it is walked
            for node in leading_to.pop(successor, ()):
                info = exec_info.get(node)
                if info is None:
                    info = exec_info[node] = ExecInfo()
                info.needed = True
                marked.append(node)


def new_task(
    keep_graph: bool, create_graph: bool, reentrant_depth: int, freed: Freed | None, given: Sequence[Tensor] = ()
) -> GraphTask:
    """The task of a pass that is about to begin (by a function, which takes half the time of a constructor)."""
    task = GraphTask()
    task.keep_graph, task.create_graph = keep_graph, create_graph
    task.reentrant_depth = reentrant_depth
    task.freed = freed
    task.given = given
    task.id = next(_ids)
    task.dependencies = {}
    task.not_ready = {}
    task.exec_info = task.captured = task.final_callbacks = None
    task.complete = False
    return task


class GraphTaskGuard:
    """A backward pass is running on this thread, for as long as the block runs."""

    __slots__ = ("before", "task")

    def __init__(self, task: GraphTask | None) -> None:
        self.task: GraphTask | None = task
        self.before: GraphTask | None = None

    def __enter__(self) -> None:
        state = local.state
        self.before, state.graph_task = state.graph_task, self.task

    def __exit__(self, *exc_info: object) -> None:
        local.state.graph_task = self.before


def get_current_graph_task() -> GraphTask | None:
    """The backward pass that this thread is running.

    >>> import retrograd as torch
    >>> x = torch.ones(1, requires_grad=True)
    >>> y = x * 2
    >>> handle = y.register_hook(lambda grad: print(len(get_current_graph_task().nodes_in_graph)))
    >>> y.backward()
    2
    >>> get_current_graph_task() is None
    True
    """
    return local.state.graph_task


def get_current_graph_task_exec_info() -> dict[Node, ExecInfo] | None:
    """Which nodes the running pass runs, and what it keeps of them; None if it runs all, or there is none."""
    task = local.state.graph_task
    return None if task is None else task.exec_info


def add_node_to_current_graph_task_exec_info(node: Node) -> None:
    """Have the running pass, which computes only some gradients, run this node as well."""
    exec_info = get_current_graph_task_exec_info()
    if exec_info is None:
        raise RuntimeError("add_node_to_current_graph_task_exec_info(): no pass is running that leaves nodes out")
    exec_info.setdefault(node, ExecInfo()).needed = True
