"""Default hooks for saved tensors: every tensor that a thread saves for backward goes through them.

While hooks are set, an observer (intercept.py) packs what each operator has just saved.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection
from typing import Any

from .. import kernels
from ..core.state import ThreadState, local
from ..tensor import Tensor
from ..tensor.lazy_conjugation import bits_of
from .grad_mode import _Mode
from .intercept import interceptor_of, new_node, take_away
from .offloading import Kept, Offload
from .saved_variable import pack_saved


def _pack_what_is_saved(
    operator: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[Any, Any], proceed: Callable[[], Any]
) -> Any:
    state = local.state
    since = state.sequence_nr
    result = proceed()
    hooks = state.saved_tensors_hooks
    if hooks and not isinstance(hooks, str):
        node = new_node(result, since)
        if node is not None:
            pack_saved(node, *hooks[-1])
    return result


class saved_tensors_hooks:
    """Keep ``pack_hook(tensor)`` of every tensor saved for backward, and ``unpack_hook`` of it when it is needed.

    >>> import retrograd as torch
    >>> x = torch.tensor([1., 2.], requires_grad=True)
    >>> with torch.autograd.graph.saved_tensors_hooks(lambda t: t.tolist(), torch.tensor):
    ...     y = (x * x).sum()
    >>> y.backward(); x.grad
    tensor([2., 4.])
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        for name, hook in (("pack_hook", pack_hook), ("unpack_hook", unpack_hook)):
            if not callable(hook):
                raise TypeError(f"saved_tensors_hooks(): {name} must be callable, not {type(hook).__name__}")
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> saved_tensors_hooks:
        state = local.state
        observers, interceptor = _packing(state)
        hooks: Any = state.saved_tensors_hooks
        state.saved_tensors_hooks = (*hooks, (self.pack_hook, self.unpack_hook))
        state.observers, state.interceptor = observers, interceptor
        return self

    def __exit__(self, *exc_info: object) -> None:
        state = local.state
        hooks: Any = state.saved_tensors_hooks
        state.saved_tensors_hooks = hooks[:-1]
        try:
            _stop_packing(state)
        except BaseException:
            _stop_packing(state)
            raise


def _packing(state: ThreadState) -> tuple[tuple[Any, ...], Any]:
    """The observers that the thread has while hooks are set, and their interceptor."""
    if isinstance(state.saved_tensors_hooks, str):
        raise RuntimeError(state.saved_tensors_hooks)
    observers = state.observers
    if _pack_what_is_saved in observers:
        return observers, state.interceptor
    observers = (*observers, _pack_what_is_saved)
    return observers, interceptor_of(observers)


def _stop_packing(state: ThreadState) -> None:
    """No observer where there are no hooks any more."""
    if not state.saved_tensors_hooks:
        take_away(state, _pack_what_is_saved)


class save_on_cpu(saved_tensors_hooks):
    """Keep saved tensors in host memory, and bring them back to their device when they are needed.

    >>> import retrograd as torch
    >>> x = torch.tensor(3., requires_grad=True)
    >>> with torch.autograd.graph.save_on_cpu():
    ...     y = x ** 3
    >>> y.backward(); x.grad
    tensor(27.)
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        offload = Offload()

        def pack(tensor: Tensor) -> Any:
            if pin_memory and hasattr(tensor._memory_, "place"):  # of a device: copied beside the computation
                return offload.pack(tensor.detach())
            copy = tensor.detach().cpu()
            return tensor.device, copy.clone() if copy._memory_ is tensor._memory_ else copy

        def unpack(packed: Any) -> Tensor:
            if isinstance(packed, Kept):
                return packed.give()
            device, tensor = packed
            return tensor.to(device)

        super().__init__(pack, unpack)


class disable_saved_tensors_hooks(_Mode):
    """Refuse saved-tensor hooks for a while: setting some raises RuntimeError with `error_message`.

    >>> import retrograd as torch
    >>> with torch.autograd.graph.disable_saved_tensors_hooks("not here"):
    ...     with torch.autograd.graph.save_on_cpu():
    ...         pass
    Traceback (most recent call last):
    RuntimeError: not here
    """

    def __init__(self, error_message: str) -> None:
        self.error_message = error_message
        self.before: Any = None

    def __enter__(self) -> None:
        state = local.state
        hooks = state.saved_tensors_hooks
        if hooks and not isinstance(hooks, str):
            raise RuntimeError(self.error_message)
        self.before = hooks, self.before
        state.saved_tensors_hooks = self.error_message

    def __exit__(self, *exc_info: object) -> None:
        local.state.saved_tensors_hooks, self.before = self.before

    def clone(self) -> disable_saved_tensors_hooks:
        return disable_saved_tensors_hooks(self.error_message)


def saved_tensors_hooks_is_enabled() -> bool:
    """May this thread set saved-tensor hooks?"""
    return not isinstance(local.state.saved_tensors_hooks, str)


# -------------------------------------------------------------------------------------- allow_mutation_on_saved_tensors


class _Handle:
    """Stands for one saved value (a tensor at one version) in the nodes that saved it."""

    __slots__ = ("__weakref__", "key")

    def __init__(self, key: tuple[int, int, int]) -> None:
        self.key: tuple[int, int, int] = key


class _MutationContext:
    """What `allow_mutation_on_saved_tensors` keeps: originals of what is saved, and clones of what was overwritten."""

    def __init__(self) -> None:
        self.cloned: weakref.WeakKeyDictionary[_Handle, Tensor] = weakref.WeakKeyDictionary()
        self.original: weakref.WeakKeyDictionary[_Handle, Tensor] = weakref.WeakKeyDictionary()
        #: (memory, which part of it, version) -> the handle.
        self.tid_to_weakhandle: weakref.WeakValueDictionary[tuple[Any, ...], _Handle] = weakref.WeakValueDictionary()
        #: The handles that stand for some part of one piece of memory.
        self.by_storage: dict[int, weakref.WeakSet[_Handle]] = {}
        #: Who was asked before, of a transform around this.
        self.outer: Any = None

    def clear(self) -> None:
        self.cloned.clear()
        self.original.clear()
        self.tid_to_weakhandle.clear()
        self.by_storage.clear()

    def pack(self, tensor: Tensor) -> _Handle:
        data = tensor._memory_
        memory = id(kernels.storage_root(data))
        key = (memory, (tensor.data_ptr(), data.shape, data.strides, bits_of(tensor)), tensor._version)
        handle = self.tid_to_weakhandle.get(key)
        if handle is None:
            handle = _Handle(key)  # type: ignore[arg-type]
            self.tid_to_weakhandle[key] = handle
            self.original[handle] = tensor.detach()
            self.by_storage.setdefault(memory, weakref.WeakSet()).add(handle)
        return handle

    def unpack(self, handle: _Handle) -> Tensor:
        if handle in self.cloned:
            return self.cloned[handle]
        if handle in self.original:
            return self.original[handle]
        raise AssertionError("Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in which the "
                             "graph was originally recorded.")  # fmt: skip

    def lend(self, tensors: Collection[Any]) -> None:
        if self.outer is not None:
            self.outer.lend(tensors)

    def before_copy(self, tensor: Tensor) -> None:
        if self.outer is not None:
            self.outer.before_copy(tensor)

    def before_data(self, tensor: Tensor) -> None:
        if self.outer is not None:
            self.outer.before_data(tensor)

    def before_write(self, tensor: Tensor) -> None:
        """Clone every saved value that a write to this tensor's memory would change."""
        for handle in list(self.by_storage.get(id(kernels.storage_root(tensor._memory_)), ())):
            if handle not in self.cloned and handle in self.original:
                self.cloned[handle] = self.original.pop(handle).clone()


class allow_mutation_on_saved_tensors(_Mode):
    """Let saved tensors be modified in place: what is saved is cloned before it is overwritten.

    >>> import retrograd as torch
    >>> x = torch.tensor([1., 2.], requires_grad=True)
    >>> with torch.autograd.graph.allow_mutation_on_saved_tensors():
    ...     y = x.clone()
    ...     z = (y * y).sum()
    ...     _ = y.zero_()
    ...     z.backward()
    >>> x.grad
    tensor([2., 4.])
    """

    def __enter__(self) -> _MutationContext:
        state = local.state
        if isinstance(state.mutation_guard, _MutationContext):
            raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
        context = _MutationContext()
        context.outer = state.mutation_guard
        observers, interceptor = _packing(state)
        hooks: Any = state.saved_tensors_hooks
        hooks = (*hooks, (context.pack, context.unpack))
        state.mutation_guard, state.saved_tensors_hooks = context, hooks
        state.observers, state.interceptor = observers, interceptor
        return context

    def __exit__(self, *exc_info: object) -> None:
        state = local.state
        hooks: Any = state.saved_tensors_hooks
        context: Any = state.mutation_guard
        state.mutation_guard, state.saved_tensors_hooks = context.outer, hooks[:-1]
        try:
            _stop_packing(state)
        except BaseException:
            _stop_packing(state)
            raise
        finally:
            context.clear()
