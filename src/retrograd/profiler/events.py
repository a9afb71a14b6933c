"""What a profile has seen: one event for each operator, each node of a backward pass and each named block."""

from __future__ import annotations

import bisect
import enum
from collections.abc import Iterable
from typing import Any, NamedTuple

from .chrome_trace import export
from .table import format_time, table

__all__ = [
    "DeviceType", "EventList", "FormattedTimesMixin", "FunctionEvent", "FunctionEventAvg", "Interval", "Kernel",
    "MemRecordsAcc", "StringTable",
]  # fmt: skip


class DeviceType(enum.IntEnum):
    """Where an event ran: here, always on the processor."""

    CPU = 0
    CUDA = 1


class Interval:
    """When an event began and ended, in microseconds."""

    start: float
    end: float

    def __init__(self, start: float, end: float) -> None:
        self.start, self.end = start, end

    def elapsed_us(self) -> float:
        """How long it took, in microseconds."""
        return self.end - self.start

    def __repr__(self) -> str:
        return f"Interval(start={self.start}, end={self.end})"


class Kernel(NamedTuple):
    """What an accelerator ran for an operator."""

    name: str
    device: int
    duration: float


class StringTable(dict):
    """Names of compiled functions as people read them: they are that already."""

    def __missing__(self, key: str) -> str:
        self[key] = key
        return key


class MemRecordsAcc:
    """Records of memory, ordered by when they were made, to be asked for by an interval.

    >>> from types import SimpleNamespace as Record
    >>> records = MemRecordsAcc([Record(start_ns=lambda: 3000), Record(start_ns=lambda: 1000)])
    >>> [record.start_ns() for record in records.in_interval(0, 2)]
    [1000]
    """

    def __init__(self, mem_records: Iterable[Any]) -> None:
        self._mem_records = sorted(mem_records, key=lambda record: record.start_ns())
        self._start_nses = [record.start_ns() for record in self._mem_records]

    def in_interval(self, start_us: float, end_us: float) -> Any:
        """Those between two times, in microseconds."""
        first = bisect.bisect_left(self._start_nses, start_us * 1000)
        last = bisect.bisect_right(self._start_nses, end_us * 1000)
        yield from self._mem_records[first:last]


def _formatted(name: str) -> Any:
    return property(lambda self: format_time(getattr(self, name)), doc=f"`{name}` as text.")


class FormattedTimesMixin:
    """Times as text, and what accelerators took: there are none."""

    count: int
    cpu_time_total: float

    cpu_time_str: str = _formatted("cpu_time")
    cpu_time_total_str: str = _formatted("cpu_time_total")
    self_cpu_time_total_str: str = _formatted("self_cpu_time_total")
    device_time_str: str = _formatted("device_time")
    device_time_total_str: str = _formatted("device_time_total")
    self_device_time_total_str: str = _formatted("self_device_time_total")

    device_time: float = 0.0
    device_time_total: float = 0.0
    self_device_time_total: float = 0.0
    cuda_time: float = 0.0
    cuda_time_total: float = 0.0
    self_cuda_time_total: float = 0.0
    self_device_memory_usage: int = 0
    self_cuda_memory_usage: int = 0

    @property
    def cpu_time(self) -> float:
        """Microseconds of one run, on average."""
        return self.cpu_time_total / self.count if self.count else 0.0


class FunctionEvent(FormattedTimesMixin):
    """An operator, a node of a backward pass, or a block with a name, that ran once.

    >>> event = FunctionEvent(id=0, name="block", thread=0, start_us=10, end_us=15)
    >>> event.cpu_time_total, event.cpu_time_total_str
    (5, '5.000us')
    """

    id: int
    name: str
    thread: int
    scope: int
    use_device: str | None
    is_async: bool
    is_remote: bool
    is_legacy: bool
    node_id: int
    device_type: DeviceType
    device_index: int
    is_user_annotation: bool
    is_python_function: bool

    def __init__(
        self,
        id: int,
        name: str,
        thread: int,
        start_us: float,
        end_us: float,
        overload_name: str | None = None,
        fwd_thread: int | None = None,
        input_shapes: list[Any] | None = None,
        stack: list[str] | None = None,
        scope: int = 0,
        use_device: str | None = None,
        cpu_memory_usage: int = 0,
        device_memory_usage: int = 0,
        is_async: bool = False,
        is_remote: bool = False,
        sequence_nr: int = -1,
        node_id: int = -1,
        device_type: DeviceType = DeviceType.CPU,
        device_index: int = 0,
        device_resource_id: int | None = None,
        is_legacy: bool = False,
        flops: int | None = None,
        trace_name: str | None = None,
        concrete_inputs: list[Any] | None = None,
        kwinputs: dict[str, Any] | None = None,
        is_user_annotation: bool = False,
        is_python_function: bool = False,
    ) -> None:
        self.id, self.name, self.thread = id, name, thread
        self.trace_name: str = name if trace_name is None else trace_name
        self.overload_name: str = overload_name or ""
        self.time_range: Interval = Interval(start_us, end_us)
        #: Of a node of a backward pass, the thread that ran the operator which made it; 0 of other events.
        self.fwd_thread = fwd_thread
        self.input_shapes: list[Any] = input_shapes or []
        self.input_strides: list[Any] = []
        self.input_dtypes: list[str] = []
        self.concrete_inputs: list[Any] = concrete_inputs or []
        self.kwinputs: dict[str, Any] = kwinputs or {}
        self.stack: list[str] = stack or []
        self.scope, self.use_device = scope, use_device
        #: Bytes of memory that it asked for, less what was given back, with what ran within.
        self.cpu_memory_usage = cpu_memory_usage
        self.device_memory_usage = device_memory_usage
        self.is_async, self.is_remote, self.is_legacy = is_async, is_remote, is_legacy
        #: An operator that was recorded and the node that it made have the same; -1: neither.
        self.sequence_nr = sequence_nr
        self.node_id, self.device_type, self.device_index = node_id, device_type, device_index
        self.device_resource_id: int = thread if device_resource_id is None else device_resource_id
        self.flops = flops
        self.is_user_annotation, self.is_python_function = is_user_annotation, is_python_function
        self.count: int = 1
        self.kernels: list[Kernel] = []
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None

    @property
    def key(self) -> str:
        """What averages are formed by: its name."""
        return self.name

    def append_kernel(self, name: str, device: int, duration: float) -> None:
        """An accelerator ran something for it."""
        self.kernels.append(Kernel(name, device, duration))

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """Another event ran within this one."""
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent: FunctionEvent) -> None:
        """This one ran within another event."""
        self.cpu_parent = parent

    @property
    def cpu_time_total(self) -> float:  # type: ignore[override]
        """Microseconds, with what ran within."""
        return 0.0 if self.is_async else self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds, without what ran within."""
        return 0.0 if self.is_async else self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:
        """Bytes, without those of what ran within."""
        return 0 if self.is_async else self.cpu_memory_usage - sum(c.cpu_memory_usage for c in self.cpu_children)

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} thread={self.thread} cpu_time={self.cpu_time_str} "
            f"start_us={self.time_range.start} end_us={self.time_range.end} "
            f"cpu_children={[child.id for child in self.cpu_children]} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} seq_nr={self.sequence_nr}>"
        )


class FunctionEventAvg(FormattedTimesMixin):
    """What many events of one name took together."""

    def __init__(self) -> None:
        self.key: str | None = None
        self.count: int = 0
        self.cpu_time_total: float = 0
        self.self_cpu_time_total: float = 0
        self.cpu_memory_usage: int = 0
        self.self_cpu_memory_usage: int = 0
        self.device_memory_usage: int = 0
        self.flops: int = 0
        self.input_shapes: Any = None
        self.overload_name: str | None = None
        self.stack: list[str] = []
        self.scope: int | None = None
        self.node_id: int = 0
        self.is_async: bool = False
        self.is_remote: bool = False
        self.is_legacy: bool = False
        self.is_user_annotation: bool = False
        self.use_device: str | None = None
        self.device_type: DeviceType = DeviceType.CPU
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None

    def add(self, other: FunctionEvent | FunctionEventAvg | EventList) -> FunctionEventAvg:
        """Count another event, or several, as well."""
        if isinstance(other, EventList):
            for event in other:
                self.add(event)
            return self
        if self.key is None:  # the first says what they are
            self.key, self.overload_name, self.node_id = other.key, other.overload_name, other.node_id
            self.is_async, self.is_remote, self.is_legacy = other.is_async, other.is_remote, other.is_legacy
            self.cpu_parent, self.cpu_children = other.cpu_parent, other.cpu_children
            self.input_shapes, self.stack, self.scope = other.input_shapes, other.stack, other.scope
            self.use_device, self.device_type = other.use_device, other.device_type
            self.is_user_annotation = other.is_user_annotation
        self.count += other.count
        self.cpu_time_total += other.cpu_time_total
        self.self_cpu_time_total += other.self_cpu_time_total
        self.cpu_memory_usage += other.cpu_memory_usage
        self.self_cpu_memory_usage += other.self_cpu_memory_usage
        self.device_memory_usage += other.device_memory_usage
        self.flops += other.flops or 0
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str} input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage}>"
        )


class EventList(list):
    """Events, and tables of them."""

    def __init__(
        self, *args: Any, use_device: str | None = None, profile_memory: bool = False, with_flops: bool = False
    ) -> None:
        super().__init__(*args)
        self._use_device, self._profile_memory, self._with_flops = use_device, profile_memory, with_flops
        #: What a trace of them says besides: how memory was taken and given back, and remarks by name.
        self.memory_records: list[Any] = []
        self.metadata: dict[str, Any] = {}

    def _populate_cpu_children(self) -> None:
        """Find out by their times which events ran within which others."""
        lanes: dict[tuple[int, int], list[FunctionEvent]] = {}
        for event in self:
            if not event.is_async and event.device_type == DeviceType.CPU:
                lanes.setdefault((event.thread, event.node_id), []).append(event)
        for events in lanes.values():
            events.sort(key=lambda event: (event.time_range.start, -event.time_range.end))
            around: list[FunctionEvent] = []
            for event in events:
                while around and (
                    event.time_range.start >= around[-1].time_range.end
                    or event.time_range.end > around[-1].time_range.end
                ):
                    around.pop()
                if around:
                    around[-1].append_cpu_child(event)
                    event.set_cpu_parent(around[-1])
                around.append(event)

    def _remove_dup_nodes(self) -> None:
        """Of events of one name within each other, each the only one in the other, keep the outermost."""
        gone: set[int] = set()
        for event in self:
            while len(event.cpu_children) == 1 and event.cpu_children[0].name == event.name:
                (inner,) = event.cpu_children
                gone.add(id(inner))
                event.cpu_children = inner.cpu_children
                for child in event.cpu_children:
                    child.cpu_parent = event
                if inner.sequence_nr >= 0:
                    event.sequence_nr = inner.sequence_nr
                event.overload_name, event.flops = inner.overload_name, inner.flops
                if inner.input_shapes:
                    event.input_shapes, event.input_strides = inner.input_shapes, inner.input_strides
                    event.input_dtypes, event.concrete_inputs = inner.input_dtypes, inner.concrete_inputs
        if gone:
            self[:] = [event for event in self if id(event) not in gone]

    def _build_tree(self) -> None:
        self._populate_cpu_children()
        self._remove_dup_nodes()
        self._set_backward_stacktraces()

    def _set_backward_stacktraces(self) -> None:
        """The lines of the program for a node of a backward pass: those of the operator that made it."""
        forward = {(e.sequence_nr, e.thread): e.stack for e in self if e.sequence_nr >= 0 and e.fwd_thread == 0}
        for event in self:
            if event.fwd_thread and event.stack == [] and event.sequence_nr >= 0:
                event.stack = forward.get((event.sequence_nr, event.fwd_thread), [])

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all events."""
        return sum(event.self_cpu_time_total for event in self)

    def key_averages(
        self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """Events of one name as one; with `group_by_input_shapes`, apart by the shapes of their arguments; with
        `group_by_stack_n`, apart by so many lines of the program which called them."""
        totals: dict[Any, FunctionEventAvg] = {}
        for event in self:
            which = (
                event.key, event.node_id, event.is_user_annotation,
                event.overload_name if group_by_overload_name else "",
                str(event.input_shapes) if group_by_input_shapes else "",
                tuple(event.stack[:group_by_stack_n]) if group_by_stack_n > 0 else (),
            )  # fmt: skip
            if which not in totals:
                totals[which] = FunctionEventAvg()
            totals[which].add(event)
        for total in totals.values():
            total.stack = total.stack[:group_by_stack_n] if group_by_stack_n > 0 else []
            total.input_shapes = total.input_shapes if group_by_input_shapes else ""
            total.overload_name = total.overload_name if group_by_overload_name else ""
        return EventList(
            totals.values(), use_device=self._use_device, profile_memory=self._profile_memory,
            with_flops=self._with_flops,
        )  # fmt: skip

    def total_average(self) -> FunctionEventAvg:
        """All events as one."""
        total = FunctionEventAvg()
        for event in self:
            total.add(event)
            total.key = None
        total.key = "Total"
        return total

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
        widths = max_src_column_width, max_name_column_width, max_shapes_column_width
        return table(self, sort_by, row_limit, widths, header, top_level_events_only, time_unit)

    def __str__(self) -> str:
        return self.table()

    def export_chrome_trace(self, path: Any) -> None:
        """Write the events to a file that Chrome's ``about:tracing`` and Perfetto read; packed, if it ends in .gz."""
        export(self, path)

    def supported_export_stacks_metrics(self) -> list[str]:
        """The words that ``export_stacks`` takes."""
        return ["self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total", "self_privateuse1_time_total"]

    def export_stacks(self, path: str, metric: str) -> None:
        """Write the lines of the program (with_stack=True) and what each took, in the format of flame graphs."""
        if metric not in self.supported_export_stacks_metrics():
            raise ValueError(f"metric should be one of: {self.supported_export_stacks_metrics()}")
        blanks = str.maketrans(" ;\t\n", "____")
        with open(path, "w", encoding="utf-8") as file:
            for event in self:
                value = int(getattr(event, metric, 0))
                if event.stack and value > 0:
                    lines = [line.translate(blanks) for line in reversed(event.stack)]
                    file.write(f"{';'.join(lines)} {value}\n")
