"""``torch._C._autograd``."""

from __future__ import annotations

from ..autograd.grad_mode import unsafe_set_version_counter as _unsafe_set_version_counter
from ..autograd.saved_tensors_hooks import saved_tensors_hooks_is_enabled as _saved_tensors_hooks_is_enabled
from ..autograd.saved_variable import SavedVariable as SavedTensor
from ..autograd.saved_variable import save_variable as _make_saved_tensor
from ..core.state import local

__all__ = [
    "SavedTensor",
    "_get_current_graph_task_keep_graph",
    "_make_saved_tensor",
    "_saved_tensors_hooks_is_enabled",
    "_unsafe_set_version_counter",
]



def _get_current_graph_task_keep_graph() -> bool:
    """Does the backward pass that is running retain the graph? True outside of one."""
    task = local.state.graph_task
    return True if task is None else task.keep_graph
