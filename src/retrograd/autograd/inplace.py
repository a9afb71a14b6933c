"""In-place operations: what is checked before the kernel writes, and what is recorded after.

Generated wrappers call `begin_inplace`, then the kernel with ``out=``, then `end_inplace`.  A refused operation has
changed nothing: every check is in the first step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..tensor import version_counter
from .where import user_location

if TYPE_CHECKING:
    from ..tensor import Tensor
    from .node import Node
    from .state import ThreadState


def begin_inplace(state: ThreadState, tensor: Tensor, record: bool) -> None:
    """May `tensor` be written to? `record`: the operation will become part of its history."""
    meta = tensor._meta
    if state.grad_enabled and meta is not None and meta.requires_grad and tensor._edge is None:
        raise RuntimeError(
            "a leaf Variable that requires grad is being used in an in-place operation. Write it out of place "
            "(x = x + 1), or, to update a parameter without recording it:\n    with torch.no_grad():\n        x += ..."
        )
    data = tensor._data
    if (
        0 in data.strides
        and data.size
        and any(step == 0 and n > 1 for step, n in zip(data.strides, data.shape, strict=True))
    ):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation."
        )
    if record and data.dtype.kind not in "fc":
        raise RuntimeError(
            f"result type can't be cast to the desired output type {tensor.dtype}: an integer tensor cannot hold a "
            "differentiable result"
        )


def end_inplace(tensor: Tensor, node: Node | None) -> None:
    """The write has happened: raise the version and, if it was recorded, rebase the history onto `node`."""
    vc = tensor._vc or version_counter(tensor)
    vc.version += 1
    vc.last_write = user_location()  # type: ignore[assignment]
    if node is not None:
        rebase_history(tensor, node)


def rebase_history(tensor: Tensor, node: Node) -> None:
    """Make `node` what `tensor` came from, in place of its former history."""
    old = tensor._edge
    tensor._edge = (node, 0)
    meta = tensor._meta
    if meta is None:
        return
    meta.requires_grad = False
    meta.hooks = None  # they stay with the former value, on the former node
    if meta.retains_grad and old is not None:
        # retain_grad() is about the tensor, not about one of its values: it moves along.
        reference = old[0].materialize_extras().retains_grad.pop(old[1], None)
        if reference is not None:
            node.materialize_extras().retains_grad[0] = reference
