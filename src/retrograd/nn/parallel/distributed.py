"""DistributedDataParallel: a module trained by several processes, of which there are none here."""

from __future__ import annotations

from typing import Any

from ... import distributed
from ..modules.module import Module


class DistributedDataParallel(Module):
    """Refused when it is made: there is no group of processes (``torch.distributed.is_available()``)."""

    def __init__(self, module: Module, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        distributed.init_process_group()  # which says why not
