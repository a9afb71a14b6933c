"""Observers: rare things that happen around every operator of a thread.

Anomaly mode, saved-tensor hooks, dual levels, traces: each is an observer while it is on.  A thread without any has
``state.interceptor = None``, which is all that an operator looks at.  With one or more, the operator calls the
interceptor instead of going on; that runs the observers, innermost first, around the plain operator.

An observer is called as ``observer(operator, args, kwargs, proceed)`` and returns the result; ``proceed()`` goes on to
the next observer and at last to the operator; ``proceed(other)`` goes on with another operator in its place.
Operators that run meanwhile (in hooks, in formulas) are plain.  An observer may have an interceptor of its own, as its
attribute `alone`, for when there is no other; `intercept` is then what it falls back to.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

from ..tensor import Tensor
from .copy_slices import CopySlices
from .state import ThreadState, local

Observer = Callable[[Callable, tuple, dict, Callable[..., Any]], Any]


def intercept(operator: Callable, args: tuple, kwargs: dict) -> Any:
    state = local.state
    observers = state.observers
    state.interceptor = None
    try:
        if len(observers) == 1:
            return observers[0](operator, args, kwargs, lambda other=operator: other(*args, **kwargs))
        return _call(observers, len(observers) - 1, operator, args, kwargs)
    finally:
        state.interceptor = _interceptor(state.observers)


def _interceptor(observers: tuple[Observer, ...]) -> Callable[..., Any] | None:
    if len(observers) == 1:
        return getattr(observers[0], "alone", intercept)
    return intercept if observers else None


def _call(observers: tuple[Observer, ...], position: int, operator: Callable, args: tuple, kwargs: dict) -> Any:
    if position < 0:
        return operator(*args, **kwargs)
    return observers[position](
        operator, args, kwargs, lambda other=operator: _call(observers, position - 1, other, args, kwargs)
    )


def set_observers(state: ThreadState, observers: tuple[Observer, ...]) -> None:
    """Make these the thread's observers."""
    state.observers = observers
    state.interceptor = _interceptor(observers)


@contextmanager
def observing(observer: Observer) -> Any:
    """Have `observer` around every operator of this thread for a while."""
    state = local.state
    before = state.observers
    set_observers(state, (*before, observer))
    try:
        yield observer
    finally:
        set_observers(state, before)


@contextmanager
def unobserved() -> Any:
    """No observers for a while."""
    state = local.state
    before = state.observers
    set_observers(state, ())
    try:
        yield
    finally:
        set_observers(state, before)


def results_of(result: Any) -> list[Tensor]:
    """The tensors in what an operator returned."""
    if isinstance(result, Tensor):
        return [result]
    return [t for t in result if isinstance(t, Tensor)] if isinstance(result, (tuple, list)) else []


def new_node(result: Any, since: int) -> Any:
    """The node that an operator has recorded, if it has: made after the thread's sequence number was `since`."""
    for tensor in results_of(result):
        meta: Any = tensor._meta
        edges = [tensor._edge]
        if meta is not None and meta.is_view:
            # Of a view that was written to, the base has the new history.
            edges = [meta.base._edge, meta.edge]
        for edge in edges:
            if edge is None:
                continue
            node = edge[0]
            if isinstance(node, CopySlices):
                if not node.sequence_nr >= since:
                    continue
                node = node.fn
            if since <= node.sequence_nr < local.state.sequence_nr:
                return node
    return None
