"""In-place operations: what is checked before the kernel writes, and what is recorded after.

Generated wrappers call `begin_inplace`, then the kernel with ``out=``, then `end_inplace`.  A refused operation has
changed nothing: every check is in the first step.  Note [Views and in-place] (view_meta.py) tells how the two meet.
``x[key] = value`` writes to a part of a tensor that no view stands for: `can_rebase_part`, then `rebase_part`.
"""

from __future__ import annotations

import warnings
from operator import getitem
from sys import _getframe
from typing import TYPE_CHECKING, Any

from .. import kernels
from ..core.version_counter import INFERENCE, inference_error, new_version_counter, version_counter
from ..core.where import between, is_user_code, theirs, users_level
from ..kernels import ndarray
from ..tensor import Tensor
from ..tensor.lazy_conjugation import relative_bits, write_back
from .copy_slices import CopySlices
from .edge import gradient_edge
from .hooks import rebase_hooks
from .view_meta import CreationMeta, check_view, steps_by_place, view_edge

if TYPE_CHECKING:
    from ..core.state import ThreadState
    from ..core.version_counter import VersionCounter
    from .edge import EdgeTuple
    from .node import Node


def begin_inplace(
    state: ThreadState, tensor: Tensor, record: bool, may_overlap: bool | str = False, part: Any = None
) -> None:
    """May `tensor` be written to? `record`: the operation will become part of its history.

    `may_overlap`: the operator allows that several elements lie in one place, as those of an expanded tensor do; with a
    warning, if it is the operator's name. `part`: the elements that are written to, if it is not all.
    """
    if tensor._vc_ is INFERENCE and not state.inference:
        raise inference_error()
    if record and (tensor._grad_meta_ is not None or tensor._edge_ is None):
        check_record(tensor)
    if 0 in tensor._memory_.strides:
        written = tensor._memory_ if part is None else part
        if not may_overlap or tensor.is_conj() or tensor.is_neg():
            check_no_internal_overlap(written)
        elif may_overlap is not True and has_internal_overlap(written):
            warn_of_overlap(may_overlap)
    if state.mutation_guard is not None:
        state.mutation_guard.before_write(tensor)


def check_record(tensor: Tensor) -> None:
    """May a write to `tensor` become part of its history?"""
    meta: Any = tensor._grad_meta_
    if meta is not None and meta.is_view:
        check_view(tensor, meta)
        if meta.base._edge_ is None and tensor.requires_grad:
            raise RuntimeError(
                "a view of a leaf Variable that requires grad is being used in an in-place operation."
                + _INSTEAD.replace("x", "view")
            )
    if meta is not None and meta.requires_grad and not tensor._has_edge_():
        raise RuntimeError(f"a leaf Variable that requires grad is being used in an in-place operation.{_INSTEAD}")
    if tensor._memory_.dtype.kind not in "fcVW":
        raise RuntimeError(
            f"result type can't be cast to the desired output type {tensor.dtype}: an integer tensor cannot hold a "
            "differentiable result"
        )


_INSTEAD = (
    " Write it out of place (x = x + 1), or, to change its values without recording it:\n"
    "    with torch.no_grad():\n        x += ..."
)


def has_internal_overlap(data: Any) -> bool:
    """Do several elements lie in one place? (As torch, this looks at expanded dimensions only.)"""
    return data.size > 0 and any(step == 0 and n > 1 for step, n in zip(data.strides, data.shape))


def warn_of_overlap(name: str) -> None:
    """The operator `name` writes to a tensor of which several elements lie in one place."""
    warnings.warn(
        f"Use of {name} on expanded tensors is deprecated. Please clone() the tensor before performing this operation: "
        "several of its elements are one number in memory.",
        UserWarning,
        stacklevel=users_level(),
    )


def check_no_internal_overlap(data: Any) -> None:
    """Refuse a tensor of which several elements lie in one place."""
    if has_internal_overlap(data):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation."
        )


def edge_before_write(tensor: Tensor) -> EdgeTuple | None:
    """The gradient edge of a tensor that is about to be written to; one that may not be is refused first."""
    if tensor.requires_grad:
        check_record(tensor)
    return gradient_edge(tensor)


def check_overlap(written: Any, read: Any, strict: bool = False) -> None:
    """Two arrays of one storage: may the one be written to while the other is read?

    Not if they overlap in part. `strict`: nor if they are the same, for operators that read in another order.
    """
    overlap = kernels.overlap(written, read)
    if overlap == "partial" or (strict and overlap == "full"):
        raise RuntimeError(
            "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
            "memory location. Please clone() the tensor before performing the operation."
        )


def end_inplace(tensor: Tensor, written: Any, node: Node | None, operation: str) -> None:
    """`written` has been written to: raise the version and, if it was recorded, rebase the history onto `node`."""
    if written is not tensor._memory_:
        write_back(tensor, written)  # the values of a lazy tensor lie in an array of their own
    vc = tensor._vc_
    if vc is None:
        vc = tensor._vc_ = new_version_counter()
    if vc is not INFERENCE:
        vc.version += 1
        vc.operation = operation
        frame = _getframe(2)  # whoever called the operator: as a rule, the user
        code = frame.f_code
        if code.co_filename in theirs:
            vc.code = code
            vc.instruction = frame.f_lasti
        else:
            _remember(vc, operation)
    if node is not None:
        if node.array_class is not ndarray and hasattr(node.array_class, "place"):
            node.array_class = node.array_class.place.class_now()  # type: ignore[union-attr]  # Note [Streams]
        if tensor._grad_meta_ is None:
            tensor._edge_ = (node, 0)
        else:
            rebase_history(tensor, node)


def bump_version(tensor: Tensor, operation: str | None = None) -> None:
    """Count a write, and remember which line of the user's code made it, and by which function of this package."""
    vc = tensor._vc_ or version_counter(tensor)
    if vc is not INFERENCE:
        vc.version += 1
        _remember(vc)
        if operation is not None:
            vc.operation = operation


def _remember(vc: VersionCounter, operation: str | None = None) -> None:
    """Where the user called what wrote: the operator itself (`operation`, if it has a name), or what called it."""
    called = operator = frame = _getframe(2)
    while not is_user_code(frame.f_code):
        if frame.f_back is None:
            return
        if frame.f_code.co_filename not in between:
            called = frame
        frame = frame.f_back
    vc.code, vc.instruction = frame.f_code, frame.f_lasti
    vc.operation = operation if operation is not None and called is operator else called.f_code.co_name
    theirs.add(frame.f_code.co_filename)


def rebase_history(tensor: Tensor, node: Node) -> None:
    """Make `node` what the values of `tensor` come from, in place of their former history."""
    meta: Any = tensor._grad_meta_
    if meta is not None and meta.is_view:
        base = meta.base
        steps = meta.replay
        if base._grad_meta_ is not None and base._grad_meta_.restrided:
            # The steps were taken from another shape of the base: go by where the elements lie.
            steps = steps_by_place(tensor, base) or steps
        plain = tensor.__class__ is Tensor and base.__class__ is Tensor
        _set_edge(base, CopySlices(base, steps, node, None if plain else relative_bits(tensor, base)))
        if not meta.fleeting:
            view_edge(tensor)  # its own edge is made anew now; other views' when they are next asked for theirs
        return
    _set_edge(tensor, node)


def can_rebase_part(state: ThreadState, tensor: Tensor) -> bool:
    """May a write to ``tensor[key]`` be recorded by `rebase_part`, without a view that stands for the part?

    It may where nothing hangs on the tensor, or on what it is a view of, but its history; `begin_inplace` would have
    nothing to say then. Where it may not, write to the view.
    """
    meta: Any = tensor._grad_meta_
    if meta is not None:
        if not meta.is_view or meta.hooks is not None or meta.retains_grad:
            return False
        if meta.creation_meta is not CreationMeta.DEFAULT:
            return False
        base = meta.base
        if base._edge_ is None or base._grad_meta_ is not None:
            return False
    memory = tensor._memory_
    if 0 in memory.strides or tensor._special_ is not None or memory is not tensor._numbers_:  # expanded, or lazy
        return False
    return state.mutation_guard is None and tensor._vc_ is not INFERENCE


def rebase_part(tensor: Tensor, key: Any, part: Any, node: Node) -> None:
    """Make `node` what the values of ``tensor[key]``, the array `part`, come from: `rebase_history` of such a view."""
    node.shape, node.dtype, node.array_class = part.shape, part.dtype, part.__class__
    step = (getitem, getitem, (key,), None)
    meta: Any = tensor._grad_meta_
    if meta is None:
        tensor._edge_ = (CopySlices(tensor, (step,), node), 0)
    else:
        base = meta.base
        base._edge_ = (CopySlices(base, (*meta.replay, step), node), 0)


def _set_edge(tensor: Tensor, node: Node) -> None:
    old = tensor._edge_
    tensor._edge_ = (node, 0)
    meta = tensor._grad_meta_
    if meta is None:
        return
    meta.requires_grad = False
    rebase_hooks(tensor, old, tensor._edge_)
