"""Views: what a tensor knows when it shares memory with another one.

Note [Views and in-place]
A view operator gives a tensor that shares memory with its input.  Its ``_grad_meta_`` is a `DifferentiableViewMeta`:
the *base* (the tensor at the root, never itself a view), and how to get from the base to the view (`replay`, a chain of
view operators: a view of a view has the same base and a longer chain).

All of them share one version counter.  When one is written to in place, two things happen:

* **The written one gets a new history.**  If it is the base, its gradient edge is simply replaced.  If it is a view,
  the *base* gets a `CopySlices` node: "all of my old value, except in this view, which now comes from there"
  (copy_slices.py).
* **Everybody else notices later.**  A view compares the version at which its own gradient edge was made
  (`attr_version`) with the current one when it is next asked; if they differ, the edge is made anew from
  the base's present history.  So a view's edge is not in ``_edge_`` but in its meta, behind that question.

Views that come out of `no_grad`, `inference_mode`, operators with several outputs or custom functions may not be
written to with grad mode on: `creation_meta` remembers which it was, and later views inherit it.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

from .. import kernels
from ..core.late import operators as ops
from ..core.meta import AutogradMeta
from ..core.records import record_of
from ..core.state import local
from ..core.version_counter import INFERENCE
from ..tensor import Tensor
from ..tensor.lazy_conjugation import inherit_bits, relative_bits
from ..tensor.special import boxed
from .hooks import rebase_hooks
from .node import name_of

if TYPE_CHECKING:
    from ..core.state import ThreadState
    from .edge import EdgeTuple  # edges know views

#: One step from base to view: the kernel, the operator, its arguments, and which output (None: it has one).
Step = tuple[Any, Any, tuple[Any, ...], "int | None"]
#: Several, as a chain (those before the last, the last): a view of a view shares all but its own step with it.
Chain = tuple[Any, Step]


#: Marks a view as the start of its own forward views, such as a dual tensor.
FORWARD_BASE: Any = ()


class CreationMeta(enum.Enum):
    """Where a view comes from."""

    DEFAULT = 0
    IN_CUSTOM_FUNCTION = 1
    MULTI_OUTPUT_NODE = 2
    NO_GRAD_MODE = 3
    INFERENCE_MODE = 4


class DifferentiableViewMeta(AutogradMeta):
    """The meta of a view."""

    __slots__ = ("attr_version", "base", "before", "creation_meta", "edge", "fleeting", "forward", "step")

    is_view = True

    base: Tensor
    #: The steps from the base: those to the view that this was taken of (None: it was taken of the base), and one more.
    before: Chain | None
    step: Step
    #: Is this a view that nobody will look at when it has been written to, such as that of ``x[i] = v``?
    fleeting: bool
    creation_meta: CreationMeta
    #: The version at which `edge` was right.
    attr_version: int
    edge: EdgeTuple | None
    #: Whose tangent this view's is a view of, and which steps lead there: None for the base and all of `replay`, else
    #: the tensor and the number of the first step; FORWARD_BASE for nobody's. See Note [Forward gradients of views].
    forward: tuple[Tensor, int] | None

    #: Nothing is set when one is made, which saves a call.
    __init__ = object.__init__

    def __getattr__(self, name: str) -> Any:
        # `as_view` sets what every view has; the rest is as it is for most until somebody asks.
        try:
            value = _DEFAULTS[name]
        except KeyError:
            raise AttributeError(name) from None
        setattr(self, name, value)
        return value

    @property
    def replay(self) -> tuple[Step, ...]:
        """The steps from the base to the view, in order."""
        steps, chain = [self.step], self.before
        while chain is not None:
            chain, step = chain
            steps.append(step)
        return tuple(reversed(steps))


#: What of a view's meta is not there until somebody asks: as in any tensor's meta, and its own.
_DEFAULTS: dict[str, Any] = {name: getattr(AutogradMeta(), name) for name in AutogradMeta.__slots__}
_DEFAULTS |= {"before": None, "creation_meta": CreationMeta.DEFAULT, "fleeting": False, "forward": None}


def as_view(
    state: ThreadState, source: Tensor, view: Tensor, step: Step, edge: EdgeTuple | None, multiple: bool = False
) -> None:
    """Make `view`, fresh from a view operator on `source`, know its base. `multiple`: one of several outputs."""
    vc: Any = view._vc_
    if source.__class__ is not Tensor:
        inherit_bits(source, view, step[1])
    if vc is INFERENCE:
        view._grad_meta_ = None  # nothing is ever recorded of it
        return
    meta = DifferentiableViewMeta()
    meta.edge = edge
    meta.attr_version = vc.version
    meta.step = step
    if edge is None:
        meta.requires_grad = False  # which every operator asks for then
    above: Any = source._grad_meta_
    if above is not None and above.is_view:
        meta.base = above.base
        meta.before = (above.before, above.step)
        _inherit(state, meta, source, above, multiple)
    else:
        meta.base = source
        if multiple or not state.grad_enabled:
            meta.creation_meta = _creation(state, multiple)
    view._grad_meta_ = meta


def _creation(state: ThreadState, multiple: bool) -> CreationMeta:
    """Where a view that is being made comes from."""
    if state.grad_enabled:
        return CreationMeta.MULTI_OUTPUT_NODE if multiple else CreationMeta.DEFAULT
    return CreationMeta.INFERENCE_MODE if state.inference else CreationMeta.NO_GRAD_MODE


def _inherit(state: ThreadState, meta: DifferentiableViewMeta, source: Tensor, above: Any, multiple: bool) -> None:
    """What a view takes over from the view that it is a view of."""
    creation, inherited = _creation(state, multiple), above.creation_meta
    keep = creation is CreationMeta.DEFAULT or inherited is CreationMeta.INFERENCE_MODE
    meta.creation_meta = inherited if keep else creation
    forward = above.forward
    meta.forward = (source, len(above.replay)) if forward is FORWARD_BASE else forward


def view_edge(view: Tensor) -> EdgeTuple | None:
    """The gradient edge of a view, made anew if its memory was written to since."""
    meta: Any = view._grad_meta_
    if meta.edge is None and not meta.base.requires_grad:
        return None
    version = view._version
    if meta.attr_version != version:
        check_view(view, meta, indirect=True)
        old = meta.edge
        meta.edge = _regenerate(view, meta)
        meta.attr_version = version
        if meta.hooks is not None or meta.retains_grad:
            rebase_hooks(view, old, meta.edge)
    return meta.edge


def _regenerate(view: Tensor, meta: DifferentiableViewMeta) -> EdgeTuple | None:
    """The edge that the view would get if it were taken of the base now."""
    state = local.state
    recording, interceptor = state.grad_enabled, state.interceptor
    state.grad_enabled = True
    if interceptor is not None:  # where there is none, another thread may set one now
        state.interceptor = None
    try:
        base, data, steps = meta.base, view._memory_, meta.replay
        if base._grad_meta_ is not None and base._grad_meta_.restrided:
            # The steps were taken from another shape of the base.
            steps = steps_by_place(view, base) or steps
        if state.view_replay or getattr(data, "replayed", False):
            again = replay_on_tensor(steps, base)
        else:
            # as_strided says it all, except where elements become others.
            last = max((i for i, step in enumerate(steps, 1) if _changes_elements(step)), default=0)
            if not last and not base.requires_grad:
                base = _with_sink(base)
            again = replay_on_tensor(steps[:last], base)
            if last < len(steps):
                again = ops.as_strided(again, data.shape, kernels.strides(data), kernels.storage_offset(data))
    finally:
        state.grad_enabled = recording
        if interceptor is not None:
            state.interceptor = interceptor
    meta_again: Any = again._grad_meta_
    return again._edge_ if meta_again is None else meta_again.edge


def steps_by_place(view: Tensor, base: Tensor) -> tuple[Step, ...] | None:
    """From base to view by where the elements lie, whatever the steps were; None if that cannot be said."""
    def strided(shape: tuple[Any, ...], strides: tuple[Any, ...], offset: int, origin: Any) -> Step:
        args = (shape, strides, offset, kernels.geometry(origin))
        return (kernels.as_strided_geometry, ops.as_strided_geometry, args, None)

    data, origin = view._memory_, base._memory_
    shape, strides, offset = data.shape, kernels.strides(data), kernels.storage_offset(data)
    flips = [
        (kernels.alias, operator, (), None)
        for operator, bit in zip((ops._conj, ops._neg_view), relative_bits(view, base), strict=True)
        if bit
    ]
    if data.dtype == origin.dtype:
        return (strided(shape, strides, offset, origin), *flips)
    kinds = origin.dtype.kind + data.dtype.kind
    if kinds == "fc":
        pairs = strided((*shape, 2), (*(2 * s for s in strides), 1), 2 * offset, origin)
        return (pairs, (kernels.view_as_complex, ops.view_as_complex, (), None), *flips)
    if kinds == "cf":
        parts = kernels.view_as_real(origin)
        return ((kernels.view_as_real, ops.view_as_real, (), None), strided(shape, strides, offset, parts), *flips)
    return None


def _changes_elements(step: Step) -> bool:
    record = record_of(step[1])
    return record is not None and record.changes_elements


def _with_sink(base: Tensor) -> Tensor:
    """The base of a view with a history that it itself does not have any more: gradients end there."""
    from .edge import Sink  # edges know views

    result = boxed(base._memory_)
    result._vc_ = base._vc_
    result._edge_ = (Sink(base), 0)
    return result


def replay_on_tensor(steps: tuple[Step, ...], base: Tensor) -> Any:
    """Take the view of another tensor in the base's place."""
    result: Any = base
    for _, operator, args, output in steps:
        result = operator(result, *args)
        if output is not None:
            result = result[output]
    return result


def replay_on_array(steps: tuple[Step, ...], base: Any) -> Any:
    """The same on bare arrays."""
    result = base
    for kernel, _, args, output in steps:
        result = kernel(result, *args)
        if output is not None:
            result = result[output]
    return result


# ----------------------------------------------------------------------------------------------------------- refusals


def check_view(view: Tensor, meta: DifferentiableViewMeta, indirect: bool = False) -> None:
    """May the history of this view be rewritten? `indirect`: because its base or a sibling was written to."""
    creation = meta.creation_meta
    if creation is CreationMeta.DEFAULT:
        return
    modified = (
        "its base or another view of its base has been modified inplace" if indirect else "is being modified inplace"
    )
    node = meta.edge[0] if meta.edge is not None else None
    if node is not None:
        of = f"Output {meta.edge[1]} of {forward_name(node)} is a view and "  # type: ignore[index]
    else:
        of = "A view was created in " + (
            "inference mode" if creation is CreationMeta.INFERENCE_MODE else "no_grad mode"
        )
        of += " and "
        modified += " in normal mode" if creation is CreationMeta.INFERENCE_MODE else " with grad mode enabled"
    if creation is CreationMeta.MULTI_OUTPUT_NODE:
        why = (
            " This view is the output of a function that returns multiple views. Such functions do not allow the "
            "output views to be modified inplace. You should replace the inplace operation by an out-of-place one."
        )
    elif creation is CreationMeta.IN_CUSTOM_FUNCTION:
        why = (
            " This view was created inside a custom Function (or because an input was returned as-is) and the autograd "
            "logic to handle view+inplace would override the custom backward associated with the custom Function, "
            "leading to incorrect gradients. This behavior is forbidden. You can fix this by cloning the output of the "
            "custom Function."
        )
    else:
        mode = "inference_mode" if creation is CreationMeta.INFERENCE_MODE else "no_grad"
        if node is not None:
            where = "inference" if creation is CreationMeta.INFERENCE_MODE else "no_grad"
            of = of.replace("is a view and", f"is a view of a view which was created in {where} mode and")
            modified += " in normal mode" if creation is CreationMeta.INFERENCE_MODE else " with grad mode enabled"
        why = (
            " Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by "
            f"moving both the view and the inplace either both inside the {mode} block (if you don't want the inplace "
            "to be tracked) or both outside (if you want the inplace to be tracked)."
        )
    raise RuntimeError(f"{of}{modified}.{why}")


def forward_name(node: Any) -> str:
    """The forward operation that a node belongs to, as messages call it: ``'Unbind'`` for UnbindBackward0."""
    name = name_of(node).rsplit("::", 1)[-1]
    head, found, number = name.rpartition("Backward")
    if not found or not (number.isdigit() or not number):
        return name
    return head if number in ("", "0") else head + number
