"""What a worker of a DataLoader does, be it a process or a thread: wait for indices, fetch, answer."""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...._utils import ExceptionWrapper
from ....core.threads import set_num_threads
from ....random import Generator, manual_seed


@dataclass(frozen=True)
class _RNG:
    """Random streams of a worker that is a thread, which shares the process's with all others."""

    random_generator: random.Random
    torch_generator: Generator
    numpy_generator: np.random.Generator


@dataclass(frozen=True)
class WorkerInfo:
    """What a worker knows of itself: which it is, of how many, its seed, and its copy of the dataset.

    In a thread, `dataset` is the one that all share, and `rng` has random streams of the worker's own.
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: _RNG | None = None
    worker_method: str = "multiprocessing"


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
    _of_process = info
    set_num_threads(1)
    random.seed(info.seed)
    manual_seed(info.seed)
    np.random.seed(_generate_state(info.seed - info.id, info.id))


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """The seed of NumPy's stream, other than those of the others."""
    words = np.array([worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32 & 0xFFFFFFFF, 0], np.uint32)
    return np.random.SeedSequence(words).generate_state(4).tolist()


def streams(base_seed: int, worker_id: int) -> _RNG:
    """Random streams for a thread."""
    seed = base_seed + worker_id
    state = np.random.SeedSequence(_generate_state(base_seed, worker_id))
    return _RNG(random.Random(seed), Generator().manual_seed(seed), np.random.default_rng(state))


def enter_thread(info: WorkerInfo) -> None:
    """Make this thread a worker."""
    _of_thread.info = info


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
        except Exception:
            failure = ExceptionWrapper(where=self.where)
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
        except Exception:
            return None, ExceptionWrapper(where=self.where)

    def _fetch(self, fetcher: Any, indices: Any) -> tuple[Any, bool]:
        try:
            return fetcher.fetch(indices), False
        except StopIteration:
            return Ended(), True
        except Exception:
            return ExceptionWrapper(where=self.where), False
        except SystemExit:
            if threading.current_thread() is threading.main_thread():
                raise
            return ExceptionWrapper(where=self.where), False
