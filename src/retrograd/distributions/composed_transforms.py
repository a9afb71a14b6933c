"""Transforms made of others: one after the other, over more dimensions, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..ops import namespace as ops
from ..tensor import Tensor
from . import constraints
from .transform import Transform
from .utils import lazy_property, sum_rightmost


class ComposeTransform(Transform):
    """One transform after the other.

    >>> import retrograd as torch
    >>> d = torch.distributions
    >>> d.ComposeTransform([d.ExpTransform(), d.AffineTransform(1., 2.)])(torch.zeros(1))
    tensor([3.])
    """

    _settings = ("parts",)

    def __init__(self, parts: list[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.parts: list[Transform] = [part.with_cache(cache_size) for part in parts] if cache_size else parts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = Transform.__hash__

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        """The values that it takes."""
        if not self.parts:
            return constraints.real
        dims = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            dims = max(dims + part.domain.event_dim - part.codomain.event_dim, part.domain.event_dim)
        return _of_dims(self.parts[0].domain, dims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        """The values that it gives."""
        if not self.parts:
            return constraints.real
        dims = self.parts[0].domain.event_dim
        for part in self.parts:
            dims = max(dims + part.codomain.event_dim - part.domain.event_dim, part.codomain.event_dim)
        return _of_dims(self.parts[-1].codomain, dims)

    @lazy_property
    def bijective(self) -> Any:
        return all(part.bijective for part in self.parts)

    @lazy_property
    def sign(self) -> Any:
        sign: Any = 1
        for part in self.parts:
            sign = sign * part.sign
        return sign

    @property
    def inv(self) -> Transform:
        if self._inv is None:
            self._inv = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv._inv = self
        return self._inv

    def __call__(self, x: Any) -> Any:
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if not self.parts:
            return ops.zeros_like(x)
        total: Any = None
        dims = self.domain.event_dim
        for i, part in enumerate(self.parts):
            after = y if i == len(self.parts) - 1 else part(x)
            term = sum_rightmost(part.log_abs_det_jacobian(x, after), dims - part.domain.event_dim)
            total = term if total is None else total + term
            dims += part.codomain.event_dim - part.domain.event_dim
            x = after
        return total

    def forward_shape(self, shape: Any) -> Any:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        inside = ",\n    ".join(repr(part) for part in self.parts)
        return f"{type(self).__name__}(\n    {inside}\n)"


def _of_dims(constraint: Any, dims: int) -> Any:
    more = dims - constraint.event_dim
    return constraints.independent(constraint, more) if more else constraint


identity_transform: ComposeTransform = ComposeTransform([])


class IndependentTransform(Transform):
    """Another transform, with more dimensions to one point.

    >>> import retrograd as torch
    >>> d = torch.distributions
    >>> x = torch.zeros(2, 3)
    >>> d.IndependentTransform(d.ExpTransform(), 1).log_abs_det_jacobian(x, x.exp())
    tensor([0., 0.])
    """

    _settings = ("base_transform", "reinterpreted_batch_ndims")

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.base_transform: Transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        """The values that it takes."""
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        """The values that it gives."""
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return self.base_transform.bijective

    @property
    def sign(self) -> Any:
        return self.base_transform.sign

    def _call(self, x: Tensor) -> Tensor:
        if x.dim() < self.domain.event_dim:
            raise ValueError(f"Too few dimensions on input: {x.dim()}, not {self.domain.event_dim} or more")
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        if y.dim() < self.codomain.event_dim:
            raise ValueError(f"Too few dimensions on input: {y.dim()}, not {self.codomain.event_dim} or more")
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"

    def forward_shape(self, shape: Any) -> Any:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self.base_transform.inverse_shape(shape)


class _SideBySide(Transform):
    """Several transforms, each of a part along `dim`."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        super().__init__(cache_size=cache_size)
        self.transforms: list[Transform] = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)
        self.dim = dim

    def _pieces(self, name: str, z: Tensor) -> Iterator[Tensor]:
        raise NotImplementedError

    def _check(self, name: str, z: Tensor, expected: int, what: str) -> None:
        if not -z.dim() <= self.dim < z.dim():
            raise AssertionError(f"dim {self.dim} out of range for {name} with {z.dim()} dimensions")
        if z.size(self.dim) != expected:
            raise AssertionError(f"{name}.size({self.dim}) = {z.size(self.dim)} must equal {what} {expected}")

    def _join(self, parts: list[Tensor]) -> Tensor:
        raise NotImplementedError

    def _call(self, x: Tensor) -> Tensor:
        return self._join([t(piece) for t, piece in zip(self.transforms, self._pieces("x", x), strict=True)])

    def _inverse(self, y: Tensor) -> Tensor:
        return self._join([t.inv(piece) for t, piece in zip(self.transforms, self._pieces("y", y), strict=True)])

    def _jacobians(self, x: Tensor, y: Tensor) -> list[Tensor]:
        pieces = zip(self.transforms, self._pieces("x", x), self._pieces("y", y), strict=True)
        return [t.log_abs_det_jacobian(a, b) for t, a, b in pieces]

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return all(t.bijective for t in self.transforms)


class CatTransform(_SideBySide):
    """Several transforms, each of so many elements along `dim`, as `cat` joins them.

    >>> import retrograd as torch
    >>> d = torch.distributions
    >>> d.CatTransform([d.ExpTransform(), d.identity_transform])(torch.zeros(2))
    tensor([1., 0.])
    """

    _settings = ("transforms", "dim", "lengths")

    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths: list[int] = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(f"lengths ({len(self.lengths)}) must match transforms ({len(self.transforms)})")

    @lazy_property
    def event_dim(self) -> Any:
        """The most dimensions that a point of one of the transforms has."""
        return max(t.event_dim for t in self.transforms)

    @lazy_property
    def length(self) -> Any:
        """How many elements there are along `dim`."""
        return sum(self.lengths)

    def _pieces(self, name: str, z: Tensor) -> Iterator[Tensor]:
        self._check(name, z, self.length, "length")
        return iter(z.split(self.lengths, self.dim))

    def _join(self, parts: list[Tensor]) -> Tensor:
        return ops.cat(parts, self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        terms = [
            sum_rightmost(term, self.event_dim - t.event_dim)
            for t, term in zip(self.transforms, self._jacobians(x, y), strict=True)
        ]
        dim = (self.dim - x.dim() if self.dim >= 0 else self.dim) + self.event_dim
        if dim < 0:
            return ops.cat(terms, dim)
        total = terms[0]
        for term in terms[1:]:
            total = total + term
        return total

    @constraints.dependent_property
    def domain(self) -> Any:
        """The values that it takes."""
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Any:
        """The values that it gives."""
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(_SideBySide):
    """Several transforms, each of one slice along `dim`, as `stack` joins them.

    >>> import retrograd as torch
    >>> d = torch.distributions
    >>> d.StackTransform([d.ExpTransform(), d.identity_transform])(torch.zeros(2))
    tensor([1., 0.])
    """

    _settings = ("transforms", "dim")

    def _pieces(self, name: str, z: Tensor) -> Iterator[Tensor]:
        self._check(name, z, len(self.transforms), "len(transforms)")
        return iter(z.unbind(self.dim))

    def _join(self, parts: list[Tensor]) -> Tensor:
        return ops.stack(parts, self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self._join(self._jacobians(x, y))

    @constraints.dependent_property
    def domain(self) -> Any:
        """The values that it takes."""
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Any:
        """The values that it gives."""
        return constraints.stack([t.codomain for t in self.transforms], self.dim)
