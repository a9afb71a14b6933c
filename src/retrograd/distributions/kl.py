"""``torch.distributions.kl``: Kullback-Leibler divergences, by the types of the two distributions.

Most are the mean under p of ``log p - log q``, of which the first is p's entropy, and the second a few moments of p.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from .. import linalg
from ..nn import functional as F
from ..ops import namespace as ops
from ..tensor import Tensor
from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .categorical import Categorical
from .cauchy import Cauchy
from .continuous_bernoulli import ContinuousBernoulli
from .dirichlet import Dirichlet
from .distribution import Distribution
from .exp_family import ExponentialFamily, log_normalizer_slopes
from .exponential import Exponential
from .gamma import Gamma
from .geometric import Geometric
from .gumbel import Gumbel
from .half_normal import HalfNormal
from .independent import Independent
from .laplace import Laplace
from .lowrank_multivariate_normal import LowRankMultivariateNormal
from .multivariate_normal import MultivariateNormal, batch_mahalanobis, half_log_det
from .normal import Normal
from .one_hot_categorical import OneHotCategorical
from .pareto import Pareto
from .poisson import Poisson
from .transformed_distribution import TransformedDistribution
from .uniform import Uniform
from .utils import euler_constant, sum_rightmost

__all__ = ["kl_divergence", "register_kl"]

_REGISTRY: dict[tuple[type, type], Callable[[Any, Any], Tensor]] = {}
_FOUND: dict[tuple[type, type], Callable[[Any, Any], Tensor] | None] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Callable[[Any, Any], Tensor]], Callable[[Any, Any], Tensor]]:
    """A decorator: this function gives the divergence of a `type_q` from a `type_p`, and of their subclasses.

    >>> import retrograd as torch
    >>> class Mine(torch.distributions.Normal): pass
    >>> @torch.distributions.register_kl(Mine, Mine)
    ... def same(p, q): return torch.zeros(())
    >>> torch.distributions.kl_divergence(Mine(0., 1.), Mine(1., 1.))
    tensor(0.)
    """
    for name, given in (("type_p", type_p), ("type_q", type_q)):
        if not (isinstance(given, type) and issubclass(given, Distribution)):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {given}")

    def decorate(function: Callable[[Any, Any], Tensor]) -> Callable[[Any, Any], Tensor]:
        _REGISTRY[type_p, type_q] = function
        _FOUND.clear()
        return function

    return decorate


def _find(p: type, q: type) -> Callable[[Any, Any], Tensor] | None:
    """The function that is registered for the closest types: those of p first, unless q says otherwise."""
    fits = [pair for pair in _REGISTRY if issubclass(p, pair[0]) and issubclass(q, pair[1])]
    if not fits:
        return None
    places = [(p.__mro__.index(a), q.__mro__.index(b), (a, b)) for a, b in fits]
    by_p = min(places)[2]
    by_q = min((j, i, pair) for i, j, pair in places)[2]
    if _REGISTRY[by_p] is not _REGISTRY[by_q]:
        warnings.warn(
            f"Ambiguous kl_divergence({p.__name__}, {q.__name__}). Please register_kl({by_p[0].__name__}, "
            f"{by_q[1].__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return _REGISTRY[by_p]


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """How far `q` is from `p`: the mean under p of ``log p - log q``.

    >>> import retrograd as torch
    >>> N = torch.distributions.Normal
    >>> torch.distributions.kl_divergence(N(0., 1.), N(1., 1.))
    tensor(0.5000)
    """
    pair = type(p), type(q)
    if pair not in _FOUND:
        _FOUND[pair] = _find(*pair)
    function = _FOUND[pair]
    if function is None:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {pair[0].__name__} and q type {pair[1].__name__}"
        )
    return function(p, q)


def _x_log_x(x: Tensor) -> Tensor:
    return ops.xlogy(x, x)


def _squares(matrix: Tensor) -> Tensor:
    """The trace of a matrix times its transpose."""
    return matrix.pow(2).sum((-2, -1))


def _never(wrong: Any, value: Tensor) -> Tensor:
    """Infinity where p has values that q never has."""
    wrong, value = ops.broadcast_tensors(wrong, value)
    return value.masked_fill(wrong, math.inf)


# ------------------------------------------------------------------------------------------------- of one kind


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> Tensor:
    on = p.probs * (F.softplus(-q.logits) - F.softplus(-p.logits))
    off = (1 - p.probs) * (F.softplus(q.logits) - F.softplus(p.logits))
    on = _never(q.probs == 0, on).masked_fill(p.probs == 0, 0)
    return on + _never(q.probs == 1, off).masked_fill(p.probs == 1, 0)


@register_kl(Beta, Beta)
def _beta(p: Any, q: Any) -> Tensor:
    return _dirichlet(p._dirichlet, q._dirichlet)


@register_kl(Binomial, Binomial)
def _binomial(p: Any, q: Any) -> Tensor:
    if (p.total_count < q.total_count).any():
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    each = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    return _never(p.total_count > q.total_count, p.total_count * each)


@register_kl(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> Tensor:
    each = _never(q.probs == 0, p.probs * (p.logits - q.logits))
    return each.masked_fill(p.probs == 0, 0).sum(-1)


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Any, q: Any) -> Tensor:  # Chyzak and Nielsen, 2019
    return ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log() - (4 * p.scale * q.scale).log()


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
@register_kl(Beta, ContinuousBernoulli)
def _continuous_bernoulli(p: Any, q: Any) -> Tensor:
    return -p.entropy() - p.mean * q.logits - (-q.probs).log1p() - q._log_norm()


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Any, q: Any) -> Tensor:
    a, b = p.concentration, q.concentration
    mean_log = a.digamma() - a.sum(-1, True).digamma()
    return q._log_normalizer(b) - p._log_normalizer(a) + ((a - b) * mean_log).sum(-1)


@register_kl(Exponential, Exponential)
def _exponential(p: Any, q: Any) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(ExponentialFamily, ExponentialFamily)
def _kl_expfamily_expfamily(p: Any, q: Any) -> Tensor:
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed using Bregman "
            "divergences"
        )
    params, value, slopes = log_normalizer_slopes(p)
    others = q._natural_params
    result = q._log_normalizer(*others) - value
    for own, other, slope in zip(params, others, slopes, strict=True):
        result = result - sum_rightmost((other - own) * slope, len(q.event_shape))
    return result


@register_kl(Gamma, Gamma)
def _gamma(p: Any, q: Any) -> Tensor:
    a, b = p.concentration, q.concentration
    shape = b.lgamma() - a.lgamma() + (a - b) * a.digamma()
    return shape + b * (p.rate / q.rate).log() + (q.rate - p.rate) * (a / p.rate)


@register_kl(Geometric, Geometric)
def _geometric(p: Any, q: Any) -> Tensor:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Any, q: Any) -> Tensor:
    ratio, gap = p.scale / q.scale, (p.loc - q.loc) / q.scale
    mean_exp = ((1 + ratio).lgamma() - gap).exp()
    return gap - ratio.log() + ratio * euler_constant + mean_exp - (1 + euler_constant)


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: Any, q: Any) -> Tensor:
    return _normal(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("KL between Independents with different reinterpreted_batch_ndims")
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(Laplace, Laplace)
def _laplace(p: Any, q: Any) -> Tensor:
    ratio, gap = p.scale / q.scale, (p.loc - q.loc).abs()
    return gap / q.scale - ratio.log() + ratio * (-gap / p.scale).exp() - 1


@register_kl(Normal, Normal)
def _normal(p: Any, q: Any) -> Tensor:
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: Any, q: Any) -> Tensor:
    return _categorical(p._categorical, q._categorical)


@register_kl(Pareto, Pareto)
def _pareto(p: Any, q: Any) -> Tensor:
    ratio = q.alpha / p.alpha
    value = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return _never(p.scale < q.scale, value)


@register_kl(Poisson, Poisson)
def _poisson(p: Any, q: Any) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("KL between distributions that are transformed differently")
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Uniform, Uniform)
def _uniform(p: Any, q: Any) -> Tensor:
    return _never((q.low > p.low) | (q.high < p.high), ((q.high - q.low) / (p.high - p.low)).log())


# --------------------------------------------------------------------------------------------- normal vectors


def _check_events(p: Any, q: Any) -> int:
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two Multivariate Normals with different event shapes cannot be computed: "
            f"{p.event_shape} and {q.event_shape}"
        )
    return p.event_shape[0]


def _log_det(d: Any) -> Tensor:
    return 2 * half_log_det(d._unbroadcasted_scale_tril) if isinstance(d, MultivariateNormal) else d.log_det()


def _covariance_factors(p: Any) -> list[Tensor]:
    """Matrices of which the sum of the squares is the covariance."""
    if isinstance(p, MultivariateNormal):
        return [p._unbroadcasted_scale_tril]
    return [p._unbroadcasted_cov_factor, p._unbroadcasted_cov_diag.sqrt().diag_embed()]


@register_kl(MultivariateNormal, MultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _to_multivariate_normal(p: Any, q: Any) -> Tensor:
    n = _check_events(p, q)
    trace: Any = 0
    for factor in _covariance_factors(p):
        shape = ops.broadcast_shapes(q._unbroadcasted_scale_tril.shape[:-2], factor.shape[:-2]) + (-1, -1)
        inside = linalg.solve_triangular(q._unbroadcasted_scale_tril.expand(shape), factor.expand(shape), upper=False)
        trace = trace + _squares(inside)
    distance = batch_mahalanobis(q._unbroadcasted_scale_tril, q.loc - p.loc)
    return 0.5 * (_log_det(q) - _log_det(p) + trace + distance - n)


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _to_low_rank(p: Any, q: Any) -> Tensor:
    n = _check_events(p, q)
    a, root = q.whitened_factor(), q._unbroadcasted_cov_diag.rsqrt().unsqueeze(-1)
    trace: Any = 0
    for factor in _covariance_factors(p):
        trace = trace + _squares(factor * root) - _squares(a @ factor)
    return 0.5 * (_log_det(q) - _log_det(p) + trace + q.mahalanobis(q.loc - p.loc) - n)


# ------------------------------------------------------------------------------------------- of different kinds


def _infinite(p: Any, q: Any) -> Tensor:
    return ops.full_like(next(getattr(p, name) for name in p.arg_constraints), math.inf)


#: q has no density where p has some.
_NOT_COVERED: dict[type, list[type]] = {
    Beta: [Pareto],
    ContinuousBernoulli: [Pareto],
    Exponential: [Beta, ContinuousBernoulli, Pareto, Uniform],
    Gamma: [Beta, ContinuousBernoulli, Pareto, Uniform],
    Gumbel: [Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform],
    Laplace: [Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform],
    Normal: [Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform],
    Pareto: [Beta, ContinuousBernoulli, Uniform],
    Poisson: [Bernoulli, Binomial],
}
for _p, _qs in _NOT_COVERED.items():
    for _q in _qs:
        register_kl(_p, _q)(_infinite)


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Any, q: Any) -> Tensor:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Beta, Exponential)
@register_kl(ContinuousBernoulli, Exponential)
@register_kl(Gamma, Exponential)
@register_kl(Pareto, Exponential)
@register_kl(Uniform, Exponential)
def _to_exponential(p: Any, q: Any) -> Tensor:
    value = -p.entropy() - q.rate.log() + q.rate * p.mean
    return _never(p.low < 0, value) if isinstance(p, Uniform) else value


def _mean_log(p: Any) -> Tensor:
    if isinstance(p, Beta):
        return p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    if isinstance(p, Exponential):
        return -p.rate.log() - euler_constant
    if isinstance(p, Pareto):
        return p.scale.log() + p.alpha.reciprocal()
    return (_x_log_x(p.high) - _x_log_x(p.low)) / (p.high - p.low) - 1


@register_kl(Beta, Gamma)
@register_kl(Exponential, Gamma)
@register_kl(Pareto, Gamma)
@register_kl(Uniform, Gamma)
def _to_gamma(p: Any, q: Any) -> Tensor:
    b = q.concentration
    value = -p.entropy() + b.lgamma() - b * q.rate.log() - (b - 1) * _mean_log(p) + q.rate * p.mean
    return _never(p.low < 0, value) if isinstance(p, Uniform) else value


@register_kl(Beta, Normal)
@register_kl(ContinuousBernoulli, Normal)
@register_kl(Exponential, Normal)
@register_kl(Gamma, Normal)
@register_kl(Gumbel, Normal)
@register_kl(Laplace, Normal)
@register_kl(Pareto, Normal)
@register_kl(Uniform, Normal)
def _to_normal(p: Any, q: Any) -> Tensor:
    spread = (p.variance + (p.mean - q.loc).pow(2)) / (2 * q.scale.pow(2))
    value = -p.entropy() + 0.5 * math.log(2 * math.pi) + q.scale.log() + spread
    return _never(p.alpha <= 2, value) if isinstance(p, Pareto) else value


@register_kl(Beta, Uniform)
@register_kl(ContinuousBernoulli, Uniform)
def _to_uniform(p: Any, q: Any) -> Tensor:
    return _never((q.low > 0) | (q.high < 1), -p.entropy() + (q.high - q.low).log())


@register_kl(Exponential, Gumbel)
@register_kl(Gamma, Gumbel)
def _gamma_gumbel(p: Any, q: Any) -> Tensor:
    a = 1 if isinstance(p, Exponential) else p.concentration
    mean_exp = (q.loc / q.scale).exp() * (1 + 1 / (p.rate * q.scale)).pow(-a)  # of exp(-(x - loc) / scale)
    return -p.entropy() + q.scale.log() + (p.mean - q.loc) / q.scale + mean_exp


@register_kl(Normal, Gumbel)
def _normal_gumbel(p: Any, q: Any) -> Tensor:
    z = (p.loc - q.loc) / q.scale
    return -p.entropy() + q.scale.log() + z + (0.5 * (p.scale / q.scale).pow(2) - z).exp()


@register_kl(Uniform, Gumbel)
def _uniform_gumbel(p: Any, q: Any) -> Tensor:
    low, high = (p.low - q.loc) / q.scale, (p.high - q.loc) / q.scale
    mean_exp = ((-low).exp() - (-high).exp()) / (high - low)
    return -p.entropy() + q.scale.log() + 0.5 * (low + high) + mean_exp


@register_kl(Normal, Laplace)
def _normal_laplace(p: Any, q: Any) -> Tensor:
    gap = p.loc - q.loc
    z = gap / p.scale
    mean_abs = math.sqrt(2 / math.pi) * p.scale * (-0.5 * z.pow(2)).exp() + gap * (math.sqrt(0.5) * z).erf()
    return -p.entropy() + (2 * q.scale).log() + mean_abs / q.scale


@register_kl(Uniform, Beta)
def _uniform_beta(p: Any, q: Any) -> Tensor:
    a, b, width = q.concentration1, q.concentration0, p.high - p.low
    mean_log_rest = (_x_log_x(1 - p.low) - _x_log_x(1 - p.high)) / width - 1
    value = q._log_normalizer(a, b) - width.log() - (a - 1) * _mean_log(p) - (b - 1) * mean_log_rest
    return _never((p.high > 1) | (p.low < 0), value)


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_continuous_bernoulli(p: Any, q: Any) -> Tensor:
    return _never((p.high > 1) | (p.low < 0), _continuous_bernoulli(p, q))


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Any, q: Any) -> Tensor:
    value = -p.entropy() - q.alpha.log() - q.alpha * q.scale.log() + (q.alpha + 1) * _mean_log(p)
    return _never(p.low < q.scale, value)
