"""Distributions without torch: draws have their moments, divergences agree with means over draws, derivatives of draws
with differences of quantiles."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special, stats

import retrograd as torch
from distributions.cases import CASES, build
from retrograd.kernels import dirichlet_grad, standard_gamma_grad

d = torch.distributions
CONTINUOUS_MOMENTS = [
    key for key in CASES if key[0] not in (
        # no second moments to compare with at these parameters, or none at all
        "Cauchy", "Categorical", "HalfCauchy", "InverseGamma", "Pareto", "StudentT", "FisherSnedecor",
        "LKJCholesky", "LogisticNormal", "RelaxedBernoulli", "RelaxedOneHotCategorical",
        # the variance is that of a point on the circle; heavy tails make the mean of squares useless
        "VonMises", "LogNormal",
    )
]  # fmt: skip


@pytest.mark.parametrize(("name", "case"), CONTINUOUS_MOMENTS, ids=[f"{n}-{c}" for n, c in CONTINUOUS_MOMENTS])
def test_moments_of_draws(name: str, case: str) -> None:
    distribution = build(torch, name, CASES[name, case])[0]
    torch.manual_seed(0)
    drawn = distribution.sample((20000,)).numpy()
    mean, variance = distribution.mean.detach().numpy(), distribution.variance.detach().numpy()
    error = np.sqrt(variance / 20000)
    assert (np.abs(drawn.mean(0) - mean) < 5 * error + 1e-12).all()
    np.testing.assert_allclose(drawn.var(0), variance, rtol=0.15)


PAIRS = [
    (d.Normal(0.0, 1.0), d.Laplace(0.5, 2.0)),
    (d.Normal(0.3, 1.0), d.Gumbel(0.5, 2.0)),
    (d.Laplace(0.1, 0.7), d.Normal(0.5, 2.0)),
    (d.Gamma(2.0, 1.5), d.Gumbel(0.5, 2.0)),
    (d.Gamma(2.0, 1.5), d.Exponential(0.7)),
    (d.Exponential(2.0), d.Gamma(1.5, 0.7)),
    (d.Gumbel(0.3, 0.5), d.Gumbel(0.1, 1.5)),
    (d.Gumbel(0.3, 0.5), d.Normal(0.1, 1.5)),
    (d.Beta(2.0, 3.0), d.Beta(1.5, 0.8)),
    (d.Beta(2.0, 3.0), d.Gamma(1.5, 0.8)),
    (d.Beta(2.0, 3.0), d.ContinuousBernoulli(0.3)),
    (d.Uniform(0.2, 0.7), d.Beta(1.5, 0.8)),
    (d.Uniform(0.2, 0.7), d.Gumbel(1.5, 0.8)),
    (d.Uniform(1.2, 1.7), d.Pareto(1.0, 0.8)),
    # Both live on the unit interval, so the divergence is finite; torch 2.13 says infinity.
    (d.Uniform(0.0, 1.0), d.ContinuousBernoulli(0.3)),
    (d.ContinuousBernoulli(0.3), d.Uniform(0.0, 1.0)),
    (d.Cauchy(0.0, 1.0), d.Cauchy(0.5, 2.0)),
    (d.HalfNormal(1.0), d.HalfNormal(2.0)),
    (d.Poisson(2.0), d.Poisson(3.0)),
    (d.Geometric(0.3), d.Geometric(0.6)),
    (d.Dirichlet(torch.tensor([1.0, 2.0])), d.Dirichlet(torch.tensor([0.7, 0.8]))),
]


@pytest.mark.parametrize(("p", "q"), PAIRS, ids=[f"{type(p).__name__}-{type(q).__name__}" for p, q in PAIRS])
def test_divergence_is_the_mean_over_draws(p: d.Distribution, q: d.Distribution) -> None:
    torch.manual_seed(1)
    x = p.sample((40000,))
    each = (p.log_prob(x) - q.log_prob(x)).numpy()
    assert abs(float(d.kl_divergence(p, q)) - each.mean()) < 5 * each.std() / 200


def test_mode_of_kumaraswamy_is_where_the_density_is_largest() -> None:
    """torch 2.13 gives NaN: it takes the logarithm of 1 - b, which is negative where there is a mode."""
    distribution = d.Kumaraswamy(2.0, 5.0)
    x = torch.linspace(0.001, 0.999, 9999)
    assert abs(float(distribution.mode) - float(x[distribution.log_prob(x).argmax()])) < 2e-4


@pytest.mark.parametrize("a", [0.01, 0.3, 1.0, 5.0, 19.9, 20.1, 300.0, 1e4])
def test_gamma_draws_move_as_the_quantile_does(a: float) -> None:
    q = np.array([1e-3, 0.1, 0.5, 0.9, 0.999])
    h = a * 1e-4
    x = special.gammaincinv(a, q)
    near = [special.gammaincinv(a + k * h, q) for k in (-2, -1, 1, 2)]
    slope = (near[0] - 8 * near[1] + 8 * near[2] - near[3]) / (12 * h)
    keep = x > 1e-290
    np.testing.assert_allclose(standard_gamma_grad(np.full(5, a), x)[keep], slope[keep], rtol=1e-6)


@pytest.mark.parametrize(("a", "b"), [(0.1, 3.0), (1.0, 1.0), (2.0, 5.0), (0.3, 30.0), (100.0, 200.0), (1e4, 3e4)])
def test_beta_draws_move_as_the_quantile_does(a: float, b: float) -> None:
    q = np.array([1e-2, 0.1, 0.5, 0.9, 0.99])
    h = a * 1e-4
    x = special.betaincinv(a, b, q)
    near = [special.betaincinv(a + k * h, b, q) for k in (-2, -1, 1, 2)]
    slope = (near[0] - 8 * near[1] + 8 * near[2] - near[3]) / (12 * h)
    got = dirichlet_grad(x, np.full(5, a), np.full(5, a + b)) * (1 - x)
    np.testing.assert_allclose(got, slope, rtol=1e-6)


def test_gradients_of_mean_draws_are_those_of_the_mean() -> None:
    torch.manual_seed(2)
    concentration = torch.tensor([0.5, 1.0, 3.0], dtype=torch.float64, requires_grad=True)
    drawn = d.Dirichlet(concentration).rsample((20000,)).mean(0)
    expected = d.Dirichlet(concentration).mean
    for i in range(3):
        (got,) = torch.autograd.grad(drawn[i], concentration, retain_graph=True)
        (want,) = torch.autograd.grad(expected[i], concentration, retain_graph=True)
        np.testing.assert_allclose(got.numpy(), want.numpy(), atol=0.01)


def test_densities_are_scipys() -> None:
    x = torch.tensor([0.2, 0.7, 1.5], dtype=torch.float64)
    y = x.numpy()
    np.testing.assert_allclose(d.StudentT(x.new_tensor(3.0)).log_prob(x).numpy(), stats.t(3).logpdf(y))
    angles = d.VonMises(x.new_tensor(0.1), x.new_tensor(2.0))
    np.testing.assert_allclose(angles.log_prob(x), stats.vonmises(2, 0.1).logpdf(y))
    np.testing.assert_allclose(d.Weibull(x.new_tensor(2.0), 1.5).log_prob(x), stats.weibull_min(1.5, scale=2).logpdf(y))
    np.testing.assert_allclose(d.FisherSnedecor(x.new_tensor(3.0), 5.0).log_prob(x), stats.f(3, 5).logpdf(y))
    np.testing.assert_allclose(
        d.Wishart(x.new_tensor(4.0), torch.eye(2, dtype=x.dtype)).log_prob(torch.eye(2, dtype=x.dtype) * 2),
        stats.wishart(4, np.eye(2)).logpdf(np.eye(2) * 2),
    )


def test_wrong_parameters_and_values_are_refused() -> None:
    with pytest.raises(ValueError, match=r"Expected parameter scale .* to satisfy the constraint GreaterThan"):
        d.Normal(0.0, -1.0)
    with pytest.raises(ValueError, match="to be within the support"):
        d.Exponential(1.0).log_prob(torch.tensor(-1.0))
    with pytest.raises(ValueError, match="must be a Tensor"):
        d.Normal(0.0, 1.0).log_prob(0.5)
    with pytest.raises(ValueError, match="Either `probs` or `logits` must be specified"):
        d.Bernoulli()
    with pytest.raises(ValueError, match="not broadcastable with batch_shape"):
        d.Normal(torch.zeros(3), 1.0).log_prob(torch.zeros(2))
    with pytest.raises(NotImplementedError, match="No KL"):
        d.kl_divergence(d.Normal(0.0, 1.0), d.VonMises(0.0, 1.0))
    with pytest.raises(TypeError, match="Distribution subclass"):
        d.register_kl(int, d.Normal)
    assert math.isnan(d.Normal(0.0, math.nan, validate_args=False).log_prob(torch.tensor(0.0)))


class _Custom(d.Normal):
    def __init__(self) -> None:
        super().__init__(0.0, 1.0)


def test_a_subclass_with_its_own_init_has_to_expand_itself() -> None:
    with pytest.raises(NotImplementedError, match=r"must also define a custom \.expand"):
        _Custom().expand([2])


def test_draws_of_small_concentrations_are_never_all_or_nothing() -> None:
    torch.manual_seed(0)
    drawn = d.Beta(torch.full((10000,), 0.001), 0.001).sample()
    assert bool(((drawn > 0) & (drawn < 1)).all())
    assert abs(float((drawn > 0.5).to(torch.float64).mean()) - 0.5) < 0.03
