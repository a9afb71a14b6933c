"""Dispatch modes: user code around every operator of a thread, by torch's name and interface.

A mode is an observer (autograd/intercept.py), inside of all observers that are not modes: what these do around an
operator (packing what it saves, anomaly mode) is done around the mode.  Unlike torch's it stands *above* autograd: the
operator that it calls records its history itself, and what else the mode computes is recorded too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..autograd.intercept import interceptor_of, set_observers
from ..core.state import local
from ..ops.overload import OpOverload, overload_of


class _ModeObserver:
    """The observer of one mode."""

    __slots__ = ("mode",)

    def __init__(self, mode: TorchDispatchMode) -> None:
        self.mode = mode

    def __call__(self, operator: Callable, args: tuple, kwargs: dict, proceed: Callable) -> Any:
        return self.mode._observe(self, operator, args, kwargs, proceed)


class TorchDispatchMode:
    """Sees every operator that its thread runs within ``with mode:``.

    >>> import retrograd as torch
    >>> from retrograd.utils._python_dispatch import TorchDispatchMode
    >>> class Log(TorchDispatchMode):
    ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
    ...         print(func)
    ...         return func(*args, **(kwargs or {}))
    >>> with Log():
    ...     y = (torch.ones(2) * 3).exp()
    aten.mul.Tensor
    aten.exp.default
    """

    def __torch_dispatch__(
        self, func: OpOverload, types: tuple[type, ...], args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run the operator `func`, or something in its place. Operators called in here go to the modes outside."""
        raise NotImplementedError("a dispatch mode defines __torch_dispatch__")

    def __enter__(self) -> Any:
        state = local.state
        observers = state.observers
        modes = sum([isinstance(observer, _ModeObserver) for observer in observers])  # they come first
        observers = (*observers[:modes], _ModeObserver(self), *observers[modes:])
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
            if isinstance(observer, _ModeObserver) and observer.mode is self:
                return (*observers[:position], *observers[position + 1 :])
        return observers

    def _observe(self, observer: Any, operator: Callable, args: tuple, kwargs: dict, proceed: Callable) -> Any:
        state = local.state
        known, before = state.known_modes, state.observers
        func = overload_of(operator)
        if func.function is not operator:  # a mode further in has substituted its kernel
            func = OpOverload(func.overloadpacket, func._overloadname, operator)
        set_observers(state, before[: before.index(observer)])
        try:
            return self.__torch_dispatch__(func, (), args, kwargs)
        finally:
            # No interceptor until the operator that is being observed has returned.
            state.known_modes, state.observers, state.interceptor = known, before, None


def _get_current_dispatch_mode() -> TorchDispatchMode | None:
    """The innermost mode of this thread."""
    for observer in reversed(local.state.observers):
        if isinstance(observer, _ModeObserver):
            return observer.mode
    return None
