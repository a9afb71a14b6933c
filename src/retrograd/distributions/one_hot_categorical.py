"""One of several, as a vector with one 1."""

from __future__ import annotations

from typing import Any

from ..nn import functional as F
from ..ops import namespace as ops
from ..tensor import Tensor
from . import constraints
from .categorical import Categorical
from .distribution import Distribution

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(Distribution):
    """A vector with a 1 at the index that a Categorical draws.

    >>> import retrograd as torch
    >>> torch.distributions.OneHotCategorical(torch.tensor([0., 1.])).sample()
    tensor([0., 1.])
    """

    arg_constraints: Any = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support: Any = constraints.one_hot
    has_enumerate_support = True
    _batched = ("_categorical",)

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits, validate_args=validate_args)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    @property
    def _param(self) -> Tensor:
        return self._categorical._param

    @property
    def probs(self) -> Tensor:
        """Probabilities."""
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        """Logarithms of probabilities."""
        return self._categorical.logits

    @property
    def param_shape(self) -> Any:
        """The shape of `probs` and `logits`."""
        return self._categorical.param_shape

    @property
    def mean(self) -> Tensor:
        return self.probs

    def _hot(self, index: Tensor) -> Tensor:
        return F.one_hot(index, self._categorical._num_events).to(self.probs.dtype)

    @property
    def mode(self) -> Tensor:
        return self._hot(self._categorical.mode)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self._hot(self._categorical.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        return self._categorical.log_prob(self._checked(value).argmax(-1))

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self.event_shape[0]
        eye = ops.eye(n, dtype=self._param.dtype, device=self._param.device)
        values = eye.view((n, *(1,) * len(self.batch_shape), n))
        return values.expand((n, *self.batch_shape, n)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """OneHotCategorical whose draws pass gradients to the probabilities, as if they were those.

    >>> import retrograd as torch
    >>> torch.distributions.OneHotCategoricalStraightThrough(torch.tensor([0., 1.])).rsample()
    tensor([0., 1.])
    """

    has_rsample = True
    _batched = ("_categorical",)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
