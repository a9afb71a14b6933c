"""Normal vectors."""

from __future__ import annotations

import math
from typing import Any

from .. import linalg
from ..ops import namespace as ops
from ..tensor import Tensor
from . import constraints
from .distribution import Distribution
from .utils import lazy_property, standard_normal

__all__ = ["MultivariateNormal"]


def batch_mv(matrix: Tensor, vector: Tensor) -> Tensor:
    """Products of matrices and vectors."""
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)


def batch_mahalanobis(factor: Tensor, x: Tensor) -> Tensor:
    """``x' M^-1 x``, where M is the product of the lower triangular `factor` and its transpose."""
    shape = ops.broadcast_shapes(factor.shape[:-2], x.shape[:-1])
    n = x.shape[-1]
    columns = x.expand(shape + (n,)).unsqueeze(-1)
    solved = linalg.solve_triangular(factor.expand(shape + (n, n)), columns, upper=False)
    return solved.squeeze(-1).pow(2).sum(-1)


def half_log_det(factor: Tensor) -> Tensor:
    """Half of the log-determinant of what `factor` is the Cholesky factor of."""
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def precision_to_scale_tril(precision: Tensor) -> Tensor:
    """The Cholesky factor of the inverse."""
    # Backwards in both dimensions, a lower factor of the precision is an upper one, and its inverse the factor.
    upper = linalg.cholesky(precision.flip((-2, -1))).flip((-2, -1)).mT
    identity = ops.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device).expand(precision.shape)
    return linalg.solve_triangular(upper, identity, upper=False)


class MultivariateNormal(Distribution):
    """Normal vectors with a covariance, which is given by itself, by its inverse or by its Cholesky factor.

    >>> import retrograd as torch
    >>> torch.distributions.MultivariateNormal(torch.zeros(2), torch.eye(2)).log_prob(torch.zeros(2))
    tensor(-1.8379)
    """

    arg_constraints: Any = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support: Any = constraints.real_vector
    has_rsample = True
    _batched = ("loc", "covariance_matrix", "precision_matrix", "scale_tril")
    _kept = ("_unbroadcasted_scale_tril",)

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        forms = {"covariance_matrix": covariance_matrix, "scale_tril": scale_tril, "precision_matrix": precision_matrix}
        given = [(name, matrix) for name, matrix in forms.items() if matrix is not None]
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, matrix),) = given
        if matrix.dim() < 2:
            shown = "scale_tril matrix" if name == "scale_tril" else name
            raise ValueError(f"{shown} must be at least two-dimensional, with optional leading batch dimensions")
        batch_shape = ops.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand(batch_shape + (-1, -1)))
        self.loc: Tensor = loc.expand(batch_shape + (-1,))
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args=validate_args)
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = matrix
        elif name == "covariance_matrix":
            self._unbroadcasted_scale_tril = linalg.cholesky(matrix)
        else:
            self._unbroadcasted_scale_tril = precision_to_scale_tril(matrix)

    def _spread(self, matrix: Tensor) -> Tensor:
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Any:
        """The Cholesky factor of the covariance."""
        return self._spread(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Any:
        """The covariance."""
        return self._spread(self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT)

    @lazy_property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance."""
        return self._spread(ops.cholesky_inverse(self._unbroadcasted_scale_tril))

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        noise = standard_normal(self._extended_shape(sample_shape), self.loc)
        return self.loc + batch_mv(self._unbroadcasted_scale_tril, noise)

    def log_prob(self, value: Tensor) -> Tensor:
        factor = self._unbroadcasted_scale_tril
        distance = batch_mahalanobis(factor, self._checked(value) - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + distance) - half_log_det(factor)

    def entropy(self) -> Tensor:
        half = half_log_det(self._unbroadcasted_scale_tril)
        return (0.5 * self._event_shape[0] * (1 + math.log(2 * math.pi)) + half).expand(self._batch_shape)
