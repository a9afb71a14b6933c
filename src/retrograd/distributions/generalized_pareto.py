"""What exceeds a threshold."""

from __future__ import annotations

import math
from typing import Any

from ..ops import namespace as ops
from ..tensor import Tensor
from . import constraints
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """What exceeds a high threshold: exponential for the concentration 0, with heavier tails above it.

    >>> import retrograd as torch
    >>> torch.distributions.GeneralizedPareto(0., 1., 0.5).mean
    tensor(2.)
    """

    arg_constraints: Any = {
        "loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real,
    }  # fmt: skip
    has_rsample = True
    _batched = ("loc", "scale", "concentration")

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def _exponential(self) -> tuple[Tensor, Tensor]:
        """Where the concentration is 0, and it with something else there."""
        zero = ops.isclose(self.concentration, ops.zeros_like(self.concentration))
        return zero, self.concentration.masked_fill(zero, 1)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.icdf(ops.rand(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value: Tensor) -> Tensor:
        z = (self._checked(value) - self.loc) / self.scale
        zero, c = self._exponential()
        power = 1 / c + ops.ones_like(z)
        usual = ops.where(power == 0, power, power * (c * z).log1p())
        return -self.scale.log() - ops.where(zero, z, usual)

    def log_survival_function(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of more than `value`."""
        z = (self._checked(value) - self.loc) / self.scale
        zero, c = self._exponential()
        return ops.where(zero, -z, -(c * z).log1p() / c)

    def log_cdf(self, value: Tensor) -> Tensor:
        """The logarithm of `cdf`."""
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        return self.log_cdf(value).exp()

    def icdf(self, value: Tensor) -> Tensor:
        zero, c = self._exponential()
        survival = (-value).log1p()
        usual = self.loc + self.scale / c * (-c * survival).expm1()
        return ops.where(zero, self.loc - self.scale * survival, usual)

    @property
    def mean(self) -> Tensor:
        mean = self.loc + self.scale / (1 - self.concentration)
        return mean.masked_fill(self.concentration >= 1, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        c = self.concentration
        return (self.scale**2 / ((1 - c) ** 2 * (1 - 2 * c))).masked_fill(c >= 0.5, math.nan)

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        ends = self.concentration < 0
        upper = ops.where(ends, self.loc - self.scale / self.concentration, math.inf)
        return constraints.interval(self.loc, upper)
