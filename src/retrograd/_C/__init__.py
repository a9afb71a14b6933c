"""Names that torch keeps in its extension module, for code that reaches for them there.

Everything lives elsewhere in the package; nothing in the package imports this.
"""

from __future__ import annotations

from typing import Any

from ..autograd.grad_mode import is_grad_enabled
from ..autograd.state import local
from . import _autograd, _functions

__all__ = ["_autograd", "_functions", "is_grad_enabled"]

has_lapack = True


def _current_autograd_node() -> Any:
    """The node that this thread's backward pass is running."""
    return local.state.current_node


def _current_graph_task_id() -> int:
    """The number of this thread's backward pass; -1 outside of one."""
    task = local.state.graph_task
    return -1 if task is None else task.id


def _will_engine_execute_node(node: Any) -> bool:
    """Will the backward pass that is running run this node?"""
    task = local.state.graph_task
    if task is None:
        raise RuntimeError("_get_should_execute_nodes should only be called during the backward pass")
    if task.exec_info is None:
        return node in task.dependencies
    info = task.exec_info.get(node)
    return info is not None and info.should_execute


def _current_graph_task_execution_order() -> list[Any]:
    """The nodes that the backward pass that is running will run, in order."""
    task = local.state.graph_task
    if task is None:
        raise RuntimeError("_current_graph_task_execution_order should only be called during the backward pass")
    return task.execution_order()


def _set_fwd_grad_enabled(enabled: bool) -> None:
    """Switch forward mode on or off in this thread."""
    from ..autograd import forward_ad

    forward_ad._set_fwd_grad_enabled(enabled).__enter__()


class _WeakTensorRef:
    """A weak reference to a tensor that can be asked whether it has expired."""

    def __init__(self, tensor: Any) -> None:
        import weakref

        self.reference = weakref.ref(tensor)

    def expired(self) -> bool:
        return self.reference() is None
