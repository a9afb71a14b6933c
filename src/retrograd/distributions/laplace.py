"""Laplace's distribution."""

from __future__ import annotations

import math
from typing import Any

from ..core.type_info import finfo
from ..ops import namespace as ops
from ..tensor import Tensor
from . import constraints
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["Laplace"]


class Laplace(Distribution):
    """Exponential on both sides of `loc`.

    >>> import retrograd as torch
    >>> torch.distributions.Laplace(0., 1.).variance
    tensor(2.)
    """

    arg_constraints: Any = {"loc": constraints.real, "scale": constraints.positive}
    support: Any = constraints.real
    has_rsample = True
    _batched = ("loc", "scale")

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return math.sqrt(2) * self.scale

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale.pow(2)

    def _at(self, side: Tensor) -> Tensor:
        """The number that `side`, between -1 and 1, is the place of."""
        return self.loc - self.scale * side.sign() * (-side.abs()).log1p()

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        side = ops.empty(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device)
        return self._at(side.uniform_(finfo(side.dtype).eps - 1, 1))

    def log_prob(self, value: Tensor) -> Tensor:
        return -(2 * self.scale).log() - (self._checked(value) - self.loc).abs() / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        away = self._checked(value) - self.loc
        return 0.5 - 0.5 * away.sign() * (-away.abs() / self.scale).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        return self._at(2 * value - 1)

    def entropy(self) -> Tensor:
        return 1 + (2 * self.scale).log()
