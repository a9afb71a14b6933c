"""Dropout: modules that zero some elements, or whole channels, while they are being trained."""

from __future__ import annotations

from collections.abc import Callable

from ...tensor import Tensor
from .. import functional as F
from .module import Module


class _DropoutNd(Module):
    _function: Callable[..., Tensor]

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return type(self)._function(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """In training, zeroes elements with probability `p` and divides the others by ``1 - p``; else gives its input.

    >>> import retrograd as torch
    >>> torch.nn.Dropout(0.5).eval()(torch.ones(2))
    tensor([1., 1.])
    """

    _function = staticmethod(F.dropout)


class Dropout1d(_DropoutNd):
    """`Dropout` of whole channels of signals."""

    _function = staticmethod(F.dropout1d)


class Dropout2d(_DropoutNd):
    """`Dropout` of whole channels of images."""

    _function = staticmethod(F.dropout2d)


class Dropout3d(_DropoutNd):
    """`Dropout` of whole channels of volumes."""

    _function = staticmethod(F.dropout3d)


class AlphaDropout(_DropoutNd):
    """`Dropout` that keeps mean and variance of what `SELU` gives."""

    _function = staticmethod(F.alpha_dropout)


class FeatureAlphaDropout(_DropoutNd):
    """`AlphaDropout` of whole channels."""

    _function = staticmethod(F.feature_alpha_dropout)
