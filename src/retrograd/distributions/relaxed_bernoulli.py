"""Bernoulli's distribution, made smooth."""

from __future__ import annotations

from typing import Any

from ..nn import functional as F
from ..ops import namespace as ops
from ..tensor import Tensor
from . import constraints
from .distribution import Distribution
from .transformed_distribution import TransformedDistribution
from .transforms import SigmoidTransform
from .utils import ProbsOrLogits, broadcast_all, clamp_probs

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(ProbsOrLogits, Distribution):
    """The log-odds of a RelaxedBernoulli.

    >>> import retrograd as torch
    >>> R = torch.distributions.relaxed_bernoulli.LogitRelaxedBernoulli
    >>> R(torch.tensor(1.), logits=torch.zeros(1)).log_prob(torch.zeros(1))
    tensor([-1.3863])
    """

    arg_constraints: Any = {"probs": constraints.unit_interval, "logits": constraints.real}
    support: Any = constraints.real
    has_rsample = True
    _batched = ("probs", "logits", "_param")
    _kept = ("temperature",)

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.temperature = temperature
        self._take(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        noise = clamp_probs(ops.rand(shape, dtype=probs.dtype, device=probs.device))
        odds = noise.log() - (-noise).log1p() + probs.log() - (-probs).log1p()
        return odds / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        logits, value = broadcast_all(self.logits, self._checked(value))
        diff = logits - value * self.temperature
        return self.temperature.log() + diff - 2 * F.softplus(diff)


class RelaxedBernoulli(TransformedDistribution):
    """Numbers between 0 and 1, close to either where the temperature is low, that move with their parameters.

    >>> import retrograd as torch
    >>> d = torch.distributions.RelaxedBernoulli(torch.tensor(1.), probs=torch.tensor([0.5]))
    >>> d.log_prob(torch.tensor([0.5])).exp()
    tensor([1.])
    """

    arg_constraints: Any = {"probs": constraints.unit_interval, "logits": constraints.real}
    support: Any = constraints.unit_interval
    _batched = ()

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)

    @property
    def temperature(self) -> Tensor:
        """How far from 0 and 1."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """Log-odds."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """Probabilities."""
        return self.base_dist.probs
