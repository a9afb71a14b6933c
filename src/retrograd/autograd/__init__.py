"""The autograd system: one concept a file; see docs/ARCHITECTURE.md for the tour."""

from __future__ import annotations

from . import graph
from .grad_mode import (
    _force_original_view_tracking,
    _unsafe_preserve_version_counter,
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
)
from .node import Node
from .run_backward import backward, grad
from .saved_variable import SavedVariable as SavedTensor

__all__ = ["Node", "backward", "enable_grad", "grad", "graph", "inference_mode", "no_grad", "set_grad_enabled"]
