"""Every transform beside torch: forward, inverse, Jacobian, and what the registries choose."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity
X = np.random.default_rng(3).normal(size=(4, 3))

#: name -> the transform, of a library's `distributions` and a function that makes tensors; and its input.
TRANSFORMS: dict[str, tuple[Any, Any]] = {
    "abs": (lambda d, t: d.AbsTransform(), X),
    "affine": (lambda d, t: d.AffineTransform(t([1.0, 2.0, 3.0]), t([-1.0, 0.5, 2.0])), X),
    "affine of vectors": (lambda d, t: d.AffineTransform(0.5, 2.0, event_dim=1), X),
    "cat": (lambda d, t: d.CatTransform([d.ExpTransform(), d.AffineTransform(1.0, 2.0)], -1, [1, 2]), X),
    "cdf": (lambda d, t: d.CumulativeDistributionTransform(d.Normal(t(0.0), t(1.0))), X),
    "compose": (lambda d, t: d.ComposeTransform([d.ExpTransform(), d.PowerTransform(t(2.0))]), X),
    "correlation": (lambda d, t: d.CorrCholeskyTransform(), X),
    "exp": (lambda d, t: d.ExpTransform(), X),
    "exp inverse": (lambda d, t: d.ExpTransform().inv, np.exp(X)),
    "independent": (lambda d, t: d.IndependentTransform(d.TanhTransform(), 1), X),
    "cholesky": (lambda d, t: d.LowerCholeskyTransform(), X[:3]),
    "positive definite": (lambda d, t: d.PositiveDefiniteTransform(), X[:3]),
    "power": (lambda d, t: d.PowerTransform(t(1.5)), np.exp(X)),
    "reshape": (lambda d, t: d.ReshapeTransform((3,), (3, 1)), X),
    "sigmoid": (lambda d, t: d.SigmoidTransform(), X),
    "softmax": (lambda d, t: d.SoftmaxTransform(), X),
    "softplus": (lambda d, t: d.SoftplusTransform(), X),
    "stack": (lambda d, t: d.StackTransform([d.ExpTransform(), d.SigmoidTransform(), d.identity_transform], 1), X),
    "stick": (lambda d, t: d.StickBreakingTransform(), X),
    "tanh": (lambda d, t: d.TanhTransform(), X),
}


def close(ours: Any, theirs: Any) -> None:
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("cache_size", [0, 1])
def test_transform(name: str, cache_size: int) -> None:
    make, x = TRANSFORMS[name]
    ours = make(retrograd.distributions, lambda v: retrograd.tensor(v, dtype=retrograd.float64)).with_cache(cache_size)
    theirs = make(torch.distributions, lambda v: torch.tensor(v, dtype=torch.float64)).with_cache(cache_size)
    a, b = retrograd.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    y, z = ours(a), theirs(b)
    close(y, z)
    assert (ours.inv(y) is a) == (theirs.inv(z) is b)
    close(ours.inv(y.clone()), theirs.inv(z.clone()))
    assert ours.bijective == theirs.bijective
    assert repr(ours) == repr(theirs)
    assert (repr(ours.domain), repr(ours.codomain)) == (repr(theirs.domain), repr(theirs.codomain))
    assert tuple(ours.forward_shape(a.shape)) == tuple(theirs.forward_shape(b.shape))
    assert tuple(ours.inverse_shape(y.shape)) == tuple(theirs.inverse_shape(z.shape))
    assert ours.inv.inv == ours
    if theirs.bijective:
        close(ours.log_abs_det_jacobian(a, y), theirs.log_abs_det_jacobian(b, z))
        (g,) = retrograd.autograd.grad(ours.log_abs_det_jacobian(a, y).sum() + y.sum(), a)
        (h,) = torch.autograd.grad(theirs.log_abs_det_jacobian(b, z).sum() + z.sum(), b)
        close(g, h)
    else:
        with pytest.raises(NotImplementedError):
            ours.log_abs_det_jacobian(a, y)


REGIONS = [
    "real", "positive", "nonnegative", "unit_interval", "simplex", "corr_cholesky", "lower_cholesky", "boolean",
    "positive_definite", "real_vector", "positive_semidefinite", "one_hot", "symmetric",
]  # fmt: skip


@pytest.mark.parametrize("registry", ["biject_to", "transform_to"])
@pytest.mark.parametrize("region", REGIONS)
def test_registry(registry: str, region: str) -> None:
    def choose(library: Any) -> str:
        d = library.distributions
        try:
            return repr(getattr(d, registry)(getattr(d.constraints, region)))
        except NotImplementedError as error:
            return str(error)

    assert choose(retrograd) == choose(torch)


@pytest.mark.parametrize("region", REGIONS)
def test_constraint(region: str) -> None:
    values = [X[:3], np.eye(3), np.abs(X[:3]), X[:3] @ X[:3].T, np.array([[0.2, 0.3, 0.5], [0, 1, 0], [0.2, -0.2, 1]])]
    for value in values:
        ours = getattr(retrograd.distributions.constraints, region).check(retrograd.tensor(value))
        theirs = getattr(torch.distributions.constraints, region).check(torch.tensor(value))
        assert ours.numpy().tolist() == theirs.numpy().tolist()
