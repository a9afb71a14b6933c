"""AccumulateGrad: the node at the end of a path, which adds what arrives to the ``.grad`` of a leaf.

It keeps the leaf alive; the leaf knows it only weakly, so that a graph dies when its results do.  It has the highest
sequence number: a leaf's gradient is stored as soon as it is complete, and its memory is free for reuse.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import ref as reference

from .. import kernels
from ..core.description import Description, NoArray
from ..core.locks import STEPS_ARE_WHOLE, graph_lock
from ..core.meta import AutogradMeta
from ..core.state import local, process
from ..core.version_counter import INFERENCE, VersionCounter, inference_error, version_counter
from ..kernels import accumulate, ndarray
from ..tensor import Tensor, new, wrap
from ..tensor.lazy_conjugation import write_back
from ..tensor.special import boxed
from .hooks import run_post_accumulate_grad_hooks
from .node import Node, tell_modes
from .ownership import held_alone, special_held_alone

#: Larger than any sequence number that a thread will reach.
LAST_SEQUENCE_NR = 2**64 - 1


class AccumulateGrad(Node):
    """Adds gradients into ``variable.grad``."""

    __slots__ = ("variable",)

    variable: Tensor

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"

    def apply(self, edges: tuple[Any, ...], grads: Sequence[Any]) -> tuple[Any, ...]:
        # `grads` alone holds the gradient, no variable: see Note [Ownership].
        variable = self.variable
        meta: Any = variable._grad_meta_
        is_leaf = meta.__class__ is AutogradMeta and meta.requires_grad
        if grads[0] is not None and (is_leaf or _is_leaf_still(variable)):
            is_first = False
            if STEPS_ARE_WHOLE and meta.grad is None:  # Note [Steps under the GIL]
                try:
                    like = variable._memory_
                    if _may_keep(grads, like):
                        made = new(Tensor)  # `wrap` without the call
                        made._numbers_ = grads[0]
                        made._vc_ = made._grad_meta_ = made._edge_ = None
                    else:
                        made = _written(grads[0], like)
                    meta.grad = made if meta.grad is None else meta.grad
                    is_first = meta.grad is made
                except NoArray:
                    pass
            if not is_first:
                _add(variable, meta, grads)
        if meta.post_accumulate_grad_hooks is not None:  # they run even if nothing was added
            run_post_accumulate_grad_hooks(variable)
        return ()

    def apply_tensors(self, edges: tuple[Any, ...], grads: Sequence[Any]) -> tuple[Any, ...]:
        grad = grads[0]
        variable = self.variable
        meta: Any = variable._grad_meta_
        is_leaf = meta.__class__ is AutogradMeta and meta.requires_grad
        if grad is not None and (is_leaf or _is_leaf_still(variable)):
            with graph_lock:
                old = meta.grad
                if local.state.grad_enabled:
                    # The sum is part of the new graph: out of place, and never the very tensor that others may hold.
                    meta.grad = _recorded_copy(grad, variable._memory_) if old is None else _sum(old, grad)
                elif grad._special_ is not None or (old is not None and old._special_ is not None):
                    meta.grad = grad.clone() if old is None else _add_special(old, grad)
                elif old is None:
                    alias = grad if local.state.interceptor is None else grad.detach()  # which modes are asked about
                    meta.grad = _written(alias._numbers_, variable._memory_)
                else:
                    _add_in_place(old, grad._numbers_)
        if meta.post_accumulate_grad_hooks is not None:
            run_post_accumulate_grad_hooks(variable)
        return ()


class OutdatedAccumulateGrad(AccumulateGrad):
    """What becomes of the accumulator of a leaf that gets another shape or dtype: it looks before it adds."""

    __slots__ = ()

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"

    def apply(self, edges: tuple[Any, ...], grads: Sequence[Any]) -> tuple[Any, ...]:
        self._check(grads[0])
        return super().apply(edges, grads)

    def apply_tensors(self, edges: tuple[Any, ...], grads: Sequence[Any]) -> tuple[Any, ...]:
        self._check(grads[0])
        return super().apply_tensors(edges, grads)

    def _check(self, grad: Any) -> None:
        meta: Any = self.variable._grad_meta_
        target = self.variable if meta.grad is None else meta.grad
        if grad is not None and tuple(grad.shape) != target._memory_.shape:
            raise _mismatch(target._memory_.shape, tuple(grad.shape))


def outdate_accumulator(tensor: Tensor) -> None:
    """`tensor` has other memory now: graphs to come get an accumulator of their own."""
    meta = tensor._grad_meta_
    node = None if meta is None or meta.grad_accumulator is None else meta.grad_accumulator()
    if node is not None:
        node.__class__ = OutdatedAccumulateGrad
        meta.grad_accumulator = None  # type: ignore[union-attr]


def _mismatch(shape: tuple[int, ...], arrived: tuple[int, ...]) -> RuntimeError:
    pairs = [(n, m) for n, m in zip(reversed(shape), reversed(arrived)) if n != m and 1 not in (n, m)]
    if not pairs:
        text = f"output with shape {list(shape)} doesn't match the broadcast shape {list(arrived)}"
    else:
        dim = max(len(shape), len(arrived)) - 1
        dim -= next(d for d, (n, m) in enumerate(zip(reversed(shape), reversed(arrived))) if (n, m) == pairs[0])
        a, b = pairs[0]
        text = f"The size of tensor a ({a}) must match the size of tensor b ({b}) at non-singleton dimension {dim}"
    return RuntimeError(
        f"{text}: a gradient of shape {list(arrived)} cannot be added to the .grad of shape {list(shape)} of a leaf. "
        "Was the leaf (or its .grad) given another shape after the graph was recorded? Set x.grad = None, and "
        "compute the result again"
    )


def _is_leaf_still(variable: Tensor) -> bool:
    """Does a leaf still want its gradient? It may have been switched off, but not become the result of something."""
    if variable._history_() is not None:
        raise RuntimeError(
            "leaf variable has been moved into the graph interior: it was used as a leaf that requires grad, and "
            "written to in place later"
        )
    return variable._grad_meta_.requires_grad  # type: ignore[union-attr]


def grad_accumulator(tensor: Tensor) -> AccumulateGrad:
    """The accumulator of a leaf that requires grad, made at its first use and shared while somebody holds it."""
    meta: Any = tensor._grad_meta_
    known = meta.grad_accumulator
    if known is not None:
        node = known()
        if node is not None:
            return node
    return new_accumulator(tensor, meta, known)


def new_accumulator(tensor: Tensor, meta: Any, before: reference[AccumulateGrad] | None) -> AccumulateGrad:
    """The accumulator of a leaf that had none when it was looked at: `before` is what it had then."""
    hooks = meta.hooks
    node = AccumulateGrad()
    node.variable = tensor
    node.next_edges = ()
    node.sequence_nr = LAST_SEQUENCE_NR
    data = tensor._memory_
    node.shape = data.shape
    node.array_class = array_class = data.__class__
    if array_class is not ndarray and hasattr(data, "place"):
        node.array_class = data.place.class_now()  # Note [Streams]
    node.dtype = data.dtype if meta.grad_dtype == "same" else meta.grad_dtype
    node.extras = None
    if hooks is not None:
        node.materialize_extras().tensor_hooks.append((0, hooks))
    if process.modes:
        tell_modes(local.state, node)
    made = reference(node)
    if STEPS_ARE_WHOLE:  # Note [Steps under the GIL]
        meta.grad_accumulator = made if (now := meta.grad_accumulator) is before and meta.hooks is hooks else now
    else:
        with graph_lock:
            if meta.grad_accumulator is before and meta.hooks is hooks:
                meta.grad_accumulator = made
    return node if meta.grad_accumulator is made else grad_accumulator(tensor)


def _may_keep(grads: Sequence[Any], like: Any) -> bool:
    """May the gradient itself become ``.grad``? Only if nobody else can see it, and it is laid out as the leaf is."""
    if not held_alone(grads):
        return False
    grad = grads[0]
    if grad.strides == like.strides and grad.__class__ is like.__class__ is ndarray and grad.flags.carray:
        return True
    getattr(grad, "ptr", None)  # what is yet to be computed is now: Note [Pending gradients] in arrays/own/pending.py
    if not grad.flags.writeable or grad.__class__ is not like.__class__:
        if not hasattr(grad, "place") or grad.place is not getattr(like, "place", None):
            return False  # else of another stream of the device
    return grad.strides == kernels.grad_layout_strides(like) or not local.state.enforce_grad_layout


def _written(grad: Any, like: Any) -> Tensor:
    """A copy of `grad` in the layout that the leaf's gradient should have: new memory that was written to once."""
    array = kernels.empty_with_layout_of(like, grad.dtype)
    array[...] = grad
    result = wrap(array)
    vc = local.state.new_vc
    if vc is None:
        vc = VersionCounter()
        vc.version = 1
    result._vc_ = vc
    return result


def _recorded_copy(grad: Any, like: Any) -> Tensor:
    """The same by operations that are recorded."""
    if grad._special_ is not None:
        return grad.clone()
    return wrap(kernels.empty_with_layout_of(like, grad._memory_.dtype)).copy_(grad)  # type: ignore[attr-defined]


def _sum(old: Any, grad: Any) -> Any:
    return old + grad if old._special_ is None or grad._special_ is not None else grad + old


def _special_grad(grads: Sequence[Any]) -> Tensor:
    """The first gradient of a leaf, if it or the leaf is special: see Note [Special tensors]."""
    if isinstance(grads[0], Description) and special_held_alone(grads):
        return boxed(grads[0])
    return boxed(grads[0]).clone()


def _add_special(old: Tensor, grad: Any) -> Tensor:
    """The new ``.grad`` where one of two gradients is special: the old one, unless it cannot hold the sum."""
    if old._special_ is not None and grad._special_ != old._special_:
        return grad + old
    return old.add_(grad)  # type: ignore[attr-defined]


def _add(variable: Tensor, meta: Any, grads: Sequence[Any]) -> None:
    """Add a gradient to what there is."""
    with graph_lock:
        if meta.grad is None:
            made = _first(variable, grads)
            meta.grad = made if meta.grad is None else meta.grad  # (others may not ask for the lock)
            if meta.grad is made:
                return
        old = meta.grad
        try:
            _add_in_place(old, grads[0])
            is_special = False
        except NoArray:
            is_special = True
        if is_special:  # (not before the error is gone, whose traceback holds the gradient)
            meta.grad = _add_special(old, boxed(grads[0]))


def _first(variable: Tensor, grads: Sequence[Any]) -> Tensor:
    """What ``.grad`` becomes where there is none."""
    try:
        like = variable._memory_
        return wrap(grads[0]) if _may_keep(grads, like) else _written(grads[0], like)
    except NoArray:
        pass
    return _special_grad(grads)  # (not before the error is gone)


def _add_in_place(old: Tensor, grad: Any) -> None:
    vc = old._vc_ or version_counter(old)
    if vc is INFERENCE and not local.state.inference:
        raise inference_error()
    array = old._numbers_
    add = accumulate
    if array.__class__ is not ndarray and hasattr(array, "place"):
        add = array.place.numpy.add  # what NumPy would ask for, at twice the cost
    try:
        add(array, grad, array)
    except ValueError:
        raise _mismatch(array.shape, grad.shape) from None
    if array is not old._memory_:
        write_back(old, array)
    if vc is INFERENCE:
        return
    vc.version += 1
    vc.operation, vc.code = "AccumulateGrad", None
