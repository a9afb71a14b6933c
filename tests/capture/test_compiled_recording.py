"""Recordings and plans of the compiled core beside those of the Python that they stand for: the same."""

from __future__ import annotations

import gc
import queue
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

import retrograd as torch
from capture.programs import World, draw_program, make_step
from retrograd.capture.arrays import RecordedArray
from retrograd.capture.errors import CaptureError
from retrograd.capture.memory import Memory
from retrograd.capture.plain import write_plain
from retrograd.capture.session import Recording
from retrograd.capture.values import Value
from retrograd.core import compiled

pytestmark = pytest.mark.skipif(compiled.library is None, reason="there is no compiled core")


def chain(x):
    b = torch.full((4,), 0.5)
    x = x.detach().requires_grad_()
    y = x
    for _ in range(3):
        y = (y * b + 1) / 2 - y
    loss = (-y).sum()
    loss.backward()
    return loss.detach(), x.grad


def numbers(x):
    x = x.detach().requires_grad_()
    total = 0
    for i in range(3):
        total = total + 100 * (x[i + 1] - x[i] ** 2) ** 2 + (1 - x[-1]) ** 2
    return total.detach(), torch.autograd.grad(total, x)[0]


def second_order(x):
    x = x.detach().requires_grad_()
    (g,) = torch.autograd.grad((x * x * x).sum(), x, create_graph=True)
    (h,) = torch.autograd.grad((g * g).sum(), x)
    return g.detach(), h


def with_state(x):
    WEIGHT.grad = None
    loss = (WEIGHT * x - x * 0.0 + WEIGHT[1] * -0.0).sum()
    loss.backward()
    return loss.detach()


WEIGHT = torch.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
STEPS = [chain, numbers, second_order, with_state]


class Switched:
    """The library without some of its functions, which Python then does itself."""

    def __init__(self, *without: str) -> None:
        self.without = without

    def __getattr__(self, name):
        if name in self.without:
            return {"record_with": lambda recorder: None, "pass_at": lambda task, place: None,
                    "holders": lambda recorder: 0}.get(name, lambda *args: None)  # fmt: skip
        return getattr(compiled_library, name)


compiled_library = compiled.library
RECORDING = ("record_with", "pass_at", "holders", "are_plain_nodes")


def recorded(step, dtype, monkeypatch, *without):
    """Two recordings of a step, the second of which is compared with the first."""
    monkeypatch.setattr(compiled, "library", Switched(*without))
    x = torch.tensor([0.5, -1.0, 2.0, 3.0], dtype=dtype)
    first = Recording(step, (x,), {}, [x], False, False)
    return first, Recording(step, (x,), {}, [x], False, False, first.recorder.calls)


def in_words(tree):
    """Arguments of a call, with values by what they are."""
    if tree.__class__ is Value:
        return (*tree.key, tree.storage.kind, tree.array is None)
    if isinstance(tree, (tuple, list)):
        return tuple(map(in_words, tree))
    return repr(tree)


def described(recording):
    calls = [
        (c.kind, c.name, c.function, in_words(c.args), sorted(c.kwargs), str(c.where), in_words(c.reads),
         in_words(c.results), in_words(c.writes), c.impure, c.looks, c.may_raise)
        for c in recording.recorder.calls
    ]  # fmt: skip
    storages = [(s.number, s.kind, s.size, s.held.__class__) for s in recording.recorder.storages]
    return calls, storages


@pytest.mark.parametrize(
    ("step", "dtype"),
    [(step, torch.float32) for step in STEPS] + [(step, torch.float64) for step in (chain, numbers, second_order)],
)
def test_recordings_are_those_of_python(step, dtype, monkeypatch):
    ours, again = recorded(step, dtype, monkeypatch)
    theirs, theirs_again = recorded(step, dtype, monkeypatch, *RECORDING)
    for mine, other in ((ours, theirs), (again, theirs_again)):
        calls, storages = described(mine)
        expected, expected_storages = described(other)
        assert len(calls) > 10
        for one, two in zip(calls, expected, strict=True):
            assert one == two
        assert storages == expected_storages
    # The second recording consists of the calls of the first, but for those of whole kernels.
    same = [one is two for one, two in zip(ours.recorder.calls, again.recorder.calls, strict=True)]
    assert sum(same) >= len(same) - 6


def test_the_core_has_recorded_them(monkeypatch):
    ours, _ = recorded(numbers, torch.float32, monkeypatch)
    theirs, _ = recorded(numbers, torch.float32, monkeypatch, *RECORDING)
    assert len(ours.recorder.boxes) < 10 < len(theirs.recorder.boxes)


def planned(number, library, monkeypatch):
    """A program, by the core or by Python: its calls, constants, places, lines and steps."""
    if number < len(STEPS):
        recording, _ = recorded(STEPS[number], torch.float32, monkeypatch)
    else:
        step = make_step(torch, draw_program(number), World(torch, number, torch.float32), 0.05)
        torch.manual_seed(number)
        args = torch.rand(3, 3), torch.rand(3, 3) - 0.5, torch.eye(2)
        recording = Recording(step, args, {}, list(args), False, False)
    monkeypatch.setattr(compiled, "library", library)
    program = recording.program
    calls = described(recording)[0]
    program.lay_out()
    memory = Memory(program)
    writer = write_plain(program, memory)
    steps = [
        (getattr(function, "__name__", "?"), [_where(arg, memory) for arg in args])
        for name, thing in writer.names.items() if name.startswith("steps") for function, args in thing
    ]  # fmt: skip
    plan = program.plan
    left = [(call.name, in_words(call.reads), in_words(call.results), in_words(call.writes)) for call in program.calls]
    return calls, left, program.constants, plan.offsets, plan.arena, plan.unplanned, len(writer.lines), steps


@pytest.mark.parametrize("number", range(24))
def test_plans_are_those_of_python(number, monkeypatch):
    ours, theirs = (planned(number, library, monkeypatch) for library in (compiled_library, None))
    for one, two in zip(ours, theirs, strict=True):
        assert one == two
    assert number >= len(STEPS) or len(ours[-1]) > 4, "no step was looked at"


def _where(arg, memory):
    """An array by the place where it lies, shape and strides; anything else as it is."""
    if not isinstance(arg, np.ndarray):
        return repr(arg)
    start = arg.__array_interface__["data"][0]
    places = [start - memory.arena.__array_interface__["data"][0] if memory.arena.nbytes else -1]
    inside = 0 <= places[0] < memory.arena.nbytes
    return places[0] if inside else arg.tobytes(), arg.shape, arg.strides, arg.dtype


def test_a_large_array_is_planned_by_python(monkeypatch):
    x = torch.ones(400)
    recording = Recording(lambda x: x * x + x, (x,), {}, [x], False, False)
    program = recording.program
    assert compiled_library.place_small(program.calls, program.storages, program.constants, set()) is None
    program.lay_out()
    assert program.plan.arena >= 1600


def test_a_tensor_that_is_kept_is_found():
    kept = queue.SimpleQueue()  # which is not watched

    @torch.capture(backend="plain")
    def step(x):
        y = x * 2
        kept.put(y)
        return y + 1

    with pytest.raises(CaptureError, match=r"keeps a tensor of shape \[3\]"):
        step(torch.ones(3))


def test_nothing_of_a_recording_is_left():
    x = torch.ones(4)
    before = sum(one.__class__ is RecordedArray for one in gc.get_objects())
    recording = Recording(chain, (x,), {}, [x], False, False)
    recorder = weakref.ref(recording.recorder)
    assert sum(one.__class__ is RecordedArray for one in gc.get_objects()) == before
    del recording
    assert recorder() is None  # without a collection


def test_another_thread_computes_with_the_arrays():
    """A thread that does not record meets a tensor whose array is recorded: it gets its values."""
    w = torch.full((4,), 2.0)
    seen = queue.SimpleQueue()  # which is not watched
    is_recorded, is_done = threading.Event(), threading.Event()

    def other():
        is_recorded.wait()
        v = torch.ones(4, requires_grad=True)
        y = (v * w + w[0]).sum()
        y.backward()
        seen.put((y.item(), v.grad.tolist()))
        is_done.set()

    def step(x):
        y = w * x  # from here on, w holds a recorded array
        is_recorded.set()
        is_done.wait(10)
        return y

    threading.Thread(target=other, daemon=True).start()
    recording = Recording(step, (torch.full((4,), 3.0),), {}, [], False, False)
    assert seen.get_nowait() == (16.0, [2.0] * 4)
    assert recording.result.tolist() == [6.0] * 4


_ONE_LOOK = """
import retrograd as torch
from retrograd.capture import patching

x = torch.ones(3)
w = torch.ones(3, requires_grad=True)

@torch.capture
def step(x):
    w.grad = None
    (x * w).sum().backward()

step(x)
known = patching._places
step(x)
assert patching._places is known
"""


def test_names_of_kernels_are_looked_for_once():
    """What the core reads for its first pass is there before."""
    subprocess.run([sys.executable, "-c", _ONE_LOOK], check=True)


_SET_MEANWHILE = """
import sys
import numpy as np
import retrograd as torch

w = torch.ones(1000)

def set_w(frame, event, arg):  # as another thread may
    if frame.f_code.co_name == "of":
        sys.settrace(None)
        w._memory_ = np.zeros(1000, np.float32)

@torch.capture(backend="plain")
def step(x):
    sys.settrace(set_w)  # (its value is asked for in Python)
    y = w[3]
    sys.settrace(None)
    return x * y

for _ in range(7):
    w._memory_ = np.ones(1000, np.float32)
    assert step(torch.ones(4)).tolist() == [1.0] * 4
"""


def test_memory_that_is_set_while_a_view_of_it_is_recorded():
    """(This was a crash.)"""
    subprocess.run([sys.executable, "-c", _SET_MEANWHILE], check=True)


@pytest.mark.parametrize("offset", [10**6, -(10**6), 10**14])
def test_no_array_lies_outside_of_the_memory(offset, monkeypatch):
    """Whatever is wrong with a plan, NumPy refuses it, as it does without the core."""
    recording, _ = recorded(chain, torch.float32, monkeypatch)
    program = recording.program
    program.lay_out()
    made = [value for call in program.calls for value in call.results if value.storage.number in program.plan.offsets]
    made[3].offset = offset
    with pytest.raises((ValueError, TypeError), match="buffer"):
        write_plain(program, Memory(program))


def test_calls_in_storages_that_are_not_known_are_left_to_python(monkeypatch):
    recording, _ = recorded(chain, torch.float32, monkeypatch)
    calls, storages = recording.recorder.calls, len(recording.recorder.storages)
    assert compiled_library.live(calls, storages - 1, set(), set()) is None
    assert compiled_library.live(calls, storages, set(), set()) == []


class Slotted:
    """Something that a step finds in the world."""

    __slots__ = ("number",)

    def __init__(self, number):
        self.number = number


class Entries(dict):
    """Another."""


WORLD = {"number": 2.0, "list": [1.0]}, Entries(number=3.0), Slotted(4.0)


@pytest.mark.parametrize("which", range(1, 5))  # (as many functions as it calls)
def test_what_handlers_of_signals_raise_while_the_world_is_looked_at(which):
    table, entries, slotted = WORLD

    @torch.capture(backend="plain")
    def step(x):
        return x * table["number"] + table["list"][0] + entries["number"] + slotted.number

    x = torch.ones(3)
    for _ in range(3):
        expected = step(x)
    error, seen = TimeoutError("late"), []

    def handler(frame, event, arg):
        if frame.f_code.co_filename.endswith(("guards.py", "watched.py")) and frame.f_code.co_name != "changed":
            seen.append(frame)
            if len(seen) == which:
                sys.settrace(None)
                raise error

    try:
        sys.settrace(handler)
        with pytest.raises(TimeoutError, match="late"):
            step(x)
    finally:
        sys.settrace(None)
    assert step(x).tolist() == expected.tolist()


def test_where_there_is_no_memory(monkeypatch):
    """Each allocation fails once: that is a MemoryError, and no other."""
    testing = pytest.importorskip("_testcapi", reason="this Python came without its own tests")
    recording, _ = recorded(numbers, torch.float32, monkeypatch)
    program, library = recording.program, compiled_library
    program.lay_out()
    calls, storages, memory = recording.recorder.calls, recording.recorder.storages, Memory(program)
    made = [value.storage.number for value in program.escaping]
    asked = [
        (library.live, calls, len(storages), set(made), set()),
        (library.without_constants, calls, storages, set(made)),
        (library.place_small, program.calls, storages, program.constants, set(made)),
        (library.others, calls),
        (library.living, storages),
        (library.let_go, storages, program.constants),
        (library.steps, program.calls, program.plan.offsets, memory.arena, {}, memory.view, {}, lambda call: [None]),
    ]
    for function, *args in asked:
        times = next(times for times in range(10_000) if not has_no_memory(testing, times, function, args))
        assert times > 0, "no allocation has failed"


def has_no_memory(testing, after, function, args):
    """Is there a MemoryError if an allocation fails after so many?"""
    try:
        try:
            testing.set_nomemory(after, after + 1)
            function(*args)
        finally:
            testing.remove_mem_hooks()
    except MemoryError:
        testing.remove_mem_hooks()  # (in the midst of which it may have come)
        return True
    return False
