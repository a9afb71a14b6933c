"""Failures before the first success."""

from __future__ import annotations

from typing import Any

from ..autograd.grad_mode import no_grad
from ..core.type_info import finfo
from ..nn import functional as F
from ..ops import namespace as ops
from ..tensor import Tensor
from . import constraints
from .distribution import Distribution
from .utils import ProbsOrLogits, broadcast_all

__all__ = ["Geometric"]


class Geometric(ProbsOrLogits, Distribution):
    """How many trials fail before the first that succeeds.

    >>> import retrograd as torch
    >>> torch.distributions.Geometric(torch.tensor(0.25)).mean
    tensor(3.)
    """

    arg_constraints: Any = {"probs": constraints.unit_interval, "logits": constraints.real}
    support: Any = constraints.nonnegative_integer
    _batched = ("probs", "logits", "_param")

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._take(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)
        if self._validate_args and probs is not None:
            wrong = self.probs <= 0
            if wrong.any():
                raise ValueError(
                    f"Expected parameter probs ({type(self.probs).__name__} of shape {tuple(self.probs.shape)}) of "
                    f"distribution {self!r} to be positive but found invalid values:\n{self.probs.detach()[wrong]}"
                )

    @property
    def mean(self) -> Tensor:
        return 1 / self.probs - 1

    @property
    def mode(self) -> Tensor:
        return ops.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1 / self.probs - 1) / self.probs

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            u = ops.empty(self._extended_shape(sample_shape), dtype=self.probs.dtype, device=self.probs.device)
            u.uniform_(finfo(u.dtype).tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        value, probs = broadcast_all(self._checked(value), self.probs)
        failures = probs.masked_fill((probs == 1) & (value == 0), 0)  # no failure, where none is possible
        return value * (-failures).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs
