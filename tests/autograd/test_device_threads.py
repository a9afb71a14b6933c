"""Device threads, by two devices that compute on the CPU: their arrays are subclasses of NumPy's."""

from __future__ import annotations

import contextvars
import os
import random
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import retrograd as torch
from retrograd.autograd.device_threads import DevicePass, device_thread_of, threads
from retrograd.autograd.graph_task import new_task
from retrograd.autograd.node_call import call_node
from retrograd.autograd.worker_threads import MAX_DEPTH
from retrograd.core import devices
from retrograd.core.state import local
from retrograd.tensor import wrap
from retrograd.utils.checkpoint import checkpoint

pytestmark = pytest.mark.usefixtures("clean_state")


class OtherArray(np.ndarray):
    """An array of the first test device."""


class ThirdArray(np.ndarray):
    """An array of the second one."""


CPU, FIRST, SECOND = np.ndarray, OtherArray, ThirdArray


@pytest.fixture
def device():
    first, second = torch.device("cuda", 0), torch.device("cuda", 1)
    devices.register_array_class(FIRST, first)
    devices.register_array_class(SECOND, second)
    yield first
    for array_class, where in ((FIRST, first), (SECOND, second)):
        del devices._BY_ARRAY_CLASS[array_class]
        devices.accelerators.remove(where)


def leaf(where, *values):
    return wrap(np.array(values, dtype=np.float32).view(where)).requires_grad_()


def ones(where, number=1):
    return wrap(np.ones(number, np.float32).view(where))


def on_device(*values):
    return leaf(FIRST, *values)


class Move(torch.autograd.Function):
    """To another device."""

    @staticmethod
    def forward(ctx, x, where):
        ctx.back = type(x._numbers_)
        return wrap(np.array(x._numbers_).view(where))

    @staticmethod
    def backward(ctx, grad):
        return wrap(np.array(grad._numbers_).view(ctx.back)), None


def meet(*tensors):
    """Hooks on `tensors` that wait for each other: they come through only if they run at the same time."""
    barrier, met = threading.Barrier(len(tensors)), []

    def hook(grad):
        barrier.wait(60)
        met.append(threading.current_thread().name)

    for tensor in tensors:
        tensor.register_hook(hook)
    return met


def names_of_threads(*tensors):
    seen = []
    for tensor in tensors:
        tensor.register_hook(lambda g: seen.append(threading.current_thread().name))
    return seen


def test_nodes_run_on_the_thread_of_their_device(device):
    x, c = on_device(1.0, 2.0), torch.ones(2, requires_grad=True)
    y = x * x
    d = c * 2
    seen = names_of_threads(y, x)
    seen_cpu = names_of_threads(d, c)
    y.backward(wrap(np.ones(2, np.float32).view(OtherArray)))
    d.sum().backward()
    assert seen == ["retrograd: cuda:0"] * 2
    assert seen_cpu == [threading.current_thread().name] * 2
    assert x.grad.tolist() == [2.0, 4.0]


def test_one_pass_over_both_devices(device):
    x, c = on_device(1.0, 2.0), torch.ones(2, requires_grad=True)
    y, d = x * x, c * 2
    seen, seen_cpu = names_of_threads(y), names_of_threads(d)
    ones = np.ones(2, np.float32)
    torch.autograd.backward([y, d], [wrap(ones.view(OtherArray)), wrap(ones)])
    assert seen == ["retrograd: cuda:0"] and seen_cpu == [threading.current_thread().name]


def test_without_multithreading_everything_runs_here(device):
    x = on_device(1.0, 2.0)
    y = x * x
    seen = names_of_threads(y)
    with torch.autograd.set_multithreading_enabled(False):
        y.backward(wrap(np.ones(2, np.float32).view(OtherArray)))
    assert seen == [threading.current_thread().name]


def test_errors_are_raised_in_the_caller(device):
    x = on_device(1.0, 2.0)
    y = x * x

    def hook(grad):
        raise LookupError("on the device thread")

    y.register_hook(hook)
    with pytest.raises(LookupError, match="on the device thread"):
        y.backward(wrap(np.ones(2, np.float32).view(OtherArray)))


def test_modes_are_those_of_the_caller(device):
    x = on_device(1.0, 2.0)
    y = x * x
    seen = []
    y.register_hook(lambda g: seen.append((torch.is_grad_enabled(), torch.is_anomaly_enabled())))
    with torch.autograd.set_detect_anomaly(True):
        y.backward(wrap(np.ones(2, np.float32).view(OtherArray)))
    assert seen == [(False, True)]


def test_a_reentrant_pass_stays_on_the_device_thread(device):
    seen = []

    def nest(depth):
        y = on_device(1.0) * 2

        def hook(grad):
            seen.append(threading.current_thread().name)
            if depth:
                with torch.enable_grad():
                    again = nest(depth - 1)
                again.backward(wrap(np.ones(1, np.float32).view(OtherArray)))

        y.register_hook(hook)
        return y

    nest(2 * MAX_DEPTH).backward(wrap(np.ones(1, np.float32).view(OtherArray)))
    assert len(seen) == 2 * MAX_DEPTH + 1
    assert seen[0] == seen[MAX_DEPTH - 1] == "retrograd: cuda:0"


def test_many_callers_share_the_device_thread(device):
    x = on_device(1.0, 2.0)
    errors = []

    def work():
        try:
            for _ in range(20):
                y = x * 3
                y.backward(wrap(np.ones(2, np.float32).view(OtherArray)))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == [] and x.grad.tolist() == [360.0, 360.0]


# --------------------------------------------------------------------------------------------------- at the same time


def test_two_devices_run_at_the_same_time(device):
    a, b = leaf(FIRST, 1.0, 2.0), leaf(SECOND, 3.0, 4.0)
    y, z = a * a, b * b
    met = meet(y, z)
    torch.autograd.backward([y, z], [ones(FIRST, 2), ones(SECOND, 2)])
    assert sorted(met) == ["retrograd: cuda:0", "retrograd: cuda:1"]
    assert a.grad.tolist() == [2.0, 4.0] and b.grad.tolist() == [6.0, 8.0]


def test_the_caller_runs_its_nodes_meanwhile(device):
    c, a, b = leaf(CPU, 1.0), leaf(FIRST, 2.0), leaf(SECOND, 3.0)
    results = [c * c, a * a, b * b]
    met = meet(*results)
    torch.autograd.backward(results, [ones(CPU), ones(FIRST), ones(SECOND)])
    assert sorted(met) == sorted([threading.current_thread().name, "retrograd: cuda:0", "retrograd: cuda:1"])
    assert [t.grad.item() for t in (c, a, b)] == [2.0, 4.0, 6.0]


def test_a_graph_that_goes_from_device_to_device(device):
    c = leaf(CPU, 3.0)
    y = Move.apply(c * 2, FIRST)
    z = Move.apply(y * y, SECOND)
    w = Move.apply(z * z, CPU)
    seen = names_of_threads(w, z, y, c)
    w.sum().backward()
    here = threading.current_thread().name
    assert seen == [here, "retrograd: cuda:1", "retrograd: cuda:0", here]
    assert c.grad.item() == pytest.approx(4 * 16 * 27)  # (2c)^4


def test_branches_on_several_devices_are_summed(device):
    c = leaf(CPU, 2.0)
    branches = [Move.apply(Move.apply(c * k, where) * k, CPU) for k, where in ((1.0, FIRST), (2.0, SECOND), (3.0, CPU))]
    sum(branches).sum().backward()
    assert c.grad.item() == 1.0 + 4.0 + 9.0


def test_grad_captures_on_device_threads(device):
    a, b = leaf(FIRST, 1.0), leaf(SECOND, 2.0)
    y, z = a * a, b * b
    grads = torch.autograd.grad([y * 2, z * 3], [y, b, a], [ones(FIRST), ones(SECOND)])
    assert [g.item() for g in grads] == [2.0, 12.0, 4.0] and a.grad is None
    assert [type(g._numbers_) for g in grads] == [FIRST, SECOND, FIRST]


def test_create_graph_on_device_threads(device):
    a, b = leaf(FIRST, 2.0), leaf(SECOND, 3.0)
    first, second = torch.autograd.grad(
        [a * a * a, b * b * b], [a, b], [ones(FIRST), ones(SECOND)], create_graph=True
    )
    assert first.requires_grad and second.requires_grad
    twice = torch.autograd.grad([first, second], [a, b], [ones(FIRST), ones(SECOND)])
    assert [g.item() for g in twice] == [12.0, 18.0]


def test_leaves_take_gradients_over_in_such_passes_too(device):
    """AccumulateGrad need not copy what nobody else holds."""
    c, a = leaf(CPU, 1.0, 2.0), leaf(FIRST, 1.0)
    held = []
    y = c * 3.0
    y.grad_fn.register_hook(lambda grads, _: held.append(grads[0].data_ptr()))
    torch.autograd.backward([y, a * 2], [ones(CPU, 2), ones(FIRST)])
    assert c.grad.data_ptr() == held[0]


# ----------------------------------------------------------------------------------------------- errors and reentrancy


def runs_a_node(thread):
    frame = sys._current_frames()[thread.ident]
    while frame is not None and frame.f_code is not DevicePass.run.__code__:
        frame = frame.f_back
    return frame is not None


def test_the_first_error_ends_the_pass(device):
    a, b = leaf(FIRST, 1.0), leaf(SECOND, 2.0)
    y, z = a * a, b * b
    failed, later = threading.Event(), []

    def fail(grad):
        failed.set()
        raise LookupError("on a device thread")

    def wait(grad):
        assert failed.wait(60)
        while runs_a_node(threads.running["cuda:0"]):  # until the error has left it
            time.sleep(0.001)

    y.register_hook(fail)
    z.register_hook(wait)
    b.register_hook(later.append)
    with pytest.raises(LookupError, match="on a device thread") as caught:
        torch.autograd.backward([y, z], [ones(FIRST), ones(SECOND)])
    assert "fail" in {entry.name for entry in caught.traceback}
    assert later == [] and b.grad is None
    torch.autograd.backward([a * 2, b * 2], [ones(FIRST), ones(SECOND)])  # and everything still works
    assert a.grad.item() == 2.0


def test_an_error_on_the_cpu_ends_the_pass(device):
    c, a = leaf(CPU, 1.0), leaf(FIRST, 2.0)
    y, z = c * c, a * a
    y.register_hook(lambda grad: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        torch.autograd.backward([y, z], [ones(CPU), ones(FIRST)])


def stir():
    """Have the device threads look up. In a free-threaded Python an object that another thread let go last is freed
    by the thread that made it, when that next does something: the error, then its frames, then what they held."""
    for _ in range(10):
        for queue in threads.queues.values():
            queue.wake("nothing to do")
        while any(map(len, threads.queues.values())):
            time.sleep(0.001)
        time.sleep(0.01)


def test_errors_leave_no_cycle(device, no_cycles):
    def fail(grad):
        raise LookupError

    with no_cycles():
        y, z = leaf(FIRST, 1.0) * 2, leaf(SECOND, 1.0) * 2
        y.register_hook(fail)
        try:
            torch.autograd.backward([y, z], [ones(FIRST), ones(SECOND)])
        except LookupError:
            pass
        del y, z
        stir()


def test_the_calling_thread_is_woken_once():
    """By one of two threads that end together: a second entry would stay in the pass's queue, and hold the pass."""
    run = DevicePass(local.state, new_task(True, False, 0, None), False, call_node)
    run.failed, run.outstanding = True, 2  # two nodes, which are dropped

    class LockThatTheOtherGetsNext:
        def __enter__(self):
            pass

        def __exit__(self, *exc_info):
            if run.outstanding == 1:
                run.run(None, [])  # the other thread, from beginning to end

    run.lock = LockThatTheOtherGetsNext()
    run.run(None, [])
    assert run.done and len(run.own_queue) == 1


def test_anomaly_mode_explains_errors_of_device_threads(device):
    with torch.autograd.set_detect_anomaly(True):
        a = leaf(FIRST, 0.0)
        y = a.sqrt() * 0.0
        with pytest.warns(UserWarning, match="Error detected in SqrtBackward0"), pytest.raises(RuntimeError) as caught:
            y.backward(ones(FIRST))
    assert "SqrtBackward0' returned nan values" in str(caught.value)
    notes = [note for note in caught.value.__notes__ if "Error detected in SqrtBackward0" in note]
    assert len(notes) == 1 and "a.sqrt() * 0.0" in notes[0]


@pytest.mark.parametrize("where", ["same", "other", "cpu"])
def test_backward_inside_a_device_thread(device, where):
    inner_class = {"same": FIRST, "other": SECOND, "cpu": CPU}[where]
    y = leaf(FIRST, 1.0) * 2
    log = []

    def hook(grad):
        with torch.enable_grad():
            x = leaf(inner_class, 5.0)
            z = x * x
        z.register_hook(lambda g: log.append(threading.current_thread().name))
        z.backward(ones(inner_class))
        log.append((threading.current_thread().name, x.grad.item()))

    y.register_hook(hook)
    y.backward(ones(FIRST))
    inner = "retrograd: cuda:1" if where == "other" else "retrograd: cuda:0"
    assert log == [inner, ("retrograd: cuda:0", 10.0)]


def test_devices_that_wait_for_each_other_s_inner_passes(device):
    """Each device thread runs a node whose hook needs the other device: both serve their queues from within."""
    y, z = leaf(FIRST, 1.0) * 2, leaf(SECOND, 1.0) * 2
    barrier, results = threading.Barrier(2), []

    def hook_with(other):
        def hook(grad):
            barrier.wait(60)
            with torch.enable_grad():
                x = leaf(other, 3.0)
                inner = x * x
            inner.backward(ones(other))
            results.append(x.grad.item())

        return hook

    y.register_hook(hook_with(SECOND))
    z.register_hook(hook_with(FIRST))
    torch.autograd.backward([y, z], [ones(FIRST), ones(SECOND)])
    assert results == [6.0, 6.0]


def test_inner_passes_to_any_depth_over_two_devices(device):
    reached = []

    def nest(depth):
        where = (FIRST, SECOND)[depth % 2]
        y = leaf(where, 1.0) * 2

        def hook(grad):
            if depth == 0:
                reached.append(True)
            else:
                with torch.enable_grad():
                    inner, inner_where = nest(depth - 1)
                inner.backward(ones(inner_where))

        y.register_hook(hook)
        return y, where

    outer, where = nest(5 * MAX_DEPTH)
    outer.backward(ones(where))
    assert reached == [True]


# ------------------------------------------------------------------------------------------------------ modes and hooks


def test_modes_and_context_go_along_and_end_with_the_node(device):
    variable = contextvars.ContextVar("variable", default="unset")
    token = variable.set("set")
    y = leaf(FIRST, 1.0) * 2
    z = y * 2
    log = []

    def first(grad):
        log.append((torch.is_grad_enabled(), torch.is_anomaly_enabled(), variable.get()))
        torch.set_grad_enabled(True)
        variable.set("other")

    z.register_hook(first)
    y.register_hook(lambda g: log.append((torch.is_grad_enabled(), torch.is_anomaly_enabled(), variable.get())))
    with torch.autograd.set_detect_anomaly(True):
        z.backward(ones(FIRST))
    assert log == [(False, True, "set")] * 2 and variable.get() == "set"
    variable.reset(token)


def test_hooks_on_several_tensors_see_all_devices(device):
    a, b = leaf(FIRST, 1.0), leaf(SECOND, 2.0)
    calls = []
    handle = torch.autograd.graph.register_multi_grad_hook([a, b], calls.append)
    for _ in range(20):
        torch.autograd.backward([a * 2, b * 3], [ones(FIRST), ones(SECOND)])
    handle.remove()
    assert [[g.item() for g in grads] for grads in calls] == [[2.0, 3.0]] * 20


def test_callbacks_queued_on_device_threads_run_in_the_caller(device):
    a, b = leaf(FIRST, 1.0), leaf(SECOND, 2.0)
    y, z = a * 2, b * 2
    log = []
    queue = torch.autograd.Variable._execution_engine.queue_callback
    for tensor in (y, z):
        tensor.register_hook(lambda g: queue(lambda: log.append(threading.current_thread().name)))
    torch.autograd.backward([y, z], [ones(FIRST), ones(SECOND)])
    assert log == [threading.current_thread().name] * 2


def test_the_node_and_pass_that_run_are_known_to_hooks(device):
    a, b = leaf(FIRST, 1.0), leaf(SECOND, 2.0)
    y, z = a * 2, b.exp()
    seen = set()
    graph = torch.autograd.graph
    for tensor in (y, z):
        tensor.register_hook(lambda g: seen.add((graph.current_node().name(), graph.current_graph_task_id())))
    torch.autograd.backward([y, z], [ones(FIRST), ones(SECOND)])
    assert {name for name, _ in seen} == {"MulBackward0", "ExpBackward0"} and len({task for _, task in seen}) == 1


def test_attributes_of_ctx_do_not_mislead(device):
    """A custom function may keep anything under the names that nodes with one output have slots for."""

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.shape, ctx.dtype, ctx.num_inputs = x.shape, x.dtype, "many"
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            assert (ctx.shape, ctx.num_inputs) == ((1,), "many")
            return grad * 2

    a = leaf(FIRST, 1.0)
    y = Double.apply(a)
    assert device_thread_of(y.grad_fn) == "cuda:0"
    y.backward(ones(FIRST))
    assert a.grad.item() == 2.0


@pytest.mark.parametrize("seed", range(3))
def test_random_graphs_over_three_devices(device, seed):
    """Several threads differentiate one random graph over all devices: exact sums, whatever the timing."""
    rng = random.Random(seed)
    leaves = [leaf(where, 1.0, 2.0) for where in (CPU, FIRST, SECOND)]
    values = list(leaves)
    for _ in range(25):
        x, y = rng.choice(values), rng.choice(values)
        x, y = (t if type(t._numbers_) is FIRST else Move.apply(t, FIRST) for t in (x, y))
        values.append(Move.apply(x * 0.5 + y * 0.5, rng.choice((CPU, FIRST, SECOND))))
    loss = sum(Move.apply(value, CPU) for value in values).sum()
    with torch.autograd.set_multithreading_enabled(False):
        expected = [g.tolist() for g in torch.autograd.grad(loss, leaves, retain_graph=True)]
    errors = []

    def work():
        try:
            for _ in range(5):
                assert [g.tolist() for g in torch.autograd.grad(loss, leaves, retain_graph=True)] == expected
        except BaseException as error:
            errors.append(error)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert errors == []


# ------------------------------------------------------------------------------------------------- processes and exits

SCRIPT = """
import os, sys, threading, time
import numpy as np
import retrograd as torch
from retrograd.core import devices
from retrograd.tensor import wrap

class Other(np.ndarray):
    pass

devices.register_array_class(Other, torch.device("cuda", 0))

def on_device(value):
    return wrap(np.array([value], dtype=np.float32).view(Other))

def differentiate():
    x = on_device(3.0).requires_grad_()
    (x * x).backward(on_device(1.0))
    return x.grad.item()

assert differentiate() == 6.0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_has_device_threads_of_its_own():
    script = """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 and later warn of what is tried here
child = os.fork()
if child == 0:
    os._exit(0 if differentiate() == 6.0 and differentiate() == 6.0 else 1)
_, status = os.waitpid(child, 0)
print("child:", os.waitstatus_to_exitcode(status), differentiate())
"""
    assert run_script(SCRIPT + script) == ("child: 0 6.0\n", "")


def test_the_interpreter_exits_while_device_threads_wait():
    assert run_script(SCRIPT + "print('done')") == ("done\n", "")


def test_the_interpreter_exits_while_a_device_thread_works():
    script = """
y = on_device(3.0).requires_grad_() * 2
started = threading.Event()
def hook(grad):
    started.set()
    time.sleep(60)
y.register_hook(hook)
threading.Thread(target=y.backward, args=(on_device(1.0),), daemon=True).start()
assert started.wait(60)
print("done")
"""
    assert run_script(SCRIPT + script) == ("done\n", "")


def run_script(script):
    source = os.path.dirname(os.path.dirname(torch.__file__))
    environment = {**os.environ, "PYTHONPATH": source}
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, env=environment, check=False
    )
    assert result.returncode == 0, result.stderr
    return result.stdout, result.stderr


def test_one_thread_a_device(device):
    for _ in range(3):
        (leaf(FIRST, 1.0) * 2).backward(ones(FIRST))
    names = [thread.name for thread in threading.enumerate() if thread.name.startswith("retrograd: cuda:0")]
    assert len(names) == 1 and "cuda:0" in threads.queues


@pytest.mark.parametrize("where", [CPU, FIRST])
def test_interrupts_reach_the_caller(device, where):
    c, a = leaf(CPU, 1.0), leaf(FIRST, 1.0)
    y, z = c * 2, a * 2

    def interrupt(grad):
        raise KeyboardInterrupt

    (y if where is CPU else z).register_hook(interrupt)
    with pytest.raises(KeyboardInterrupt):
        torch.autograd.backward([y, z], [ones(CPU), ones(FIRST)])
    (a * 2).backward(ones(FIRST))  # the thread goes on to serve others
    assert a.grad.item() >= 2.0


def test_checkpoints_recompute_on_device_threads(device):
    a, b = leaf(FIRST, 2.0), leaf(SECOND, 3.0)
    seen = []

    def cube(x):
        seen.append(threading.current_thread().name)
        return x * x * x

    y, z = (checkpoint(cube, t, use_reentrant=False) for t in (a, b))
    torch.autograd.backward([y, z], [ones(FIRST), ones(SECOND)])
    assert a.grad.item() == 12.0 and b.grad.item() == 27.0
    here = threading.current_thread().name
    assert seen[:2] == [here] * 2 and sorted(seen[2:]) == ["retrograd: cuda:0", "retrograd: cuda:1"]


# ------------------------------------------------------------------------------------------------------------- the end


def test_a_thread_ends_with_its_device(device):
    x = on_device(1.0, 2.0)
    (x * 2).backward(ones(FIRST, 2))
    thread = threads.running["cuda:0"]
    assert thread.is_alive()
    devices.forget_array_class(FIRST)
    try:
        assert not thread.is_alive() and "cuda:0" not in threads.queues
        assert device not in devices.accelerators
    finally:
        devices.register_array_class(FIRST, device)
    (x * 2).backward(ones(FIRST, 2))  # and another one begins when it is back
    assert x.grad.tolist() == [4, 4] and threads.running["cuda:0"].is_alive()


def test_a_pass_that_waits_for_a_device_that_goes_fails(device):
    """The device goes while its thread runs a node of one pass, and a node of another one is queued."""
    x, z = on_device(1.0), on_device(1.0)
    y, other = x * 2, z * 2
    begun, errors = threading.Event(), []

    def hook(grad):
        begun.set()
        deadline = time.monotonic() + 60
        while "cuda:0" in threads.queues and time.monotonic() < deadline:
            time.sleep(0.001)

    y.register_hook(hook)

    def wait():
        begun.wait(60)
        try:
            other.backward(ones(FIRST))
        except RuntimeError as error:
            errors.append(str(error))

    def go():
        queue = threads.queues["cuda:0"] if begun.wait(60) else None
        while not queue:  # until the other pass has come
            time.sleep(0.001)
        threads.end("cuda:0")

    waiting, going = threading.Thread(target=wait), threading.Thread(target=go)
    waiting.start()
    going.start()
    y.backward(ones(FIRST))
    waiting.join(60)
    going.join(60)
    assert x.grad.tolist() == [2] and z.grad is None
    (error,) = errors
    assert "the device cuda:0 has gone" in error


def test_threads_end_with_the_interpreter():
    program = """
import atexit, threading
import numpy as np
import retrograd as torch
from retrograd.autograd.device_threads import threads
from retrograd.core import devices
from retrograd.tensor import wrap

class Array(np.ndarray):
    pass

devices.register_array_class(Array, torch.device("cuda", 0))
x = wrap(np.ones(1, np.float32).view(Array)).requires_grad_()
(x * 2).backward(wrap(np.ones(1, np.float32).view(Array)))
(thread,) = threads.running.values()
print(thread.is_alive())
# Called after those that were registered later.
threads.end_all()
print(thread.is_alive(), threads.queues)
(x * 2).backward(wrap(np.ones(1, np.float32).view(Array)))
(thread,) = threads.running.values()
real = threads.end
def end(name):
    real(name)
    print("ended", not thread.is_alive())
threads.end = end
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})  # fmt: skip
    assert done.stdout.splitlines() == ["True", "False {}", "ended True"]
