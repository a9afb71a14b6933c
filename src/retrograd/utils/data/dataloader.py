"""DataLoader: batches of a dataset, fetched here or ahead of time by workers."""

from __future__ import annotations

import functools
import itertools
import multiprocessing
import multiprocessing.context
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from ..._utils import ExceptionWrapper
from ._utils.collate import default_collate, default_convert
from ._utils.fetch import _IterableDatasetFetcher, _MapDatasetFetcher
from ._utils.worker import Ended, get_worker_info
from .dataset import IterableDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, draw_seed
from .workers import WorkerProcesses, WorkerThreads

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

T_co = TypeVar("T_co", covariant=True)
_DEFAULT_PREFETCH = 2


class _DatasetKind:
    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(
        kind: int, dataset: Any, auto_collation: bool, collate_fn: Callable[..., Any], drop_last: bool
    ) -> Any:
        """What fetches batches of a dataset of this kind."""
        fetcher = _MapDatasetFetcher if kind == _DatasetKind.Map else _IterableDatasetFetcher
        return fetcher(dataset, auto_collation, collate_fn, drop_last)


def _make_fetcher(
    dataset: Any, kind: int, auto_collation: bool, collate_fn: Callable[..., Any], drop_last: bool
) -> Any:
    return _DatasetKind.create_fetcher(kind, dataset, auto_collation, collate_fn, drop_last)


class _InfiniteConstantSampler(Sampler[None]):
    """For a stream, which is asked for its next sample whatever the index."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


class DataLoader(Generic[T_co]):
    """Batches of a dataset, in the order of a sampler.

    >>> import retrograd as torch
    >>> data = torch.utils.data.TensorDataset(torch.arange(5), torch.arange(5) * 10)
    >>> for x, y in torch.utils.data.DataLoader(data, batch_size=2):
    ...     print(x, y)
    tensor([0, 1]) tensor([ 0, 10])
    tensor([2, 3]) tensor([20, 30])
    tensor([4]) tensor([40])

    The arguments are torch's.  With ``num_workers`` batches are fetched ahead of time, by processes; how these are
    started is `multiprocessing_context` ("fork", "spawn", "forkserver" or a context).  One more word is this package's
    own: with ``multiprocessing_context="thread"`` the workers are threads, which share the dataset and copy nothing:
    for datasets that read files, or compute in NumPy or in C, and for Pythons without a global lock.  They share the
    random streams of the process, too; ``get_worker_info().rng`` has streams of each one's own, with its seed.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler[Any] | Iterable[Any] | None = None,
        batch_sampler: Sampler[list[Any]] | Iterable[list[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        if num_workers < 0:
            raise ValueError(
                "num_workers option should be non-negative; use num_workers=0 to disable multiprocessing."
            )
        if timeout < 0:
            raise ValueError("timeout option should be non-negative")
        if num_workers == 0 and prefetch_factor is not None:
            raise ValueError(
                "prefetch_factor option could only be specified in multiprocessing. let num_workers > 0 to enable "
                "multiprocessing, otherwise set prefetch_factor to None."
            )
        if prefetch_factor is not None and prefetch_factor < 0:
            raise ValueError("prefetch_factor option should be non-negative")
        if persistent_workers and num_workers == 0:
            raise ValueError("persistent_workers option needs num_workers > 0")
        self.dataset = dataset
        self.num_workers = num_workers
        default = _DEFAULT_PREFETCH if num_workers else None
        self.prefetch_factor: int | None = default if prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        self._dataset_kind = _DatasetKind.Iterable if isinstance(dataset, IterableDataset) else _DatasetKind.Map
        self._choose_sampler(batch_size, shuffle, sampler, batch_sampler, drop_last, generator)
        self.generator = generator
        if collate_fn is None:
            collate_fn = default_collate if self._auto_collation else default_convert
        self.collate_fn = collate_fn
        self.persistent_workers = persistent_workers
        self._iterator: _BaseDataLoaderIter | None = None
        self._IterableDataset_len_called: int | None = None
        self.__dict__["_initialized"] = True
        self.check_worker_number_rationality()

    def _choose_sampler(
        self, batch_size: Any, shuffle: Any, sampler: Any, batch_sampler: Any, drop_last: bool, generator: Any
    ) -> None:
        if self._dataset_kind == _DatasetKind.Iterable:
            for name, value in (("shuffle", shuffle or None), ("sampler", sampler), ("batch_sampler", batch_sampler)):
                if value is not None:
                    raise ValueError(
                        f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}"
                    )
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
                )
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError(
                "batch_size=None option disables auto-batching and is mutually exclusive with drop_last"
            )
        if sampler is None:
            if self._dataset_kind == _DatasetKind.Iterable:
                sampler = _InfiniteConstantSampler()
            elif shuffle:
                sampler = RandomSampler(self.dataset, generator=generator)
            else:
                sampler = SequentialSampler(self.dataset)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler

    @property
    def multiprocessing_context(self) -> Any:
        """How workers are started: a context of multiprocessing, "thread", or None for Python's own choice."""
        return self.__dict__["_multiprocessing_context"]

    @multiprocessing_context.setter
    def multiprocessing_context(self, value: Any) -> None:
        if value is not None:
            if self.num_workers == 0:
                raise ValueError(
                    "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
                    f"num_workers={self.num_workers}"
                )
            if isinstance(value, str) and value != "thread":
                valid = multiprocessing.get_all_start_methods()
                if value not in valid:
                    raise ValueError(
                        f"multiprocessing_context option should specify a valid start method in {valid!r}, or "
                        f"'thread', but got multiprocessing_context={value!r}"
                    )
                value = multiprocessing.get_context(value)
            if value != "thread" and not isinstance(value, multiprocessing.context.BaseContext):
                raise TypeError(
                    "multiprocessing_context option should be a valid context object or a string specifying the start "
                    f"method, but got multiprocessing_context={value}"
                )
        self.__dict__["_multiprocessing_context"] = value

    def __setattr__(self, name: str, value: Any) -> None:
        frozen = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")
        if self.__dict__.get("_initialized") and name in frozen:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    def _get_iterator(self) -> _BaseDataLoaderIter:
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        return _MultiProcessingDataLoaderIter(self)

    def __iter__(self) -> _BaseDataLoaderIter:
        if not (self.persistent_workers and self.num_workers):
            return self._get_iterator()
        if self._iterator is None or self._iterator._broken:
            self._iterator = self._get_iterator()
        else:
            self._iterator._reset(self)
        return self._iterator

    def __len__(self) -> int:
        if self._dataset_kind == _DatasetKind.Map:
            return len(self._index_sampler)
        # A stream may say how long it is; an iterator that finds it longer will warn.
        length = self._IterableDataset_len_called = len(self.dataset)
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)

    def check_worker_number_rationality(self) -> None:
        """Warn of more workers than there are processors."""
        available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        if self.num_workers > available:
            warnings.warn(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our suggested max number "
                f"of worker in current system is {available}, which is smaller than what this DataLoader is going to "
                "create. Please be aware that excessive worker creation might get DataLoader running slow or even "
                "freeze, lower the worker number to avoid potential slowness/freeze if necessary.",
                stacklevel=3,
            )


class _BaseDataLoaderIter:
    """One iteration over a loader."""

    _broken = False  # have its workers been ended?

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._dataset = loader.dataset
        self._dataset_kind = loader._dataset_kind
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        self._auto_collation = loader._auto_collation
        self._drop_last = loader.drop_last
        self._index_sampler = loader._index_sampler
        self._num_workers = loader.num_workers
        self._timeout = loader.timeout
        self._collate_fn = loader.collate_fn
        self._warn_about_pinning(loader)
        self._sampler_iter = iter(self._index_sampler)
        self._base_seed = draw_seed(loader.generator)
        self._persistent_workers = loader.persistent_workers
        self._num_yielded = 0

    def _warn_about_pinning(self, loader: DataLoader[Any]) -> None:
        if loader.pin_memory_device:
            warnings.warn(
                "pin_memory_device is deprecated, the current accelerator will be used as the device, ignore "
                f"pin_memory_device='{loader.pin_memory_device}'.",
                stacklevel=5,
            )
        if loader.pin_memory:
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be "
                "used.",
                stacklevel=5,
            )

    def __iter__(self) -> _BaseDataLoaderIter:
        return self

    def _reset(self, loader: DataLoader[Any]) -> None:
        """Begin again."""
        self._sampler_iter = iter(self._index_sampler)
        self._num_yielded = 0
        self._IterableDataset_len_called = loader._IterableDataset_len_called

    def _next_index(self) -> Any:
        return next(self._sampler_iter)

    def _next_data(self) -> Any:
        raise NotImplementedError

    def __next__(self) -> Any:
        data = self._next_data()
        self._num_yielded += 1
        promised = self._IterableDataset_len_called
        if self._dataset_kind == _DatasetKind.Iterable and promised is not None and self._num_yielded > promised:
            more = (
                "For multiprocessing data-loading, this could be caused by not properly configuring the "
                "IterableDataset replica at each worker: see get_worker_info."
                if self._num_workers
                else ""
            )
            warnings.warn(
                f"Length of IterableDataset {self._dataset} was reported to be {promised}(when accessing "
                f"len(dataloader)), but {self._num_yielded} samples have been fetched. {more}",
                stacklevel=2,
            )
        return data

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __getstate__(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} cannot be pickled")


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Fetches when it is asked."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        if self._timeout:
            raise AssertionError("timeout is for workers: with num_workers=0 it must be 0")
        self._dataset_fetcher = _DatasetKind.create_fetcher(
            self._dataset_kind, self._dataset, self._auto_collation, self._collate_fn, self._drop_last
        )

    def _next_data(self) -> Any:
        return self._dataset_fetcher.fetch(self._next_index())


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Has workers fetch ahead: tasks are numbered, go to the workers in turn, and are given out in order."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        self._prefetch_factor = max(1, loader.prefetch_factor or 0)  # with none ahead there would be none at all
        self._in_order = loader.in_order
        make = functools.partial(
            _make_fetcher,
            kind=self._dataset_kind,
            auto_collation=self._auto_collation,
            collate_fn=self._collate_fn,
            drop_last=self._drop_last,
        )
        what = self._num_workers, self._base_seed, self._dataset, make, loader.worker_init_fn
        context = loader.multiprocessing_context
        self._pool: Any
        if context == "thread":
            self._pool = WorkerThreads(*what)
        else:
            self._pool = WorkerProcesses(context or multiprocessing.get_context(), *what)
        self._epoch = 0
        self._begin()

    @property
    def _workers(self) -> list[Any]:
        return self._pool.processes

    def _begin(self) -> None:
        self._sent = 0  # the number of the next task
        self._next = 0  # the number of the task that is to be given out next
        self._asked: dict[int, int] = {}  # tasks without an answer, and their workers
        self._answers: dict[int, tuple[int, Any]] = {}  # answers that wait for their turn: worker, data
        self._active = [True] * self._num_workers
        self._load = [0] * self._num_workers  # tasks of each worker that have not been given out
        self._turns = itertools.cycle(range(self._num_workers))
        for _ in range(self._prefetch_factor * self._num_workers):
            self._hand_out()

    def _reset(self, loader: DataLoader[Any]) -> None:
        super()._reset(loader)
        self._epoch += 1
        for worker in range(self._num_workers):
            self._pool.put(worker, (self._epoch,))
        self._begin()

    def _hand_out(self) -> None:
        """Give the next task to the next worker, if there is one of each."""
        most = self._prefetch_factor * self._num_workers
        for worker in itertools.islice(self._turns, self._num_workers):
            if self._active[worker] and (self._in_order or self._load[worker] < most // sum(self._active)):
                break
        else:
            return
        try:
            index = self._next_index()
        except StopIteration:
            return
        self._pool.put(worker, (self._epoch, self._sent, index))
        self._asked[self._sent] = worker
        self._load[worker] += 1
        self._sent += 1

    def _next_data(self) -> Any:
        while True:
            # Tasks of workers whose stream has ended will not be answered.
            while self._next < self._sent and not self._is_expected(self._next):
                self._asked.pop(self._next, None)
                self._next += 1
            if self._next >= self._sent:
                if not self._persistent_workers:
                    self._shutdown_workers()
                raise StopIteration
            if self._next in self._answers:
                return self._give_out(self._next, *self._answers.pop(self._next))
            number, data = self._receive()
            worker = self._asked.pop(number)
            if isinstance(data, Ended):
                self._active[worker] = False
                self._hand_out()
            elif self._in_order and number != self._next:
                self._answers[number] = worker, data
            else:
                return self._give_out(number, worker, data)

    def _is_expected(self, number: int) -> bool:
        if number in self._answers:
            return True
        worker = self._asked.get(number)
        return worker is not None and self._active[worker]

    def _receive(self) -> tuple[int, Any]:
        while True:
            try:
                answer = self._pool.get(self._timeout or None)
            except BaseException:  # a worker has died, or Ctrl-C: nobody wants to wait
                self._shutdown_workers(patience=0.5)
                raise
            if answer is None:
                self._shutdown_workers(patience=0.5)
                raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")
            epoch, number, data = answer
            if epoch == self._epoch:  # else it was asked for before the loader was begun again
                return number, data

    def _give_out(self, number: int, worker: int, data: Any) -> Any:
        if number == self._next:
            self._next += 1
        self._load[worker] -= 1
        self._hand_out()
        if isinstance(data, ExceptionWrapper):
            data.reraise()
        return data

    def _shutdown_workers(self, **how: float) -> None:
        """End the workers, and with them the iteration."""
        self._broken = True
        self._next = self._sent
        self._pool.end(**how)
