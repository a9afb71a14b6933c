"""Grad modes: whether operations record history, a thread at a time.

Each is a context manager and a decorator; a decorated generator or coroutine runs under the mode whenever it runs, and
the caller's mode is back whenever it is suspended.  How they are entered and left: Note [Interrupts and modes] in
`state.py`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from ..core.cuts import remember_no_grad
from ..core.state import ThreadState, local
from ..core.version_counter import INFERENCE, version_counter

F = TypeVar("F", bound=Callable[..., Any])


def is_grad_enabled() -> bool:
    """Do operations of this thread record history? (In inference mode they do not, whatever this says.)"""
    return local.state.grad_enabled is not False


def switched_on(state: ThreadState) -> bool | None:
    """The value of `grad_enabled` for a thread that is to record: inference mode is stronger, see state.py."""
    return None if state.inference else True


class _Mode:
    """A mode that can be entered, nested, and put on functions."""

    def __enter__(self) -> Any:
        raise NotImplementedError("a mode defines __enter__")

    def __exit__(self, *exc_info: object) -> None:
        raise NotImplementedError("a mode defines __exit__")

    def clone(self) -> _Mode:
        """A mode for one call of a decorated function."""
        return type(self)()

    def __call__(self, function: F) -> F:
        if not callable(function):
            name = type(self).__name__
            raise TypeError(
                f"{name}()(func) requires a callable, but got {type(function).__name__}. Did you mean to use {name} as "
                f"a context manager? Write `with {name}(...):` above the calls it is for"
            )
        if inspect.isclass(function):
            return self._decorate_class(function)
        if inspect.isasyncgenfunction(function):
            return self._decorate_async_generator(function)
        if inspect.isgeneratorfunction(function):
            return self._decorate_generator(function)
        if inspect.iscoroutinefunction(function):
            return self._decorate_coroutine(function)

        @functools.wraps(function)
        def decorated(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return function(*args, **kwargs)

        return decorated  # type: ignore[return-value]

    def _decorate_class(self, cls: Any) -> Any:
        import warnings

        warnings.warn(
            "Decorating classes is deprecated and will be disabled in future versions. You should only decorate "
            "functions or methods. To preserve the current behavior of class decoration, you can directly decorate "
            "the `__init__` method and nothing else.",
            FutureWarning,
            stacklevel=3,
        )
        cls.__init__ = self(cls.__init__)
        return cls

    def _decorate_generator(self, function: Any) -> Any:
        @functools.wraps(function)
        def decorated(*args: Any, **kwargs: Any) -> Any:
            generator = function(*args, **kwargs)
            # Like `yield from`, but only the generator's own steps run under the mode.
            try:
                with self.clone():
                    response = generator.send(None)
                while True:
                    try:
                        request = yield response
                    except GeneratorExit:
                        with self.clone():
                            generator.close()
                        raise
                    except BaseException as error:
                        with self.clone():
                            response = generator.throw(error)
                    else:
                        with self.clone():
                            response = generator.send(request)
            except StopIteration as stop:
                return stop.value

        return decorated

    def _decorate_coroutine(self, function: Any) -> Any:
        @functools.wraps(function)
        async def decorated(*args: Any, **kwargs: Any) -> Any:
            return await _Steps(self, function(*args, **kwargs))

        return decorated

    def _decorate_async_generator(self, function: Any) -> Any:
        @functools.wraps(function)
        async def decorated(*args: Any, **kwargs: Any) -> Any:
            generator = function(*args, **kwargs)
            step = generator.asend(None)
            while True:
                try:
                    response = await _Steps(self, step)
                except StopAsyncIteration:
                    return
                try:
                    request = yield response
                except GeneratorExit:
                    await _Steps(self, generator.aclose())
                    raise
                except BaseException as error:
                    step = generator.athrow(error)
                else:
                    step = generator.asend(request)

        return decorated


M = TypeVar("M", bound=Any)


def _not_yet_on(mode: M, before: Any) -> M:
    """A copy of a mode that acts at once, for a ``with`` statement: it is on when it is entered, not before."""
    result = object.__new__(type(mode))
    result.mode, result.before = mode.mode, before
    return result


class _Steps:
    """Awaits a coroutine, entering the mode for each of its steps."""

    def __init__(self, mode: _Mode, coroutine: Any) -> None:
        self.mode = mode
        self.coroutine = coroutine

    def __await__(self) -> Any:
        iterator = self.coroutine.__await__()
        send: Callable[..., Any] = iterator.__next__
        argument: tuple[Any, ...] = ()
        while True:
            try:
                with self.mode.clone():
                    waiting_for = send(*argument)
            except StopIteration as stop:
                return stop.value
            try:
                value = yield waiting_for
                send, argument = (iterator.__next__, ()) if value is None else (iterator.send, (value,))
            except BaseException as error:
                send, argument = iterator.throw, (error,)


class no_grad(_Mode):
    """Nothing is recorded: for evaluation, and for updating parameters.

    >>> import retrograd as torch
    >>> x = torch.tensor([1.], requires_grad=True)
    >>> with torch.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    def __init__(self) -> None:
        #: What to go back to, and what was in here before that: it may be entered again while it is on.
        self.before: Any = None

    def __new__(cls, function: Any = None) -> Any:
        # ``@no_grad`` without brackets works too.
        instance = object.__new__(cls)
        if function is None:
            return instance
        return instance(function)

    def __enter__(self) -> None:
        state = local.state
        remember_no_grad(state, __file__)
        self.before = state.grad_enabled, self.before
        state.grad_enabled = False

    def __exit__(self, *exc_info: object) -> None:
        local.state.grad_enabled, self.before = self.before


class enable_grad(no_grad):
    """Records history, also inside `no_grad`.

    >>> import retrograd as torch
    >>> x = torch.tensor([1.], requires_grad=True)
    >>> with torch.no_grad(), torch.enable_grad():
    ...     y = x * 2
    >>> y.requires_grad
    True
    """

    def __enter__(self) -> None:
        state = local.state
        enabled = switched_on(state)
        self.before = state.grad_enabled, self.before
        state.grad_enabled = enabled


class set_grad_enabled(_Mode):
    """Switches recording on or off: at once, and until the ``with`` block ends if it is used as one.

    >>> import retrograd as torch
    >>> x = torch.tensor([1.], requires_grad=True)
    >>> with torch.set_grad_enabled(False):
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    def __init__(self, mode: bool) -> None:
        if mode.__class__ is not bool:
            raise TypeError(
                f"set_grad_enabled(): argument 'enabled' (position 1) must be bool, not {type(mode).__name__}"
            )
        self.mode = mode
        state = local.state
        enabled = mode and switched_on(state)
        if not mode:
            remember_no_grad(state, __file__)
        self.before: bool | None = state.grad_enabled
        state.grad_enabled = enabled

    def __call__(self, function: F) -> F:
        # As a decorator it is about the function alone.
        local.state.grad_enabled = self.before
        return super().__call__(function)

    def __enter__(self) -> None:
        state = local.state
        state.grad_enabled = self.mode and switched_on(state)

    def __exit__(self, *exc_info: object) -> None:
        local.state.grad_enabled = self.before

    def clone(self) -> set_grad_enabled:
        return _not_yet_on(self, local.state.grad_enabled)

    def __repr__(self) -> str:
        return f"set_grad_enabled(mode={self.mode})"


class inference_mode(_Mode):
    """Nothing is recorded, and results can never become part of a graph: they have no version counter either.

    >>> import retrograd as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> with torch.inference_mode():
    ...     y = x * 2
    >>> y.requires_grad, y.is_inference()
    (False, True)
    """

    def __init__(self, mode: bool = True) -> None:
        self.mode: bool = bool(mode)
        self.before: Any = None

    def __new__(cls, mode: Any = True) -> Any:
        # ``@inference_mode`` without brackets works too.
        if isinstance(mode, bool):
            return object.__new__(cls)
        return cls()(mode)

    def __enter__(self) -> None:
        state = local.state
        self.before = state.inference, state.grad_enabled, state.new_vc, state.fw_grad_enabled, self.before
        state.inference = self.mode
        state.grad_enabled = state.fw_grad_enabled = not self.mode
        state.new_vc = INFERENCE if self.mode else None

    def __exit__(self, *exc_info: object) -> None:
        state = local.state
        state.inference, state.grad_enabled, state.new_vc, state.fw_grad_enabled, self.before = self.before

    def clone(self) -> inference_mode:
        return inference_mode(self.mode)


def is_inference_mode_enabled() -> bool:
    """Is this thread in inference mode?"""
    return local.state.inference


class _force_original_view_tracking(_Mode):
    """Make the history of views anew by their own operators, not by as_strided.

    Like `set_grad_enabled`, it works at once as a function and for a while as a context manager.
    """

    def __init__(self, mode: bool) -> None:
        self.mode = mode
        self.before = local.state.view_replay
        local.state.view_replay = mode

    def __call__(self, function: F) -> F:
        # As a decorator it is about the function alone.
        local.state.view_replay = self.before
        return super().__call__(function)

    def __enter__(self) -> None:
        local.state.view_replay = self.mode

    def __exit__(self, *exc_info: object) -> None:
        local.state.view_replay = self.before

    def clone(self) -> _force_original_view_tracking:
        return _not_yet_on(self, local.state.view_replay)


def is_view_replay_enabled() -> bool:
    """Is the history of views made anew by their own operators?"""
    return local.state.view_replay


class _unsafe_preserve_version_counter(_Mode):
    """Leave the versions of some tensors as they are, whatever is written to them meanwhile."""

    def __init__(self, tensors: Any) -> None:
        self.tensors = tensors if isinstance(tensors, (tuple, list)) else (tensors,)
        self.versions = [t._version for t in self.tensors]

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc_info: object) -> None:
        unsafe_set_version_counter(self.tensors, self.versions)


def unsafe_set_version_counter(tensors: Any, versions: Any) -> None:
    """Set versions by hand: what nodes have saved is then checked against a lie."""
    for tensor, version in zip(tensors, versions, strict=True):
        if version < 0:
            raise RuntimeError(f"Cannot set a version_counter to a value below 0: {version}")
        version_counter(tensor).version = version


class set_multithreading_enabled(_Mode):
    """Whether backward passes of this thread may use the devices' own threads: at once, and for a ``with`` block.

    >>> import retrograd as torch
    >>> with torch.autograd.set_multithreading_enabled(False):
    ...     torch.autograd.is_multithreading_enabled()
    False
    """

    def __init__(self, mode: bool) -> None:
        self.mode = mode
        self.before: bool = local.state.multithreading
        local.state.multithreading = mode

    def __call__(self, function: F) -> F:
        # As a decorator it is about the function alone.
        local.state.multithreading = self.before
        return super().__call__(function)

    def __enter__(self) -> None:
        local.state.multithreading = self.mode

    def __exit__(self, *exc_info: object) -> None:
        local.state.multithreading = self.before

    def clone(self) -> set_multithreading_enabled:
        return _not_yet_on(self, local.state.multithreading)


def is_multithreading_enabled() -> bool:
    """May backward passes of this thread use the devices' own threads?"""
    return local.state.multithreading


class enforce_grad_layout_policy(_Mode):
    """Whether a new ``.grad`` must be laid out as its leaf is, which may cost a copy: at once, or for a ``with`` block.

    >>> import retrograd as torch
    >>> x = torch.ones(2, 3).t().requires_grad_()
    >>> with torch.autograd.enforce_grad_layout_policy(False):
    ...     (x * torch.ones(3, 2)).sum().backward()
    >>> x.stride(), x.grad.stride()
    ((1, 3), (2, 1))
    """

    def __init__(self, enable: bool = True) -> None:
        self.mode = enable
        self.before: bool = local.state.enforce_grad_layout
        local.state.enforce_grad_layout = enable

    def __call__(self, function: F) -> F:
        # As a decorator it is about the function alone.
        local.state.enforce_grad_layout = self.before
        return super().__call__(function)

    def __enter__(self) -> None:
        local.state.enforce_grad_layout = self.mode

    def __exit__(self, *exc_info: object) -> None:
        local.state.enforce_grad_layout = self.before

    def clone(self) -> enforce_grad_layout_policy:
        return _not_yet_on(self, local.state.enforce_grad_layout)
