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


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence[Any] | None = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """`module` run on parts of the batch, as `DataParallel` does it."""
    inputs = inputs if isinstance(inputs, tuple) else (inputs,) if inputs is not None else ()
    return DataParallel(module, device_ids, output_device, dim)(*inputs, **(module_kwargs or {}))
