"""DataParallel: a module whose batch is shared out among devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.devices import as_device
from ..modules.module import Module


class DataParallel(Module):
    """Runs `module` on parts of the batch, one for each of `device_ids`; without accelerators it just runs it.

    >>> import retrograd as torch
    >>> torch.nn.DataParallel(torch.nn.Identity())(torch.ones(1))
    tensor([1.])
    """

    def __init__(
        self, module: Module, device_ids: Sequence[Any] | None = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__()
        for where in device_ids or ():
            as_device(f"cuda:{where}" if isinstance(where, int) else where)
        self.module = module
        self.device_ids: list[Any] = []
        self.output_device = output_device
        self.dim = dim

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)
