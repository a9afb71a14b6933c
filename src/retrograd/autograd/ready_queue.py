"""ReadyQueue: the nodes that have all their gradients, in the order in which they are to run.

Shutdown requests come first, then nodes of the deeper reentrant backward pass (an inner pass must
finish before the outer one can go on), then the node that was made last (higher sequence number): it is closest to
the roots.  Equal nodes run in the order in which they became ready.

Entries are plain tuples of integers first, so that comparing them never reaches the node:
``(shutdown, -depth, -sequence_nr, arrival, node, grads, graph_task)``.  In a queue that threads share, a `DevicePass`
stands in the place of the GraphTask.
"""

from __future__ import annotations

import threading
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .node import Node

Entry = tuple[int, int, int, int, Any, Any, Any]


class ReadyQueue:
    """A heap of ready nodes. (The fast loop has such a heap without the methods.)"""

    __slots__ = ("arrivals", "heap")

    def __init__(self) -> None:
        self.heap: list[Entry] = []
        #: Numbers the entries. A queue's own: if threads that share a counter got one number, nodes would be compared.
        self.arrivals: count[int] = count()

    def entry(self, node: Node, grads: Sequence[Any], task: Any) -> Entry:
        return (1, -task.reentrant_depth, -node.sequence_nr, next(self.arrivals), node, grads, task)

    def push(self, node: Node, grads: Sequence[Any], task: Any) -> None:
        heappush(self.heap, self.entry(node, grads, task))

    def push_shutdown(self) -> None:
        heappush(self.heap, (0, 0, 0, next(self.arrivals), None, None, None))

    def pop(self) -> tuple[Any, Any, Any]:
        """The node that comes first, its gradients and its task; None for all three is a request to shut down."""
        return heappop(self.heap)[4:]

    def __len__(self) -> int:
        return len(self.heap)


class SharedReadyQueue(ReadyQueue):
    """A ReadyQueue that one thread serves and others fill: `pop` waits until something is there."""

    __slots__ = ("filled",)

    def __init__(self) -> None:
        super().__init__()
        self.filled: threading.Condition = threading.Condition(threading.Lock())

    def push(self, node: Node, grads: Sequence[Any], task: Any) -> None:
        with self.filled:
            super().push(node, grads, task)
            self.filled.notify()

    def push_shutdown(self) -> None:
        with self.filled:
            super().push_shutdown()
            self.filled.notify()

    def wake(self, task: Any) -> None:
        """Have the thread that waits look up: `task` is done."""
        with self.filled:
            heappush(self.heap, (0, 0, 0, next(self.arrivals), None, None, task))
            self.filled.notify()

    def pop(self) -> tuple[Any, Any, Any]:
        with self.filled:
            while not self.heap:
                self.filled.wait()
            return super().pop()
