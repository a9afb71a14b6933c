"""``torch.multiprocessing``: Python's own multiprocessing, under torch's name.

Tensors are pickled on their way through queues and pipes.  Those that `Tensor.share_memory_` has moved are shared with
processes that are forked after that; a DataLoader's workers send theirs through shared memory by themselves.

>>> import retrograd as torch
>>> torch.multiprocessing.get_context("spawn").get_start_method()
'spawn'
"""

from __future__ import annotations

import multiprocessing as _multiprocessing
from multiprocessing import *  # noqa: F403

__all__ = list(_multiprocessing.__all__)  # type: ignore[attr-defined]
