"""``torch._C._profiler``."""

from __future__ import annotations

from ..profiler import ProfilerActivity
from ..profiler.handles import _RecordFunctionFast
from ..profiler.options import _ExperimentalConfig

__all__ = ["ProfilerActivity", "_ExperimentalConfig", "_RecordFunctionFast"]
