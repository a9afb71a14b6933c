"""The absolute value of a centred Cauchy number."""

from __future__ import annotations

import math
from typing import Any

from ..ops import namespace as ops
from ..tensor import Tensor
from . import constraints
from .cauchy import Cauchy
from .transformed_distribution import TransformedDistribution
from .transforms import AbsTransform

__all__ = ["HalfCauchy"]


class HalfCauchy(TransformedDistribution):
    """The absolute value of a centred Cauchy number.

    >>> import retrograd as torch
    >>> torch.distributions.HalfCauchy(1.).icdf(torch.tensor(0.5))
    tensor(1.)
    """

    arg_constraints: Any = {"scale": constraints.positive}
    support: Any = constraints.nonnegative
    _batched = ()

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Cauchy(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> Tensor:
        """The scale of what the absolute value is taken of."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        return ops.full(self._extended_shape(), math.inf, dtype=self.scale.dtype, device=self.scale.device)

    @property
    def mode(self) -> Tensor:
        return ops.zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def log_prob(self, value: Any) -> Tensor:
        value = ops.as_tensor(self._checked(value), dtype=self.scale.dtype)
        return ops.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        return 2 * self.base_dist.cdf(self._checked(value)) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)
