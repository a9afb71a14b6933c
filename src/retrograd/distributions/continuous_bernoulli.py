"""The continuous relative of Bernoulli's distribution."""

from __future__ import annotations

import math
from typing import Any

from ..nn import functional as F
from ..ops import namespace as ops
from ..tensor import Tensor
from . import constraints
from .exp_family import ExponentialFamily
from .utils import ProbsOrLogits, broadcast_all, clamp_probs, lazy_property, logits_to_probs

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(ProbsOrLogits, ExponentialFamily):
    """Numbers between 0 and 1 with a density proportional to ``probs**x * (1 - probs)**(1 - x)``.

    Around one half, between `lims`, formulas are 0 / 0 and their power series stand in for them.

    >>> import retrograd as torch
    >>> torch.distributions.ContinuousBernoulli(torch.tensor(0.5)).mean
    tensor(0.5000)
    """

    arg_constraints: Any = {"probs": constraints.unit_interval, "logits": constraints.real}
    support: Any = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure: Any = 0
    _batched = ("probs", "logits", "_param")
    _kept = ("_lims",)

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        self._take(probs, logits)
        if probs is not None:
            if validate_args and not constraints.unit_interval.check(self.probs).all():
                raise ValueError(f"The parameter probs has invalid values: {self.probs}")
            self.probs = self._param = clamp_probs(self.probs)
        self._lims = lims
        super().__init__(self._param.shape, validate_args=validate_args)

    @lazy_property
    def probs(self) -> Any:
        """The parameter; it is not the mean."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _usual(self) -> Tensor:
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _usual_probs(self) -> Tensor:
        return ops.where(self._usual(), self.probs, self._lims[0])

    def _log_norm(self) -> Tensor:
        p = self._usual_probs()
        odds = (-p).log1p() - p.log()
        x = (self.probs - 0.5).pow(2)
        series = math.log(2) + (4 / 3 + 104 / 45 * x) * x
        return ops.where(self._usual(), odds.abs().log() - (1 - 2 * p).abs().log(), series)

    @property
    def mean(self) -> Tensor:
        p, x = self._usual_probs(), self.probs - 0.5
        usual = p / (2 * p - 1) + 1 / ((-p).log1p() - p.log())
        return ops.where(self._usual(), usual, 0.5 + (1 / 3 + 16 / 45 * x.pow(2)) * x)

    @property
    def variance(self) -> Tensor:
        p, x = self._usual_probs(), (self.probs - 0.5).pow(2)
        usual = p * (p - 1) / (1 - 2 * p).pow(2) + 1 / ((-p).log1p() - p.log()).pow(2)
        return ops.where(self._usual(), usual, 1 / 12 - (1 / 15 - 128 / 945 * x) * x)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.icdf(ops.rand(self._extended_shape(sample_shape), dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: Tensor) -> Tensor:
        logits, value = broadcast_all(self.logits, self._checked(value))
        return self._log_norm() - F.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def cdf(self, value: Tensor) -> Tensor:
        value, p = self._checked(value), self._usual_probs()
        usual = (p.pow(value) * (1 - p).pow(1 - value) + p - 1) / (2 * p - 1)
        inside = ops.where(self._usual(), usual, value)
        return ops.where(value <= 0, ops.zeros_like(value), ops.where(value >= 1, ops.ones_like(value), inside))

    def icdf(self, value: Tensor) -> Tensor:
        p = self._usual_probs()
        usual = ((value * (2 * p - 1) - p).log1p() - (-p).log1p()) / (p.log() - (-p).log1p())
        return ops.where(self._usual(), usual, value)

    def entropy(self) -> Tensor:
        off, on = (-self.probs).log1p(), self.probs.log()
        return self.mean * (off - on) - self._log_norm() - off

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        (x,) = natural_params
        usual = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        away = ops.where(usual, x, self._lims[0] - 0.5)
        series = 0.5 * x + x.pow(2) / 24 - x.pow(4) / 2880
        return ops.where(usual, away.expm1().abs().log() - away.abs().log(), series)
