"""A distribution seen through transforms."""

from __future__ import annotations

from typing import Any

from ..autograd.grad_mode import no_grad
from ..core.size import Size
from ..tensor import Tensor
from . import constraints
from .distribution import Distribution
from .independent import Independent
from .transforms import ComposeTransform, Transform
from .utils import sum_rightmost

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """``y = f(x)`` where `x` is drawn from `base_distribution` and f is one transform after the other.

    >>> import retrograd as torch
    >>> d = torch.distributions
    >>> logistic = d.TransformedDistribution(d.Uniform(0., 1.), [d.SigmoidTransform().inv])
    >>> logistic.log_prob(torch.zeros(1))
    tensor([-1.3863])
    """

    arg_constraints: Any = {}
    _batched: tuple[str, ...] = ()

    def __init__(self, base_distribution: Distribution, transforms: Any, validate_args: bool | None = None) -> None:
        if isinstance(transforms, Transform):
            transforms = [transforms]
        elif not isinstance(transforms, list):
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        if not all(isinstance(t, Transform) for t in transforms):
            raise ValueError("transforms must be a Transform or a list of Transforms")
        self.transforms = transforms
        whole = ComposeTransform(transforms)
        taken, given = whole.domain.event_dim, whole.codomain.event_dim
        shape = base_distribution.batch_shape + base_distribution.event_shape
        if len(shape) < taken:
            raise ValueError(f"base_distribution needs to have shape with size at least {taken}, but got {shape}.")
        own = len(base_distribution.event_shape)
        result = whole.forward_shape(shape)
        needed = whole.inverse_shape(result)
        if needed != shape:
            base_distribution = base_distribution.expand(needed[: len(needed) - own])
        if taken > own:
            base_distribution = Independent(base_distribution, taken - own)
        self.base_dist: Any = base_distribution
        cut = len(result) - max(given, own + given - taken)
        super().__init__(result[:cut], result[cut:], validate_args=validate_args)

    def _expand_into(self, new: Any, batch_shape: Size) -> None:
        shape = batch_shape + self.event_shape
        for transform in reversed(self.transforms):
            shape = transform.inverse_shape(shape)
        new.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        new.transforms = self.transforms
        super()._expand_into(new, batch_shape)

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        last = self.transforms[-1].codomain
        more = len(self.event_shape) - last.event_dim
        return constraints.independent(last, more) if more > 0 else last

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    def _through(self, x: Tensor) -> Tensor:
        for transform in self.transforms:
            x = transform(x)
        return x

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return self._through(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._through(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        y = self._checked(value)
        dims = len(self.event_shape)
        total: Any = 0.0
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            taken = transform.domain.event_dim
            dims += taken - transform.codomain.event_dim
            total = total - sum_rightmost(transform.log_abs_det_jacobian(x, y), dims - taken)
            y = x
        return total + sum_rightmost(self.base_dist.log_prob(y), dims - len(self.base_dist.event_shape))

    def _turned(self, value: Tensor) -> Tensor:
        """The probability of the other side, where the transforms decrease."""
        sign: Any = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._turned(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        return self._through(self.base_dist.icdf(self._turned(value)))
