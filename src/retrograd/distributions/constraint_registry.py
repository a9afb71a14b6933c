"""``torch.distributions.constraint_registry``: which transform goes from real numbers to a region.

`biject_to` gives one that can be inverted and has a Jacobian; `transform_to` one that is good for optimizers, and may
have more numbers than it needs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..tensor import Tensor
from . import constraints as c
from . import transforms as t

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """Transforms by the type of the region.

    >>> import retrograd as torch
    >>> d = torch.distributions
    >>> d.biject_to(d.constraints.positive)(torch.zeros(1))
    tensor([1.])
    """

    def __init__(self) -> None:
        self._registry: dict[type, Callable[[Any], t.Transform]] = {}
        super().__init__()

    def register(self, constraint: Any, factory: Any = None) -> Any:
        """Say who makes the transform to a type of region; without `factory`, a decorator."""
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        kind = type(constraint) if isinstance(constraint, c.Constraint) else constraint
        if not isinstance(kind, type) or not issubclass(kind, c.Constraint):
            raise TypeError(f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}")
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: c.Constraint) -> t.Transform:
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


biject_to: ConstraintRegistry = ConstraintRegistry()
transform_to: ConstraintRegistry = ConstraintRegistry()


def _to_interval(region: Any) -> t.Transform:
    low: Any = region.lower_bound
    high: Any = region.upper_bound
    if not isinstance(low, Tensor) and not isinstance(high, Tensor) and low == 0 and high == 1:
        return t.SigmoidTransform()
    return t.ComposeTransform([t.SigmoidTransform(), t.AffineTransform(low, high - low)])


def _from_exponential(bound: Any, scale: int) -> t.Transform:
    return t.ComposeTransform([t.ExpTransform(), t.AffineTransform(bound, scale)])


for _registry in (biject_to, transform_to):
    _of: Any = _registry
    _of.register(c.real, lambda region: t.identity_transform)
    _of.register(
        c.independent,
        lambda region, of=_of: t.IndependentTransform(of(region.base_constraint), region.reinterpreted_batch_ndims),
    )
    for _region in (c.greater_than, c.greater_than_eq):
        _of.register(_region, lambda region: _from_exponential(region.lower_bound, 1))
    _of.register(c.less_than, lambda region: _from_exponential(region.upper_bound, -1))
    for _region in (c.interval, c.half_open_interval):  # type: ignore[assignment]
        _of.register(_region, _to_interval)
    _of.register(c.corr_cholesky, lambda region: t.CorrCholeskyTransform())
    _of.register(c.cat, lambda r, of=_of: t.CatTransform([of(part) for part in r.cseq], r.dim, r.lengths))
    _of.register(c.stack, lambda r, of=_of: t.StackTransform([of(part) for part in r.cseq], r.dim))

biject_to.register(c.simplex, lambda region: t.StickBreakingTransform())
transform_to.register(c.simplex, lambda region: t.SoftmaxTransform())
transform_to.register(c.lower_cholesky, lambda region: t.LowerCholeskyTransform())
for _region in (c.positive_definite, c.positive_semidefinite):  # type: ignore[assignment]
    transform_to.register(_region, lambda region: t.PositiveDefiniteTransform())
