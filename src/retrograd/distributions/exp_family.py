"""Exponential families: densities ``h(x) exp(eta · t(x) - A(eta))``."""

from __future__ import annotations

from typing import Any

from ..autograd import grad
from ..autograd.grad_mode import enable_grad
from ..tensor import Tensor
from .distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """A distribution with natural parameters `eta` and the log-normalizer `A`, whose gradient is the mean of `t(x)`."""

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> float:
        """The mean of ``log h(x)``."""
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """A - eta · grad A - E[log h]."""
        carrier = self._mean_carrier_measure
        params, value, slopes = log_normalizer_slopes(self)
        for eta, slope in zip(params, slopes, strict=True):
            value = value - (eta * slope).reshape((*self._batch_shape, -1)).sum(-1)
        return value - carrier


def log_normalizer_slopes(p: ExponentialFamily) -> tuple[list[Tensor], Tensor, tuple[Tensor, ...]]:
    """The natural parameters, cut off from what they were made of, the log-normalizer there, and its gradient."""
    with enable_grad():
        params = [eta.detach().requires_grad_() for eta in p._natural_params]
        value = p._log_normalizer(*params)
        slopes: Any = grad(value.sum(), params, create_graph=True)
    return params, value, slopes
