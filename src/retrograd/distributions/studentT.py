"""Student's distribution."""

from __future__ import annotations

import math
from typing import Any

from ..tensor import Tensor
from . import constraints
from .chi2 import Chi2
from .distribution import Distribution
from .utils import broadcast_all, standard_normal

__all__ = ["StudentT"]


class StudentT(Distribution):
    """A normal number over the root of an independent mean of `df` squares, scaled and moved.

    >>> import retrograd as torch
    >>> torch.distributions.StudentT(4.).variance
    tensor(2.)
    """

    arg_constraints: Any = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support: Any = constraints.real
    has_rsample = True
    _batched = ("df", "loc", "scale", "_chi2")

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df, validate_args=validate_args)
        super().__init__(self.df.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc.masked_fill(self.df <= 1, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        variance = self.scale.pow(2) * self.df / (self.df - 2)
        return variance.masked_fill(self.df <= 2, math.inf).masked_fill(self.df <= 1, math.nan)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        normal = standard_normal(self._extended_shape(sample_shape), self.df)
        squares = self._chi2.rsample(sample_shape)
        return self.loc + self.scale * normal * (squares / self.df).rsqrt()

    def _log_norm(self) -> Tensor:
        """Of the standard distribution, but for its degrees of freedom's root."""
        return (self.df / 2).lgamma() + 0.5 * math.log(math.pi) - ((self.df + 1) / 2).lgamma() + 0.5 * self.df.log()

    def log_prob(self, value: Tensor) -> Tensor:
        z = (self._checked(value) - self.loc) / self.scale
        return -0.5 * (self.df + 1) * (z**2 / self.df).log1p() - self.scale.log() - self._log_norm()

    def entropy(self) -> Tensor:
        half = (self.df + 1) / 2
        return self.scale.log() + half * (half.digamma() - (self.df / 2).digamma()) + self._log_norm()
