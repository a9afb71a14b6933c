"""``torch.multiprocessing``: Python's own multiprocessing, under torch's name.

Tensors are pickled on their way through queues and pipes.  Those that `Tensor.share_memory_` has moved are shared with
processes that are forked after that; a DataLoader's workers send theirs through shared memory by themselves.

>>> import retrograd as torch
>>> torch.multiprocessing.get_context("spawn").get_start_method()
'spawn'
"""

from __future__ import annotations

import multiprocessing as _multiprocessing
import multiprocessing.connection as _connection
import sys as _sys
import time as _time
import traceback as _traceback
from collections.abc import Callable as _Callable
from multiprocessing import *
from typing import Any as _Any

__all__ = [
    "ProcessContext", "ProcessExitedException", "ProcessRaisedException", "SpawnContext", "get_all_sharing_strategies",
    "get_sharing_strategy", "set_sharing_strategy", "spawn", "start_processes",
    *_multiprocessing.__all__,  # type: ignore[attr-defined]
]  # fmt: skip


def get_all_sharing_strategies() -> set[str]:
    """How the memory of tensors can be shared: as a file in memory."""
    return {"file_system"}


def get_sharing_strategy() -> str:
    """How the memory of tensors is shared."""
    return "file_system"


def set_sharing_strategy(new_strategy: str) -> None:
    """Choose how the memory of tensors is shared; torch's other way, by file descriptors, chooses nothing here."""
    if new_strategy not in ("file_system", "file_descriptor"):
        raise AssertionError(f"there is no strategy {new_strategy!r}: write 'file_system'")


class ProcessException(Exception):
    """A process has failed."""

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid

    def __reduce__(self) -> tuple:
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """The function of a process has raised an exception."""

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg, error_index, error_pid)


class ProcessExitedException(ProcessException):
    """A process was ended by a signal, or has left with another status than 0."""

    def __init__(
        self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self) -> tuple:
        return type(self), (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)


def _run(fn: _Callable[..., _Any], index: int, args: tuple, errors: _Any) -> None:
    try:
        fn(index, *args)
    except KeyboardInterrupt:
        pass  # the parent has it too
    except Exception:
        errors.put(_traceback.format_exc())
        _sys.exit(1)


class ProcessContext:
    """Processes that were started together."""

    def __init__(self, processes: list, errors: list) -> None:
        self.processes = processes
        self._errors = errors

    def pids(self) -> list[int]:
        """The numbers of the processes."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait for one of them, or for `timeout` seconds: are all done? If one fails, the others are ended, and its
        error is raised here. They are given `grace_period` seconds to end by themselves before they are killed."""
        waiting = [process for process in self.processes if process.exitcode is None]
        if waiting:
            _connection.wait([process.sentinel for process in waiting], timeout)
        failed = [index for index, process in enumerate(self.processes) if process.exitcode not in (None, 0)]
        if not failed:
            return all(process.exitcode == 0 for process in self.processes)
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        end = None if grace_period is None else _time.monotonic() + grace_period
        for process in self.processes:
            process.join(30 if end is None else max(0.0, end - _time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()
        index = failed[0]
        process = self.processes[index]
        if not self._errors[index].empty():
            raise ProcessRaisedException(
                f"\n\n-- Process {index} terminated with the following error:\n{self._errors[index].get()}", index,
                process.pid,
            )  # fmt: skip
        if process.exitcode < 0:
            import signal

            name = signal.Signals(-process.exitcode).name
            raise ProcessExitedException(
                f"process {index} terminated with signal {name}", index, process.pid, process.exitcode, name
            )
        raise ProcessExitedException(
            f"process {index} terminated with exit code {process.exitcode}", index, process.pid, process.exitcode
        )


SpawnContext = ProcessContext


def start_processes(
    fn: _Callable[..., _Any],
    args: tuple = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Run ``fn(index, *args)`` in `nprocs` processes. With `join`, wait for all of them; else, get a ProcessContext."""
    context: _Any = _multiprocessing.get_context(start_method)
    processes, errors = [], []
    for index in range(nprocs):
        error = context.SimpleQueue()
        process = context.Process(target=_run, args=(fn, index, args, error), daemon=daemon)
        process.start()
        processes.append(process)
        errors.append(error)
    started = ProcessContext(processes, errors)
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(
    fn: _Callable[..., _Any],
    args: tuple = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """`start_processes` with processes that are started afresh, as torch's is."""
    if start_method != "spawn":
        raise ValueError(f"spawn() starts with 'spawn', not {start_method!r}: start_processes() takes other methods")
    return start_processes(fn, args, nprocs, join, daemon, start_method)
