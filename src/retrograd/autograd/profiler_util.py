"""``torch.autograd.profiler_util``: what profiles are made of."""

from __future__ import annotations

from ..profiler.events import (
    DeviceType,
    EventList,
    FormattedTimesMixin,
    FunctionEvent,
    FunctionEventAvg,
    Interval,
    Kernel,
    MemRecordsAcc,
    StringTable,
)
from ..profiler.table import format_memory as _format_memory
from ..profiler.table import format_time as _format_time
from ..profiler.table import format_time_share as _format_time_share

__all__ = [
    "DeviceType", "EventList", "FormattedTimesMixin", "FunctionEvent", "FunctionEventAvg", "Interval", "Kernel",
    "MemRecordsAcc", "StringTable", "_format_memory", "_format_time", "_format_time_share",
]  # fmt: skip
