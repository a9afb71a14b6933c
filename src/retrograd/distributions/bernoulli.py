"""1 with a probability, else 0."""

from __future__ import annotations

import math
from typing import Any

from ..autograd.grad_mode import no_grad
from ..nn import functional as F
from ..ops import namespace as ops
from ..tensor import Tensor
from . import constraints
from .exp_family import ExponentialFamily
from .utils import ProbsOrLogits, broadcast_all

__all__ = ["Bernoulli"]


class Bernoulli(ProbsOrLogits, ExponentialFamily):
    """1 with the probability `probs`, or the log-odds `logits`; else 0.

    >>> import retrograd as torch
    >>> torch.distributions.Bernoulli(torch.tensor([0.25])).log_prob(torch.ones(1)).exp()
    tensor([0.2500])
    """

    arg_constraints: Any = {"probs": constraints.unit_interval, "logits": constraints.real}
    support: Any = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure: Any = 0
    _batched = ("probs", "logits", "_param")

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._take(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return (self.probs >= 0.5).to(self.probs.dtype).masked_fill(self.probs == 0.5, math.nan)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return ops.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        logits, value = broadcast_all(self.logits, self._checked(value))
        return -F.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._along_first(ops.arange(2, dtype=self._param.dtype, device=self._param.device), expand)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.probs.logit(),)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        return natural_params[0].exp().log1p()
