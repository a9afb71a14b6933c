"""``torch.distributions.constraints``: regions that parameters and values lie in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import linalg
from ..core import dtypes
from ..core.type_info import finfo
from ..ops import namespace as ops
from ..tensor import Tensor

__all__ = [
    "Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property",
    "greater_than", "greater_than_eq", "half_open_interval", "independent", "integer_interval", "interval",
    "is_dependent", "less_than", "lower_cholesky", "lower_triangular", "multinomial", "nonnegative",
    "nonnegative_integer", "one_hot", "positive", "positive_definite", "positive_integer", "positive_semidefinite",
    "real", "real_vector", "simplex", "square", "stack", "symmetric", "unit_interval",
]  # fmt: skip


class Constraint:
    """A region. `event_dim` dimensions at the right make one point of it."""

    is_discrete: Any = False
    event_dim: Any = 0
    #: The attributes that `repr` shows.
    _shown: tuple[str, ...] = ()

    def check(self, value: Tensor) -> Tensor:
        """Which points lie in the region."""
        raise NotImplementedError

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)}" for name in self._shown)
        return f"{type(self).__name__.removeprefix('_')}({shown})"


def _every(answers: Tensor, dims: int) -> Tensor:
    """Whether all of the last `dims` dimensions are True."""
    return answers.reshape((*answers.shape[: answers.dim() - dims], -1)).all(-1)


class _Dependent(Constraint):
    """A region that depends on other variables, so that nothing can be checked by it."""

    def __init__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> None:
        self._is_discrete = is_discrete
        self._event_dim = event_dim

    def _known(self, name: str) -> Any:
        found = getattr(self, "_" + name)
        if found is NotImplemented:
            raise NotImplementedError(f".{name} cannot be determined statically")
        return found

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return self._known("is_discrete")

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return self._known("event_dim")

    def __call__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> _Dependent:
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, value: Tensor) -> Tensor:
        raise ValueError("Cannot determine validity of dependent constraint")


def is_dependent(constraint: Any) -> bool:
    """Whether a region depends on other variables.

    >>> from retrograd.distributions import constraints
    >>> constraints.is_dependent(constraints.real), constraints.is_dependent(constraints.dependent)
    (False, True)
    """
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property of an object; on its class it stands for a region that is not known there."""

    def __init__(
        self,
        fn: Callable[..., Any] | None = None,
        *,
        is_discrete: Any = NotImplemented,
        event_dim: Any = NotImplemented,
    ) -> None:
        property.__init__(self, fn)
        _Dependent.__init__(self, is_discrete=is_discrete, event_dim=event_dim)

    def __call__(self, fn: Callable[..., Any]) -> _DependentProperty:  # type: ignore[override]
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


def _must_be_constraint(name: str, value: Any) -> None:
    if not isinstance(value, Constraint):
        raise AssertionError(f"{name} must be a Constraint, got {type(value).__name__}")


class _IndependentConstraint(Constraint):
    """Another region, with more dimensions to one point."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        _must_be_constraint("base_constraint", base_constraint)
        if not isinstance(reinterpreted_batch_ndims, int):
            raise AssertionError(
                f"reinterpreted_batch_ndims must be an int, got {type(reinterpreted_batch_ndims).__name__}"
            )
        if reinterpreted_batch_ndims < 0:
            raise AssertionError(f"reinterpreted_batch_ndims must be >= 0, got {reinterpreted_batch_ndims}")
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        answers = self.base_constraint.check(value)
        if answers.dim() < self.reinterpreted_batch_ndims:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        return _every(answers, self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """What lies in the region of every component of a mixture.

    >>> import retrograd as torch
    >>> C = torch.distributions.constraints
    >>> C.MixtureSameFamilyConstraint(C.positive).check(torch.tensor([1., -1.]))
    tensor([ True, False])
    """

    def __init__(self, base_constraint: Constraint) -> None:
        _must_be_constraint("base_constraint", base_constraint)
        self.base_constraint = base_constraint

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return self.base_constraint.event_dim

    def check(self, value: Tensor) -> Tensor:
        if value.dim() < self.event_dim:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        answers = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        return _every(answers, answers.dim() - (value.dim() - self.event_dim))

    def __repr__(self) -> str:
        return f"MixtureSameFamilyConstraint({self.base_constraint!r})"


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return boolean.check(value).all(-1) & (value.sum(-1) == 1)


def _whole(value: Tensor) -> Tensor:
    return value % 1 == 0


class _Lower(Constraint):
    _shown: tuple[str, ...] = ("lower_bound",)

    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound


class _Upper(Constraint):
    _shown: tuple[str, ...] = ("upper_bound",)

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound


class _Both(Constraint):
    _shown = ("lower_bound", "upper_bound")

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound


class _IntegerInterval(_Both):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return _whole(value) & (self.lower_bound <= value) & (value <= self.upper_bound)


class _IntegerLessThan(_Upper):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return _whole(value) & (value <= self.upper_bound)


class _IntegerGreaterThan(_Lower):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return _whole(value) & (value >= self.lower_bound)


class _Real(Constraint):
    def check(self, value: Tensor) -> Tensor:
        return value == value  # all but NaN


class _GreaterThan(_Lower):
    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound < value


class _GreaterThanEq(_Lower):
    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound <= value


class _LessThan(_Upper):
    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound


class _Interval(_Both):
    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_Both):
    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(_Upper):
    is_discrete = True
    event_dim = 1
    _shown = ()

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)


class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return _every(value.tril() == value, 2)


class _LowerCholesky(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return lower_triangular.check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        tolerance = 10 * value.size(-1) * finfo(value.dtype).eps
        lengths = linalg.norm(value.detach(), dim=-1)
        return lower_cholesky.check(value) & ((lengths - 1).abs() <= tolerance).all(-1)


class _Square(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return ops.full(value.shape[:-2], value.shape[-2] == value.shape[-1], dtype=dtypes.bool_)


class _Symmetric(_Square):
    def check(self, value: Tensor) -> Tensor:
        answers = super().check(value)
        return _every(ops.isclose(value, value.mT, atol=1e-6), 2) if answers.all() else answers


class _PositiveSemidefinite(_Symmetric):
    def check(self, value: Tensor) -> Tensor:
        answers = super().check(value)
        return (linalg.eigvalsh(value) >= 0).all(-1) if answers.all() else answers


class _PositiveDefinite(_Symmetric):
    def check(self, value: Tensor) -> Tensor:
        answers = super().check(value)
        return linalg.cholesky_ex(value).info == 0 if answers.all() else answers


class _Several(Constraint):
    """Regions side by side along `dim`."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        if not all(isinstance(c, Constraint) for c in cseq):
            raise AssertionError("All elements of cseq must be Constraint instances")
        self.cseq: list[Constraint] = list(cseq)
        self.dim = dim

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return any(c.is_discrete for c in self.cseq)

    def _check_dim(self, value: Tensor) -> None:
        if not -value.dim() <= self.dim < value.dim():
            raise AssertionError(f"dim {self.dim} out of range for value with {value.dim()} dimensions")


class _Cat(_Several):
    def __init__(self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None) -> None:
        super().__init__(cseq, dim)
        self.lengths: list[int] = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise AssertionError(f"lengths ({len(self.lengths)}) must match cseq ({len(self.cseq)})")

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return max(c.event_dim for c in self.cseq)

    def check(self, value: Tensor) -> Tensor:
        self._check_dim(value)
        starts = [sum(self.lengths[:i]) for i in range(len(self.lengths))]
        parts = zip(self.cseq, starts, self.lengths, strict=True)
        return ops.cat([c.check(value.narrow(self.dim, start, length)) for c, start, length in parts], self.dim)


class _Stack(_Several):
    @property
    def event_dim(self) -> int:  # type: ignore[override]
        most = max(c.event_dim for c in self.cseq)
        return most + 1 if self.dim + most < 0 else most

    def check(self, value: Tensor) -> Tensor:
        self._check_dim(value)
        slices = zip(self.cseq, value.unbind(self.dim), strict=False)
        return ops.stack([c.check(part) for c, part in slices], self.dim)


# What depends on a distribution's own parameters, and what is made of other constraints.
cat, stack, independent = _Cat, _Stack, _IndependentConstraint
dependent: _Dependent
dependent, dependent_property = _Dependent(), _DependentProperty

# Numbers.
real: _Real
boolean: _Boolean
real, boolean = _Real(), _Boolean()
positive: _GreaterThan
nonnegative: _GreaterThanEq
unit_interval: _Interval
positive, nonnegative, unit_interval = _GreaterThan(0.0), _GreaterThanEq(0.0), _Interval(0.0, 1.0)
interval, half_open_interval = _Interval, _HalfOpenInterval
less_than, greater_than, greater_than_eq = _LessThan, _GreaterThan, _GreaterThanEq

# Integers.
integer_interval = _IntegerInterval
positive_integer: _IntegerGreaterThan
nonnegative_integer: _IntegerGreaterThan
positive_integer, nonnegative_integer = _IntegerGreaterThan(1), _IntegerGreaterThan(0)

# Vectors.
real_vector: _IndependentConstraint = independent(real, 1)
simplex: _Simplex
one_hot: _OneHot
simplex, one_hot, multinomial = _Simplex(), _OneHot(), _Multinomial

# Matrices.
square: _Square
symmetric: _Symmetric
square, symmetric = _Square(), _Symmetric()
positive_definite: _PositiveDefinite
positive_semidefinite: _PositiveSemidefinite
positive_definite, positive_semidefinite = _PositiveDefinite(), _PositiveSemidefinite()
lower_triangular: _LowerTriangular
lower_cholesky: _LowerCholesky
corr_cholesky: _CorrCholesky
lower_triangular, lower_cholesky, corr_cholesky = _LowerTriangular(), _LowerCholesky(), _CorrCholesky()
