"""Waiting times."""

from __future__ import annotations

from typing import Any

from ..ops import namespace as ops
from ..tensor import Tensor
from . import constraints
from .exp_family import ExponentialFamily
from .utils import broadcast_all

__all__ = ["Exponential"]


class Exponential(ExponentialFamily):
    """The time until something happens that happens `rate` times in a unit of time.

    >>> import retrograd as torch
    >>> torch.distributions.Exponential(4.).mean
    tensor(0.2500)
    """

    arg_constraints: Any = {"rate": constraints.positive}
    support: Any = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure: Any = 0
    _batched = ("rate",)

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mode(self) -> Tensor:
        return ops.zeros_like(self.rate)

    @property
    def mean(self) -> Tensor:
        return 1 / self.rate

    #: One number says where it lies and how wide it is.
    stddev = mean

    @property
    def variance(self) -> Tensor:
        return self.mean.square()

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.rate.new_empty(self._extended_shape(sample_shape)).exponential_() / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        return self.rate.log() - self.rate * self._checked(value)

    def cdf(self, value: Tensor) -> Tensor:
        return -(-self.rate * self._checked(value)).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        return -(-value).log1p() / self.rate

    def entropy(self) -> Tensor:
        return 1 - self.rate.log()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (-self.rate,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        return -(-natural_params[0]).log()
