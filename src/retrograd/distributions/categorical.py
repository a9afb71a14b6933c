"""One of several."""

from __future__ import annotations

import math
from typing import Any

from ..autograd.grad_mode import no_grad
from ..core.size import Size
from ..core.type_info import finfo
from ..ops import namespace as ops
from ..tensor import Tensor
from . import constraints
from .distribution import Distribution
from .utils import ProbsOrLogits, one_of

__all__ = ["Categorical"]


class Categorical(ProbsOrLogits, Distribution):
    """An index, as likely as the weights `probs` (or logarithms of weights, `logits`) along the last dimension say.

    >>> import retrograd as torch
    >>> torch.distributions.Categorical(torch.tensor([1., 3.])).probs
    tensor([0.2500, 0.7500])
    """

    arg_constraints: Any = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _is_binary = False
    _batched = ("probs", "logits", "_param")
    _kept = ("_num_events",)

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        name, given = one_of(probs, logits)
        if given.dim() < 1:
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        if logits is None:
            self._param = self.probs = given / given.sum(-1, keepdim=True)
        else:
            self._param = self.logits = given - given.logsumexp(-1, keepdim=True)
        self._num_events = self._param.shape[-1]
        super().__init__(self._param.shape[:-1], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Tensor:
        return ops.full(self._extended_shape(), math.nan, dtype=self._param.dtype, device=self._param.device)

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(-1)

    @property
    def variance(self) -> Tensor:
        return self.mean

    def sample(self, sample_shape: Any = ()) -> Tensor:
        sample_shape = Size(sample_shape)
        with no_grad():
            rows = self.probs.reshape(-1, self._num_events)
            drawn = ops.multinomial(rows, sample_shape.numel(), True)
            return drawn.T.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        index, logits = ops.broadcast_tensors(self._checked(value).long().unsqueeze(-1), self.logits)
        return logits.gather(-1, index[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        finite = self.logits.clamp(min=finfo(self.logits.dtype).min)
        return -(finite * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._along_first(ops.arange(self._num_events, device=self._param.device), expand)
