"""Device threads, by a second device that computes on the CPU: its arrays are a subclass of NumPy's."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import retrograd as torch
from retrograd import devices
from retrograd.autograd.worker_threads import MAX_DEPTH
from retrograd.tensor import wrap

pytestmark = pytest.mark.usefixtures("clean_state")


class OtherArray(np.ndarray):
    """An array of the test device."""


@pytest.fixture
def device():
    where = torch.device("cuda", 0)
    devices.register_array_class(OtherArray, where)
    yield where
    del devices._BY_ARRAY_CLASS[OtherArray]
    devices.accelerators.remove(where)


def on_device(*values):
    return wrap(np.array(values, dtype=np.float32).view(OtherArray)).requires_grad_()


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
