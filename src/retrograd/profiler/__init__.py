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
import json
import os
import socket
import time
from collections.abc import Callable, Iterable
from typing import Any

from ..core.said_once import say_once
from . import itt
from .block import only_the_processor
from .block import profile as _profile_of_a_block
from .events import DeviceType, EventList
from .execution_trace import ExecutionTraceObserver
from .handles import kineto_available
from .options import _ExperimentalConfig as _ExperimentalConfig
from .options import checked
from .recording import record_function
from .steps import KinetoStepTracker as _Steps

__all__ = [
    "DeviceType", "ExecutionTraceObserver", "ProfilerAction", "ProfilerActivity", "itt", "kineto_available", "profile",
    "record_function", "schedule", "supported_activities", "tensorboard_trace_handler",
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
    if os.path.exists(dir_name) and not os.path.isdir(dir_name):
        raise RuntimeError("Can't create directory: " + dir_name)

    def handler(found: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        path = os.path.join(dir_name, f"{worker}.{time.time_ns()}.pt.trace.json")
        found.export_chrome_trace(path + ".gz" if use_gzip else path)

    return handler


class profile:
    """Records the operators that this thread runs within a block; with a `schedule`, in some steps of it.

    After each round of a schedule, and at the end of the block without one, `on_trace_ready` is called. What the other
    options keep: `torch.autograd.profiler.profile`, of which this makes one a round.
    """

    record_shapes: bool
    profile_memory: bool
    with_stack: bool
    with_flops: bool
    with_modules: bool
    acc_events: bool

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
        execution_trace_observer: ExecutionTraceObserver | None = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        chosen = set(supported_activities() if activities is None else activities)
        if not chosen:
            raise AssertionError("No valid profiler activities found")
        only_the_processor(use_cuda or chosen - supported_activities(), None)
        self._options: dict[str, Any] = {
            "record_shapes": record_shapes, "profile_memory": profile_memory, "with_stack": with_stack,
            "with_flops": with_flops, "with_modules": with_modules, "experimental_config": experimental_config,
            "post_processing_timeout_s": post_processing_timeout_s,
        }  # fmt: skip
        self._config: _ExperimentalConfig = checked(experimental_config)
        self.activities = chosen
        self.schedule = schedule or (lambda step: ProfilerAction.RECORD)
        self.record_steps: bool = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.record_shapes, self.profile_memory, self.with_stack = record_shapes, profile_memory, with_stack
        self.with_flops, self.with_modules, self.acc_events = with_flops, with_modules, acc_events
        self.execution_trace_observer = execution_trace_observer
        self._trace_id = custom_trace_id_callback
        self.step_num: int = 0
        self.current_action: ProfilerAction = self.schedule(0)
        #: The profile of this round, or of the last one.
        self.profiler: _profile_of_a_block | None = None
        self._running: bool = False
        self._events: EventList | None = None
        self._metadata: dict[str, Any] = {}
        self._step: record_function | None = None

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin, as the block does."""
        _Steps.init_step_count("ProfilerStep")
        self._begin_if_wanted()

    def stop(self) -> None:
        """End, as the block does."""
        _Steps.erase_step_count("ProfilerStep")
        if self._running:
            self._end()
            if self.on_trace_ready is not None:
                self.on_trace_ready(self)

    def step(self) -> None:
        """The next step of the schedule begins."""
        before = self.current_action
        self.step_num += 1
        _Steps.increment_step("ProfilerStep")
        self.current_action = self.schedule(self.step_num)
        if before is ProfilerAction.RECORD_AND_SAVE and self._running:
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
        if not self._running:
            self.profiler = _profile_of_a_block(**self._options)
            self.profiler.__enter__()
            self._running = True
            if self.execution_trace_observer is not None:
                self.execution_trace_observer.start()
        if self.record_steps:
            self._step = record_function(f"ProfilerStep#{self.step_num}")
            self._step.__enter__()

    def _end(self) -> None:
        assert self.profiler is not None
        if self._step is not None:
            self._step.__exit__()
            self._step = None
        if self.execution_trace_observer is not None:
            self.execution_trace_observer.stop()
        self.profiler.__exit__(None, None, None)
        self._running = False
        found = self.profiler._recording.recorder.events
        if self.acc_events and self._events is not None:
            self._events.extend(found)
            self._events.memory_records += found.memory_records
        else:
            self._events = found

    def _no_trace_only(self) -> None:
        if self._config.trace_only:
            raise RuntimeError("events are not built with trace_only=True: export_chrome_trace() alone is there")

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[Any]) -> None:
        """Stop watching for a while, within the block, or go on."""
        if self.profiler is not None:
            self.profiler.toggle_collection_dynamic(enable, activities)

    def events(self) -> EventList:
        """What was recorded."""
        self._no_trace_only()
        if self._events is None:
            if self.profiler is None:
                raise AssertionError("nothing was recorded yet: the profile was not started, or its schedule waits")
            return self.profiler.function_events
        return self._events

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """Events of one name as one; see `EventList.key_averages`."""
        return self.events().key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def export_chrome_trace(self, path: str) -> None:
        """Write the events to a file that Chrome's ``about:tracing`` and Perfetto read; packed, if it ends in .gz."""
        if self._events is None:
            self.events()
        assert self._events is not None
        found = self._events
        found.metadata = dict(self._metadata)
        trace_id = self.get_trace_id()
        if trace_id is not None:
            found.metadata["trace_id"] = trace_id
        found.export_chrome_trace(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write the lines of the program (with_stack=True) and what each took, in the format of flame graphs."""
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        self.events().export_stacks(path, metric)

    def add_metadata(self, key: str, value: str) -> None:
        """A remark for the file of the trace."""
        self._metadata[key] = str(value)

    def add_metadata_json(self, key: str, value: str) -> None:
        """A remark for the file of the trace: a value that is written as JSON."""
        self._metadata[key] = json.loads(value)

    preset_metadata_json = add_metadata_json

    def get_trace_id(self) -> str | None:
        """What `custom_trace_id_callback` calls this trace."""
        return None if self._trace_id is None else self._trace_id()

    def set_custom_trace_id_callback(self, callback: Callable[[], str]) -> None:
        """Have ``callback()`` name traces."""
        self._trace_id = callback

    def __repr__(self) -> str:
        return "<unfinished profile>" if self._events is None else repr(self._events)
