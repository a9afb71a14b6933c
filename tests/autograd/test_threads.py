"""Several threads at once: on separate graphs, on parts of one graph, on the same leaves; and after a fork."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from collections import OrderedDict

import pytest

import retrograd
from retrograd.autograd.graph_task import new_task
from retrograd.autograd.hooks import RemovableHandle
from running_threads import run_threads

pytestmark = pytest.mark.usefixtures("clean_state")


def test_separate_graphs(restless):
    results = [None] * 8

    def work(i):
        x = retrograd.full((3,), float(i), requires_grad=True)
        y = x
        for _ in range(30):
            y = y * 1.0 + x
        y.sum().backward()
        results[i] = x.grad.tolist()

    run_threads(work)
    assert results == [[31.0] * 3] * 8


def test_no_update_of_a_shared_leaf_is_lost(restless):
    x = retrograd.zeros(50, requires_grad=True)

    def work(i):
        for _ in range(100):
            (x * float(i + 1)).sum().backward()

    run_threads(work)
    assert x.grad.tolist() == [100.0 * sum(range(1, 9))] * 50


def test_no_update_is_lost_under_create_graph(restless):
    x = retrograd.ones(3, requires_grad=True)

    def work(i):
        for _ in range(20):
            (x * x).sum().backward(create_graph=True)

    with pytest.warns(UserWarning, match="create_graph"):
        run_threads(work)
    assert x.grad.tolist() == [2.0 * 160] * 3
    x.grad = None


def test_a_shared_graph(restless):
    x = retrograd.ones(4, requires_grad=True)
    shared = (x * 2).exp().sin()
    loss = (shared * shared).sum()
    loss.backward(retain_graph=True)
    once = x.grad.clone()
    x.grad = None
    run_threads(lambda i: [loss.backward(retain_graph=True) for _ in range(20)])
    assert retrograd.allclose(x.grad, once * 160)


def test_no_update_of_a_retained_gradient_is_lost(restless):
    x = retrograd.ones(4, requires_grad=True)
    y = x * 2
    y.retain_grad()
    loss = y.sum()
    run_threads(lambda i: [loss.backward(retain_graph=True) for _ in range(50)])
    assert y.grad.tolist() == [400.0] * 4


def test_numbers_are_given_once(restless):
    """Of handles and of backward passes: what they are the keys of must not be mixed up."""
    hooks = OrderedDict()
    handles, passes = [[] for _ in range(8)], [[] for _ in range(8)]

    def work(i):
        for _ in range(200):
            handles[i].append(RemovableHandle(hooks).id)
            passes[i].append(new_task(True, False, 0, None).id)

    run_threads(work)
    assert len({number for some in handles for number in some}) == 1600
    assert len({number for some in passes for number in some}) == 1600


def test_a_shared_part_below_separate_ones(restless):
    x = retrograd.ones(4, requires_grad=True)
    shared = x * 3
    results = [None] * 8

    def work(i):
        own = (shared * float(i)).sum()
        (results[i],) = retrograd.autograd.grad(own, x, retain_graph=True)

    run_threads(work)
    assert [r.tolist() for r in results] == [[3.0 * i] * 4 for i in range(8)]


def test_one_accumulator_a_leaf(restless):
    for _ in range(50):
        x = retrograd.ones(1, requires_grad=True)
        nodes = [None] * 8

        def work(i, x=x, nodes=nodes):
            nodes[i] = (x * 2).grad_fn.next_functions[0][0]

        run_threads(work)
        assert len(set(map(id, nodes))) == 1


def test_modes_are_a_thread_s_own():
    seen = []

    def work():
        seen.append((retrograd.is_grad_enabled(), (x * 2).requires_grad))

    x = retrograd.ones(1, requires_grad=True)
    with retrograd.no_grad():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert seen == [(True, True)]


def test_hooks_run_on_the_thread_that_calls_backward():
    x = retrograd.ones(1, requires_grad=True)
    y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append(threading.get_ident()))
    idents = []

    def work():
        idents.append(threading.get_ident())
        y.backward(retain_graph=True)

    for _ in range(2):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert seen == idents


def test_an_error_in_one_thread_does_not_touch_the_others():
    x = retrograd.ones(1, requires_grad=True)
    y = x * 2
    outcomes = []

    def hook(grad):
        if threading.current_thread().name == "bad":
            raise ValueError("bad")

    y.register_hook(hook)

    def work():
        try:
            y.backward(retain_graph=True)
            outcomes.append("good")
        except ValueError:
            outcomes.append("bad")

    threads = [threading.Thread(target=work, name="bad" if i == 3 else f"good {i}") for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["bad"] + ["good"] * 7
    assert x.grad.item() == 14.0


def test_a_second_backward_through_a_freed_graph_says_so():
    x = retrograd.ones(1, requires_grad=True)
    y = x.exp()
    outcomes = []

    def work(i):
        try:
            y.backward()
            outcomes.append("good")
        except RuntimeError as error:
            assert "second time" in str(error)
            outcomes.append("freed")

    run_threads(work)
    assert "good" in outcomes


@pytest.mark.parametrize("seed", range(4))
def test_random_hook_actions(seed, restless):
    """Threads run backward through one graph while others add and remove hooks on it; gradients stay right."""
    rng = random.Random(seed)
    x = retrograd.ones(3, requires_grad=True)
    values = [x * 2]
    for _ in range(10):
        values.append(rng.choice(values) * 1.0 + rng.choice(values))
    loss = sum(values).sum()
    loss.backward(retain_graph=True)
    once = x.grad.clone()
    x.grad = None
    stop = time.monotonic() + 1.0
    passes = [0] * 6

    def differentiate(i):
        while passes[i] == 0 or (time.monotonic() < stop and passes[i] < 40):
            loss.backward(retain_graph=True)
            passes[i] += 1

    def meddle(i):
        own = random.Random(seed * 100 + i)
        handles = []
        for _ in range(300):
            tensor = own.choice(values)
            action = own.randrange(5)
            if action == 0:
                handles.append(tensor.register_hook(lambda g: None))
            elif action == 1:
                handles.append(tensor.grad_fn.register_prehook(lambda go: tuple(g.clone() for g in go)))
            elif action == 2:
                handles.append(tensor.grad_fn.register_hook(lambda gi, go: None))
            elif action == 3:
                handles.append(x.register_post_accumulate_grad_hook(lambda t: None))
            elif handles:
                handles.pop(own.randrange(len(handles))).remove()
        for handle in handles:
            handle.remove()

    run_threads(lambda i: differentiate(i) if i < 6 else meddle(i))
    assert retrograd.allclose(x.grad, once * float(sum(passes)))


# ------------------------------------------------------------------------------------------------- processes and exits


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_differentiates():
    script = """
import os, threading, time, warnings
warnings.simplefilter("ignore")
import retrograd as torch
from retrograd.core.locks import graph_lock

def nest(depth):
    y = torch.ones(1, requires_grad=True) * 2
    def hook(grad):
        if depth:
            with torch.enable_grad():
                nest(depth - 1).backward()
    y.register_hook(hook)
    return y

nest(50).backward()                      # the pool has threads, which the child will not have
holding = threading.Event()
def hold():
    with graph_lock:                     # and a lock is held by a thread that the child will not have
        holding.set()
        time.sleep(3)
threading.Thread(target=hold, daemon=True).start()
holding.wait()
child = os.fork()
if child == 0:
    x = torch.ones(1, requires_grad=True)
    (x * 2).backward()
    nest(50).backward()
    os._exit(0 if x.grad.item() == 2.0 else 1)
_, status = os.waitpid(child, 0)
print("child:", os.waitstatus_to_exitcode(status))
"""
    assert "child: 0" in run_script(script)


def test_the_interpreter_exits_while_workers_are_idle():
    script = """
import retrograd as torch
def nest(depth):
    y = torch.ones(1, requires_grad=True) * 2
    def hook(grad):
        if depth:
            with torch.enable_grad():
                nest(depth - 1).backward()
    y.register_hook(hook)
    return y
nest(100).backward()
print("done")
"""
    assert run_script(script).strip() == "done"


def run_script(script):
    source = os.path.dirname(os.path.dirname(retrograd.__file__))
    result = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": source},
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


# ---------------------------------------------------------------------------------------------- multithreading switch


def test_multithreading_switch(torch):
    assert torch.autograd.is_multithreading_enabled()
    with torch.autograd.set_multithreading_enabled(False):
        assert not torch.autograd.is_multithreading_enabled()
    assert torch.autograd.is_multithreading_enabled()
    torch.autograd.set_multithreading_enabled(False)
    assert not torch.autograd.is_multithreading_enabled()
    torch.autograd.set_multithreading_enabled(True)


# ------------------------------------------------------------------------------------------------------ lost hooks


def a_result():
    return retrograd.ones(2, requires_grad=True) * 2


@pytest.mark.parametrize(
    "make, register",
    [
        (a_result, lambda t, hook: t.register_hook(hook)),
        (lambda: retrograd.ones(2, requires_grad=True), lambda t, hook: t.register_hook(hook)),
        (lambda: retrograd.ones(2, requires_grad=True), lambda t, hook: t.register_post_accumulate_grad_hook(hook)),
        (a_result, lambda t, hook: t.grad_fn.register_prehook(hook)),
        (a_result, lambda t, hook: t.grad_fn.register_hook(hook)),
    ],
    ids=["tensor", "leaf", "post-accumulate", "prehook", "posthook"],
)
def test_no_first_hook_is_lost(make, register, restless):
    for _ in range(15):
        tensor, calls = make(), []
        run_threads(lambda i: register(tensor, lambda *_: calls.append(1)))  # noqa: B023
        tensor.sum().backward()
        assert len(calls) == 8


def test_no_hook_is_lost_while_the_leaf_is_first_used(restless):
    for _ in range(15):
        x, calls, results = retrograd.ones(2, requires_grad=True), [], [None] * 8

        def work(i):
            if i % 2:
                x.register_hook(lambda grad: calls.append(1))  # noqa: B023
            else:
                results[i] = x * 2  # noqa: B023

        run_threads(work)
        results[0].sum().backward()
        assert len(calls) == 4


def test_one_version_counter_a_tensor(restless):
    for _ in range(40):
        x, aliases = retrograd.ones(2), [None] * 8

        def work(i):
            aliases[i] = x.detach() if i % 2 else x[:1]  # noqa: B023

        run_threads(work)
        aliases[0].add_(1)
        assert [alias._version for alias in (x, *aliases)] == [1] * 9
