"""Dispatch modes: user code in the place of every operator of a thread, by torch's names and interface.

A mode is an observer (autograd/intercept.py), inside of all observers that are not modes: what these do around an
operator (packing what it saves, anomaly mode) is done around the mode.  It stands below autograd: see Note
[Python dispatch] in ops/dispatch.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ..autograd.intercept import interceptor_of, set_observers
from ..core.late import extension
from ..core.state import local
from ..ops.dispatch import DispatchTensor, ModeObserver, below_autograd, mode_handler
from ..ops.overload import OpOverload
from ..tensor import Tensor

__all__ = [
    "BaseTorchDispatchMode", "TorchDispatchMode", "is_in_torch_dispatch_mode", "is_traceable_wrapper_subclass",
    "is_traceable_wrapper_subclass_type", "return_and_correct_aliasing", "transform_subclass",
]  # fmt: skip


class TorchDispatchMode:
    """Answers for every operator that its thread runs within ``with mode:``, backward passes and factories included.

    >>> import retrograd as torch
    >>> from retrograd.utils._python_dispatch import TorchDispatchMode
    >>> class Log(TorchDispatchMode):
    ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
    ...         print(func)
    ...         return func(*args, **(kwargs or {}))
    >>> with Log():
    ...     y = (torch.ones(2) * 3).exp()
    aten.ones.default
    aten.mul.Tensor
    aten.exp.default
    """

    supports_higher_order_operators = False

    def __torch_dispatch__(
        self, func: OpOverload, types: tuple[type, ...], args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run the operator `func`, or something in its place. Operators called in here go to the modes outside."""
        raise NotImplementedError("a dispatch mode defines __torch_dispatch__")

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Does it belong to the machinery, and not to the user?"""
        return False

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> TorchDispatchMode:
        """The older way to make one."""
        return cls(*args, **kwargs)

    def __enter__(self) -> Any:
        extension("override_switch").throw()
        state = local.state
        observers = state.observers
        modes = sum([isinstance(observer, ModeObserver) for observer in observers])  # they come first
        observers = (*observers[:modes], ModeObserver(self), *observers[modes:])
        interceptor = interceptor_of(observers)
        state.observers, state.interceptor = observers, interceptor
        return self

    def __exit__(self, *exc_info: Any) -> bool | None:
        state = local.state
        before = state.observers
        try:
            set_observers(state, self._without(before))
        except BaseException:  # Note [Interrupts and modes] in core/state.py
            set_observers(state, self._without(before))
            raise
        finally:
            self._left()
        return None

    def _left(self) -> None:
        """Called when the mode has been left."""

    def _without(self, observers: tuple) -> tuple:
        """These observers, but for this mode where it was last entered."""
        for position in range(len(observers) - 1, -1, -1):
            observer = observers[position]
            if isinstance(observer, ModeObserver) and observer.mode is self:
                return (*observers[:position], *observers[position + 1 :])
        return observers

    def _observe(self, observer: Any, operator: Callable, args: tuple, kwargs: dict, proceed: Callable) -> Any:
        return below_autograd(operator, args, kwargs, mode_handler(observer))


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that runs every operator as it is."""

    def __torch_dispatch__(
        self, func: OpOverload, types: tuple[type, ...], args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


def _get_current_dispatch_mode_stack() -> list[TorchDispatchMode]:
    """The modes of this thread, outermost first."""
    return [observer.mode for observer in local.state.observers if isinstance(observer, ModeObserver)]


def _get_current_dispatch_mode() -> TorchDispatchMode | None:
    """The innermost mode of this thread."""
    stack = _get_current_dispatch_mode_stack()
    return stack[-1] if stack else None


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Is a mode of this thread on?"""
    stack = _get_current_dispatch_mode_stack()
    return any(include_infra_modes or not mode.is_infra_mode() for mode in stack)


is_in_any_mode_without_ignore_compile_internals: Callable[[], bool] = is_in_torch_dispatch_mode


@contextmanager
def _disable_current_modes() -> Iterator[list[TorchDispatchMode]]:
    """Leave all dispatch modes of this thread for a while."""
    state = local.state
    before = state.observers
    modes = _get_current_dispatch_mode_stack()
    set_observers(state, tuple([observer for observer in before if not isinstance(observer, ModeObserver)]))
    try:
        yield modes
    finally:
        set_observers(state, before)


@contextmanager
def _disable_infra_mode(key: Any) -> Iterator[None]:
    """Leave a mode of the machinery, of which there is none here."""
    yield None


# --------------------------------------------------------------------------------------------------- wrapper subclasses


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Is it a tensor that can be taken apart into others, by ``__tensor_flatten__``, and put together again?"""
    return isinstance(t, Tensor) and is_traceable_wrapper_subclass_type(type(t))


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Is it the class of such tensors?"""
    return issubclass(t, DispatchTensor) and hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")


def transform_subclass(
    t: Any, callback: Callable[[str, Tensor], Tensor], outer_size: Any = None, outer_stride: Any = None
) -> Any:
    """The same tensor around what ``callback(name, tensor)`` makes of those inside."""
    size = t.size() if outer_size is None else outer_size
    stride = t.stride() if outer_stride is None else outer_stride
    names, context = t.__tensor_flatten__()
    inner = {name: callback(name, getattr(t, name)) for name in names}
    made = type(t).__tensor_unflatten__(inner, context, size, stride)
    if tuple(made.shape) != tuple(size) or tuple(made.stride()) != tuple(stride):
        raise AssertionError(
            f"{type(t).__name__}.__tensor_unflatten__ gave a tensor of size {tuple(made.shape)} and strides "
            f"{tuple(made.stride())}, but was asked for {tuple(size)} and {tuple(stride)}"
        )
    return made


def return_and_correct_aliasing(func: OpOverload, args: tuple, kwargs: dict[str, Any] | None, out: Any) -> Any:
    """What a ``__torch_dispatch__`` of a wrapper is to return: `out`, with the memory that the operator says it shares.

    A view's storage is that of its base, and an operator that writes returns the very tensor that it was given.
    """
    schema = func._schema
    kwargs = kwargs or {}
    given: list[tuple[Any, Any]] = list(zip(schema.arguments, args, strict=False))
    given += [(a, kwargs[a.name]) for a in schema.arguments if a.name in kwargs and all(a is not b for b, _ in given)]
    written = [value for a, value in given if a.is_write]
    if written:
        results = schema.returns
        if len(results) == 1 or (results and all(r.is_write for r in results)):
            return written[0] if len(results) == 1 else tuple(written)
        return out
    shared = [value for a, value in given if a.alias_info is not None]
    if shared and isinstance(shared[0], DispatchTensor):
        storage = shared[0].untyped_storage()
        for one in out if isinstance(out, (tuple, list)) else (out,):
            if isinstance(one, DispatchTensor):
                one._memory_.storage = storage
    return out


def autograd_would_have_decomposed(func: OpOverload, flat_args: Iterable[Any]) -> bool:
    """Would the operator have come in parts if its arguments were differentiated? Here all do, always."""
    return False
