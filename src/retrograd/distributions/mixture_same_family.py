"""Mixtures."""

from __future__ import annotations

from typing import Any

from ..autograd.grad_mode import no_grad
from ..core.size import Size
from ..tensor import Tensor
from . import constraints
from .categorical import Categorical
from .distribution import Distribution

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """One of several distributions of a family, as a Categorical chooses; they are the last dimension of a batch.

    >>> import retrograd as torch
    >>> d = torch.distributions
    >>> d.MixtureSameFamily(d.Categorical(torch.ones(2)), d.Normal(torch.tensor([0., 2.]), 1.)).mean
    tensor(1.)
    """

    arg_constraints: Any = {}
    _batched = ("_component_distribution", "_mixture_distribution")
    _kept = ("_num_component", "_event_ndims")

    def __init__(
        self, mixture_distribution: Categorical, component_distribution: Distribution, validate_args: bool | None = None
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError("The Mixture distribution needs to be an instance of torch.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution needs to be an instance of torch.distributions.Distribution")
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        weights, batch = mixture_distribution.batch_shape, component_distribution.batch_shape[:-1]
        for i, j in zip(reversed(weights), reversed(batch), strict=False):
            if i != 1 and j != 1 and i != j:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({weights}) is not compatible with "
                    f"`component_distribution.batch_shape`({batch})"
                )
        chosen, given = mixture_distribution.param_shape[-1], component_distribution.batch_shape[-1]
        if chosen != given:
            raise ValueError(
                f"`mixture_distribution component` ({chosen}) does not equal `component_distribution.batch_shape[-1]` "
                f"({given})"
            )
        self._num_component = chosen
        self._event_ndims = len(component_distribution.event_shape)
        super().__init__(batch, component_distribution.event_shape, validate_args=validate_args)

    def _expand_into(self, new: Any, batch_shape: Size) -> None:
        new._component_distribution = self._component_distribution.expand(batch_shape + (self._num_component,))
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        for name in self._kept:
            setattr(new, name, getattr(self, name))
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args

    @constraints.dependent_property
    def support(self) -> Any:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Categorical:
        """Which component is chosen."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components, along the last dimension of the batch."""
        return self._component_distribution

    def _average(self, values: Tensor) -> Tensor:
        """The mean over the components."""
        probs = self.mixture_distribution.probs
        probs = probs.reshape(probs.shape + (1,) * self._event_ndims)
        return (probs * values).sum(-1 - self._event_ndims)

    def _pad(self, x: Tensor) -> Tensor:
        return x.unsqueeze(-1 - self._event_ndims)

    @property
    def mean(self) -> Tensor:
        return self._average(self.component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        between = (self.component_distribution.mean - self._pad(self.mean)).pow(2)
        return self._average(self.component_distribution.variance) + self._average(between)

    def cdf(self, value: Tensor) -> Tensor:
        return (self.component_distribution.cdf(self._pad(value)) * self.mixture_distribution.probs).sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        each = self.component_distribution.log_prob(self._pad(self._checked(value)))
        return (each + self.mixture_distribution.logits.log_softmax(-1)).logsumexp(-1)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            chosen = self.mixture_distribution.sample(sample_shape)
            drawn = self.component_distribution.sample(sample_shape)
            dim = len(Size(sample_shape)) + len(self.batch_shape)
            index = chosen.expand(drawn.shape[:dim]).reshape(drawn.shape[:dim] + (1,) * (1 + self._event_ndims))
            return drawn.gather(dim, index.expand(drawn.shape[:dim] + (1,) + self.event_shape)).squeeze(dim)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
