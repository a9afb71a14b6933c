"""``torch.profiler``: which operators a block runs, and how long each takes, on the processor.

>>> import retrograd as torch
>>> x = torch.ones(2, 2)
>>> with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as profile:
...     y = (x @ x).sum()
>>> [(event.key, event.count) for event in profile.key_averages()]
[('aten::mm', 1), ('aten::sum', 1)]
>>> text = profile.key_averages().table(sort_by="cpu_time_total", row_limit=10)
"""

from __future__ import annotations

import enum
import os
import socket
import time
from collections.abc import Callable, Iterable
from typing import Any

from ..core.said_once import say_once
from .events import EventList
from .recording import Recorder, record_function, recording

__all__ = [
    "ProfilerAction", "ProfilerActivity", "kineto_available", "profile", "record_function", "schedule",
    "supported_activities", "tensorboard_trace_handler",
]  # fmt: skip


class ProfilerActivity(enum.Enum):
    """What can be watched: here, the processor."""

    CPU = 0
    XPU = 1
    CUDA = 2
    MTIA = 3
    HPU = 4
    PrivateUse1 = 5


class ProfilerAction(enum.Enum):
    """What a profile does in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def supported_activities() -> set[ProfilerActivity]:
    """What can be watched."""
    return {ProfilerActivity.CPU}


def kineto_available() -> bool:
    """Is torch's library for tracing devices here?"""
    return False


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """Which steps are recorded: after `skip_first` steps, `wait` and `warmup` are left out and `active` are recorded,
    `repeat` times, or again and again if that is 0. With `skip_first_wait`, the first round does not wait.

    >>> import retrograd as torch
    >>> plan = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
    >>> [plan(step).name for step in range(5)]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    if wait < 0 or warmup < 0 or active <= 0 or repeat < 0 or skip_first < 0:
        raise AssertionError("Invalid profiler schedule arguments: active is at least 1, the others at least 0")
    if warmup == 0:
        say_once("Profiler won't be using warmup, this can skew profiler results")

    def plan(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        round_, within = divmod(step, wait + warmup + active)
        if repeat and round_ >= repeat:
            return ProfilerAction.NONE
        if within < wait:
            return ProfilerAction.NONE
        if within < wait + warmup:
            return ProfilerAction.WARMUP
        last = within == wait + warmup + active - 1
        return ProfilerAction.RECORD_AND_SAVE if last else ProfilerAction.RECORD

    return plan


def tensorboard_trace_handler(dir_name: str, worker_name: str | None = None, use_gzip: bool = False) -> Callable:
    """For `on_trace_ready`: write each trace to a file of its own in `dir_name`."""

    def handler(found: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        path = os.path.join(dir_name, f"{worker}.{time.time_ns()}.pt.trace.json")
        found.export_chrome_trace(path + ".gz" if use_gzip else path)

    return handler


def _note(use_cuda: Any, activities: Iterable[Any] | None, with_flops: bool, with_modules: bool) -> None:
    wanted = {a for a in activities or () if isinstance(a, ProfilerActivity)}
    if use_cuda or wanted - supported_activities():
        say_once("CUDA is not available, disabling CUDA profiling: the operators of the processor are recorded")
    if with_flops or with_modules:
        say_once("with_flops and with_modules of a profile are not counted by retrograd: times and calls are")


class profile:
    """Records the operators that this thread runs within a block; with a `schedule`, in some steps of it.

    After each round of a schedule, and at the end of the block without one, `on_trace_ready` is called.
    """

    def __init__(
        self,
        *,
        activities: Iterable[Any] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
    ) -> None:
        _note(use_cuda, activities, with_flops, with_modules)
        if experimental_config is not None or execution_trace_observer is not None:
            raise ValueError("experimental_config and execution_trace_observer are of torch's tracer: leave them out")
        self.activities = set(activities or supported_activities())
        self.schedule = schedule or (lambda step: ProfilerAction.RECORD)
        self._planned = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.record_shapes, self.profile_memory, self.with_stack = record_shapes, profile_memory, with_stack
        self.acc_events = acc_events
        self.step_num: int = 0
        self.current_action = self.schedule(0)
        self._recording: recording | None = None
        self._events: EventList | None = None
        self._step: record_function | None = None

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin, as the block does."""
        self._begin_if_wanted()

    def stop(self) -> None:
        """End, as the block does."""
        if self._recording is not None:
            self._end()
            if self.on_trace_ready is not None:
                self.on_trace_ready(self)

    def step(self) -> None:
        """The next step of the schedule begins."""
        before = self.current_action
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        if before is ProfilerAction.RECORD_AND_SAVE and self._recording is not None:
            self._end()
            if self.on_trace_ready is not None:
                self.on_trace_ready(self)
        elif self._step is not None:
            self._step.__exit__()
            self._step = None
        self._begin_if_wanted()

    def _begin_if_wanted(self) -> None:
        if self.current_action in (ProfilerAction.NONE, ProfilerAction.WARMUP):
            return
        if self._recording is None:
            self._recording = recording(Recorder(self.record_shapes, self.profile_memory, self.with_stack))
            self._recording.__enter__()
        if self._planned:
            self._step = record_function(f"ProfilerStep#{self.step_num}")
            self._step.__enter__()

    def _end(self) -> None:
        assert self._recording is not None
        if self._step is not None:
            self._step.__exit__()
            self._step = None
        self._recording.__exit__(None, None, None)
        found = self._recording.recorder.events
        if self.acc_events and self._events is not None:
            self._events.extend(found)
        else:
            self._events = found
        self._recording = None

    def events(self) -> EventList:
        """What was recorded."""
        if self._events is None:
            if self._recording is None:
                raise AssertionError("nothing was recorded yet: the profile was not started, or its schedule waits")
            return self._recording.recorder.events
        return self._events

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """Events of one name as one; see `EventList.key_averages`."""
        return self.events().key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def export_chrome_trace(self, path: str) -> None:
        """Write the events to a file that Chrome's ``about:tracing`` and Perfetto read; packed, if it ends in .gz."""
        if not path.endswith(".gz"):
            return self.events().export_chrome_trace(path)
        import gzip
        import tempfile

        with tempfile.NamedTemporaryFile(suffix=".json") as plain:
            self.events().export_chrome_trace(plain.name)
            with gzip.open(path, "wb") as packed:
                packed.write(plain.read())
        return None

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write the lines of the program (with_stack=True) and what each took, in the format of flame graphs."""
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        with open(path, "w", encoding="utf-8") as file:
            for event in self.events():
                if event.stack and int(getattr(event, metric)) > 0:
                    file.write(";".join(reversed(event.stack)) + f" {int(getattr(event, metric))}\n")

    def add_metadata(self, key: str, value: str) -> None:
        """Remarks for the file of the trace: nothing here reads them."""

    add_metadata_json = preset_metadata_json = add_metadata

    def __repr__(self) -> str:
        return "<unfinished profile>" if self._events is None else repr(self._events)
