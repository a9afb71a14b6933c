"""Who is alive, and what is everybody doing: so that a failure ends all processes soon, with an error that says whose
it was.

Note [Failures]
Rank 0 keeps a *board* (a server of store.py). Every process has a thread, its *monitor*, which tells the board
several times a second what its process is doing ("in all_reduce number 17 since 2.1 s"), and hears from it who has
failed or left.

* A process that **dies** takes its connection with it: the board notices at once, and knows what that process was
  last doing. If it was rank 0, the board goes, and all others notice.
* One that **raises** says so itself, in ``sys.excepthook``, with the exception and where it was raised.
* One that **hangs** is named by those that wait for it: when their time is up they ask the board, who is not where
  they are.

Whoever waits for others (work.py) looks at its monitor and raises what it has heard. A process that does not wait for
anybody, because it computes or hangs, is ended by its monitor, after a time in which it could have come to a collective
operation. Processes say goodbye when they end; one that has failed waits a moment first, so that all others have
heard why.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
import traceback
from collections.abc import Iterable
from types import TracebackType
from typing import Any

from .errors import DistBackendError
from .store import Server, connect, receive_message, send_message

#: Seconds between two messages to the board, for up to some hundred processes.
BEAT = 0.2
#: Seconds for which a process that has failed stays, so that others hear of it; and for which others may fail to
#: notice.
FAREWELL, UNNOTICED = 3.0, 30.0


class Activity:
    """What this process is doing, as others see it. Written by whoever communicates, read by the monitor."""

    __slots__ = ("last", "inside", "since", "note")

    def __init__(self) -> None:
        self.last: str = ""
        self.inside: str = ""
        self.since: float = time.monotonic()
        self.note: str = ""

    def __str__(self) -> str:
        seconds = time.monotonic() - self.since
        note = f" ({self.note})" if self.note else ""
        if self.inside:
            return f"in {self.inside} for {seconds:.1f} s{note}"
        where = f"since its last operation, {self.last}" if self.last else "and has not communicated so far"
        return f"computing, for {seconds:.1f} s {where}{note}"


class Board:
    """What is known of all processes, kept by rank 0."""

    def __init__(self, size: int, host: str) -> None:
        self.size = size
        self._lock = threading.Lock()
        self._doing: dict[int, tuple[str, float]] = {}
        self._left: dict[int, str] = {}
        self._failed: dict[int, str] = {}
        self._server = Server(host, 0, self._hear, self._ended)
        self.port: int = self._server.port

    def _hear(self, said: dict[str, Any], notes: dict[str, Any]) -> dict[str, Any]:
        rank = notes["rank"] = said["rank"]
        now = time.monotonic()
        with self._lock:
            self._doing[rank] = said["doing"], now
            if "failed" in said:
                self._failed.setdefault(rank, said["failed"])
            if "left" in said:
                self._left[rank] = said["left"]
            answer: dict[str, Any] = {
                "failed": list(self._failed.items()), "left": list(self._left.items()),
                "zero": self._doing.get(0, ("", now))[0],
            }  # fmt: skip
            if "all" in said:
                answer["all"] = [(r, doing, now - heard) for r, (doing, heard) in self._doing.items()]
        return answer

    def _ended(self, notes: dict[str, Any]) -> None:
        rank = notes.get("rank")
        with self._lock:
            if rank is not None and rank not in self._left and rank not in self._failed:
                doing, heard = self._doing[rank]
                self._failed[rank] = f"died. {time.monotonic() - heard:.1f} s before its end it was {doing}"

    def gone(self) -> int:
        """How many have left."""
        with self._lock:
            return len(self._left.keys() | self._failed.keys())

    def close(self) -> None:
        self._server.close()


class Monitor:
    """This process's side of it."""

    rank: int
    size: int
    board: Board | None

    def __init__(self, rank: int, size: int, host: str, port: int, board: Board | None, timeout: float) -> None:
        self.rank, self.size, self.board = rank, size, board
        self.activity: Activity = Activity()
        #: The first process that failed, and how.
        self.failure: tuple[int, str] | None = None
        #: Processes that have ended as they should.
        self.left: dict[int, str] = {}
        self.noticed: bool = False  # has this process raised the failure?
        self._zero = ""
        self._patience = min(timeout, UNNOTICED)
        self._beat = max(BEAT, size / 1000)
        self._stop = threading.Event()
        self._talking = threading.Lock()
        self._connection: socket.socket | None = connect(host, port, time.monotonic() + 60)
        self._owner = os.getpid()
        self._hook = sys.excepthook
        sys.excepthook = self._uncaught
        self._tell()
        self._thread = threading.Thread(target=self._run, name="retrograd monitor", daemon=True)
        self._thread.start()

    # ------------------------------------------------------------------------------------------------ the conversation

    def _tell(self, **more: Any) -> dict[str, Any]:
        """Say what this process is doing, hear who has failed."""
        with self._talking:
            connection = self._connection
            if connection is None or os.getpid() != self._owner:
                return {}
            try:
                send_message(connection, {"rank": self.rank, "doing": str(self.activity), **more})
                heard = receive_message(connection)
            except OSError:
                connection.close()
                self._connection = None
                if 0 not in self.left and self.failure is None and not self._stop.is_set():
                    self.failure = 0, f"died. When last heard of it was {self._zero or 'starting'}"
                return {}
        self._zero = heard["zero"]
        self.left = dict(heard["left"])
        others = [(rank, how) for rank, how in heard["failed"] if rank != self.rank]
        if others and self.failure is None:
            self.failure = others[0]
        return heard

    def _run(self) -> None:
        unnoticed_since = None
        while not self._stop.wait(self._beat):
            self._tell()
            if self.failure is None or self.noticed:
                continue
            unnoticed_since = unnoticed_since or time.monotonic()
            if time.monotonic() - unnoticed_since > self._patience:
                rank, how = self.failure
                print(
                    f"[Rank {self.rank}] ended, since rank {rank} {how}. This process did not notice, it was "
                    f"{self.activity}", file=sys.stderr, flush=True,
                )  # fmt: skip
                os._exit(1)

    # --------------------------------------------------------------------------------------------------- for who waits

    def check(self, what: str, ranks: Iterable[int], seconds: float) -> None:
        """Raise if those that `what` has waited for, for some seconds, will not come."""
        if self.failure is not None:
            self.noticed = True
            rank, how = self.failure
            raise DistBackendError(f"[Rank {self.rank}] {what} cannot be finished: rank {rank} {how}")
        if self.left and seconds > 2.0:  # (what they sent before they left may be on its way)
            gone = sorted(self.left.keys() & set(ranks) - {self.rank})
            if gone:
                self.noticed = True
                raise DistBackendError(
                    f"[Rank {self.rank}] {what} cannot be finished: rank {gone[0]} has left ({self.left[gone[0]]})"
                )

    def who_is_late(self, inside: str, ranks: Iterable[int]) -> str:
        """What those are doing that are not in the same operation, in words."""
        members = set(ranks) - {self.rank}
        answer = self._tell(all=True).get("all")
        if answer is None:
            return "Rank 0, which knows what everybody is doing, does not answer."
        late = []
        for rank, doing, age in sorted(answer):
            there = doing.startswith(f"in {inside} for") or doing.partition(" (")[0].endswith(f", {inside}")
            if rank in members and (age > 5 * self._beat + 1 or not there):
                silent = f" (not heard of for {age:.1f} s)" if age > 5 * self._beat + 1 else ""
                late.append(f"rank {rank} is {doing}{silent}")
        return "; ".join(late) or "All others are in it as well."

    # ------------------------------------------------------------------------------------------------------ the endings

    def _uncaught(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        self._hook(kind, error, trace)
        if os.getpid() == self._owner and threading.current_thread() is threading.main_thread():
            self.fail(error, trace)

    def fail(self, error: BaseException, trace: TracebackType | None) -> None:
        """Tell all others that this process ends with an exception."""
        last = traceback.extract_tb(trace)[-1:] if trace is not None else []
        where = "".join(f" at {os.path.basename(frame.filename)}:{frame.lineno}" for frame in last)
        self.noticed = True
        text = f"raised {type(error).__name__}{where}: {error}. It was {self.activity}"
        if self.failure is None:  # else it is not the first, and nobody needs to hear of it
            self._tell(failed=text)
            self.failure = self.rank, text

    def goodbye(self, why: str) -> None:
        """Tell all others that this process does not take part any more."""
        note = self.activity.note
        self._tell(left=f"{why}; {note}" if note else why)

    def close(self) -> None:
        """Stop talking, when others have heard what they have to hear."""
        if sys.excepthook == self._uncaught:
            sys.excepthook = self._hook
        if self.board is not None:
            until = time.monotonic() + (3 * self._beat if self.failure is None else FAREWELL)
            while self.board.gone() < self.size and time.monotonic() < until:
                time.sleep(0.01)
        elif self.failure is not None and self.failure[0] == self.rank:
            time.sleep(2 * self._beat)
        self._stop.set()
        self.forget()
        if self.board is not None:
            self.board.close()

    def forget(self) -> None:
        """Let go of the connection. (A forked process does: its copy would keep a dead rank alive.)"""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
