"""Ctrl-C while a mode is being entered or left: afterwards everything is as it was. Note [Interrupts and modes].

A trace function raises KeyboardInterrupt at the n-th place at which Python itself may, in code of this package, for
every n: where a function begins or a generator resumes, after a call, at a jump back.
"""

from __future__ import annotations

import dis
import functools
import os
import random
import signal
import sys
import warnings
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import pytest

import retrograd as torch
from retrograd.autograd import forward_ad, grad_mode, intercept
from retrograd.core.state import Process, ThreadState, local, process
from retrograd.random import rng_states
from retrograd.utils._python_dispatch import TorchDispatchMode
from retrograd.utils.checkpoint import (
    GraphExecGroup,
    checkpoint,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
)
from retrograd.utils.checkpoint.debug import OperatorLog
from retrograd.utils.checkpoint.settings import forked_rng, settings

PACKAGE = os.path.dirname(torch.__file__) + os.sep


class Passing(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def saving_hooks() -> Any:
    return torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x)


#: By name, what makes a mode.
MODES: dict[str, Callable[[], Any]] = {
    "no_grad": torch.no_grad,
    "enable_grad": torch.enable_grad,
    "inference_mode": torch.inference_mode,
    "inference_mode(False)": lambda: torch.inference_mode(False),
    "saved_tensors_hooks": saving_hooks,
    "save_on_cpu": torch.autograd.graph.save_on_cpu,
    "disable_saved_tensors_hooks": lambda: torch.autograd.graph.disable_saved_tensors_hooks("no"),
    "allow_mutation_on_saved_tensors": torch.autograd.graph.allow_mutation_on_saved_tensors,
    "detect_anomaly": torch.autograd.detect_anomaly,
    "dual_level": forward_ad.dual_level,
    "autocast": lambda: torch.autocast("cpu"),
    "autocast, not enabled": lambda: torch.autocast("cpu", enabled=False),
    "fork_rng": torch.random.fork_rng,
    "forked_rng": lambda: forked_rng(rng_states()),
    "dispatch_trace": lambda: torch.autograd.dispatch_trace(show=False),
    "observing": lambda: intercept.observing(lambda operator, args, kwargs, proceed: proceed()),
    "TorchDispatchMode": Passing,
    "GraphExecGroup": GraphExecGroup,
    "set_checkpoint_early_stop": lambda: set_checkpoint_early_stop(False),
    "set_checkpoint_debug_enabled": lambda: set_checkpoint_debug_enabled(True),
    "OperatorLog": OperatorLog,
    "safe_globals": lambda: torch.serialization.safe_globals([dict]),
}
#: These act when they are made; what they were made over is back when they are left.
AT_ONCE: dict[str, Callable[[], Any]] = {
    "set_grad_enabled(False)": lambda: torch.set_grad_enabled(False),
    "set_grad_enabled(True)": lambda: torch.set_grad_enabled(True),
    "set_detect_anomaly": lambda: torch.autograd.set_detect_anomaly(True),
    "set_multithreading_enabled": lambda: torch.autograd.set_multithreading_enabled(False),
    "enforce_grad_layout_policy": lambda: torch.autograd.enforce_grad_layout_policy(False),
    "_set_fwd_grad_enabled": lambda: forward_ad._set_fwd_grad_enabled(False),
    "_force_original_view_tracking": lambda: grad_mode._force_original_view_tracking(True),
}
#: One of these may be entered again while it is on.
NESTING = (
    "no_grad", "enable_grad", "inference_mode", "inference_mode(False)", "saved_tensors_hooks", "save_on_cpu",
    "disable_saved_tensors_hooks", "autocast", "autocast, not enabled", "TorchDispatchMode", "OperatorLog",
    "set_checkpoint_early_stop", "set_checkpoint_debug_enabled",
)  # fmt: skip
DECORATORS = (
    "no_grad", "enable_grad", "inference_mode", "disable_saved_tensors_hooks", "allow_mutation_on_saved_tensors",
    "dual_level", "autocast", "fork_rng", "set_checkpoint_early_stop", *sorted(set(AT_ONCE) - {"set_detect_anomaly"}),
)  # fmt: skip


def everything() -> dict[str, Any]:
    """All that a mode may change."""
    ignored = {"__weakref__", "sequence_nr", "cuts", "no_grad_at", "lost_history"}
    found = {name: getattr(local.state, name) for name in ThreadState.__slots__ if name not in ignored}
    found["process"] = {name: getattr(process, name) for name in Process.__slots__ if name != "levels_opened_by"}
    found["early_stop"], found["debug"] = settings.early_stop, settings.debug
    found["random"] = torch.default_generator.get_state().tolist()
    found["safe"] = torch.serialization.get_safe_globals()
    return found


# --------------------------------------------------------------------------------------------------------- interrupting


@functools.cache
def names_of(code: CodeType) -> dict[int, str]:
    return {instruction.offset: instruction.opname for instruction in dis.get_instructions(code)}


def called(code: CodeType, offset: int) -> bool:
    return names_of(code).get(offset) in ("CALL", "CALL_KW", "CALL_FUNCTION_EX")


@functools.cache
def handler_of(code: CodeType, offset: int) -> int | None:
    """Where an exception at this instruction goes."""
    entries: list[Any] = dis.Bytecode(code).exception_entries  # type: ignore[attr-defined]
    return next((entry.target for entry in entries if entry.start <= offset < entry.end), None)


class Interrupter:
    """A trace function that raises KeyboardInterrupt at the n-th place where Python may, and remembers which it was."""

    def __init__(self, number: int, others: tuple[CodeType, ...] = (), but_not_in: str | None = None) -> None:
        self.left = number
        self.others = others
        self.but_not_in = but_not_in
        self.place: str | None = None
        self.last: dict[FrameType, int] = {}

    def __call__(self, frame: FrameType, event: str, arg: Any) -> Any:
        code = frame.f_code
        if not (code.co_filename.startswith(PACKAGE) or code in self.others):
            return None
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        caller = frame.f_back
        if event == "call" and not (  # what Python leaves: an __exit__ that a `with` statement has just called
            code.co_name == "__exit__" and caller is not None and caller.f_code.co_name != "__exit__"
        ):
            self.here(frame, "begin")
        return self.within

    def within(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "opcode":
            code, now = frame.f_code, frame.f_lasti
            name, before = names_of(code).get(now, ""), self.last.get(frame, -1)
            if name.startswith("JUMP_BACKWARD") or (name == "RESUME" and before >= 0):
                self.here(frame, name)
            elif called(code, before) and handler_of(code, before) == handler_of(code, now):
                # What is raised after a call belongs to it, and here it would to the next instruction.  Where another
                # handler is responsible for that, a `with` block has just ended, and it is as if its body had failed.
                self.here(frame, "after a call")
            self.last[frame] = now
        return self.within

    def here(self, frame: FrameType, what: str) -> None:
        if frame.f_code.co_name == self.but_not_in:
            return
        if self.left == 0:
            self.place = f"{what}: {frame.f_code.co_qualname}, line {frame.f_lineno}"
        self.left -= 1
        if self.place is not None:
            self.last.clear()
            raise KeyboardInterrupt


def interrupted_everywhere(
    run: Callable[..., Any], make: Callable[[], tuple] = lambda: (), **options: Any
) -> list[str]:
    """Runs it over and over (with what `make` makes each time), interrupted at another place each time.

    Returns the places that left something behind.
    """
    left_behind = []
    before = everything()
    # First without an interrupt, twice: since Python 3.13 the instructions of a function are not traced the first time.
    for number in (-1, -1, *range(10_000)):
        interrupter, arguments = Interrupter(number, **options), make()
        tracing = sys.gettrace()
        sys.settrace(interrupter)
        try:
            run(*arguments)
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(tracing)
        if interrupter.place is None and number >= 0:
            assert number > 0, "there was nothing to interrupt"
            return left_behind
        after = everything()
        if after != before:
            changed = [name for name in before if after[name] != before[name]]
            left_behind.append(f"{interrupter.place}: {', '.join(changed)}")
            for name in ThreadState.__slots__:
                if name in before:
                    setattr(local.state, name, before[name])
            for name, value in before["process"].items():
                setattr(process, name, value)
    raise AssertionError("it does not end")


@pytest.fixture(autouse=True)
def quiet(clean_state: None) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


# ---------------------------------------------------------------------------------------------------------------- tests


@pytest.mark.parametrize("name", MODES)
def test_modes(name: str) -> None:
    def make() -> tuple[Any]:
        return (MODES[name](),)

    def body(mode: Any) -> None:
        with mode:
            if "fork" in name:
                torch.default_generator.twister.random()

    def failing(mode: Any) -> None:
        try:
            with mode:
                raise ZeroDivisionError
        except ZeroDivisionError:
            pass

    def twice(mode: Any) -> None:
        with mode, mode:
            pass

    assert interrupted_everywhere(body, make) == []
    assert interrupted_everywhere(failing, make) == []
    if name in NESTING:
        assert interrupted_everywhere(twice, make) == []
    if name != "disable_saved_tensors_hooks":
        anomaly = torch.autograd.detect_anomaly()
        with torch.no_grad(), torch.autocast("cpu"), saving_hooks(), forward_ad.dual_level(), anomaly:
            assert interrupted_everywhere(body, make) == []


@pytest.mark.parametrize("name", AT_ONCE)
def test_modes_that_act_at_once(name: str) -> None:
    make = AT_ONCE[name]

    def body() -> None:
        with make():
            pass

    assert interrupted_everywhere(body, but_not_in="__enter__") == []


@pytest.mark.parametrize("name", DECORATORS)
def test_decorated_functions(name: str) -> None:
    make = {**MODES, **AT_ONCE}[name]
    before = everything()
    decorated = make()(lambda: None)
    assert everything() == before  # also those that act at once: as a decorator they are about the function alone
    assert interrupted_everywhere(decorated) == []


def test_decorated_generators() -> None:
    @torch.no_grad()
    def numbers() -> Any:
        yield 1
        yield 2

    @torch.inference_mode()
    async def number() -> int:
        return 1

    def run_coroutine() -> None:
        try:
            number().send(None)
        except StopIteration:
            pass

    assert interrupted_everywhere(lambda: list(numbers())) == []
    assert interrupted_everywhere(run_coroutine) == []


def test_operators_under_observers() -> None:
    x = torch.ones(2)

    def run(trace: Any) -> None:
        with saving_hooks(), trace:
            x * 2

    assert interrupted_everywhere(run, lambda: (torch.autograd.dispatch_trace(show=False),)) == []

    def dual() -> None:
        with forward_ad.dual_level():
            forward_ad.unpack_dual(forward_ad.make_dual(x, x) * 2)

    assert interrupted_everywhere(dual) == []


def test_checkpoints() -> None:
    x = torch.ones(2, requires_grad=True)

    def run() -> None:
        checkpoint(torch.sin, x, use_reentrant=False)

    assert interrupted_everywhere(run) == []


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * 2

    @staticmethod
    def jvp(ctx: Any, tangent: Any) -> Any:
        return tangent * 2


def test_custom_functions_and_backward_passes() -> None:
    x = torch.ones(2, requires_grad=True)

    def run() -> None:
        y = Double.apply(x)
        y.register_hook(lambda grad: None)
        y.sum().backward()

    assert interrupted_everywhere(run) == []

    def dual() -> None:
        with forward_ad.dual_level():
            Double.apply(forward_ad.make_dual(torch.ones(2), torch.ones(2)))

    assert interrupted_everywhere(dual) == []


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # in a generator that is being closed
def test_backward_under_observers() -> None:
    x = torch.ones(2, requires_grad=True)

    def run() -> None:
        with saving_hooks(), forward_ad.dual_level():
            (forward_ad.make_dual(x, torch.ones(2)) * 2).sum().backward()

    assert interrupted_everywhere(run) == []


class Careless:
    """Calls something after it has changed the mode, and before it changes it back."""

    def __enter__(self) -> None:
        local.state.view_replay = True
        len("")

    def __exit__(self, *exc_info: object) -> None:
        len("")
        local.state.view_replay = False


def test_the_test_finds_what_is_left_behind() -> None:
    def run() -> None:
        with Careless():
            pass

    codes = (Careless.__enter__.__code__, Careless.__exit__.__code__)
    found = interrupted_everywhere(run, others=codes)
    assert [place.partition(",")[0] for place in found] == [
        "after a call: Careless.__enter__", "after a call: Careless.__exit__",
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers")
def test_signals() -> None:
    """The real thing, at random. The handler looks away where Python leaves no remedy."""
    chance = random.Random(0)
    armed = False
    interrupts = 0

    def handler(number: int, frame: FrameType | None) -> None:
        nonlocal armed
        assert frame is not None
        at_the_beginning = names_of(frame.f_code).get(frame.f_lasti) == "RESUME"
        if armed and not (frame.f_code.co_name == "__exit__" and at_the_beginning):
            armed = False
            raise KeyboardInterrupt

    # (A dispatch trace has a hook that Python calls at the end of every function, of an __enter__ too.)
    without = ("GraphExecGroup", "allow_mutation_on_saved_tensors", "dispatch_trace")
    makers = [MODES[name] for name in MODES if name not in without]
    before = everything()
    previous = signal.signal(signal.SIGALRM, handler)
    try:
        for _ in range(40_000):
            make = chance.choice(makers)
            try:
                armed = True
                signal.setitimer(signal.ITIMER_REAL, chance.uniform(1e-6, 1e-4))
                for _ in range(100):
                    with make(), torch.no_grad():
                        pass
            except KeyboardInterrupt:
                interrupts += 1
            armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            assert everything() == before
    finally:
        armed = False
        signal.signal(signal.SIGALRM, previous)
    assert interrupts > 10_000
