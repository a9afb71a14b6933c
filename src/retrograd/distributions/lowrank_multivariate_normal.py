"""Normal vectors whose covariance is a diagonal and a few directions."""

from __future__ import annotations

import math
from typing import Any

from .. import linalg
from ..ops import namespace as ops
from ..tensor import Tensor
from . import constraints
from .distribution import Distribution
from .multivariate_normal import batch_mahalanobis, batch_mv, half_log_det
from .utils import lazy_property, standard_normal

__all__ = ["LowRankMultivariateNormal"]


def capacitance_tril(factor: Tensor, diagonal: Tensor) -> Tensor:
    """The Cholesky factor of ``I + W' D^-1 W``, by which W W' + D is inverted."""
    inner = (factor.mT / diagonal.unsqueeze(-2)) @ factor
    return linalg.cholesky(inner + ops.eye(inner.shape[-1], dtype=inner.dtype, device=inner.device))


class LowRankMultivariateNormal(Distribution):
    """Normal vectors with the covariance ``cov_factor @ cov_factor.T + diag(cov_diag)``, which is never made.

    >>> import retrograd as torch
    >>> d = torch.distributions.LowRankMultivariateNormal(torch.zeros(2), torch.tensor([[1.], [0.]]), torch.ones(2))
    >>> d.covariance_matrix
    tensor([[2., 0.],
            [0., 1.]])
    """

    arg_constraints: Any = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support: Any = constraints.real_vector
    has_rsample = True
    _batched = ("loc", "cov_factor", "cov_diag")
    _kept = ("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril")

    def __init__(
        self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event_shape = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError(
                "cov_factor must be at least two-dimensional, with optional leading batch dimensions"
            )
        if cov_factor.shape[-2:-1] != event_shape:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m")
        if cov_diag.shape[-1:] != event_shape:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event_shape}")
        try:
            batch_shape = ops.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        except RuntimeError as error:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, cov_diag {cov_diag.shape}"
            ) from error
        self.loc, self.cov_diag = loc.expand(batch_shape + (-1,)), cov_diag.expand(batch_shape + (-1,))
        self.cov_factor: Tensor = cov_factor.expand(batch_shape + (-1, -1))
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        self._capacitance_tril = capacitance_tril(cov_factor, cov_diag)
        super().__init__(batch_shape, event_shape, validate_args=validate_args)

    def _spread(self, matrix: Tensor) -> Tensor:
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Any:
        variance = self._unbroadcasted_cov_factor.pow(2).sum(-1) + self._unbroadcasted_cov_diag
        return variance.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def covariance_matrix(self) -> Any:
        """The covariance."""
        factor = self._unbroadcasted_cov_factor
        return self._spread(factor @ factor.mT + self._unbroadcasted_cov_diag.diag_embed())

    @lazy_property
    def scale_tril(self) -> Any:
        """The Cholesky factor of the covariance."""
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / root
        inner = scaled @ scaled.mT + ops.eye(self._event_shape[0], dtype=scaled.dtype, device=scaled.device)
        return self._spread(root * linalg.cholesky(inner))

    def whitened_factor(self) -> Tensor:
        """A, of which ``D^-1 - A' A`` is the inverse of the covariance."""
        scaled = self._unbroadcasted_cov_factor.mT / self._unbroadcasted_cov_diag.unsqueeze(-2)
        shape = ops.broadcast_shapes(scaled.shape[:-2], self._capacitance_tril.shape[:-2])
        inner = self._capacitance_tril.expand(shape + (-1, -1))
        return linalg.solve_triangular(inner, scaled.expand(shape + (-1, -1)), upper=False)

    @lazy_property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance."""
        a = self.whitened_factor()
        return self._spread(self._unbroadcasted_cov_diag.reciprocal().diag_embed() - a.mT @ a)

    def log_det(self) -> Tensor:
        """The log-determinant of the covariance."""
        return 2 * half_log_det(self._capacitance_tril) + self._unbroadcasted_cov_diag.log().sum(-1)

    def mahalanobis(self, x: Tensor) -> Tensor:
        """``x' covariance^-1 x``."""
        diagonal = self._unbroadcasted_cov_diag
        inner = batch_mv(self._unbroadcasted_cov_factor.mT / diagonal.unsqueeze(-2), x)
        return (x.pow(2) / diagonal).sum(-1) - batch_mahalanobis(self._capacitance_tril, inner)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        along = standard_normal(shape[:-1] + self.cov_factor.shape[-1:], self.loc)
        rest = standard_normal(shape, self.loc)
        own = self._unbroadcasted_cov_diag.sqrt() * rest
        return self.loc + batch_mv(self._unbroadcasted_cov_factor, along) + own

    def log_prob(self, value: Tensor) -> Tensor:
        distance = self.mahalanobis(self._checked(value) - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + self.log_det() + distance)

    def entropy(self) -> Tensor:
        nats = self._event_shape[0] * (1 + math.log(2 * math.pi))
        return (0.5 * (nats + self.log_det())).expand(self._batch_shape)
