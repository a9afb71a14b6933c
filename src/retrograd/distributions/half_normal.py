"""The absolute value of a centred normal number."""

from __future__ import annotations

import math
from typing import Any

from ..ops import namespace as ops
from ..tensor import Tensor
from . import constraints
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import AbsTransform

__all__ = ["HalfNormal"]


#: The mean of the absolute value of a standard normal number.
_MEAN = math.sqrt(2 / math.pi)


class HalfNormal(TransformedDistribution):
    """The absolute value of a centred normal number.

    >>> import retrograd as torch
    >>> torch.distributions.HalfNormal(1.).icdf(torch.tensor(0.5))
    tensor(0.6745)
    """

    arg_constraints: Any = {"scale": constraints.positive}
    support: Any = constraints.nonnegative
    _batched = ()

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> Tensor:
        """The scale of what the absolute value is taken of."""
        return self.base_dist.scale

    @property
    def mode(self) -> Tensor:
        return ops.zeros_like(self.scale)

    @property
    def mean(self) -> Tensor:
        return _MEAN * self.scale

    @property
    def variance(self) -> Tensor:
        # The second moment is that of the normal number itself.
        return self.scale.square() * (1 - _MEAN * _MEAN)

    def log_prob(self, value: Any) -> Tensor:
        value = ops.as_tensor(self._checked(value), dtype=self.scale.dtype)
        return ops.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        return 2 * self.base_dist.cdf(self._checked(value)) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)
