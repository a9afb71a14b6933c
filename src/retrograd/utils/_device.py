"""``torch.utils._device``: functions that make their tensors on a device.

>>> import retrograd as torch
>>> from retrograd.utils._device import set_device
>>> @set_device("meta")
... def f():
...     return torch.empty(2)
>>> f().device
device(type='meta')
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..autograd.grad_mode import _Mode
from ..core.devices import as_device

__all__ = ["DeviceContext", "set_device"]


class DeviceContext(_Mode):
    """New tensors are made on a device: ``with torch.device(...)``, and also a decorator."""

    def __init__(self, device: Any) -> None:
        self.device: Any = as_device(device)

    def clone(self) -> DeviceContext:
        return DeviceContext(self.device)

    def __enter__(self) -> Any:
        return self.device.__enter__()

    def __exit__(self, *exc_info: object) -> Any:
        return self.device.__exit__(*exc_info)


def set_device(device: Any) -> Callable[..., Any]:
    """A decorator: what a function makes, a generator too, is made on the device."""
    return DeviceContext(device)
