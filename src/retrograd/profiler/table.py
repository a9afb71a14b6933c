"""The events of a profile as a table of text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .events import EventList


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


def format_time_share(part: float, whole: float) -> str:
    """
    >>> format_time_share(1, 4)
    '25.00%'
    """
    return f"{100 * part / whole:.2f}%" if whole else "NaN"


def _time_formatter(unit: str | None) -> Callable[[float], str]:
    if unit is None:
        return format_time
    divisors = {"us": 1.0, "ms": 1e3, "s": 1e6}
    if unit not in divisors:
        raise ValueError(f"time_unit must be one of 'us', 'ms', 's' or None, but is {unit!r}")
    return lambda microseconds: f"{microseconds / divisors[unit]:.3f}{unit}"


def table(
    events: EventList,
    sort_by: str | None,
    row_limit: int,
    widths: tuple[int, int, int],
    header: str | None,
    top_level_only: bool,
    time_unit: str | None,
) -> str:
    """See `EventList.table`; `widths`: at most so many letters of a source line, a name, and shapes."""
    say = _time_formatter(time_unit)
    chosen = [e for e in events if not (top_level_only and e.cpu_parent is not None)]
    if sort_by is not None:
        by = sort_by.replace("cuda", "device")
        if chosen and not hasattr(chosen[0], by):
            raise AttributeError(
                f"'{type(chosen[0]).__name__}' object has no attribute '{sort_by}': sort by cpu_time_total, "
                "self_cpu_time_total, cpu_time, count, cpu_memory_usage or self_cpu_memory_usage"
            )
        chosen.sort(key=lambda event: getattr(event, by), reverse=True)
    shown = chosen[: row_limit if row_limit >= 0 else None]
    columns = _columns(shown, widths, say, events)
    titles = [title for title, _ in columns]
    rows = [[text(event) for _, text in columns] for event in shown]
    sizes = [max([12, len(title), *(len(row[i]) for row in rows)]) for i, title in enumerate(titles)]
    line = "  ".join("-" * size for size in sizes)
    lines = [] if header is None else [line, header]
    lines += [line, "  ".join(f"{title:>{size}}" for title, size in zip(titles, sizes, strict=True)), line]
    lines += ["  ".join(f"{cell:>{size}}" for cell, size in zip(row, sizes, strict=True)) for row in rows]
    lines += [line, f"Self CPU time total: {say(events.self_cpu_time_total)}", ""]
    return "\n".join(lines)


def _columns(shown: list[Any], widths: tuple[int, int, int], say: Callable[[float], str], events: EventList) -> Any:
    """(title, what an event has there) of each column."""
    source_width, name_width, shapes_width = widths
    whole = events.self_cpu_time_total
    columns: list[tuple[str, Callable[[Any], str]]] = [
        ("Name", lambda e: _shortened(e.key, name_width)),
        ("Self CPU %", lambda e: format_time_share(e.self_cpu_time_total, whole)),
        ("Self CPU", lambda e: say(e.self_cpu_time_total)),
        ("CPU total %", lambda e: format_time_share(e.cpu_time_total, whole)),
        ("CPU total", lambda e: say(e.cpu_time_total)),
        ("CPU time avg", lambda e: say(e.cpu_time)),
    ]
    if events._profile_memory:
        columns += [
            ("CPU Mem", lambda e: format_memory(e.cpu_memory_usage)),
            ("Self CPU Mem", lambda e: format_memory(e.self_cpu_memory_usage)),
        ]
    columns.append(("# of Calls", lambda e: str(e.count)))
    if any(e.overload_name for e in shown if not hasattr(e, "time_range")):  # of averages that are told apart by them
        columns.append(("Overload Name", lambda e: e.overload_name or ""))
    if any(e.input_shapes for e in shown):
        columns.append(("Input Shapes", lambda e: _shortened(str(e.input_shapes), shapes_width)))
    if any(e.stack for e in shown):
        columns.append(("Source Location", lambda e: e.stack[0][-source_width:] if e.stack else ""))
    if events._with_flops:
        least = min([e.flops for e in events if e.flops], default=0)
        power, unit = next(((p, u) for p, u in ((12, "T"), (9, "G"), (6, "M"), (3, "K")) if least >= 10**p), (0, ""))
        columns.append((f"Total {unit}FLOPs", lambda e: f"{e.flops / 10**power:.3f}" if e.flops else "--"))
    return columns


def _shortened(text: str, width: int) -> str:
    return text[: width - 3] + "..." if 3 < width < len(text) else text
