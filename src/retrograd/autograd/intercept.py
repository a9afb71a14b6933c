"""Observers: rare things that happen around every operator of a thread.

Anomaly mode, saved-tensor hooks, dual levels, traces: each is an observer while it is on.  A thread without any has
``state.interceptor = None``, which is all that an operator looks at.  With one or more, the operator calls the
interceptor instead of going on; that runs the observers, innermost first, around the plain operator.  How a thread
hears of modes that others have entered: Note [Process-wide modes] in core/state.py.

An observer is called as ``observer(operator, args, kwargs, proceed)`` and returns the result; ``proceed()`` goes on to
the next observer and at last to the operator; ``proceed(other)`` goes on with another operator in its place.
Operators that run meanwhile (in hooks, in formulas) are plain.  An observer may have a method `alone`, which is the
interceptor while there is no other observer; `intercept` is then what it falls back to.  One that has to see the
operators of a backward pass that is not recorded says so by `needs_tensors`.  One with a method `around_nodes` is asked
before each pass, as ``around_nodes(call)``, for what runs its nodes in place of `call` (node_call.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from ..core.locks import fork_safe_lock
from ..core.state import ThreadState, live_states, local, process
from ..tensor import Tensor
from ..tensor.special import special_tensors
from .copy_slices import CopySlices

Observer: TypeAlias = "Callable[[Callable[..., Any], tuple[Any, ...], dict[Any, Any], Callable[..., Any]], Any]"


def intercept(operator: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[Any, Any]) -> Any:
    state = local.state
    if state.known_modes is not process.modes:
        learn_modes(state)
    observers, this = state.observers, state.interceptor
    state.interceptor = None
    special = special_tensors(args, kwargs)
    try:
        if special and special[0]._transparent_:
            return operator(*args, **kwargs)  # the observers see what it is made of
        if len(observers) == 1:
            return observers[0](operator, args, kwargs, lambda other=operator: other(*args, **kwargs))
        return _call(observers, len(observers) - 1, operator, args, kwargs)
    finally:
        state.interceptor = this
        if state.observers is not observers:
            set_observers(state, state.observers)


def interceptor_of(observers: tuple[Observer, ...]) -> Callable[..., Any] | None:
    """What operators are to call while these are the thread's observers. The two are set together."""
    if len(observers) == 1:
        return getattr(observers[0], "alone", intercept)
    return intercept if observers else None


def _call(
    observers: tuple[Observer, ...],
    position: int,
    operator: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[Any, Any],
) -> Any:
    if position < 0:
        return operator(*args, **kwargs)
    return observers[position](
        operator, args, kwargs, lambda other=operator: _call(observers, position - 1, other, args, kwargs)
    )


def set_observers(state: ThreadState, observers: tuple[Observer, ...]) -> None:
    """Make these the thread's observers."""
    interceptor = interceptor_of(observers)
    state.observers, state.interceptor = observers, interceptor
    if not observers and state.known_modes is not process.modes:
        state.interceptor = catch_up


def take_away(state: ThreadState, observer: Observer) -> None:
    """Make all but `observer` the thread's observers; nothing, if it is none of them."""
    set_observers(state, tuple([other for other in state.observers if other is not observer]))


class observing:
    """Have `observer` around every operator of this thread for a while."""

    __slots__ = ("before", "observer")

    before: Any

    def __init__(self, observer: Observer) -> None:
        self.observer: Observer = observer

    def __enter__(self) -> Observer:
        state = local.state
        observers = (*state.observers, self.observer)
        interceptor = interceptor_of(observers)
        self.before = state.known_modes, state.observers, interceptor_of(state.observers)
        state.observers, state.interceptor = observers, interceptor
        return self.observer

    def __exit__(self, *exc_info: object) -> None:
        state = local.state
        state.known_modes, state.observers, state.interceptor = self.before
        if not state.observers and state.known_modes is not process.modes:
            state.interceptor = catch_up


# --------------------------------------------------------------------------------------------------- process-wide modes

_lock = fork_safe_lock()


def change_modes(change: Callable[[], None]) -> None:
    """Call ``change()``, which sets ``process.modes``, while nobody else does, and tell all threads.

    An interrupt may come at any time, after the change as well: who enters a mode undoes it then.
    """
    with _lock:
        change()
        process.to_new_threads = catch_up if process.modes else None
        learn_modes(local.state)
        for reference in live_states.copy().values():
            state = reference()
            if state is not None and not state.observers and state.known_modes is not process.modes:
                state.interceptor = catch_up


def learn_modes(state: ThreadState) -> None:
    """Have the observers of this thread take account of the modes that others have entered or left."""
    while (modes := process.modes) is not state.known_modes:
        known = state.known_modes
        kept = [observer for observer in state.observers if observer not in known or observer in modes]
        observers = (*kept, *[mode for mode in modes if mode not in known])
        interceptor = interceptor_of(observers)
        state.known_modes, state.observers, state.interceptor = modes, observers, interceptor
    if state.interceptor is catch_up:  # they have come and gone
        set_observers(state, state.observers)


def catch_up(operator: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[Any, Any]) -> Any:
    """The interceptor of a thread that does not know yet which modes are on: learn it, then go on."""
    state = local.state
    learn_modes(state)
    if state.interceptor is None:
        return operator(*args, **kwargs)
    return state.interceptor(operator, args, kwargs)


def results_of(result: Any) -> list[Tensor]:
    """The tensors in what an operator returned."""
    if isinstance(result, Tensor):
        return [result]
    return [t for t in result if isinstance(t, Tensor)] if isinstance(result, (tuple, list)) else []


def new_node(result: Any, since: int) -> Any:
    """The node that an operator has recorded, if it has: made after the thread's sequence number was `since`."""
    for tensor in results_of(result):
        meta: Any = tensor._grad_meta_
        edges = [tensor._edge_]
        if meta is not None and meta.is_view:
            # Of a view that was written to, the base has the new history.
            edges = [meta.base._edge_, meta.edge]
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
