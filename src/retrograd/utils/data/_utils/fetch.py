"""Fetching the samples of a batch from a dataset, in whichever process that is."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any


class _BaseDatasetFetcher:
    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Callable, drop_last: bool) -> None:
        self.dataset = dataset
        self.auto_collation = auto_collation
        self.collate_fn = collate_fn
        self.drop_last = drop_last

    def fetch(self, possibly_batched_index: Any) -> Any:
        """The batch, or the sample, of these indices."""
        raise NotImplementedError


class _IterableDatasetFetcher(_BaseDatasetFetcher):
    """Takes as many samples from a stream as there are indices."""

    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Callable, drop_last: bool) -> None:
        super().__init__(dataset, auto_collation, collate_fn, drop_last)
        self.dataset_iter = iter(dataset)
        self.ended = False

    def fetch(self, possibly_batched_index: Any) -> Any:
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return self.collate_fn(next(self.dataset_iter))
        data = list(itertools.islice(self.dataset_iter, len(possibly_batched_index)))
        if len(data) < len(possibly_batched_index):
            self.ended = True
            if not data or self.drop_last:
                raise StopIteration
        return self.collate_fn(data)


class _MapDatasetFetcher(_BaseDatasetFetcher):
    """Asks for samples by index."""

    def fetch(self, possibly_batched_index: Any) -> Any:
        try:
            return self._fetch(possibly_batched_index)
        except StopIteration as error:
            # It would end the iteration over the loader, as if the samples that are left were not there.
            raise RuntimeError(f"the dataset {type(self.dataset).__name__} raised StopIteration") from error

    def _fetch(self, possibly_batched_index: Any) -> Any:
        if not self.auto_collation:
            return self.collate_fn(self.dataset[possibly_batched_index])
        if callable(getattr(self.dataset, "__getitems__", None)):
            return self.collate_fn(self.dataset.__getitems__(possibly_batched_index))
        return self.collate_fn([self.dataset[index] for index in possibly_batched_index])
