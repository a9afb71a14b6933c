"""Work: an operation between processes that has been started, and waiting for it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from ..futures import Future
from .errors import DistBackendError

if TYPE_CHECKING:
    from ..tensor import Tensor
    from .process_group import ProcessGroup

__all__ = ["Work"]

_yield = getattr(os, "sched_yield", lambda: time.sleep(0))


class Work:
    """An operation that has been started: ``work = all_reduce(x, async_op=True)``; ``work.wait()`` before `x` is
    read.
    """

    def __init__(self) -> None:
        self._group: ProcessGroup | None = None
        self._name = ""
        self._tensors: list[Tensor] = []
        self._after: list[Callable[[], None]] = []
        self._finishing = threading.Lock()
        self._done = False
        self._error: BaseException | None = None

    # ------------------------------------------------------------------------------------------- what a backend defines

    def _poll(self) -> bool:
        """Has it arrived? Raises what went wrong."""
        raise NotImplementedError

    def _sleep(self, seconds: float) -> None:
        """Wait for it a little."""
        time.sleep(seconds)

    def _go_on(self) -> None:
        """Nobody waits for it now: see to it that it goes on."""

    def _source(self) -> int:
        """The rank in the group from which something was received."""
        raise RuntimeError("source_rank() is only for what has been received")

    # --------------------------------------------------------------------------------------------------------- progress

    def _look(self) -> bool:
        """Has it arrived? What follows on arrival is done once, by the thread that sees it first."""
        if self._done:
            return True
        with self._finishing:
            if self._done:
                return True
            try:
                if not self._poll():
                    return False
                for step in self._after:
                    step()
            except BaseException as error:
                self._error = error
            self._after = []
            self._done = True
        return True

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait until it is done. An error is raised if it failed, or its time is up; then nothing more can be sent."""
        if not self._look():
            self._wait(timeout)
        if self._error is not None:
            raise self._explained(self._error)
        return True

    def _explained(self, error: BaseException) -> BaseException:
        """What a backend says, and what everybody was doing: operations that do not go together are often two."""
        group = self._group
        if not isinstance(error, DistBackendError) or str(error).startswith("[Rank") or group is None:
            return error
        others = group.monitor.who_is_late(self._name, group.ranks)
        own = group.monitor.activity.note
        text = f"[Rank {group.monitor.rank}] {error}. {others}" + (f". As to this process: {own}" if own else "")
        self._error = DistBackendError(text)
        self._error.__cause__ = error
        return self._error

    def _wait(self, timeout: timedelta | None) -> None:
        group = self._group
        assert group is not None
        limit = group.timeout if timeout is None or not timeout else timeout.total_seconds()
        monitor, activity = group.monitor, group.monitor.activity
        began = time.monotonic()
        activity.inside, activity.since = self._name, began
        turns = 0
        try:
            while not self._look():
                turns += 1
                if turns < 100:  # others may need this processor to finish it
                    _yield()
                    continue
                # Some libraries move a piece of the data each time that they are asked: who waits asks often at first.
                waited = time.monotonic() - began
                self._sleep(min(2e-3, 2e-5 + waited / 1000))
                if turns % 8 == 0:
                    monitor.check(self._name, group.ranks, waited)
                    if waited > limit:
                        late = monitor.who_is_late(self._name, group.ranks)
                        raise DistBackendError(
                            f"[Rank {monitor.rank}] Timed out after waiting {limit:g} s ({limit * 1000:.0f}ms) in "
                            f"{self._name}. {late}"
                        )
        except BaseException as error:
            with self._finishing:
                self._error, self._done = error, True
            raise
        finally:
            activity.last, activity.inside, activity.since = self._name, "", time.monotonic()

    # ------------------------------------------------------------------------------------------------------ torch's
    # names

    def is_completed(self) -> bool:
        """Is it done, well or badly?"""
        return self._look()

    def is_success(self) -> bool:
        """Is it done, and went well?"""
        return self._look() and self._error is None

    def exception(self) -> BaseException | None:
        """What went wrong, if it did."""
        return self._error

    def result(self) -> list[Tensor]:
        """The tensors that were written to."""
        return self._tensors

    def source_rank(self) -> int:
        """The rank from which it was received."""
        assert self._group is not None
        return self._group.ranks[self._source()]

    def synchronize(self) -> None:
        """`wait`."""
        self.wait()

    def get_future(self) -> Future:
        """A future for the tensors that are written to."""

        def arrived() -> list[Tensor]:
            self.wait()
            return self._tensors

        return WorkFuture(arrived, self._look)


class WorkFuture(Future):
    """A future of an operation between processes.

    What follows it (`then`) runs on the thread that waits for it, and not on one of the backend's whenever it
    arrives: so it can start further operations, in an order that is the same in all processes.
    """

    def __init__(self, make: Callable[[], Any], look: Callable[[], bool] | None = None) -> None:
        super().__init__()
        self._make = make
        self._look = look
        self._settling = threading.Lock()

    def _settle(self) -> None:
        with self._settling:
            if self._done:
                return
            try:
                value = self._make()
            except Exception as error:
                self.set_exception(error)
            else:
                self.set_result(value)

    def done(self) -> bool:
        """Has it arrived?"""
        if not self._done and self._look is not None and self._look():
            self._settle()
        return self._done

    def wait(self) -> Any:
        """The value, as soon as it is there."""
        self._settle()
        return self.value()

    def add_done_callback(self, callback: Callable[[Future], Any]) -> None:
        """Wait, and call `callback`."""
        self._settle()
        callback(self)

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """A future for what `callback` makes of this one, when somebody waits for it."""

        def following() -> Any:
            self._settle()
            return callback(self)

        return WorkFuture(following)
