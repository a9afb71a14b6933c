"""Padding: signals, images and volumes made larger at their sides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...tensor import Tensor
from .. import functional as F
from .module import Module
from .utils import _ntuple

Ints = int | Sequence[int]


class _Pad(Module):
    """A padding: (left, right) of the last dimension, then of the one before it, and so on."""

    #: How many dimensions are padded.
    _dims: int
    _mode: str

    def __init__(self, padding: Ints) -> None:
        super().__init__()
        self.padding: tuple[int, ...] = _ntuple(2 * self._dims)(padding)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPadNd(_Pad):
    _mode = "constant"

    def __init__(self, padding: Ints, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """Signals padded with `value`.

    >>> import retrograd as torch
    >>> torch.nn.ConstantPad1d((1, 2), 5.0)(torch.zeros(1, 1))
    tensor([[5., 0., 5., 5.]])
    """

    _dims = 1


class ConstantPad2d(_ConstantPadNd):
    """Images padded with `value`."""

    _dims = 2


class ConstantPad3d(_ConstantPadNd):
    """Volumes padded with `value`."""

    _dims = 3


class _ZeroPad(_ConstantPadNd):
    def __init__(self, padding: Ints) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad1d(_ZeroPad, ConstantPad1d):
    """Signals padded with zeros."""


class ZeroPad2d(_ZeroPad, ConstantPad2d):
    """Images padded with zeros."""


class ZeroPad3d(_ZeroPad, ConstantPad3d):
    """Volumes padded with zeros."""


class _ReflectionPadNd(_Pad):
    _mode = "reflect"


class ReflectionPad1d(_ReflectionPadNd):
    """Signals padded with what their ends mirror.

    >>> import retrograd as torch
    >>> torch.nn.ReflectionPad1d(2)(torch.tensor([[1., 2., 3.]]))
    tensor([[3., 2., 1., 2., 3., 2., 1.]])
    """

    _dims = 1


class ReflectionPad2d(_ReflectionPadNd):
    """Images padded with what their sides mirror."""

    _dims = 2


class ReflectionPad3d(_ReflectionPadNd):
    """Volumes padded with what their sides mirror."""

    _dims = 3


class _ReplicationPadNd(_Pad):
    _mode = "replicate"


class ReplicationPad1d(_ReplicationPadNd):
    """Signals padded with their ends."""

    _dims = 1


class ReplicationPad2d(_ReplicationPadNd):
    """Images padded with their sides."""

    _dims = 2


class ReplicationPad3d(_ReplicationPadNd):
    """Volumes padded with their sides."""

    _dims = 3


class _CircularPadNd(_Pad):
    _mode = "circular"

    def forward(self, input: Tensor) -> Any:
        if input.dim() not in (self._dims + 1, self._dims + 2):
            raise ValueError(
                f"expected {self._dims + 1}D or {self._dims + 2}D input (got {input.dim()}D input)"
            )
        return super().forward(input)


class CircularPad1d(_CircularPadNd):
    """Signals padded as if they were rings.

    >>> import retrograd as torch
    >>> torch.nn.CircularPad1d(1)(torch.tensor([[1., 2., 3.]]))
    tensor([[3., 1., 2., 3., 1.]])
    """

    _dims = 1


class CircularPad2d(_CircularPadNd):
    """Images padded as if their opposite sides touched."""

    _dims = 2


class CircularPad3d(_CircularPadNd):
    """Volumes padded as if their opposite sides touched."""

    _dims = 3
