"""One of several, made smooth."""

from __future__ import annotations

import math
from typing import Any

from ..ops import namespace as ops
from ..tensor import Tensor
from . import constraints
from .categorical import Categorical
from .distribution import Distribution
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform
from .utils import broadcast_all, clamp_probs

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(Distribution):
    """The logarithm of a RelaxedOneHotCategorical.

    >>> import retrograd as torch
    >>> E = torch.distributions.relaxed_categorical.ExpRelaxedCategorical
    >>> E(torch.tensor(1.), torch.ones(3)).event_shape
    torch.Size([3])
    """

    arg_constraints: Any = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support: Any = constraints.real_vector
    has_rsample = True
    _batched = ("_categorical",)
    _kept = ("temperature",)

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._categorical = Categorical(probs, logits, validate_args=validate_args)
        self.temperature = temperature
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    @property
    def param_shape(self) -> Any:
        """The shape of `probs` and `logits`."""
        return self._categorical.param_shape

    @property
    def logits(self) -> Tensor:
        """Logarithms of probabilities."""
        return self._categorical.logits

    @property
    def probs(self) -> Tensor:
        """Probabilities."""
        return self._categorical.probs

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        like = self.logits
        noise = clamp_probs(ops.rand(self._extended_shape(sample_shape), dtype=like.dtype, device=like.device))
        scores = (self.logits - (-noise.log()).log()) / self.temperature
        return scores - scores.logsumexp(-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        n = self._categorical._num_events
        logits, value = broadcast_all(self.logits, self._checked(value))
        score = logits - value * self.temperature
        score = (score - score.logsumexp(-1, keepdim=True)).sum(-1)
        return score + (math.lgamma(n) + (n - 1) * self.temperature.log())


class RelaxedOneHotCategorical(TransformedDistribution):
    """Points of the simplex, close to its corners where the temperature is low, that move with their parameters.

    >>> import retrograd as torch
    >>> torch.distributions.RelaxedOneHotCategorical(torch.tensor(1.), torch.ones(3)).event_shape
    torch.Size([3])
    """

    arg_constraints: Any = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support: Any = constraints.simplex
    _batched = ()

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    @property
    def temperature(self) -> Tensor:
        """How far from the corners."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """Logarithms of probabilities."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """Probabilities."""
        return self.base_dist.probs
