"""Threads that run something for a thread that waits for it.

Note [Reentrant backward]
A hook or a custom function may call ``backward()`` while a backward pass is running.  The inner pass runs at once, on
the same thread, and the outer one goes on when it is done; so inner nodes run before any outer node that is ready.
Each such level lies on the stack of the one outside it.  Python's stack would overflow after some hundred frames, so
every `MAX_DEPTH` levels the inner pass is handed to a thread of the pool, with an empty stack, and the outer one waits.

Note [Borrowed thread state]
The thread that waits does nothing meanwhile.  So the worker need not copy its modes (grad mode, anomaly mode,
saved-tensor hooks, dual levels, the pass that is running): it simply works on the waiting thread's own `ThreadState`,
in a copy of its context (NumPy's error state and the like), and gives it back when it is done.  An error is raised
again where the caller waits.

Workers are daemons: they never keep a process from ending.  A forked child starts with none.
"""

from __future__ import annotations

import contextvars
import os
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from ..core.state import ThreadState, local

#: How many reentrant passes may lie on one thread's stack.
MAX_DEPTH = 16
#: How many idle threads the pool keeps.
_MAX_IDLE = 8


class _Request:
    """One call that somebody waits for."""

    __slots__ = ("args", "context", "done", "error", "function", "result", "state")

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.function = function
        self.args = args
        self.state: ThreadState = local.state
        self.context = contextvars.copy_context()
        self.done = threading.Event()
        self.error: BaseException | None = None
        self.result: Any = None

    def serve(self) -> None:
        own, local.state = local.state, self.state
        try:
            self.result = self.context.run(self.function, *self.args)
        except BaseException as error:
            self.error = error
        finally:
            local.state = own
            self.done.set()

    def wait(self) -> Any:
        interrupt: KeyboardInterrupt | None = None
        while not self.done.is_set():
            try:
                self.done.wait()
            except KeyboardInterrupt as error:
                # The worker is using our state: let it finish before the interrupt goes on its way.
                interrupt = error
        if interrupt is not None:
            raise interrupt
        if self.error is not None:
            try:
                raise self.error
            finally:
                self.error = None  # no circle of error, traceback, frame, request
        return self.result


class Worker:
    """One thread and the queue of what it is to do.

    >>> from retrograd.autograd.worker_threads import Worker
    >>> Worker("example").run(max, 1, 2)
    2
    """

    def __init__(self, name: str) -> None:
        self.requests: SimpleQueue[_Request | None] = SimpleQueue()
        self.thread: threading.Thread = threading.Thread(target=_serve, args=(self.requests,), name=name, daemon=True)
        self.thread.start()

    def run(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call ``function(*args)`` on the thread and wait for its result, see Note [Borrowed thread state]."""
        request = _Request(function, args)
        self.requests.put(request)
        return request.wait()

    def stop(self) -> None:
        """End the thread when it has done what is queued."""
        self.requests.put(None)


def _serve(requests: SimpleQueue[_Request | None]) -> None:
    while True:
        request = requests.get()
        if request is None:
            return
        request.serve()
        del request


class WorkerPool:
    """Workers that are idle, and as many more as are asked for."""

    def __init__(self) -> None:
        self.reset()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.reset)

    def reset(self) -> None:
        """Forget all threads: a forked child does not have them."""
        self.lock: Any = threading.Lock()
        self.idle: list[Worker] = []

    def run(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call ``function(*args)`` on some thread of the pool, and wait for it."""
        with self.lock:
            worker = self.idle.pop() if self.idle else None
        if worker is None:
            worker = Worker("retrograd: reentrant backward")
        try:
            return worker.run(function, *args)
        finally:
            with self.lock:
                keep = len(self.idle) < _MAX_IDLE
                if keep:
                    self.idle.append(worker)
            if not keep:
                worker.stop()


pool: WorkerPool = WorkerPool()
