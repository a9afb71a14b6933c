"""The weights of convolutions laid out in another memory format."""

from __future__ import annotations

from typing import Any, TypeVar

from ..modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d
from ..modules.module import Module

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]

M = TypeVar("M", bound=Module)


def _converted(module: M, kinds: tuple[type, ...], memory_format: Any) -> M:
    for below in module.modules():
        if isinstance(below, kinds):
            weight: Any = below.weight  # type: ignore[attr-defined]
            weight.data = weight.detach().clone(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: M, memory_format: Any) -> M:
    """Lay the weights of all convolutions of images in `module` out in `memory_format`.

    >>> import retrograd as torch
    >>> m = torch.nn.utils.convert_conv2d_weight_memory_format(torch.nn.Conv2d(2, 3, 4), torch.channels_last)
    >>> m.weight.is_contiguous(memory_format=torch.channels_last)
    True
    """
    return _converted(module, (Conv2d, ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module: M, memory_format: Any) -> M:
    """Lay the weights of all convolutions of volumes in `module` out in `memory_format`."""
    return _converted(module, (Conv3d, ConvTranspose3d), memory_format)
