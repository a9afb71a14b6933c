"""Angles."""

from __future__ import annotations

import math
from typing import Any

from ..autograd.grad_mode import no_grad
from ..core import dtypes
from ..ops import namespace as ops
from ..tensor import Tensor
from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, lazy_property

__all__ = ["VonMises"]


class VonMises(Distribution):
    """Angles around `loc`, in radians: normal numbers on a circle.

    >>> import retrograd as torch
    >>> torch.distributions.VonMises(torch.tensor(0.), torch.tensor(1.)).variance
    tensor(0.5536)
    """

    arg_constraints: Any = {"loc": constraints.real, "concentration": constraints.positive}
    support: Any = constraints.real
    _batched = ("loc", "concentration")

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Any:
        """One minus the length of the mean of the points on the circle."""
        return 1 - ops.special_i1e(self.concentration) / ops.special_i0e(self.concentration)

    def log_prob(self, value: Tensor) -> Tensor:
        # the logarithm of the Bessel function I0 is that of its scaled form, plus what it is scaled by
        norm = math.log(2 * math.pi) + ops.special_i0e(self.concentration).log() + self.concentration
        return self.concentration * (self._checked(value) - self.loc).cos() - norm

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """By rejection from a wrapped Cauchy distribution (Best and Fisher, 1979), in double precision."""
        with no_grad():
            loc, kappa = self.loc.to(dtypes.float64), self.concentration.to(dtypes.float64)
            tau = 1 + (1 + 4 * kappa**2).sqrt()
            rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
            r = ops.where(kappa < 1e-5, 1 / kappa + kappa, (1 + rho**2) / (2 * rho))
            angle = loc.new_zeros(self._extended_shape(sample_shape))
            missing = ops.ones_like(angle, dtype=dtypes.bool_)
            while missing.any():
                u1, u2, u3 = ops.rand((3, *angle.shape), dtype=dtypes.float64, device=loc.device).unbind()
                z = (math.pi * u1).cos()
                f = (1 + r * z) / (r + z)
                c = kappa * (r - f)
                accepted = (c * (2 - c) > u2) | ((c / u2).log() + 1 - c >= 0)
                angle = ops.where(accepted, (u3 - 0.5).sign() * f.acos(), angle)
                missing = missing & ~accepted
            return ((angle + math.pi + loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)
