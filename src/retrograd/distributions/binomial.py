"""How many of so many trials succeed."""

from __future__ import annotations

from typing import Any

from ..autograd.grad_mode import no_grad
from ..ops import namespace as ops
from ..tensor import Tensor
from . import constraints
from .distribution import Distribution
from .utils import ProbsOrLogits

__all__ = ["Binomial"]


class Binomial(ProbsOrLogits, Distribution):
    """How many of `total_count` trials succeed, each with the probability `probs`.

    >>> import retrograd as torch
    >>> torch.distributions.Binomial(10, torch.tensor(0.5)).mean
    tensor(5.)
    """

    arg_constraints: Any = {
        "total_count": constraints.nonnegative_integer, "probs": constraints.unit_interval, "logits": constraints.real,
    }  # fmt: skip
    has_enumerate_support = True
    _batched = ("total_count", "probs", "logits", "_param")

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        (self.total_count,) = self._take(probs, logits, total_count)
        super().__init__(self._param.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ops.minimum(((self.total_count + 1) * self.probs).floor(), self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return ops.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        n, k = self.total_count, self._checked(value)
        ways = (n + 1).lgamma() - (k + 1).lgamma() - (n - k + 1).lgamma()
        # log(1 + exp(logits)) so that the slope at 0 is a half
        above = (self.logits.clamp(min=0) + self.logits - self.logits.clamp(max=0)) / 2
        return ways + k * self.logits - n * (above + (-self.logits.abs()).exp().log1p())

    def _one_count(self, method: str) -> int:
        count = int(self.total_count.max())
        if self.total_count.min() != count:
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{method}`.")
        return count

    def entropy(self) -> Tensor:
        self._one_count("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        count = self._one_count("enumerate_support")
        return self._along_first(ops.arange(1 + count, dtype=self._param.dtype, device=self._param.device), expand)
