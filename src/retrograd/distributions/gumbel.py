"""The largest of many."""

from __future__ import annotations

import math
from typing import Any

from ..core.type_info import finfo
from ..ops import namespace as ops
from ..tensor import Tensor
from . import constraints
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform
from .uniform import Uniform
from .utils import broadcast_all, euler_constant

__all__ = ["Gumbel"]


class Gumbel(TransformedDistribution):
    """What the largest of many numbers is distributed like.

    >>> import retrograd as torch
    >>> torch.distributions.Gumbel(0., 1.).mean
    tensor(0.5772)
    """

    arg_constraints: Any = {"loc": constraints.real, "scale": constraints.positive}
    support: Any = constraints.real
    _batched = ("loc", "scale")

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        info = finfo(self.loc.dtype)
        base = Uniform(
            ops.full_like(self.loc, info.tiny), ops.full_like(self.loc, 1 - info.eps), validate_args=validate_args
        )
        minus = AffineTransform(0, -ops.ones_like(self.scale))
        logs = [ExpTransform().inv, minus, ExpTransform().inv]
        super().__init__(base, [*logs, AffineTransform(self.loc, -self.scale)], validate_args=validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        z = (self.loc - self._checked(value)) / self.scale
        return z - z.exp() - self.scale.log()

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * euler_constant

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return math.pi / math.sqrt(6) * self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev.pow(2)

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + euler_constant)
