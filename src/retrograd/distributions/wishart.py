"""Random covariances."""

from __future__ import annotations

import math
import warnings
from typing import Any

from .. import linalg
from ..core.type_info import finfo
from ..ops import namespace as ops
from ..tensor import Tensor
from . import constraints
from .chi2 import Chi2
from .exp_family import ExponentialFamily
from .multivariate_normal import half_log_det, precision_to_scale_tril
from .utils import lazy_property, standard_normal

__all__ = ["Wishart"]


class Wishart(ExponentialFamily):
    """Sums of the squares ``x x'`` of `df` normal vectors with a covariance.

    >>> import retrograd as torch
    >>> torch.distributions.Wishart(torch.tensor(3.), torch.eye(2)).mean
    tensor([[3., 0.],
            [0., 3.]])
    """

    support: Any = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure: Any = 0
    _batched = ("df", "covariance_matrix", "precision_matrix", "scale_tril", "_unbroadcasted_scale_tril")

    def __init__(
        self,
        df: Any,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        forms = {"covariance_matrix": covariance_matrix, "scale_tril": scale_tril, "precision_matrix": precision_matrix}
        given = [(name, matrix) for name, matrix in forms.items() if matrix is not None]
        if len(given) != 1:
            raise AssertionError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified."
            )
        ((name, matrix),) = given
        if matrix.dim() < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        freedom = df if isinstance(df, Tensor) else ops.tensor(df, dtype=matrix.dtype)
        batch_shape = ops.broadcast_shapes(matrix.shape[:-2], freedom.shape)
        self.df: Tensor = freedom.expand(batch_shape)
        n = matrix.shape[-1]
        if (self.df <= n - 1).any():
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {n - 1}.")
        if (self.df < n).any():
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < ndim.",
                stacklevel=2,
            )
        setattr(self, name, matrix.expand(batch_shape + (-1, -1)))
        super().__init__(batch_shape, matrix.shape[-2:], validate_args=validate_args)
        if name == "covariance_matrix":
            matrix = linalg.cholesky(matrix)
        elif name == "precision_matrix":
            matrix = precision_to_scale_tril(matrix)
        self._unbroadcasted_scale_tril = matrix.expand(batch_shape + (-1, -1))

    @property
    def arg_constraints(self) -> Any:
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        }

    @lazy_property
    def scale_tril(self) -> Any:
        """The Cholesky factor of the covariance."""
        return self._unbroadcasted_scale_tril

    @lazy_property
    def covariance_matrix(self) -> Any:
        """The covariance of the vectors."""
        return self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT

    @lazy_property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance."""
        return ops.cholesky_inverse(self._unbroadcasted_scale_tril)

    def _df(self, more: int = 0) -> Tensor:
        return (self.df + more)[..., None, None]

    @property
    def mean(self) -> Tensor:
        return self._df() * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        factor = self._df(-self.event_shape[-1] - 1)
        return factor.masked_fill(factor <= 0, math.nan) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        v = self.covariance_matrix
        diagonal = v.diagonal(dim1=-2, dim2=-1)
        return self._df() * (v.pow(2) + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def _halves(self) -> Tensor:
        """df / 2, (df - 1) / 2, ... as many as there are rows."""
        df = self.df
        return (df.unsqueeze(-1) - ops.arange(self.event_shape[-1], dtype=df.dtype, device=df.device)) / 2

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """By Bartlett's decomposition: the factor has roots of chi-squared numbers and normal ones below them."""
        squares = Chi2(2 * self._halves(), validate_args=False).rsample(sample_shape)
        roots = squares.sqrt().clamp(min=finfo(squares.dtype).eps)
        below = standard_normal(self._extended_shape(sample_shape), squares).tril(-1)
        factor = self._unbroadcasted_scale_tril @ (below + roots.diag_embed())
        return factor @ factor.mT

    def log_prob(self, value: Tensor) -> Tensor:
        value, p = self._checked(value), self.event_shape[-1]
        factor = self._unbroadcasted_scale_tril
        size = linalg.slogdet(value).logabsdet
        shape = ops.broadcast_shapes(value.shape, factor.shape)
        trace = ops.cholesky_solve(value.expand(shape), factor.expand(shape)).diagonal(dim1=-2, dim2=-1).sum(-1)
        norm = self.df * (p * math.log(2) / 2 + half_log_det(factor)) + ops.mvlgamma(self.df / 2, p)
        return (self.df - p - 1) / 2 * size - trace / 2 - norm

    def entropy(self) -> Tensor:
        p = self.event_shape[-1]
        size = (p + 1) * (p * math.log(2) / 2 + half_log_det(self._unbroadcasted_scale_tril))
        slope = (self.df - p - 1) / 2 * self._halves().digamma().sum(-1)
        return size + ops.mvlgamma(self.df / 2, p) - slope + self.df * p / 2

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (-self.precision_matrix / 2, (self.df - self.event_shape[-1] - 1) / 2)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        x, y = natural_params
        p = self.event_shape[-1]
        half = y + (p + 1) / 2
        return half * (p * math.log(2) - linalg.slogdet(-2 * x).logabsdet) + ops.mvlgamma(half, p)
