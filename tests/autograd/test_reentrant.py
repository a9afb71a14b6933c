"""Backward inside backward: to any depth, with the caller's modes, errors and callbacks where they belong."""

from __future__ import annotations

import contextvars
import sys
import threading

import pytest

import retrograd
from retrograd.autograd.worker_threads import MAX_DEPTH, Worker, WorkerPool

pytestmark = pytest.mark.usefixtures("clean_state")


def nest(torch, depth, at_the_bottom=lambda: None):
    """A result whose backward calls backward whose hook calls backward ... `depth` times."""
    x = torch.ones(1, requires_grad=True)
    y = x * 2

    def hook(grad):
        if depth == 0:
            at_the_bottom()
        else:
            with torch.enable_grad():
                nest(torch, depth - 1, at_the_bottom).backward()

    y.register_hook(hook)
    return y


def test_a_backward_in_a_hook(torch):
    reached = []
    nest(torch, 3, lambda: reached.append(torch.is_grad_enabled())).backward()
    assert reached == [False]


@pytest.mark.parametrize("depth", [MAX_DEPTH - 1, MAX_DEPTH, MAX_DEPTH + 1, 3 * MAX_DEPTH, 1000])
def test_any_depth(depth):
    reached = []
    nest(retrograd, depth, lambda: reached.append(retrograd.autograd.graph.current_graph_task_id())).backward()
    assert len(reached) == 1 and reached[0] >= depth
    assert retrograd.autograd.graph.current_graph_task_id() == -1


def test_the_stack_stays_small():
    depths = []

    def measure():
        depth, frame = 0, sys._getframe()
        while frame is not None:
            depth, frame = depth + 1, frame.f_back
        depths.append(depth)

    nest(retrograd, 500, measure).backward()
    assert depths[0] < 300


def test_threads_are_used_again():
    nest(retrograd, 10 * MAX_DEPTH).backward()
    before = threading.active_count()
    for _ in range(5):
        nest(retrograd, 4 * MAX_DEPTH).backward()
    assert threading.active_count() <= before


def test_errors_come_up_through_the_threads():
    def fail():
        raise LookupError("at the bottom")

    with pytest.raises(LookupError, match="at the bottom") as caught:
        nest(retrograd, 3 * MAX_DEPTH, fail).backward()
    names = {entry.name for entry in caught.traceback}
    assert "fail" in names  # the traceback goes all the way down
    nest(retrograd, 3 * MAX_DEPTH).backward()  # and everything still works


def test_modes_go_along():
    seen = []
    variable = contextvars.ContextVar("variable", default="unset")
    token = variable.set("set")

    def look():
        seen.append((retrograd.is_anomaly_enabled(), retrograd.is_grad_enabled(), variable.get()))

    with (
        retrograd.autograd.set_detect_anomaly(True),
        retrograd.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t),
    ):
        nest(retrograd, 2 * MAX_DEPTH, look).backward()
    variable.reset(token)
    assert seen == [(True, False, "set")]


def test_a_mode_that_is_set_inside_ends_there():
    nest(retrograd, 2 * MAX_DEPTH, lambda: retrograd.set_grad_enabled(True)).backward()
    assert retrograd.is_grad_enabled()
    x = retrograd.ones(1, requires_grad=True)
    with retrograd.no_grad():
        assert not (x * 2).requires_grad


def test_final_callbacks_belong_to_the_innermost_pass(torch):
    queue = torch.autograd.Variable._execution_engine.queue_callback
    log = []
    x = torch.ones(1, requires_grad=True)
    y = x * 2

    def inner(grad):
        queue(lambda: log.append("inner callback"))

    def outer(grad):
        queue(lambda: log.append("outer callback"))
        with torch.enable_grad():
            z = torch.ones(1, requires_grad=True) * 2
        z.register_hook(inner)
        z.backward()
        log.append("inner pass done")

    y.register_hook(outer)
    y.backward()
    assert log == ["inner callback", "inner pass done", "outer callback"]


def test_inner_nodes_run_before_outer_ones(torch):
    log = []
    x = torch.ones(1, requires_grad=True)
    early = x * 2  # made first, so it runs last
    late = x * 3
    early.register_hook(lambda g: log.append("early"))

    def hook(grad):
        log.append("late")
        with torch.enable_grad():
            z = torch.ones(1, requires_grad=True) * 2
        z.register_hook(lambda g: log.append("inner"))
        z.backward()

    late.register_hook(hook)
    (early + late).backward()
    assert log == ["late", "inner", "early"]


def test_an_inner_pass_may_accumulate_into_the_same_leaf(torch):
    x = torch.ones(1, requires_grad=True)

    def hook(grad):
        with torch.enable_grad():
            (x * 10).backward()

    y = x * 2
    y.register_hook(hook)
    y.backward()
    assert x.grad.item() == 12.0


def test_an_inner_pass_through_the_same_graph(torch):
    x = torch.ones(1, requires_grad=True)
    y = x * 2
    z = y * 3
    z.register_hook(lambda g: y.backward(retain_graph=True))
    z.backward()
    assert x.grad.item() == 8.0


def test_deep_passes_in_several_threads():
    errors = []

    def work():
        try:
            nest(retrograd, 4 * MAX_DEPTH).backward()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


# ---------------------------------------------------------------------------------------------------------- the threads


def test_a_worker_returns_and_raises():
    worker = Worker("test")
    assert worker.run(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        worker.run(divmod, 7, 0)
    assert worker.run(threading.current_thread) is worker.thread
    worker.stop()
    worker.thread.join(60)
    assert not worker.thread.is_alive()


def test_a_worker_works_on_the_caller_s_state():
    worker = Worker("test")
    with retrograd.no_grad():
        assert worker.run(retrograd.is_grad_enabled) is False
    assert worker.run(retrograd.is_grad_enabled) is True
    worker.stop()


def test_the_pool_gives_each_waiting_level_a_thread():
    pool = WorkerPool()

    def levels(n):
        return [threading.get_ident()] + (pool.run(levels, n - 1) if n else [])

    assert len(set(levels(5))) == 6
    assert len(set(levels(5))) == 6
    assert len(pool.idle) == 5
