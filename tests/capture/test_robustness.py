"""Captured steps when something goes wrong: interrupts, errors while a program is made, threads that record at once."""

import builtins
import gc
import sys
import threading
import time

import numpy as np
import pytest

import retrograd as torch
from retrograd._generated import functions as generated
from retrograd.capture import CaptureError, api, device, patching, session


def training():
    w = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1, momentum=0.9)

    @torch.capture(backend="plain")
    def step(x):
        optimizer.zero_grad()
        loss = (w * x).square().sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return w, optimizer, step


def state(w, optimizer):
    return w.tolist(), w._version, w.grad.tolist(), optimizer.state[w]["momentum_buffer"].tolist()


def is_free(lock):
    found = []

    def ask():
        found.append(lock.acquire(blocking=False))
        if found[0]:
            lock.release()

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    return found[0]


class Interrupt:
    """Raises KeyboardInterrupt at a line of the functions that put the wrappers in their places and take them back."""

    def __init__(self, line, file="patching.py", names=("__enter__", "__exit__", "take_back", "put_back")):
        self.left, self.file, self.names = line, file, names

    def __call__(self, frame, event, arg):
        if not frame.f_code.co_filename.endswith(self.file) or frame.f_code.co_name not in self.names:
            return None
        if event == "line":
            self.left -= 1
            if not self.left:
                raise KeyboardInterrupt
        return self


def test_wrappers_are_taken_back_though_it_is_interrupted():
    torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1)

    def names():
        return builtins.print, time.time, threading.Thread.start, generated.kernel_select, torch.optim.SGD.step

    before, line, interrupted = names(), 0, True
    while interrupted:
        line += 1 if line < 30 else 41
        w, _, step = training()
        known = sys.gettrace()
        trace = Interrupt(line)
        sys.settrace(trace)
        try:
            step(torch.ones(3))
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(known)
        interrupted = trace.left <= 0
        assert names() == before, line
        assert gc.isenabled(), line
        assert not patching.active, line
        assert is_free(patching.one_at_a_time), line
        assert w._memory_.__class__ is np.ndarray
        step(torch.ones(3))
    assert line > 10


def test_a_step_that_fails_is_undone_though_that_is_interrupted():
    w, line, interrupted, kept = torch.ones(3, requires_grad=True), 0, True, []

    @torch.capture
    def step(x):
        kept.append(w * x)
        raise ValueError

    while interrupted:
        line += 1 if line < 20 else 17
        kept.clear()
        known = sys.gettrace()
        trace = Interrupt(line, "session.py", ("_leave", "_alive", "_unbox_strays", "undo"))
        sys.settrace(trace)
        try:
            step(torch.ones(3))
        except (ValueError, KeyboardInterrupt):
            pass
        finally:
            sys.settrace(known)
        interrupted = trace.left <= 0
        assert w._memory_.__class__ is kept[-1]._memory_.__class__ is np.ndarray, line
        assert not patching.active and is_free(patching.one_at_a_time), line
    assert line > 20


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_error_while_a_program_is_made(error, monkeypatch):
    """The call leaves the world as it was, and the next ones make the program."""
    w, optimizer, step = training()
    for _ in range(2):
        step(torch.ones(3))
    before = state(w, optimizer)

    def fail(program):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(api, "Memory", fail)
        with pytest.raises(error):
            step(torch.ones(3))
    assert state(w, optimizer) == before
    other, others_optimizer, eager = training()
    for _ in range(2):
        eager.function(torch.ones(3))
    for _ in range(4):
        assert torch.equal(step(torch.ones(3)), eager.function(torch.ones(3)))
    assert state(w, optimizer) == state(other, others_optimizer)
    assert step.source


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize(("module", "name", "calls"), [(session, "Program", 1), (api, "how_many_modules", 2)])
def test_an_error_while_a_recording_becomes_a_program(module, name, calls, error, monkeypatch):
    """It is undone with all that it was made for: parameters require grad as before, arguments have their values."""
    w, function, called = torch.ones(3, requires_grad=True), getattr(module, name), []

    @torch.capture(backend="plain")
    def step(x):
        w.grad = None
        (w * x).square().sum().backward()
        with torch.no_grad():
            x += w.grad
            w.sub_(w.grad)
        return x.sum()

    def fail(*args):
        result = function(*args)
        called.append(name)
        if len(called) == calls:
            raise error
        return result

    x = torch.ones(3)
    with monkeypatch.context() as patch:
        patch.setattr(module, name, fail)
        with pytest.raises(error):
            step(x)
    assert x.tolist() == w.tolist() == [1.0] * 3
    assert w.requires_grad and w.grad is None and not x.requires_grad
    eager, v = step.function, torch.ones(3)
    found = [(step(x).item(), x.tolist(), w.tolist(), w.grad.tolist()) for _ in range(4)]
    with torch.no_grad():
        w.fill_(1.0)
    assert found == [(eager(v).item(), v.tolist(), w.tolist(), w.grad.tolist()) for _ in range(4)]


def test_a_call_that_differs_leaves_the_world_as_it_was():
    w, optimizer, step = training()
    many = [0.0] * 70_000  # so many that nobody watches them

    @torch.capture(backend="plain")
    def other(x):
        many[7] += 1.0
        return step.function(x * many[7])

    step.function(torch.ones(3))
    other(torch.ones(3))
    before = state(w, optimizer)
    with pytest.raises(CaptureError, match="did different things"):
        other(torch.ones(3))
    assert state(w, optimizer) == before


def test_threads_that_record_one_step_at_once(monkeypatch):
    wrong, difference = [], api.difference

    def slow(first, second):
        time.sleep(0.05)
        return difference(first, second)

    def calls(number):
        barrier.wait()
        for _ in range(4):
            try:
                if step(torch.full((3,), number)).item() != 6 * number + 3:
                    wrong.append(number)
            except Exception as error:
                wrong.append(error)

    monkeypatch.setattr(api, "difference", slow)
    step = torch.capture(lambda x: (x * 2 + 1).sum(), backend="plain")
    barrier = threading.Barrier(4)
    threads = [threading.Thread(target=calls, args=(float(number),)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert sum(map(len, step._entries.values())) == 1


def test_programs_that_fail_where_the_function_does_not(monkeypatch):
    def fail(self, tensors):
        raise ValueError

    step = torch.capture(lambda x: x * 2, backend="plain")
    monkeypatch.setattr(api.Entry, "replay", fail)
    with pytest.warns(UserWarning, match=r"captured 8 times.*what raised a ValueError") as found:
        for call in range(40):
            assert step(torch.full((2,), call)).tolist() == [2 * call] * 2
    assert len(found) == 1
    assert not step._entries  # of which none is of use


def test_what_is_known_of_calls_does_not_grow_without_end(monkeypatch):
    monkeypatch.setattr(api, "accelerators", [True])
    monkeypatch.setattr(device, "is_step_on_device", lambda function, tensors: False)
    step = torch.capture(lambda x, number: x * number, backend="plain")
    with pytest.warns(UserWarning, match="captured 8 times"):
        for call in range(1200):
            step(torch.ones(2), call)
    assert max(map(len, (step._devices, step._entries, step._outlines, step._eager))) <= 512


def test_a_backward_pass_of_another_thread_into_a_leaf_that_is_recorded():
    w, found = torch.ones(3, requires_grad=True), []
    begin, end = threading.Barrier(2), threading.Barrier(2)

    def step(x):
        y = w * x
        begin.wait()  # a replay does not
        end.wait()
        return torch.autograd.grad(y.sum(), w)[0]

    def other():
        for _ in range(2):
            begin.wait()
            try:
                found.append(torch.autograd.grad((w * 2).sum(), w)[0].tolist())
                found.append(torch.autograd.grad((w * w).sum(), w, create_graph=True)[0].tolist())
            except Exception as error:
                found.append(error)
            end.wait()

    thread = threading.Thread(target=other)
    thread.start()
    captured = torch.capture(step, backend="plain")
    for call in range(4):
        assert captured(torch.full((3,), call)).tolist() == [call] * 3
    thread.join()
    assert found == [[2.0] * 3] * 4


def test_a_captured_function_that_the_handler_of_a_signal_calls():
    """It is not recorded in the middle of another recording, which intercepts no operators just then."""
    captured, x = torch.capture(lambda x: x * 3 + 1, backend="plain"), torch.ones(3)

    def handler(frame, event, arg):
        if frame.f_code.co_name == "reduce" and frame.f_code.co_filename.endswith("recording.py"):
            sys.settrace(None)
            captured(x)

    @torch.capture(backend="plain")
    def step(x):
        sys.settrace(handler)
        total = (x * 2).sum(0)
        sys.settrace(None)
        return total

    try:
        assert [step(x).item() for _ in range(3)] == [6.0] * 3
    finally:
        sys.settrace(None)
    assert [captured(x).tolist() for _ in range(3)] == [[4.0] * 3] * 3
    assert step.source and captured.source
