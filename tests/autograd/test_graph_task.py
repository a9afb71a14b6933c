"""GraphTask: dependencies, and which nodes a selective run needs."""

from __future__ import annotations

import pytest

import retrograd
from retrograd.autograd.graph_task import ExecInfo, GraphTask, new_task

pytestmark = pytest.mark.usefixtures("clean_state")


def task() -> GraphTask:
    return new_task(keep_graph=False, create_graph=False, reentrant_depth=0, freed=None)


@pytest.fixture
def diamond():
    x = retrograd.ones(1, requires_grad=True)
    a = x * 2
    b = a * 3
    c = a * 4
    d = b + c
    return {"x": x, "a": a, "b": b, "c": c, "d": d}


def nodes(tensors, *names):
    accumulator = tensors["a"].grad_fn.next_functions[0][0]
    return [accumulator if name == "x" else tensors[name].grad_fn for name in names]


def test_dependencies_of_a_diamond(diamond):
    t = task()
    seen = t.compute_dependencies(diamond["d"].grad_fn, 0)
    d, c, b, a, x = nodes(diamond, "d", "c", "b", "a", "x")
    assert seen[0] is d and set(seen) == {d, c, b, a, x}
    assert t.dependencies == {c: 1, b: 1, a: 2, x: 1}


def test_an_edge_twice_counts_twice():
    x = retrograd.ones(1, requires_grad=True)
    y = x + x
    t = task()
    t.compute_dependencies(y.grad_fn, 0)
    (count,) = t.dependencies.values()
    assert count == 2


def test_missing_edges_do_not_count():
    y = retrograd.ones(1, requires_grad=True) * retrograd.ones(1)
    t = task()
    assert len(t.compute_dependencies(y.grad_fn, 0)) == 2


def test_the_walk_stops_below_what_is_wanted(diamond):
    t = task()
    d, b, a = nodes(diamond, "d", "b", "a")
    seen = t.compute_dependencies(d, b.topological_nr)
    assert a not in seen and a not in t.dependencies
    assert b in seen


def test_exec_info_for_grad(diamond):
    t = task()
    d, c, b = nodes(diamond, "d", "c", "b")
    t.init_exec_info(t.compute_dependencies(d, b.topological_nr), [(b, 0)], accumulate_grad=False)
    assert t.exec_info[d].needed
    assert not t.exec_info[b].needed and t.exec_info[b].captures == [(0, 0)] and t.exec_info[b].should_execute
    assert c not in t.exec_info or not t.exec_info[c].should_execute
    assert t.captured == [None]


def test_exec_info_for_backward(diamond):
    t = task()
    d, c, b, a, x = nodes(diamond, "d", "c", "b", "a", "x")
    t.init_exec_info(t.compute_dependencies(d, 0), [(x, 0)], accumulate_grad=True)
    assert all(t.exec_info[node].needed for node in (d, c, b, a, x))
    assert t.captured is None


def test_one_node_wanted_twice(diamond):
    t = task()
    d, b = nodes(diamond, "d", "b")
    t.init_exec_info(t.compute_dependencies(d, 0), [(b, 0), (b, 0)], accumulate_grad=False)
    assert t.exec_info[b].captures == [(0, 0), (0, 1)]
    assert t.captured == [None, None]


def test_the_root_is_known_even_if_it_leads_nowhere(diamond):
    t = task()
    (d,) = nodes(diamond, "d")
    other = (retrograd.ones(1, requires_grad=True) * 2).grad_fn
    t.init_exec_info(t.compute_dependencies(d, 0), [(other, 0)], accumulate_grad=False)
    assert not t.exec_info[d].should_execute


def test_a_run_to_all_leaves_is_complete(diamond):
    d, c, b, a, x = nodes(diamond, "d", "c", "b", "a", "x")
    t = task()
    t.init_exec_info(t.compute_dependencies(d, 0), [(x, 0), (x, 0)], accumulate_grad=False)
    assert t.leaves == 1 and t.complete
    assert all(t.exec_info[node].needed for node in (d, c, b, a))
    assert t.exec_info[x].captures == [(0, 0), (0, 1)] and not t.exec_info[x].needed


@pytest.mark.parametrize("which", ["one of two leaves", "a leaf and a result", "a leaf elsewhere"])
def test_a_run_to_anything_else_is_not_complete(which):
    x, y, elsewhere = (retrograd.ones(1, requires_grad=True) for _ in range(3))
    a = x * y
    z, other = a + 1, elsewhere * 2
    ends = [edge[0] for edge in a.grad_fn.next_functions]
    wanted = {
        "one of two leaves": ends[:1],
        "a leaf and a result": [*ends, a.grad_fn],
        "a leaf elsewhere": [ends[0], other.grad_fn.next_functions[0][0]],
    }[which]
    t = task()
    t.init_exec_info(t.compute_dependencies(z.grad_fn, 0), [(node, 0) for node in wanted], accumulate_grad=False)
    assert t.leaves == 2 and not t.complete
    assert t.exec_info[z.grad_fn].needed and t.exec_info[ends[0]].captures == [(0, 0)]


def test_a_deep_graph_is_walked_without_recursion():
    x = retrograd.ones(1, requires_grad=True)
    y = x
    for _ in range(20_000):
        y = y + 1
    t = task()
    seen = t.compute_dependencies(y.grad_fn, 0)
    assert len(seen) == 20_001
    t.init_exec_info(seen, [(seen[-1], 0)], accumulate_grad=False)
    assert len(t.exec_info) == 20_001


def test_every_task_has_its_own_number():
    assert task().id != task().id


def test_exec_info_starts_as_no():
    assert not ExecInfo().should_execute


def test_nothing_is_written_to_the_graph(diamond):
    """Two tasks over one graph do not see each other."""
    first, second = task(), task()
    (d,) = nodes(diamond, "d")
    first.compute_dependencies(d, 0)
    second.compute_dependencies(d, 0)
    assert first.dependencies == second.dependencies and first.dependencies is not second.dependencies
