"""What a profile has seen: events, one for each operator and each named block, and tables of them."""

from __future__ import annotations

import json
from typing import Any, NamedTuple


class Interval(NamedTuple):
    """When an event began and ended, in microseconds."""

    start: float
    end: float

    def elapsed_us(self) -> float:
        return self.end - self.start


class FunctionEvent:
    """An operator, or a block with a name, that ran once; or what many of one name took together."""

    def __init__(self, name: str, thread: int, start: float, is_user_annotation: bool = False) -> None:
        self.name = self.key = name
        self.thread = thread
        self.is_user_annotation = is_user_annotation
        self.time_range = Interval(start, start)
        self.count: int = 1
        self.cpu_time_total: float = 0.0
        """microseconds, with what ran within"""
        self.self_cpu_time_total: float = 0.0
        self.cpu_memory_usage: int = 0
        """bytes of the results that it made, with what ran within"""
        self.self_cpu_memory_usage: int = 0
        self.input_shapes: list[list[int]] = []
        self.stack: list[str] = []
        self.cpu_parent: FunctionEvent | None = None
        self.cpu_children: list[FunctionEvent] = []

    # What accelerators took: there are none.
    device_time = device_time_total = self_device_time_total = cuda_time = cuda_time_total = 0.0
    device_memory_usage = self_device_memory_usage = 0

    @property
    def cpu_time(self) -> float:
        """Microseconds of one run, on average."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def cpu_time_str(self) -> str:
        return format_time(self.cpu_time)

    @property
    def cpu_time_total_str(self) -> str:
        return format_time(self.cpu_time_total)

    @property
    def self_cpu_time_total_str(self) -> str:
        return format_time(self.self_cpu_time_total)

    def close(self, end: float) -> None:
        """It has ended."""
        self.time_range = Interval(self.time_range.start, end)
        self.cpu_time_total = end - self.time_range.start
        self.self_cpu_time_total += self.cpu_time_total
        self.cpu_memory_usage += self.self_cpu_memory_usage
        if self.cpu_parent is not None:
            self.cpu_parent.self_cpu_time_total -= self.cpu_time_total
            self.cpu_parent.cpu_memory_usage += self.cpu_memory_usage

    def add(self, other: FunctionEvent) -> FunctionEvent:
        """Count another event as well."""
        self.count += other.count
        self.cpu_time_total += other.cpu_time_total
        self.self_cpu_time_total += other.self_cpu_time_total
        self.cpu_memory_usage += other.cpu_memory_usage
        self.self_cpu_memory_usage += other.self_cpu_memory_usage
        return self

    def total_of(self) -> FunctionEvent:
        """An event like this one, to which others can be added."""
        copy = FunctionEvent(self.key, self.thread, self.time_range.start, self.is_user_annotation)
        copy.time_range = self.time_range
        copy.count = 0
        copy.cpu_time_total = copy.self_cpu_time_total = 0.0
        return copy.add(self)

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str} count={self.count}>"
        )


FunctionEventAvg = FunctionEvent


def format_time(microseconds: float) -> str:
    """
    >>> format_time(1234.5)
    '1.234ms'
    """
    if microseconds >= 1e6:
        return f"{microseconds / 1e6:.3f}s"
    return f"{microseconds / 1e3:.3f}ms" if microseconds >= 1e3 else f"{microseconds:.3f}us"


def format_memory(size: float) -> str:
    """
    >>> format_memory(2048)
    '2.00 KB'
    """
    for power, unit in ((3, "GB"), (2, "MB"), (1, "KB")):
        if abs(size) >= 1024**power:
            return f"{size / 1024**power:.2f} {unit}"
    return f"{size:.0f} B"


class EventList(list):
    """Events, and tables of them."""

    def __init__(self, *args: Any, profile_memory: bool = False) -> None:
        super().__init__(*args)
        self._profile_memory = profile_memory

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all events."""
        return sum(event.self_cpu_time_total for event in self)

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """Events of one name as one; with `group_by_input_shape`, apart by the shapes of their arguments; with
        `group_by_stack_n`, apart by so many lines of the program which called them."""
        totals: dict[Any, FunctionEvent] = {}
        for event in self:
            which = (
                event.key,
                str(event.input_shapes) if group_by_input_shape else "",
                tuple(event.stack[:group_by_stack_n]),
            )
            if which in totals:
                totals[which].add(event)
            else:
                total = totals[which] = event.total_of()
                total.input_shapes = event.input_shapes if group_by_input_shape else []
                total.stack = event.stack[:group_by_stack_n]
        return EventList(totals.values(), profile_memory=self._profile_memory)

    def total_average(self) -> FunctionEvent:
        """All events as one."""
        total = FunctionEvent("Total", 0, 0.0)
        total.count = 0
        for event in self:
            total.add(event)
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
        events = [e for e in self if not (top_level_events_only and e.cpu_parent is not None)]
        if sort_by is not None:
            by = sort_by.replace("cuda", "device")
            if events and not hasattr(events[0], by):
                raise AttributeError(f"there is no {sort_by!r} to sort by: cpu_time_total and count are there")
            events.sort(key=lambda event: getattr(event, by), reverse=True)
        whole = self.self_cpu_time_total or 1.0
        units = {None: format_time, "us": lambda t: f"{t:.3f}us", "ms": lambda t: f"{t / 1e3:.3f}ms",
                 "s": lambda t: f"{t / 1e6:.3f}s"}  # fmt: skip
        if time_unit not in units:
            raise ValueError(f"time_unit must be one of 'us', 'ms', 's' or None, but is {time_unit!r}")
        say = units[time_unit]
        titles = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"]
        titles += ["CPU Mem", "Self CPU Mem"] if self._profile_memory else []
        titles.append("# of Calls")
        shapes = any(event.input_shapes for event in events)
        stacks = any(event.stack for event in events)
        rows = []
        for event in events[: row_limit if row_limit >= 0 else None]:
            name = event.key
            if len(name) > max_name_column_width:
                name = name[: max_name_column_width - 3] + "..."
            row = [
                name, f"{100 * event.self_cpu_time_total / whole:.2f}%", say(event.self_cpu_time_total),
                f"{100 * event.cpu_time_total / whole:.2f}%", say(event.cpu_time_total), say(event.cpu_time),
            ]  # fmt: skip
            if self._profile_memory:
                row += [format_memory(event.cpu_memory_usage), format_memory(event.self_cpu_memory_usage)]
            row.append(str(event.count))
            if shapes:
                row.append(str(event.input_shapes)[:max_shapes_column_width])
            if stacks:
                row.append(event.stack[0][-max_src_column_width:] if event.stack else "")
            rows.append(row)
        titles += ["Input Shapes"] if shapes else []
        titles += ["Source Location"] if stacks else []
        widths = [max(12, len(title), *(len(row[i]) for row in rows), 0) for i, title in enumerate(titles)]
        line = "  ".join("-" * width for width in widths)
        text = [f"{title:>{width}}" for title, width in zip(titles, widths)]
        lines = [] if header is None else [line, header]
        lines += [line, "  ".join(text), line]
        lines += ["  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths)) for row in rows]
        lines += [line, f"Self CPU time total: {say(self.self_cpu_time_total)}", ""]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.table()

    def export_chrome_trace(self, path: Any) -> None:
        """Write the events to a file that Chrome's ``about:tracing`` and Perfetto read."""
        events = [
            {"name": event.name, "ph": "X", "ts": event.time_range.start, "dur": event.time_range.elapsed_us(),
             "tid": event.thread, "pid": "CPU functions", "args": {"Input Dims": event.input_shapes}}
            for event in self
        ]  # fmt: skip
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": events}, file)
