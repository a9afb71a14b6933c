"""Every distribution beside torch: densities, moments, draws, gradients, divergences, transforms."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import retrograd
from distributions.cases import CASES, NO_SEED, build, outcome

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity
IDS = [f"{name}-{case}" for name, case in CASES]

#: Where torch's numbers are less exact than ours: its Bessel functions are polynomials good to seven digits.
LOOSE = {"VonMises": 3e-7}
#: What torch has wrong; tests/distributions/test_exact.py has what is right.
WRONG_IN_TORCH = {("Kumaraswamy", "mode")}


def same(ours: Any, theirs: Any, name: str = "") -> None:
    if isinstance(theirs, str) or isinstance(ours, str):
        assert ours == theirs
        return
    tolerance = LOOSE.get(name, 1e-9)
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)
    assert ours.dtype == theirs.dtype


@pytest.fixture(autouse=True)
def double_precision() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Wishart's about few degrees of freedom
        for library in (retrograd, torch):  # (torch's GeneralizedPareto takes no other dtype than the default one)
            library.set_default_dtype(library.float64)
        yield
        for library in (retrograd, torch):
            library.set_default_dtype(library.float32)


@pytest.mark.parametrize(("name", "case"), CASES, ids=IDS)
def test_distribution(name: str, case: str) -> None:
    ours, our_leaves = build(retrograd, name, CASES[name, case])
    theirs, their_leaves = build(torch, name, CASES[name, case])
    assert (tuple(ours.batch_shape), tuple(ours.event_shape)) == (tuple(theirs.batch_shape), tuple(theirs.event_shape))
    assert ours.has_rsample == theirs.has_rsample
    assert ours.has_enumerate_support == theirs.has_enumerate_support
    assert list(ours.arg_constraints) == list(theirs.arg_constraints)
    assert repr(ours) == repr(theirs)
    for what in ("mean", "mode", "variance", "stddev"):
        mine, other = outcome(lambda w=what: getattr(ours, w)), outcome(lambda w=what: getattr(theirs, w))
        if (name, what) in WRONG_IN_TORCH:
            with pytest.raises(AssertionError):  # else the exception is stale
                same(mine, other, name)
        else:
            same(mine, other, name)
    same(outcome(ours.entropy), outcome(theirs.entropy), name)
    same(outcome(ours.enumerate_support), outcome(theirs.enumerate_support), name)

    torch.manual_seed(3)
    value = theirs.sample((5,))
    mine = retrograd.tensor(value.numpy())
    for method in ("log_prob", "cdf"):
        mine_gives = outcome(lambda m=method: getattr(ours, m)(mine))
        same(mine_gives, outcome(lambda m=method: getattr(theirs, m)(value)), name)
    parts = np.random.default_rng(0).uniform(0.05, 0.95, tuple(value.shape))
    same(
        outcome(lambda: ours.icdf(retrograd.tensor(parts))), outcome(lambda: theirs.icdf(torch.tensor(parts))), name
    )
    if their_leaves:
        our_grads = retrograd.autograd.grad(ours.log_prob(mine).sum(), our_leaves, allow_unused=True)
        their_grads = torch.autograd.grad(theirs.log_prob(value).sum(), their_leaves, allow_unused=True)
        for a, b in zip(our_grads, their_grads, strict=True):
            assert (a is None) == (b is None)
            if a is not None:
                same(a.numpy(), b.numpy(), name)


@pytest.mark.parametrize(("name", "case"), CASES, ids=IDS)
def test_draws(name: str, case: str) -> None:
    ours, our_leaves = build(retrograd, name, CASES[name, case])
    theirs, their_leaves = build(torch, name, CASES[name, case])
    method = "rsample" if theirs.has_rsample else "sample"
    retrograd.manual_seed(11)
    torch.manual_seed(11)
    a, b = getattr(ours, method)((4,)), getattr(theirs, method)((4,))
    assert tuple(a.shape) == tuple(b.shape)
    assert str(a.dtype) == str(b.dtype)
    assert ours.support.check(a).all()
    if name in NO_SEED:
        return
    same(a.detach().numpy(), b.detach().numpy(), "draw")
    if theirs.has_rsample and their_leaves:
        weights = np.random.default_rng(1).normal(size=tuple(b.shape))
        mine = retrograd.autograd.grad((a * retrograd.tensor(weights)).sum(), our_leaves)
        expected = torch.autograd.grad((b * torch.tensor(weights)).sum(), their_leaves)
        for x, y in zip(mine, expected, strict=True):
            np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(("name", "case"), CASES, ids=IDS)
def test_expand(name: str, case: str) -> None:
    ours = build(retrograd, name, CASES[name, case])[0]
    theirs = build(torch, name, CASES[name, case])[0]
    shape = (2, *theirs.batch_shape)
    ours, theirs = ours.expand(shape), theirs.expand(shape)
    assert tuple(ours.batch_shape) == tuple(theirs.batch_shape) == shape
    torch.manual_seed(5)
    value = theirs.sample()
    same(ours.log_prob(retrograd.tensor(value.numpy())).detach().numpy(), theirs.log_prob(value).detach().numpy(), name)
    same(outcome(lambda: ours.mean), outcome(lambda: theirs.mean), name)
    assert tuple(ours.sample((3,)).shape) == (3, *value.shape)


def test_every_distribution_is_here() -> None:
    missing = set(torch.distributions.__all__) - set(retrograd.distributions.__all__)
    assert not missing
    abstract = {"Distribution", "ExponentialFamily", "Independent", "MixtureSameFamily", "TransformedDistribution"}
    classes = {n for n in torch.distributions.__all__ if isinstance(getattr(torch.distributions, n), type)}
    classes = {n for n in classes if issubclass(getattr(torch.distributions, n), torch.distributions.Distribution)}
    assert classes - abstract == {name for name, _ in CASES}


def _pairs() -> list[tuple[str, str]]:
    from torch.distributions.kl import _KL_REGISTRY

    return sorted((p.__name__, q.__name__) for p, q in _KL_REGISTRY)


def test_every_divergence_is_here() -> None:
    from retrograd.distributions.kl import _REGISTRY

    assert sorted((p.__name__, q.__name__) for p, q in _REGISTRY) == _pairs()


@pytest.mark.parametrize(("p", "q"), _pairs())
def test_divergence(p: str, q: str) -> None:
    general = {"ExponentialFamily": "Chi2", "Independent": "Normal", "TransformedDistribution": "LogNormal"}

    def pair(library: Any) -> list[Any]:
        made = []
        for name, turn in ((p, False), (q, True)):
            kind = general.get(name, name)
            parameters = dict(next(v for (n, _), v in CASES.items() if n == kind))
            for key, value in parameters.items():
                if turn and isinstance(value, np.ndarray) and key not in ("covariance_matrix", "cov_factor", "probs"):
                    parameters[key] = value * 0.8 + 0.3
            if kind == "Uniform":
                parameters = {"low": np.array([0.2, 0.3]), "high": np.array([0.6, 0.9])}
                if turn and p != "Uniform":
                    parameters = {"low": np.array([-0.1]), "high": np.array([1.2])}
            elif "Uniform" in (p, q) or "Beta" in (p, q):
                parameters = {k: v[0, :1] if isinstance(v, np.ndarray) else v for k, v in parameters.items()}
            d = build(library, kind, parameters)[0]
            made.append(library.distributions.Independent(d, 1) if name == "Independent" else d)
        return made

    ours, theirs = pair(retrograd), pair(torch)
    same(
        outcome(lambda: retrograd.distributions.kl_divergence(*ours)),
        outcome(lambda: torch.distributions.kl_divergence(*theirs)),
    )


def test_a_divergence_that_torch_calls_infinite() -> None:
    # From a uniform distribution that begins or ends where the other one does: it covers all of it.
    for high in (1.0, 1.5):
        found = []
        for library in (retrograd, torch):
            d = library.distributions
            p, q = d.ContinuousBernoulli(library.tensor(0.3)), d.Uniform(library.tensor(0.0), library.tensor(high))
            found.append((outcome(lambda k=d, p=p, q=q: k.kl_divergence(p, q)), outcome(p.entropy)))
        (ours, _), (theirs, entropy) = found
        assert np.isinf(theirs)  # else this is no exception any more
        same(ours, np.log(high) - entropy)


def test_what_is_compared_loosely_needs_it() -> None:
    for name in LOOSE:
        parameters = next(v for (n, _), v in CASES.items() if n == name)
        ours, theirs = build(retrograd, name, parameters)[0], build(torch, name, parameters)[0]
        with pytest.raises(AssertionError):
            same(outcome(lambda d=ours: d.variance), outcome(lambda d=theirs: d.variance))


def _composed(library: Any) -> dict[str, Any]:
    """Distributions that are made of others, and a leaf that each depends on."""
    d = library.distributions
    loc = library.tensor([[0.1, -0.4, 0.7], [0.3, 0.2, -0.5]], requires_grad=True)
    scale, weights = library.tensor([0.5, 1.0, 2.0]), library.tensor([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]])
    normal = d.Normal(loc, scale)
    several = d.Independent(d.Normal(library.stack([loc, loc + 1], -1), 1.5), 1)
    powers = [d.transforms.AffineTransform(1.0, 2.0), d.transforms.ExpTransform()]
    return {
        "mixture": (d.MixtureSameFamily(d.Categorical(weights), normal), loc),
        "mixture of vectors": (d.MixtureSameFamily(d.Categorical(weights), several), loc),
        "independent": (d.Independent(normal, 1), loc),
        "transformed": (d.TransformedDistribution(normal, powers), loc),
        "transformed vectors": (d.TransformedDistribution(d.Independent(normal, 1), powers), loc),
    }


@pytest.mark.parametrize("name", ["mixture", "mixture of vectors", "independent", "transformed", "transformed vectors"])
def test_distributions_made_of_others(name: str) -> None:
    (ours, our_loc), (theirs, their_loc) = _composed(retrograd)[name], _composed(torch)[name]
    assert (tuple(ours.batch_shape), tuple(ours.event_shape)) == (tuple(theirs.batch_shape), tuple(theirs.event_shape))
    for what in ("mean", "variance", "entropy"):
        same(outcome(lambda w=what: _value(ours, w)), outcome(lambda w=what: _value(theirs, w)))
    torch.manual_seed(5)
    retrograd.manual_seed(5)
    value, mine = theirs.sample((4,)), ours.sample((4,))
    same(mine.numpy(), value.numpy())
    for method in ("log_prob", "cdf"):
        same(outcome(lambda m=method: getattr(ours, m)(mine)), outcome(lambda m=method: getattr(theirs, m)(value)))
    ours.log_prob(mine).sum().backward()
    theirs.log_prob(value).sum().backward()
    same(our_loc.grad.numpy(), their_loc.grad.numpy())


def _value(distribution: Any, what: str) -> Any:
    found = getattr(distribution, what)
    return found() if callable(found) else found
