"""``torch.autograd.profiler``: the older names of `retrograd.profiler`."""

from __future__ import annotations

from typing import Any, NoReturn

from ..profiler import _note, record_function
from ..profiler.events import EventList, FunctionEvent
from ..profiler.recording import Recorder, recording

__all__ = ["EventList", "FunctionEvent", "emit_itt", "emit_nvtx", "profile", "record_function"]


class profile:
    """Records the operators that this thread runs within a block, unless `enabled` is false.

    >>> import retrograd as torch
    >>> x = torch.ones(2)
    >>> with torch.autograd.profiler.profile() as found:
    ...     y = x.exp() + 1
    >>> [event.name for event in found.function_events]
    ['aten::exp', 'aten::add']
    """

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
        acc_events: bool = False,
    ) -> None:
        _note(use_cuda or use_device or use_kineto, (), with_flops, with_modules)
        self.enabled: bool = enabled and use_cpu
        self.acc_events = acc_events
        self.entered: bool = False
        self._recording = recording(Recorder(record_shapes, profile_memory, with_stack))

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

    @property
    def function_events(self) -> EventList:
        """What was recorded."""
        return self._recording.recorder.events

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all events."""
        return self.function_events.self_cpu_time_total

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """Events of one name as one."""
        return self.function_events.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def total_average(self) -> FunctionEvent:
        """All events as one."""
        return self.function_events.total_average()

    def table(self, sort_by: str | None = None, row_limit: int = 100, **options: Any) -> str:
        """The events, one a line, as text."""
        return self.function_events.table(sort_by, row_limit, **options)

    def export_chrome_trace(self, path: str) -> None:
        """Write the events to a file that Chrome's ``about:tracing`` and Perfetto read."""
        self.function_events.export_chrome_trace(path)

    def __str__(self) -> str:
        return str(self.function_events) if self.entered else "<unfinished torch.autograd.profile>"

    __repr__ = __str__


class emit_nvtx:
    """Marks for NVIDIA's profiler: refused, nothing runs on its devices."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled

    def __enter__(self) -> Any:
        if self.enabled:
            self._refuse()
        return self

    def __exit__(self, *exc_info: object) -> None:
        pass

    def _refuse(self) -> NoReturn:
        raise RuntimeError(
            f"{type(self).__name__}: there is no such profiler here. torch.profiler.profile() records operators, and "
            "Python's own cProfile functions"
        )


class emit_itt(emit_nvtx):
    """Marks for Intel's profiler: refused."""
