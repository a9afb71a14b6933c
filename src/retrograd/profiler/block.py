"""A profile of one block: ``autograd.profiler.profile``, of which ``torch.profiler.profile`` makes one a round."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..core.said_once import say_once
from .events import EventList, FunctionEventAvg
from .options import _ExperimentalConfig, checked
from .recording import Recorder, recorders, recording


def only_the_processor(use_cuda: Any, use_device: Any) -> None:
    """Say, once, that other devices are not watched."""
    if use_cuda or use_device not in (None, "cpu"):
        say_once("CUDA is not available, disabling CUDA profiling: the operators of the processor are recorded")


class profile:
    """Records the operators that this thread runs within a block, unless `enabled` is false.

    `record_shapes` keeps the shapes of arguments, `profile_memory` counts bytes, `with_stack` keeps the lines of the
    program and modules, `with_modules` the modules alone, `with_flops` counts arithmetic.

    >>> import retrograd as torch
    >>> x = torch.ones(2)
    >>> with torch.autograd.profiler.profile() as found:
    ...     y = x.exp() + 1
    >>> [event.name for event in found.function_events]
    ['aten::exp', 'aten::add']
    """

    profile_memory: bool
    with_stack: bool
    with_flops: bool
    with_modules: bool
    use_cpu: bool
    acc_events: bool

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Any = None,
        post_processing_timeout_s: float | None = None,
        activity_filters: Any = None,
    ) -> None:
        refused = {
            "custom_trace_id_callback": custom_trace_id_callback,
            "post_processing_timeout_s": post_processing_timeout_s,
            "activity_filters": activity_filters,
        }
        for name, value in refused.items():
            if value is not None:
                raise ValueError(f"{name} is about torch's tracer of devices, which is not here: leave it out")
        only_the_processor(use_cuda, use_device)
        if not use_cpu:
            if not use_kineto:
                raise AssertionError("Device-only events supported only with Kineto (use_kineto=True)")
            raise ValueError("use_cpu=False leaves nothing to record: there is no other device")
        self.config: _ExperimentalConfig = checked(experimental_config)
        self.enabled: bool = enabled
        self.record_shapes: bool = record_shapes or with_flops
        self.profile_memory, self.with_stack, self.with_flops = profile_memory, with_stack, with_flops
        self.with_modules, self.use_cpu, self.acc_events = with_modules, use_cpu, acc_events
        self.entered: bool = False
        self._finished: bool = False
        self._recording: recording = recording(
            Recorder(self.record_shapes, profile_memory, with_stack, with_flops, with_modules),
            self.config.profile_all_threads,
            self.config.record_python_gc_info,
        )

    def __enter__(self) -> profile | None:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self.entered = True
        self._recording.__enter__()
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self.enabled:
            self._recording.__exit__(*exc_info)
            self._finished = True

    @property
    def function_events(self) -> EventList:
        """What was recorded."""
        if self.config.trace_only and self._finished:
            raise RuntimeError("events are not built with trace_only=True: export_chrome_trace() alone is there")
        return self._recording.recorder.events

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all events."""
        return self._done().self_cpu_time_total

    def _done(self) -> EventList:
        if not self._finished:
            raise RuntimeError("Profiler didn't finish running: leave its block first")
        return self.function_events

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """Events of one name as one; with `group_by_input_shape`, apart by the shapes of their arguments; with
        `group_by_stack_n`, apart by so many lines of the program which called them."""
        return self._done().key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def total_average(self) -> FunctionEventAvg:
        """All events as one."""
        return self._done().total_average()

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """The events, one a line, as text; `sort_by` names an attribute, the largest come first."""
        return self._done().table(
            sort_by, row_limit, max_src_column_width, max_name_column_width, max_shapes_column_width, header,
            top_level_events_only, time_unit,
        )  # fmt: skip

    def export_chrome_trace(self, path: Any) -> None:
        """Write the events to a file that Chrome's ``about:tracing`` and Perfetto read; packed, if it ends in .gz."""
        if not self._finished:
            self._done()
        self._recording.recorder.events.export_chrome_trace(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write the lines of the program (with_stack=True) and what each took, in the format of flame graphs."""
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        self._done().export_stacks(path, metric)

    def toggle_collection_dynamic(self, enabled: bool, activities: Iterable[Any] | None = None) -> None:
        """Stop watching for a while, within the block, or go on."""
        if enabled != self._recording.recorder.on:
            if enabled:
                self._recording.__enter__()
            else:
                self._recording.__exit__(None, None, None)

    def __str__(self) -> str:
        return str(self.function_events) if self._finished else "<unfinished torch.autograd.profile>"

    __repr__ = __str__


def is_profiling() -> bool:
    """Is a profile of this thread on?"""
    return bool(recorders())
