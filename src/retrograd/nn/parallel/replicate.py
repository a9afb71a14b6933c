"""``torch.nn.parallel.replicate``: a module on several devices."""

from __future__ import annotations

from typing import Any

from ...core.devices import as_device
from ..modules.module import Module

__all__ = ["replicate"]


def replicate(network: Module, devices: Any, detach: bool = False) -> list[Module]:
    """The module on each of `devices`: on the one that there is, itself."""
    for where in devices:
        as_device(where)
    return [network for _ in devices]
