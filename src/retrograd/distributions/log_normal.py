"""The exponential of a normal number."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor
from . import constraints
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform

__all__ = ["LogNormal"]


class LogNormal(TransformedDistribution):
    """The exponential of a normal number.

    >>> import retrograd as torch
    >>> torch.distributions.LogNormal(0., 1.).mean
    tensor(1.6487)
    """

    arg_constraints: Any = {"loc": constraints.real, "scale": constraints.positive}
    support: Any = constraints.positive
    _batched = ()

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    @property
    def loc(self) -> Tensor:
        """The mean of the logarithm."""
        return self.base_dist.loc

    @property
    def scale(self) -> Tensor:
        """The standard deviation of the logarithm."""
        return self.base_dist.scale

    def _shifted(self, by: float) -> Tensor:
        """The exponential of the mean of the logarithm, moved by so many variances."""
        return (self.loc + by * self.scale * self.scale).exp()

    @property
    def mode(self) -> Tensor:
        return self._shifted(-1)

    @property
    def mean(self) -> Tensor:
        return self._shifted(0.5)

    @property
    def variance(self) -> Tensor:
        # E[x**2] - E[x]**2 without the difference of two large numbers.
        return self.mean.square() * (self.scale * self.scale).expm1()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc
