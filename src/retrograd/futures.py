"""``torch.futures``: values that are there later."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["Future", "collect_all", "wait_all"]

log = logging.getLogger(__name__)


class Future:
    """A value that somebody sets, for others to wait for.

    >>> import retrograd as torch
    >>> future = torch.futures.Future()
    >>> after = future.then(lambda done: done.value() + 1)
    >>> future.set_result(2)
    >>> after.wait()
    3
    """

    def __init__(self, *, devices: Any = None) -> None:
        if devices:
            raise ValueError("there are no accelerators for a value to wait for: leave 'devices' out")
        self._ready = threading.Condition()
        self._done = False
        self._value: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future], Any]] = []

    def __class_getitem__(cls, item: Any) -> type:
        return cls

    def done(self) -> bool:
        """Is the value, or an error in its place, there?"""
        return self._done

    def wait(self) -> Any:
        """The value, as soon as it is there; an error that was set in its place is raised."""
        with self._ready:
            self._ready.wait_for(lambda: self._done)
        return self.value()

    def value(self) -> Any:
        """The value, which is there already."""
        if not self._done:
            raise RuntimeError("the value is not there yet: wait() waits for it")
        if self._error is not None:
            raise self._error
        return self._value

    def set_result(self, result: Any) -> None:
        """Set the value, once, and run what was to follow."""
        self._finish(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Set an error in place of the value."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._finish(None, result)

    def _finish(self, value: Any, error: BaseException | None) -> None:
        with self._ready:
            if self._done:
                raise RuntimeError("Future can only be marked completed once: it has its value, or an error, already")
            self._value, self._error, self._done = value, error, True
            callbacks, self._callbacks = self._callbacks, []
            self._ready.notify_all()
        for callback in callbacks:
            self._call(callback)

    def _call(self, callback: Callable[[Future], Any]) -> None:
        try:
            callback(self)
        except Exception:
            # Nobody is there to catch it: who sets the value is not who asked to be told of it.
            log.exception("[Error] in a callback of add_done_callback, which is ignored; then() gives it to who waits")

    def add_done_callback(self, callback: Callable[[Future], Any]) -> None:
        """Call `callback` with this future when the value is there; now, if it is. What it raises is only logged."""
        with self._ready:
            if not self._done:
                self._callbacks.append(callback)
                return
        self._call(callback)

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """A future for what `callback` makes of this one when it is done."""
        following = Future()

        def run(done: Future) -> None:
            try:
                value = callback(done)
            except Exception as error:
                failure = RuntimeError(f"Got the following error when running the callback: {_told(error)}")
                failure.__cause__ = error
                following.set_exception(failure)
            else:
                following.set_result(value)

        self.add_done_callback(run)
        return following

    def __reduce__(self) -> Any:
        raise RuntimeError("Can not pickle torch.futures.Future: save what it has once it is there, future.wait()")


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _check(futures: Iterable[Future]) -> list[Future]:
    futures = list(futures)
    for position, future in enumerate(futures):
        if future is None:
            raise RuntimeError(f"Future can't be None, but the one at position {position} is")
    return futures


def collect_all(futures: list[Future]) -> Future:
    """A future for the list of `futures` when all of them are done."""
    futures = _check(futures)
    together = Future()
    left = [len(futures)]
    lock = threading.Lock()

    def one_more(_: Any) -> None:
        with lock:
            left[0] -= 1
            last = left[0] == 0
        if last:
            together.set_result(futures)

    if not futures:
        together.set_result(futures)
    for future in futures:
        future.add_done_callback(one_more)
    return together


def wait_all(futures: list[Future]) -> list[Any]:
    """The values of all of them, as soon as they are there; the first error is raised."""
    return [future.wait() for future in collect_all(futures).wait()]
