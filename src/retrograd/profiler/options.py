"""``_ExperimentalConfig``: torch's further options of a profile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

#: What is about torch's tracer of devices, and means nothing here.
_OF_DEVICES = (
    "profiler_metrics", "profiler_measure_per_kernel", "performance_events", "enable_cuda_sync_events",
    "disable_external_correlation", "expose_kineto_event_metadata", "custom_profiler_config", "adjust_timestamps",
)  # fmt: skip


class _ExperimentalConfig:
    """Further options, for `experimental_config`.

    `profile_all_threads`: record what all threads run, not this one alone. `capture_overload_names`: keep operators'
    forms apart in `key_averages`. `record_python_gc_info`: each collection of garbage is an event. `trace_only`: no
    more than a file is wanted. `adjust_profiler_step`: a step of a schedule lasts as long as what is in it. `verbose`:
    the lines of the program go into the file, as they do with ``with_stack`` anyway.

    >>> import retrograd as torch
    >>> config = torch.profiler._ExperimentalConfig(profile_all_threads=True)
    >>> with torch.profiler.profile(experimental_config=config) as found:
    ...     y = torch.ones(2) + 1
    >>> "aten::add" in [event.name for event in found.events()]
    True
    """

    def __init__(
        self,
        profiler_metrics: Sequence[str] = (),
        profiler_measure_per_kernel: bool = False,
        verbose: bool = False,
        performance_events: Sequence[str] = (),
        enable_cuda_sync_events: bool = False,
        adjust_profiler_step: bool = False,
        disable_external_correlation: bool = False,
        profile_all_threads: bool = False,
        capture_overload_names: bool = False,
        record_python_gc_info: bool = False,
        expose_kineto_event_metadata: bool = False,
        custom_profiler_config: str = "",
        adjust_timestamps: bool = False,
        trace_only: bool = False,
    ) -> None:
        self.profiler_metrics, self.performance_events = list(profiler_metrics), list(performance_events)
        self.profiler_measure_per_kernel, self.enable_cuda_sync_events = (
            profiler_measure_per_kernel, enable_cuda_sync_events,
        )  # fmt: skip
        self.disable_external_correlation, self.custom_profiler_config = (
            disable_external_correlation, custom_profiler_config,
        )  # fmt: skip
        self.expose_kineto_event_metadata, self.adjust_timestamps = expose_kineto_event_metadata, adjust_timestamps
        self.verbose, self.adjust_profiler_step = verbose, adjust_profiler_step
        self.profile_all_threads, self.capture_overload_names = profile_all_threads, capture_overload_names
        self.record_python_gc_info, self.trace_only = record_python_gc_info, trace_only

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in vars(self).items() if value)
        return f"_ExperimentalConfig({given})"


def checked(config: Any) -> _ExperimentalConfig:
    """The options that were given, or those of no words."""
    if config is None:
        return _ExperimentalConfig()
    if not isinstance(config, _ExperimentalConfig):
        kind = type(config).__name__
        raise TypeError(f"experimental_config must be a torch.profiler._ExperimentalConfig, not {kind}")
    for name in _OF_DEVICES:
        if getattr(config, name):
            raise ValueError(f"{name} is about torch's tracer of devices, which is not here: leave it out")
    return config
