"""``torch.distributions.transforms``: functions with inverses and Jacobians, for changes of variables.

Those that put other transforms together are in `composed_transforms.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Number
from typing import Any

from .. import linalg
from ..core.size import Size
from ..core.type_info import finfo
from ..nn import functional as F
from ..ops import namespace as ops
from ..tensor import Tensor
from . import constraints
from .composed_transforms import (
    CatTransform,
    ComposeTransform,
    IndependentTransform,
    StackTransform,
    identity_transform,
)
from .transform import Transform, _InverseTransform  # noqa: F401 - the second for libraries that look for it here
from .utils import broadcast_all, lazy_property, tril_matrix_to_vec, vec_to_tril_matrix

__all__ = [
    "AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform", "CorrCholeskyTransform",
    "CumulativeDistributionTransform", "ExpTransform", "IndependentTransform", "LowerCholeskyTransform",
    "PositiveDefiniteTransform", "PowerTransform", "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform",
    "SoftplusTransform", "StackTransform", "StickBreakingTransform", "TanhTransform", "Transform",
    "identity_transform",
]  # fmt: skip


class _Plain(Transform):
    """A transform without settings: equal to any other of its class."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self))

    __hash__ = Transform.__hash__


class _Increasing(_Plain):
    """An increasing function of one number."""

    domain = constraints.real
    codomain: Any = constraints.positive
    bijective = True
    sign = +1


class ExpTransform(_Increasing):
    """y = exp(x).

    >>> import retrograd as torch
    >>> t = torch.distributions.ExpTransform()
    >>> t.inv(t(torch.zeros(1)))
    tensor([0.])
    """

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


def _inside(y: Tensor) -> Tensor:
    """Kept off 0 and 1."""
    info = finfo(y.dtype)
    return y.clamp(info.tiny, 1 - info.eps)


class SigmoidTransform(_Increasing):
    """y = 1 / (1 + exp(-x)).

    >>> import retrograd as torch
    >>> torch.distributions.SigmoidTransform()(torch.zeros(1))
    tensor([0.5000])
    """

    codomain = constraints.unit_interval

    def _call(self, x: Tensor) -> Tensor:
        return _inside(x.sigmoid())

    def _inverse(self, y: Tensor) -> Tensor:
        y = _inside(y)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -F.softplus(-x) - F.softplus(x)


class SoftplusTransform(_Increasing):
    """y = log(1 + exp(x)).

    >>> import retrograd as torch
    >>> torch.distributions.SoftplusTransform()(torch.zeros(1))
    tensor([0.6931])
    """

    def _call(self, x: Tensor) -> Tensor:
        return F.softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return y + (-(-y).expm1()).log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -F.softplus(-x)


class TanhTransform(_Increasing):
    """y = tanh(x).

    >>> import retrograd as torch
    >>> torch.distributions.TanhTransform()(torch.zeros(1))
    tensor([0.])
    """

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return 2 * (math.log(2) - x - F.softplus(-2 * x))  # log(1 - tanh²) without the difference


class AbsTransform(_Plain):
    """y = |x|, of which the inverse gives the positive one.

    >>> import retrograd as torch
    >>> torch.distributions.AbsTransform()(torch.tensor([-1.]))
    tensor([1.])
    """

    domain = constraints.real
    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class PowerTransform(Transform):
    """y = x ** exponent.

    >>> import retrograd as torch
    >>> torch.distributions.PowerTransform(2.)(torch.tensor([3.]))
    tensor([9.])
    """

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True
    _settings = ("exponent",)

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        (self.exponent,) = broadcast_all(exponent)

    @lazy_property
    def sign(self) -> Any:
        return self.exponent.sign()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and bool((self.exponent == other.exponent).all())

    __hash__ = Transform.__hash__

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Any) -> Any:
        return ops.broadcast_shapes(shape, self.exponent.shape)

    inverse_shape = forward_shape


def _same(a: Any, b: Any) -> bool:
    return bool(a == b) if isinstance(a, Number) and isinstance(b, Number) else bool((a == b).all())


class AffineTransform(Transform):
    """y = loc + scale * x.

    >>> import retrograd as torch
    >>> torch.distributions.AffineTransform(1., 2.)(torch.tensor([3.]))
    tensor([7.])
    """

    bijective = True
    _settings = ("loc", "scale", "event_dim")

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.loc = loc
        self.scale = scale
        self._event_dim = event_dim

    @property
    def event_dim(self) -> int:
        """How many dimensions one point has."""
        return self._event_dim

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        """Real numbers, of `event_dim` dimensions."""
        return constraints.independent(constraints.real, self.event_dim) if self.event_dim else constraints.real

    codomain = domain

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AffineTransform) and _same(self.loc, other.loc) and _same(self.scale, other.scale)

    __hash__ = Transform.__hash__

    @property
    def sign(self) -> Any:
        if isinstance(self.scale, Tensor):
            return self.scale.sign()
        return (self.scale > 0) - (self.scale < 0)

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if isinstance(self.scale, Tensor):
            slopes = self.scale.abs().log()
        else:
            slopes = ops.full_like(x, math.log(abs(self.scale)))
        if not self.event_dim:
            return slopes.expand(x.shape)
        # a scale that is the same for several elements of a point counts once for each of them
        points = x.shape[: x.dim() - self.event_dim]
        return slopes.expand(x.shape).reshape((*points, -1)).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        return ops.broadcast_shapes(shape, getattr(self.loc, "shape", ()), getattr(self.scale, "shape", ()))

    inverse_shape = forward_shape


def _enough(shape: Any, dims: int) -> Any:
    if len(shape) < dims:
        raise ValueError(f"Too few dimensions on input: {tuple(shape)} has to have {dims} or more")
    return shape


class ReshapeTransform(Transform):
    """The last dimensions in another shape.

    >>> import retrograd as torch
    >>> torch.distributions.ReshapeTransform((4,), (2, 2))(torch.zeros(3, 4)).shape
    torch.Size([3, 2, 2])
    """

    bijective = True
    _settings = ("in_shape", "out_shape")

    def __init__(self, in_shape: Sequence[int], out_shape: Sequence[int], cache_size: int = 0) -> None:
        self.in_shape: Size = Size(in_shape)
        self.out_shape: Size = Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError(
                f"in_shape, out_shape have different numbers of elements: {self.in_shape} and {self.out_shape}"
            )
        super().__init__(cache_size=cache_size)

    @constraints.dependent_property
    def domain(self) -> Any:
        """Tensors of the shape that goes in."""
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self) -> Any:
        """Tensors of the shape that comes out."""
        return constraints.independent(constraints.real, len(self.out_shape))

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(x.shape[: x.dim() - len(self.in_shape)] + self.out_shape)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(y.shape[: y.dim() - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    @staticmethod
    def _replace(shape: Any, old: Size, new: Size) -> Any:
        cut = len(_enough(shape, len(old))) - len(old)
        if shape[cut:] != old:
            raise ValueError(f"Shape mismatch: expected {shape[cut:]} but got {old}")
        return shape[:cut] + new

    def forward_shape(self, shape: Any) -> Any:
        return self._replace(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._replace(shape, self.out_shape, self.in_shape)


def _shifted(x: Tensor) -> Tensor:
    """One place to the right, with a 1 before it."""
    return F.pad(x[..., :-1], [1, 0], value=1)


class CorrCholeskyTransform(Transform):
    """Real vectors to Cholesky factors of correlation matrices: each row is a point of a half-sphere.

    >>> import retrograd as torch
    >>> torch.distributions.CorrCholeskyTransform()(torch.zeros(3))
    tensor([[1., 0., 0.],
            [0., 1., 0.],
            [0., 0., 1.]])
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        eps = finfo(x.dtype).eps
        partial = vec_to_tril_matrix(x.tanh().clamp(-1 + eps, 1 - eps), diag=-1)  # partial correlations
        left = (1 - partial**2).sqrt().cumprod(-1)  # of the row's length, after each element
        return (partial + ops.eye(partial.shape[-1], dtype=x.dtype, device=x.device)) * _shifted(left)

    def _inverse(self, y: Tensor) -> Tensor:
        left = _shifted(1 - (y * y).cumsum(-1))
        partial = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(left, diag=-1).sqrt()
        return (partial.log1p() - (-partial).log1p()) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        left = tril_matrix_to_vec(1 - (y * y).cumsum(-1), diag=-2)
        return 0.5 * left.log().sum(-1) - 2 * (x + F.softplus(-2 * x) - math.log(2)).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        n = _enough(shape, 1)[-1]
        d = round((0.25 + 2 * n) ** 0.5 + 0.5)
        if d * (d - 1) // 2 != n:
            raise ValueError(f"Input is not a flattened lower-diagonal number: {n} is not d * (d - 1) / 2")
        return shape[:-1] + (d, d)

    def inverse_shape(self, shape: Any) -> Any:
        d = _enough(shape, 2)[-1]
        if shape[-2] != d:
            raise ValueError(f"Input is not square: {tuple(shape)}")
        return shape[:-2] + (d * (d - 1) // 2,)


class SoftmaxTransform(_Plain):
    """Real vectors to points of the simplex; many go to the same.

    >>> import retrograd as torch
    >>> torch.distributions.SoftmaxTransform()(torch.zeros(2))
    tensor([0.5000, 0.5000])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        return x.softmax(-1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        return _enough(shape, 1)

    inverse_shape = forward_shape


class StickBreakingTransform(_Plain):
    """Real vectors to points of a simplex of one dimension more: each number says how much of the rest breaks off.

    >>> import retrograd as torch
    >>> torch.distributions.StickBreakingTransform()(torch.zeros(2))
    tensor([0.3333, 0.3333, 0.3333])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    @staticmethod
    def _offsets(like: Tensor, n: int) -> Tensor:
        return ops.arange(n, 0, -1, dtype=like.dtype, device=like.device).log()  # zero goes to the middle

    def _call(self, x: Tensor) -> Tensor:
        broken = _inside((x - self._offsets(x, x.shape[-1])).sigmoid())
        left = (1 - broken).cumprod(-1)
        return F.pad(broken, [0, 1], value=1) * F.pad(left, [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        parts = y[..., :-1]
        left = (1 - parts.cumsum(-1)).clamp(min=finfo(y.dtype).tiny)
        return parts.log() - left.log() + self._offsets(y, parts.shape[-1])

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        x = x - self._offsets(x, x.shape[-1])
        return (F.logsigmoid(x) - x + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        return _enough(shape, 1)[:-1] + (shape[-1] + 1,)

    def inverse_shape(self, shape: Any) -> Any:
        return _enough(shape, 1)[:-1] + (shape[-1] - 1,)


def _with_diagonal(matrix: Tensor, diagonal: Tensor) -> Tensor:
    return matrix.tril(-1) + diagonal.diag_embed()


class LowerCholeskyTransform(_Plain):
    """Matrices to lower triangular ones with a positive diagonal.

    >>> import retrograd as torch
    >>> torch.distributions.LowerCholeskyTransform()(torch.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain: Any = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return _with_diagonal(x, x.diagonal(dim1=-2, dim2=-1).exp())

    def _inverse(self, y: Tensor) -> Tensor:
        return _with_diagonal(y, y.diagonal(dim1=-2, dim2=-1).log())


class PositiveDefiniteTransform(_Plain):
    """Matrices to positive definite ones, by way of their Cholesky factors.

    >>> import retrograd as torch
    >>> torch.distributions.PositiveDefiniteTransform()(torch.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite
    _factor = LowerCholeskyTransform()

    def _call(self, x: Tensor) -> Tensor:
        factor = self._factor._call(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return self._factor._inverse(linalg.cholesky(y))


class CumulativeDistributionTransform(Transform):
    """y = cdf(x) of a distribution.

    >>> import retrograd as torch
    >>> d = torch.distributions
    >>> d.CumulativeDistributionTransform(d.Normal(0., 1.))(torch.zeros(1))
    tensor([0.5000])
    """

    bijective = True
    codomain = constraints.unit_interval
    sign = +1
    _settings = ("distribution",)

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Any:
        """The support of the distribution."""
        return self.distribution.support

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)
