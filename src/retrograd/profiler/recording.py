"""Events are recorded: of each operator, by an observer (autograd/intercept.py), and of blocks that have a name."""

from __future__ import annotations

import functools
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from ..autograd.intercept import observing, results_of
from ..ops.overload import overload_of
from ..tensor import Tensor
from .events import EventList, FunctionEvent

_this = threading.local()


def _now() -> float:
    return time.perf_counter_ns() / 1e3


def _lines() -> list[str]:
    """The lines of the program which are running, innermost first."""
    found = []
    frame: Any = sys._getframe(1)
    package = __name__.partition(".")[0]
    while frame is not None:
        if (frame.f_globals.get("__package__") or "").partition(".")[0] != package:
            found.append(f"{frame.f_code.co_filename}({frame.f_lineno}): {frame.f_code.co_name}")
        frame = frame.f_back
    return found


class Recorder:
    """The observer of a profile: what a thread runs while it is on."""

    needs_tensors = True  # so that backward passes run operators, which can be seen

    def __init__(self, record_shapes: bool, profile_memory: bool, with_stack: bool) -> None:
        self.record_shapes, self.profile_memory, self.with_stack = record_shapes, profile_memory, with_stack
        self.events = EventList(profile_memory=profile_memory)
        self.running: list[FunctionEvent] = []

    def begin(self, name: str, is_user_annotation: bool = False) -> FunctionEvent:
        event = FunctionEvent(name, threading.get_ident(), _now(), is_user_annotation)
        if self.running:
            event.cpu_parent = self.running[-1]
            event.cpu_parent.cpu_children.append(event)
        if self.with_stack:
            event.stack = _lines()
        self.running.append(event)
        self.events.append(event)
        return event

    def end(self, event: FunctionEvent) -> None:
        now = _now()
        while event in self.running:  # one that an exception has left open ends here too
            self.running.pop().close(now)

    def __call__(self, operator: Callable, args: tuple, kwargs: dict, proceed: Callable) -> Any:
        event = self.begin("aten::" + overload_of(operator).overloadpacket.__name__)
        if self.record_shapes:
            event.input_shapes = [list(a.shape) if isinstance(a, Tensor) else [] for a in args]
        try:
            result = proceed()
            if self.profile_memory:
                event.self_cpu_memory_usage = sum(
                    tensor._memory.nbytes for tensor in results_of(result) if tensor._memory.base is None
                )
            return result
        finally:
            self.end(event)


class recording:
    """A profile of what this thread runs within a block."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def __enter__(self) -> Recorder:
        self.observing = observing(self.recorder)
        self.observing.__enter__()
        self.before = getattr(_this, "recorders", ())
        _this.recorders = (*self.before, self.recorder)
        return self.recorder

    def __exit__(self, *exc_info: object) -> None:
        _this.recorders = self.before
        self.observing.__exit__(*exc_info)
        for event in list(self.recorder.running):
            self.recorder.end(event)


class record_function:
    """A name for a block, or for what a function does, in the profiles that are on.

    >>> import retrograd as torch
    >>> x = torch.ones(2)
    >>> with torch.profiler.profile() as profile, torch.profiler.record_function("doubling"):
    ...     y = x * 2
    >>> [event.key for event in profile.events()]
    ['doubling', 'aten::mul']
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args
        self.open: list[tuple[Recorder, FunctionEvent]] = []

    def __enter__(self) -> record_function:
        self.open = [(recorder, recorder.begin(self.name, True)) for recorder in getattr(_this, "recorders", ())]
        return self

    def __exit__(self, *exc_info: object) -> None:
        for recorder, event in self.open:
            recorder.end(event)
        self.open = []

    def __call__(self, function: Callable) -> Callable:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.name, self.args):
                return function(*args, **kwargs)

        return call
