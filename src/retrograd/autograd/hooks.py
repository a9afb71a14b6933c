"""Hooks: what users hang on tensors and nodes, and how the engine calls it.

A node without hooks has ``extras = None`` and pays one test.  One with hooks has a `NodeHooks`, whose kinds run in
this order around the node:

1. tensor hooks (``Tensor.register_hook``), each on the gradient of one output, in order of registration;
2. retains-grad hooks (``Tensor.retain_grad``), which store that gradient in ``.grad``;
3. pre-hooks (``Node.register_prehook``) on all gradients together;
4. the node itself; if that is the AccumulateGrad of a leaf, then the hooks that watch ``.grad``
   (``Tensor.register_post_accumulate_grad_hook``);
5. post-hooks (``Node.register_hook``) on what the node gave and what it got.

A node that only hands out a gradient that ``grad()`` asked for does not run itself: it has steps 1 and 2 alone.

Gradients travel as arrays; hooks see Tensors.  So a gradient is boxed here, and only here, before user code sees it
(boxes.py).

Note [Hooks and in-place writes]
A tensor hook is about the value that the tensor had when it was registered: after an in-place write it stays with the
former node, and new hooks go to the new one.  ``retain_grad()`` is about the tensor: it moves along (`rebase_hooks`).
"""

from __future__ import annotations

import itertools
import weakref
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from ..core.locks import graph_lock
from ..core.meta import materialize_autograd_meta
from ..core.state import local
from ..tensor import Tensor, type_name
from .boxes import Boxes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .node import Node


class RemovableHandle:
    """Removes a hook: ``handle.remove()``, or leaving ``with handle:``.

    >>> import retrograd
    >>> x = retrograd.ones(2, requires_grad=True)
    >>> with x.register_hook(lambda grad: grad * 2):
    ...     x.sum().backward()
    >>> x.grad
    tensor([2., 2.])
    """

    _ids = itertools.count()

    def __init__(self, hooks_dict: OrderedDict[Any, Any], *, extra_dict: Any = None) -> None:
        # Weak, so that a handle does not keep a graph alive; OrderedDict (unlike dict) can be referred to weakly.
        self.hooks_dict_ref: weakref.ref[OrderedDict[Any, Any]] = weakref.ref(hooks_dict)
        with graph_lock:  # no number twice, whichever threads ask
            self.id: int = next(self._ids)
        #: Further dicts (one, or a list) from which the same key is to go.
        self.extra_dict_ref: tuple[Any, ...] = ()
        if extra_dict is not None:
            several = extra_dict if isinstance(extra_dict, list) else [extra_dict]
            self.extra_dict_ref = tuple(weakref.ref(extra) for extra in several)

    def remove(self) -> None:
        """Take the hook away; nothing happens if it is gone."""
        for reference in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = reference()
            if hooks is not None:
                with graph_lock:
                    hooks.pop(self.id, None)

    def __getstate__(self) -> tuple[Any, ...]:
        return self.hooks_dict_ref(), self.id, tuple(reference() for reference in self.extra_dict_ref)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        hooks, number, extras = state
        self.id = number
        # A handle whose hooks are gone stays one; new handles get other numbers than this one.
        self.hooks_dict_ref = weakref.ref(OrderedDict() if hooks is None else hooks)
        self.extra_dict_ref = tuple(weakref.ref(extra) for extra in extras if extra is not None)
        with graph_lock:
            RemovableHandle._ids = itertools.count(max(self.id + 1, next(self._ids)))

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.remove()


def add_hook(hooks: OrderedDict[Any, Any], hook: Callable[..., Any]) -> RemovableHandle:
    """Put `hook` into `hooks` and return its handle."""
    handle = RemovableHandle(hooks)
    with graph_lock:
        hooks[handle.id] = hook
    return handle


def _now(hooks: OrderedDict[Any, Any]) -> list[Callable[..., Any]]:
    """The hooks as they are now: those that run may add and remove some, and so may other threads."""
    with graph_lock:
        return list(hooks.values())


class NodeHooks:
    """All that is rare about one node."""

    __slots__ = ("metadata", "post_hooks", "pre_hooks", "retains_grad", "shown", "tensor_hooks")

    def __init__(self) -> None:
        #: (output_nr, hooks of that tensor), in order of registration.
        self.tensor_hooks: list[tuple[int, OrderedDict[Any, Any]]] = []
        #: output_nr -> the tensor (weakly) whose .grad is to be set.
        self.retains_grad: dict[int, weakref.ref[Tensor]] = {}
        self.pre_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self.post_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self.metadata: dict[Any, Any] = {}
        #: output_nr -> what users are shown of the gradient that comes in, where that is of a special tensor.
        self.shown: dict[int, Any] = {}

    def add(self, kind: str, hook: Callable[..., Any]) -> RemovableHandle:
        return add_hook(getattr(self, kind), hook)


# ------------------------------------------------------------------------------------------------ called by the engine


def run_tensor_hooks(extras: NodeHooks, grads: Sequence[Any], as_tensors: bool) -> list[Any]:
    """Steps 1 and 2: the tensor hooks and retains-grad hooks of each gradient."""
    if not extras.tensor_hooks and not extras.retains_grad:
        return list(grads)
    boxes = None if as_tensors else _boxes()
    seen = list(grads) if boxes is None else [boxes.box(grad) for grad in grads]
    for output_nr, hooks in extras.tensor_hooks:
        for hook in _now(hooks):
            after = hook(seen[output_nr])
            if after is None:
                continue
            check_replacement(seen[output_nr], after, hook)
            seen[output_nr] = after
    for output_nr, reference in extras.retains_grad.copy().items():
        tensor, grad = reference(), seen[output_nr]
        if tensor is not None and grad is not None and not _is_of_a_batch(grad, tensor):
            meta = materialize_autograd_meta(tensor)
            # A clone: what travels through the engine may be the user's own tensor, or go on to other nodes.
            with graph_lock:
                meta.grad = grad.clone() if meta.grad is None else meta.grad + grad
    return seen if boxes is None else boxes.unbox(seen)


def _is_of_a_batch(grad: Any, tensor: Any) -> bool:
    """Is it the gradients of a batch (of `is_grads_batched`, or of a transform around the pass), and the tensor not?"""
    special = grad._special_
    return special is not None and hasattr(grad, "bdim") and special != tensor._special_  # (BatchedTensor)


def run_pre_hooks(extras: NodeHooks, grads: Sequence[Any], as_tensors: bool) -> list[Any]:
    """Step 3: the node's own pre-hooks."""
    return _run_on_all(extras.pre_hooks, grads, as_tensors, ())


def run_post_hooks(extras: NodeHooks, outputs: Sequence[Any], inputs: Sequence[Any], as_tensors: bool) -> list[Any]:
    """Step 5: after the node has run; `outputs` are the gradients it gave, `inputs` those it got."""
    return _run_on_all(extras.post_hooks, outputs, as_tensors, (inputs,))


def _run_on_all(
    hooks: OrderedDict[Any, Any], grads: Sequence[Any], as_tensors: bool, others: tuple[Sequence[Any], ...]
) -> list[Any]:
    """Call hooks that get all gradients together, and `others` beside them."""
    if not hooks:
        return list(grads)
    boxes = None if as_tensors else _boxes()
    seen = tuple(grads) if boxes is None else tuple([boxes.box(grad) for grad in grads])
    beside = [tuple(some) if boxes is None else tuple([boxes.box(grad) for grad in some]) for some in others]
    for hook in _now(hooks):
        after = hook(seen, *beside)
        if after is None:
            continue
        if not isinstance(after, tuple):
            raise TypeError(
                f"expected tuple, but hook returned '{type(after).__name__}' (hook '{hook_name(hook)}' of a node gets "
                "and returns all its gradients: write `return (grad,)`)"
            )
        if len(after) != len(seen):
            raise RuntimeError(
                f"hook '{hook_name(hook)}' has returned an incorrect number of values "
                f"(got {len(after)}, but expected {len(seen)})"
            )
        for old, new in zip(seen, after, strict=True):
            if new is not None:
                check_replacement(old, new, hook)
        seen = after
    return list(seen) if boxes is None else boxes.unbox(seen)


def _boxes() -> Boxes:
    """Those of the pass that this thread is running."""
    task = local.state.graph_task
    return Boxes() if task is None else task.boxes_of_hooks()


def hook_name(hook: Callable[..., Any]) -> str:
    return getattr(hook, "__name__", None) or type(hook).__name__


def check_replacement(before: Tensor | None, after: Any, hook: Callable[..., Any]) -> None:
    """A hook may change a gradient's values, not its kind."""
    if before is None:
        raise RuntimeError(f"can't replace a None gradient with a non-None value (hook '{hook_name(hook)}')")
    if not isinstance(after, Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(after).__name__}' (hook '{hook_name(hook)}')")
    if before.dtype != after.dtype or before._special_ != after._special_:
        raise RuntimeError(
            f"hook '{hook_name(hook)}' has changed the type of value (was {type_name(before)} got {type_name(after)})"
        )
    if before.device != after.device:
        raise RuntimeError(f"hook '{hook_name(hook)}' has changed the device of value")
    if before.shape != after.shape:
        raise RuntimeError(
            f"hook '{hook_name(hook)}' has changed the size of value (was {list(before.shape)}, "
            f"got {list(after.shape)})"
        )


# ---------------------------------------------------------------------------------------------- registered by tensors


def register_tensor_hook(tensor: Tensor, hook: Callable[..., Any]) -> RemovableHandle:
    """``Tensor.register_hook``: on the node that the tensor's gradient comes into."""
    meta = materialize_autograd_meta(tensor)
    edge = tensor._history_()  # before looking at the hooks: a view that was written to may get a new edge here
    with graph_lock:
        hooks = meta.hooks
        if hooks is None:
            hooks = meta.hooks = OrderedDict()
            edge = edge or _live_accumulator_edge(tensor)
            if edge is not None:
                edge[0].materialize_extras().tensor_hooks.append((edge[1], hooks))
    return add_hook(hooks, hook)


def _live_accumulator_edge(tensor: Tensor) -> tuple[Node, int] | None:
    # A leaf's hooks wait in its meta; an accumulator that is made later takes them from there.
    accumulator = tensor._grad_meta_.grad_accumulator  # type: ignore[union-attr]
    node = accumulator() if accumulator is not None else None
    return None if node is None else (node, 0)


def register_post_accumulate_grad_hook(tensor: Tensor, hook: Callable[..., Any]) -> RemovableHandle:
    """``Tensor.register_post_accumulate_grad_hook``: on a leaf, called when its ``.grad`` is up to date."""
    meta = materialize_autograd_meta(tensor)
    with graph_lock:
        if meta.post_accumulate_grad_hooks is None:
            meta.post_accumulate_grad_hooks = OrderedDict()
    return add_hook(meta.post_accumulate_grad_hooks, hook)


def run_post_accumulate_grad_hooks(variable: Tensor) -> None:
    """Step 4, called by AccumulateGrad."""
    meta: Any = variable._grad_meta_
    state = local.state
    recording = state.grad_enabled
    for hook in _now(meta.post_accumulate_grad_hooks):
        result = hook(variable)
        if result is None:
            continue
        if not isinstance(result, Tensor):
            kind = type(result).__name__
            raise TypeError(f"expected Variable, but hook returned '{kind}' (hook '{hook_name(hook)}')")
        raise RuntimeError(
            f"Tensor post accumulate grad hooks should return None. '{hook_name(hook)}' returned a Tensor: "
            "to change the gradient, write to tensor.grad"
        )
    state.grad_enabled = recording  # whatever mode a hook has set: the next node runs in that of the pass


def rebase_hooks(tensor: Tensor, old: tuple[Node, int] | None, new: tuple[Node, int] | None) -> None:
    """The history of `tensor` was replaced: see Note [Hooks and in-place writes]."""
    meta: Any = tensor._grad_meta_
    meta.hooks = None
    if not meta.retains_grad or old is None or new is None:
        return
    extras = old[0].extras
    reference = None if extras is None else extras.retains_grad.pop(old[1], None)
    if reference is not None:
        new[0].materialize_extras().retains_grad[new[1]] = reference
