"""``torch._C._profiler``."""

from __future__ import annotations

from ..profiler import ProfilerActivity
from ..profiler.handles import _RecordFunctionFast

__all__ = ["ProfilerActivity", "_RecordFunctionFast"]
