"""The workers of a DataLoader: processes or threads, started, fed, listened to and ended.

Note [Worker processes]
Each worker process has two pipes of its own, for tasks and for answers (see Note [Between processes] in channel.py):
there is no queue whose lock a dying worker could take along, and a worker that dies is noticed at once, because its end
of the pipe closes.  The process that loads has no helper threads; a worker has one, which takes tasks out of the pipe,
so that handing out tasks never waits for a busy worker, and which notices when nobody is left to work for.

Ctrl-C reaches every process of a terminal.  Workers ignore it, and it waits while they are started: it is for the
process that loads to end them, which it does when the iterator goes, whatever made it go.  It asks first, waits a while
for those who are in the middle of a sample, and then ends them.  Processes that nobody ended end with the process that
started them.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from multiprocessing import connection
from typing import Any

from ..._utils import ExceptionWrapper
from . import _utils
from ._utils.worker import Worker, WorkerInfo, enter_process, enter_thread, streams
from .channel import Channel, ChannelClosed

_PATIENCE = 5.0  # seconds for a worker to finish its sample before it is ended


class WorkerProcesses:
    """Workers that are processes."""

    def __init__(
        self, context: Any, number: int, base_seed: int, dataset: Any, make_fetcher: Callable[..., Any],
        init_fn: Callable[..., Any] | None,
    ) -> None:  # fmt: skip
        self.processes: list[Any] = []
        self.tasks: list[Channel] = []
        self.answers: list[Channel] = []
        self._finalizer = weakref.finalize(
            self, _end_processes, self.processes, self.tasks, self.answers, os.getpid()
        )
        forked = context.get_start_method() == "fork"
        try:
            with _interrupts_wait():
                for i in range(number):
                    # Duplex ones, though they are used in one direction: only those carry descriptors of files.
                    (tasks, their_tasks), (answers, their_answers) = context.Pipe(), context.Pipe()
                    self.tasks.append(Channel(tasks))
                    self.answers.append(Channel(answers))
                    theirs = Channel(their_tasks), Channel(their_answers)
                    # A forked process has copies of all pipes; it closes those that are not its own.
                    inherited = [*self.tasks, *self.answers] if forked else []
                    arguments = (i, number, base_seed, dataset, make_fetcher, init_fn, *theirs, inherited)
                    process = context.Process(target=_work, args=arguments, daemon=True)
                    _start(process, forked)
                    self.processes.append(process)
                    for channel in theirs:
                        channel.close()
        except BaseException:
            self.end()
            raise

    def put(self, worker: int, task: tuple[Any, ...]) -> None:
        """Give a worker a task."""
        with contextlib.suppress(ChannelClosed):  # who listens to it will say so
            self.tasks[worker].send(task)

    def get(self, timeout: float | None) -> tuple[Any, ...] | None:
        """The next answer of any worker; None if there is none in time.  A worker that has died raises."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            ready = connection.wait([*self.answers, *[process.sentinel for process in self.processes]], left)  # type: ignore[list-item]
            for channel in ready:
                if isinstance(channel, Channel):
                    try:
                        return channel.receive()
                    except ChannelClosed:
                        pass
            if ready:  # it had nothing more to say
                self._report()
            elif left is not None and left <= 0:
                return None

    def _report(self) -> None:
        for process, channel in zip(self.processes, self.answers):
            if channel.poll():  # its pipe has closed: wait for the process to be gone
                process.join(_PATIENCE)
        dead = [process for process in self.processes if not process.is_alive()]
        if dead:
            pids = ", ".join(str(process.pid) for process in dead)
            how = "; ".join(_how_it_ended(process) for process in dead)
            raise RuntimeError(f"DataLoader worker (pid(s) {pids}) exited unexpectedly: {how}")

    def end(self, patience: float = _PATIENCE) -> None:
        """End all of them; what they were doing is lost.  `patience` is how long they may take to finish it."""
        _end_processes(self.processes, self.tasks, self.answers, os.getpid(), patience)
        self._finalizer.detach()


@contextlib.contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Ctrl-C waits until the block has ended; processes that are started in it begin with it waiting, too."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start(process: Any, forked: bool) -> None:
    try:
        process.start()
    except (TypeError, AttributeError, pickle.PicklingError):
        if not forked:
            warnings.warn(
                "Got pickle error when attempting to start a worker Process. What it needs (dataset, collate_fn, "
                "worker_init_fn) must be picklable, unless it is forked (multiprocessing_context='fork') or a thread "
                "(multiprocessing_context='thread').",
                stacklevel=6,
            )
        raise


def _how_it_ended(process: Any) -> str:
    code = process.exitcode
    if code is not None and code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        hint = ". It may have run out of memory" if name in ("SIGKILL", "SIGBUS") else ""
        return f"DataLoader worker (pid {process.pid}) is killed by signal: {name}{hint}"
    return f"worker (pid {process.pid}) ended with status {code}, as if it had called sys.exit or os._exit"


def _end_processes(
    processes: list[Any], tasks: list[Channel], answers: list[Channel], owner: int, patience: float = _PATIENCE
) -> None:
    if os.getpid() != owner:  # a process that was forked while the iterator was there: they are not its children
        return
    for channel in tasks:
        with contextlib.suppress(ChannelClosed, OSError):
            # Said, not only shown by closing: workers of another loader, forked meanwhile, have a copy of the pipe.
            channel.send(None)
    for channel in (*tasks, *answers):
        with contextlib.suppress(OSError):
            channel.close()
    deadline = time.monotonic() + patience
    for process in processes:
        process.join(max(0.0, deadline - time.monotonic()))
    for end in ("terminate", "kill"):
        for process in processes:
            if process.is_alive():
                getattr(process, end)()
        for process in processes:
            process.join(_PATIENCE)


def _work(
    number: int, total: int, base_seed: int, dataset: Any, make_fetcher: Callable[..., Any],
    init_fn: Callable[..., Any] | None,
    from_loader: Channel, to_loader: Channel, inherited: list[Channel],
) -> None:  # fmt: skip
    """The life of a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    for other in inherited:
        other.close()
    info = WorkerInfo(id=number, num_workers=total, seed=base_seed + number, dataset=dataset)
    enter_process(info)
    tasks: queue.SimpleQueue = queue.SimpleQueue()
    where = f"in DataLoader worker process {number}"
    worker = Worker(info, make_fetcher, init_fn, tasks, _answer_through(to_loader), where)
    threading.Thread(target=_take_tasks, args=(from_loader, worker, os.getppid()), daemon=True).start()
    with contextlib.suppress(ChannelClosed):
        worker.run()


def _take_tasks(channel: Channel, worker: Worker, parent: int) -> None:
    """In a thread of the worker process: tasks from the pipe into its queue."""
    try:
        while True:
            while not channel.poll(_utils.MP_STATUS_CHECK_INTERVAL):
                if os.getppid() != parent:
                    return
            task = channel.receive()
            if task is None:
                return
            worker.latest_epoch = task[0]
            worker.tasks.put(task)
    except ChannelClosed:
        pass
    finally:
        worker.latest_epoch = float("inf")  # type: ignore[assignment]  # what is left is not wanted any more
        worker.tasks.put(None)


def _answer_through(channel: Channel) -> Callable[[tuple[Any, ...]], None]:
    def answer(message: tuple[Any, ...]) -> None:
        try:
            channel.send(message)
        except ChannelClosed:
            raise
        except Exception:  # it cannot be pickled
            epoch, number, data = message
            if isinstance(data, ExceptionWrapper):
                data = data.without_class()
            else:
                data = ExceptionWrapper(where=f"when a worker sent a {type(data).__name__}, which cannot be pickled")
            try:
                channel.send((epoch, number, data))
            except ChannelClosed:
                raise
            except Exception:
                channel.send((epoch, number, data.without_class()))

    return answer


class WorkerThreads:
    """Workers that are threads: they share the dataset, and nothing is copied or pickled."""

    def __init__(
        self, number: int, base_seed: int, dataset: Any, make_fetcher: Callable[..., Any],
        init_fn: Callable[..., Any] | None,
    ) -> None:  # fmt: skip
        self.answers: queue.SimpleQueue = queue.SimpleQueue()
        self.workers: list[Worker] = []
        self.processes: list[threading.Thread] = []
        self._finalizer = weakref.finalize(self, _end_threads, self.workers, self.processes)
        for i in range(number):
            info = WorkerInfo(i, number, base_seed + i, dataset, streams(base_seed, i), "thread")
            tasks: queue.SimpleQueue = queue.SimpleQueue()
            where = f"in DataLoader worker thread {i}"
            worker = Worker(info, make_fetcher, init_fn, tasks, self.answers.put, where)
            thread = threading.Thread(target=_work_in_thread, args=(worker,), name=f"DataLoader {i}", daemon=True)
            self.workers.append(worker)
            self.processes.append(thread)
            thread.start()

    def put(self, worker: int, task: tuple[Any, ...]) -> None:
        """Give a worker a task."""
        self.workers[worker].latest_epoch = task[0]
        self.workers[worker].tasks.put(task)

    def get(self, timeout: float | None) -> tuple[Any, ...] | None:
        """The next answer of any worker; None if there is none in time."""
        try:
            return self.answers.get(timeout=timeout)
        except queue.Empty:
            return None

    def end(self, patience: float = _PATIENCE) -> None:
        """End all of them, when they have finished what they are doing."""
        _end_threads(self.workers, self.processes, patience)
        self._finalizer.detach()


def _work_in_thread(worker: Worker) -> None:
    enter_thread(worker.info)
    worker.run()


def _end_threads(workers: list[Worker], threads: list[threading.Thread], patience: float = _PATIENCE) -> None:
    for worker in workers:
        worker.latest_epoch = float("inf")  # type: ignore[assignment]
        worker.tasks.put(None)
    deadline = time.monotonic() + patience
    for thread in threads:
        if thread is not threading.current_thread():
            thread.join(max(0.0, deadline - time.monotonic()))
