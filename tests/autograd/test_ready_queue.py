"""ReadyQueue: the order in which ready nodes run."""

from __future__ import annotations

import random

import pytest

import retrograd
from retrograd.autograd.accumulate_grad import LAST_SEQUENCE_NR
from retrograd.autograd.graph_task import GraphTask, new_task
from retrograd.autograd.node import Node
from retrograd.autograd.ready_queue import ReadyQueue


def node_numbered(sequence_nr: int) -> Node:
    node = Node()
    node.sequence_nr = sequence_nr
    return node


def task_at(depth: int) -> GraphTask:
    return new_task(keep_graph=False, create_graph=False, reentrant_depth=depth, freed=None)


def drain(queue: ReadyQueue) -> list:
    return [queue.pop()[0] for _ in range(len(queue))]


def test_later_nodes_first():
    queue, task = ReadyQueue(), task_at(0)
    first, second, third = (node_numbered(n) for n in (3, 17, 5))
    for node in (first, second, third):
        queue.push(node, (), task)
    assert drain(queue) == [second, third, first]


def test_deeper_depth_first():
    """The order in which the seeds have it the wrong way round."""
    queue = ReadyQueue()
    shallow, deep = node_numbered(100), node_numbered(1)
    queue.push(shallow, (), task_at(0))
    queue.push(deep, (), task_at(1))
    assert drain(queue) == [deep, shallow]


def test_shutdown_before_everything():
    queue = ReadyQueue()
    queue.push(node_numbered(LAST_SEQUENCE_NR), (), task_at(5))
    queue.push_shutdown()
    entry = queue.pop()
    assert entry == (None, None, None)
    assert len(queue) == 1


def test_equal_nodes_in_order_of_arrival():
    queue, task = ReadyQueue(), task_at(2)
    nodes = [node_numbered(7) for _ in range(50)]
    for node in nodes:
        queue.push(node, (), task)
    assert drain(queue) == nodes


def test_entries_never_compare_nodes_or_gradients():
    """Nodes and arrays have no order: the integers in front of them must decide."""
    queue, task = ReadyQueue(), task_at(0)
    for _ in range(20):
        queue.push(node_numbered(1), [retrograd.ones(2)], task)
    assert len(drain(queue)) == 20


@pytest.mark.parametrize("seed", range(5))
def test_random_order(seed):
    rng = random.Random(seed)
    queue = ReadyQueue()
    pushed = []
    for arrival in range(200):
        node, depth = node_numbered(rng.randrange(10)), rng.randrange(3)
        queue.push(node, (), task_at(depth))
        pushed.append((-depth, -node.sequence_nr, arrival, node))
    assert drain(queue) == [node for *_, node in sorted(pushed, key=lambda p: p[:3])]


def test_gradients_travel_with_their_node():
    queue, task = ReadyQueue(), task_at(0)
    grads = [object()]
    queue.push(node_numbered(1), grads, task)
    entry = queue.pop()
    assert entry[1] is grads and entry[2] is task


def test_accumulators_have_the_highest_number():
    x = retrograd.ones(1, requires_grad=True)
    y = x * 2
    accumulator = y.grad_fn.next_functions[0][0]
    assert accumulator.sequence_nr == LAST_SEQUENCE_NR > y.grad_fn.sequence_nr
