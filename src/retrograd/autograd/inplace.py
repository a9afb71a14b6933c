"""In-place operations: what is checked before the kernel writes, and what is recorded after.

Generated wrappers call `begin_inplace`, then the kernel with ``out=``, then `end_inplace`.  A refused operation has
changed nothing: every check is in the first step.  Note [Views and in-place] (view_meta.py) tells how the two meet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..tensor import INFERENCE, version_counter
from .hooks import rebase_hooks
from .view_meta import check_view, view_edge
from .where import user_location

if TYPE_CHECKING:
    from ..tensor import Tensor
    from .node import Node
    from .state import ThreadState


def begin_inplace(state: ThreadState, tensor: Tensor, record: bool, part: Any = None) -> None:
    """May `tensor` be written to? `record`: the operation will become part of its history; `part`: the array that
    is written to, if not all of it.
    """
    data = tensor._data
    written = data if part is None else part
    if 0 in written.strides and written.size and _overlaps_itself(written):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation."
        )
    if tensor._vc is INFERENCE and not state.inference:
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to get a "
            "normal tensor before doing inplace update."
        )
    if state.mutation_guard is not None:
        state.mutation_guard.before_write(tensor)
    if not record:
        return
    meta: Any = tensor._meta
    if meta is not None and meta.is_view:
        check_view(tensor, meta)
        if tensor.requires_grad and meta.base.is_leaf:
            raise RuntimeError(
                "a view of a leaf Variable that requires grad is being used in an in-place operation."
                + _INSTEAD.replace("x", "view")
            )
    if tensor._edge is None and meta is not None and meta.requires_grad:
        raise RuntimeError(f"a leaf Variable that requires grad is being used in an in-place operation.{_INSTEAD}")
    if data.dtype.kind not in "fc":
        raise RuntimeError(
            f"result type can't be cast to the desired output type {tensor.dtype}: an integer tensor cannot hold a "
            "differentiable result"
        )


_INSTEAD = (
    " Write it out of place (x = x + 1), or, to change its values without recording it:\n"
    "    with torch.no_grad():\n        x += ..."
)


def _overlaps_itself(data: Any) -> bool:
    return any(step == 0 and n > 1 for step, n in zip(data.strides, data.shape))


def end_inplace(tensor: Tensor, node: Node | None) -> None:
    """The write has happened: raise the version and, if it was recorded, rebase the history onto `node`."""
    bump_version(tensor)
    if node is not None:
        rebase_history(tensor, node)


def bump_version(tensor: Tensor) -> None:
    """Count a write, and remember which line of the user's code made it."""
    vc = tensor._vc or version_counter(tensor)
    if vc is not INFERENCE:
        vc.version += 1
        vc.last_write = user_location()  # type: ignore[assignment]


def rebase_history(tensor: Tensor, node: Node) -> None:
    """Make `node` what the values of `tensor` come from, in place of their former history."""
    meta: Any = tensor._meta
    if meta is not None and meta.is_view:
        from .copy_slices import CopySlices

        base = meta.base
        _set_edge(base, CopySlices(base, meta.replay, node))
        view_edge(tensor)  # its own edge is made anew now; other views' when they are next asked for theirs
        return
    _set_edge(tensor, node)


def _set_edge(tensor: Tensor, node: Node) -> None:
    old = tensor._edge
    tensor._edge = (node, 0)
    meta = tensor._meta
    if meta is None:
        return
    meta.requires_grad = False
    rebase_hooks(tensor, old, tensor._edge)
