"""What a worker of a DataLoader does, be it a process or a thread: wait for indices, fetch, answer."""

from __future__ import annotations

import random
import sys
import threading
import traceback
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....random import manual_seed


@dataclass(frozen=True)
class WorkerInfo:
    """What a worker knows of itself: which it is, of how many, its seed, and its copy of the dataset."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


#: In a worker process, for all its threads; in a worker thread, for that thread.
_of_process: WorkerInfo | None = None
_of_thread = threading.local()


def get_worker_info() -> WorkerInfo | None:
    """In a worker of a DataLoader, which one it is; elsewhere None.

    >>> import retrograd as torch
    >>> torch.utils.data.get_worker_info() is None
    True
    """
    return getattr(_of_thread, "info", None) or _of_process


def enter_process(info: WorkerInfo) -> None:
    """Make this process a worker: one thread for each operator, and random streams of its own."""
    global _of_process
    from ....core.threads import set_num_threads

    _of_process = info
    set_num_threads(1)
    random.seed(info.seed)
    manual_seed(info.seed)
    base = (info.seed - info.id) % 2**64
    np.random.seed(np.random.SeedSequence([base, info.id]).generate_state(4))


def enter_thread(info: WorkerInfo) -> None:
    """Make this thread a worker.  Random streams are the process's: seeds of workers do not apply."""
    _of_thread.info = info


class ExceptionWrapper:
    """An exception of a worker, as text and class: what it refers to stays where it was raised."""

    def __init__(self, error: BaseException, where: str) -> None:
        self.exc_type: type[BaseException] = type(error)
        self.exc_msg = "".join(traceback.format_exception(error))
        self.where = where

    def without_class(self) -> ExceptionWrapper:
        """The same for a class that cannot be sent."""
        self.exc_msg = f"(of the class {self.exc_type.__qualname__}, which cannot be pickled)\n{self.exc_msg}"
        self.exc_type = RuntimeError
        return self

    def reraise(self) -> None:
        """Raise it again, of its class, with the worker's traceback in its text."""
        text: Any = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if issubclass(self.exc_type, KeyError):
            text = _Verbatim(text)
        try:
            error = self.exc_type(text)
        except Exception:  # a class that wants other arguments
            error = RuntimeError(text)
        raise error


class _Verbatim(str):
    """Text that a KeyError, which shows the repr of its argument, shows as it is."""

    def __repr__(self) -> str:
        return str(self)


class Ended:
    """A worker's answer when its stream has no more."""


class Worker:
    """Answers tasks: (epoch, number, indices), with (epoch, number, data).

    An epoch is one iteration over the loader.  Workers that are kept are told of a new one with (epoch,): what was
    asked for in an earlier one and not yet fetched is then left undone.
    """

    def __init__(self, info: WorkerInfo, make_fetcher: Any, init_fn: Any, tasks: Any, answer: Any, where: str) -> None:
        self.info = info
        self.make_fetcher = make_fetcher
        self.init_fn = init_fn
        self.tasks = tasks  # something with get(), which gives a task, or None at the end
        self.answer = answer
        self.where = where
        self.latest_epoch = 0  # set by whoever puts tasks in, before the worker gets to them

    def run(self) -> None:
        """Until there are no more tasks."""
        failure = fetcher = None
        try:
            if self.init_fn is not None:
                self.init_fn(self.info.id)
        except Exception as error:
            failure = ExceptionWrapper(error, self.where)
        else:
            fetcher, failure = self._begin()
        ended = False
        while (task := self.tasks.get()) is not None:
            if task[0] < self.latest_epoch:
                continue
            if len(task) == 1:
                ended = False
                if fetcher is not None:
                    fetcher, failure = self._begin()
            elif not ended:
                epoch, number, indices = task
                data, ended = (failure, False) if fetcher is None else self._fetch(fetcher, indices)
                self.answer((epoch, number, data))
                del data

    def _begin(self) -> tuple[Any, Any]:
        """A fetcher, or why there is none."""
        try:
            return self.make_fetcher(self.info.dataset), None
        except Exception as error:
            return None, ExceptionWrapper(error, self.where)

    def _fetch(self, fetcher: Any, indices: Any) -> tuple[Any, bool]:
        try:
            return fetcher.fetch(indices), False
        except StopIteration:
            return Ended(), True
        except Exception as error:
            return ExceptionWrapper(error, self.where), False
        except SystemExit:
            if threading.current_thread() is threading.main_thread():
                raise
            return ExceptionWrapper(sys.exception() or SystemExit(), self.where), False
