"""The autograd system: one concept a file; see docs/ARCHITECTURE.md for the tour."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from . import forward_ad, function, functional, graph
from .anomaly_mode import detect_anomaly, set_detect_anomaly
from .dispatch_trace import dispatch_trace
from .function import Function, NestedIOFunction
from .grad_mode import (
    _force_original_view_tracking,
    _unsafe_preserve_version_counter,
    enable_grad,
    enforce_grad_layout_policy,
    inference_mode,
    is_multithreading_enabled,
    is_view_replay_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from .gradcheck import gradcheck, gradgradcheck
from .node import Node
from .run_backward import _calculate_shape, backward, grad  # (torch's programs read the first)
from .saved_variable import SavedVariable as SavedTensor
from .variable import Variable

if _TYPE_CHECKING:
    from . import profiler as profiler
    from . import profiler_util as profiler_util

__all__ = [
    "Function",
    "NestedIOFunction",
    "Node",
    "SavedTensor",
    "Variable",
    "backward",
    "detect_anomaly",
    "dispatch_trace",
    "enable_grad",
    "enforce_grad_layout_policy",
    "forward_ad",
    "function",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_multithreading_enabled",
    "is_view_replay_enabled",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
]


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in ("profiler", "profiler_util"):  # they stand on the operators
        return import_module(f".{name}", __name__)
    if name in ("kineto_available", "_profiler_enabled", "_record_function_with_args_enter",
                "_record_function_with_args_exit"):  # fmt: skip
        return getattr(import_module("..profiler.handles", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
