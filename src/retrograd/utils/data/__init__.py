"""``torch.utils.data``: datasets, samplers and the DataLoader.

`dataset.py` and `sampler.py` say what there is and in which order it is asked for; `dataloader.py` puts batches
together, in this process or with the workers of `workers.py`, which are processes that send tensors through shared
memory (`channel.py`) or threads.
"""

from __future__ import annotations

from ._utils.collate import default_collate, default_convert
from ._utils.worker import get_worker_info
from .dataloader import DataLoader, _DatasetKind
from .dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from .distributed import DistributedSampler
from .sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

__all__ = [
    "BatchSampler", "ChainDataset", "ConcatDataset", "DataLoader", "Dataset", "DistributedSampler", "IterableDataset",
    "RandomSampler", "Sampler", "SequentialSampler", "StackDataset", "Subset", "SubsetRandomSampler", "TensorDataset",
    "WeightedRandomSampler", "_DatasetKind", "default_collate", "default_convert", "get_worker_info", "random_split",
]  # fmt: skip
