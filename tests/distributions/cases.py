"""Distributions and their parameters, once for both libraries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_rng = np.random.default_rng(7)
POSITIVE = _rng.uniform(0.6, 3.0, (2, 3))
REAL = _rng.normal(size=(2, 3))
INSIDE = _rng.uniform(0.1, 0.9, (2, 3))
SIMPLEX = _rng.dirichlet(np.ones(4), 3)
FACTOR = np.tril(_rng.normal(size=(2, 3, 3)) * 0.3) + np.eye(3)
COVARIANCE = FACTOR @ FACTOR.swapaxes(-1, -2)

#: name, case -> parameters, in order. Arrays become tensors that require grad.
CASES: dict[tuple[str, str], dict[str, Any]] = {
    ("Bernoulli", "probs"): {"probs": INSIDE},
    ("Bernoulli", "logits"): {"logits": REAL},
    ("Bernoulli", "number"): {"probs": 0.3},
    ("Beta", "batch"): {"concentration1": POSITIVE, "concentration0": POSITIVE[::-1].copy()},
    ("Beta", "numbers"): {"concentration1": 2.0, "concentration0": 3.0},
    ("Binomial", "probs"): {"total_count": 5, "probs": INSIDE},
    ("Binomial", "logits"): {"total_count": 4, "logits": REAL},
    ("Categorical", "probs"): {"probs": SIMPLEX},
    ("Categorical", "logits"): {"logits": REAL},
    ("Cauchy", "batch"): {"loc": REAL, "scale": POSITIVE},
    ("Cauchy", "numbers"): {"loc": 0.5, "scale": 2.0},
    ("Chi2", "batch"): {"df": POSITIVE},
    ("ContinuousBernoulli", "probs"): {"probs": INSIDE},
    ("ContinuousBernoulli", "half"): {"probs": np.array([0.4995, 0.5, 0.2])},
    ("ContinuousBernoulli", "logits"): {"logits": REAL},
    ("Dirichlet", "batch"): {"concentration": POSITIVE},
    ("Exponential", "batch"): {"rate": POSITIVE},
    ("FisherSnedecor", "batch"): {"df1": POSITIVE, "df2": POSITIVE + 4},
    ("Gamma", "batch"): {"concentration": POSITIVE, "rate": POSITIVE[::-1].copy()},
    ("Gamma", "broadcast"): {"concentration": POSITIVE, "rate": 2.0},
    ("GeneralizedPareto", "batch"): {"loc": REAL, "scale": POSITIVE, "concentration": INSIDE / 3},
    ("GeneralizedPareto", "exponential"): {"loc": 0.0, "scale": POSITIVE, "concentration": 0.0},
    ("Geometric", "probs"): {"probs": INSIDE},
    ("Geometric", "logits"): {"logits": REAL},
    ("Gumbel", "batch"): {"loc": REAL, "scale": POSITIVE},
    ("HalfCauchy", "batch"): {"scale": POSITIVE},
    ("HalfNormal", "batch"): {"scale": POSITIVE},
    ("InverseGamma", "batch"): {"concentration": POSITIVE, "rate": POSITIVE[::-1].copy()},
    ("Kumaraswamy", "batch"): {"concentration1": POSITIVE, "concentration0": POSITIVE[::-1].copy()},
    ("LKJCholesky", "batch"): {"dim": 3, "concentration": POSITIVE[0]},
    ("Laplace", "batch"): {"loc": REAL, "scale": POSITIVE},
    ("LogNormal", "batch"): {"loc": REAL, "scale": POSITIVE},
    ("LogisticNormal", "batch"): {"loc": REAL, "scale": POSITIVE},
    ("LowRankMultivariateNormal", "batch"): {"loc": REAL, "cov_factor": FACTOR[..., :2], "cov_diag": POSITIVE},
    ("Multinomial", "probs"): {"total_count": 4, "probs": SIMPLEX},
    ("Multinomial", "logits"): {"total_count": 3, "logits": REAL},
    ("MultivariateNormal", "covariance"): {"loc": REAL, "covariance_matrix": COVARIANCE},
    ("MultivariateNormal", "precision"): {"loc": REAL, "precision_matrix": COVARIANCE},
    ("MultivariateNormal", "factor"): {"loc": REAL[0], "scale_tril": FACTOR},
    ("NegativeBinomial", "probs"): {"total_count": 3.0, "probs": INSIDE},
    ("NegativeBinomial", "logits"): {"total_count": POSITIVE, "logits": REAL},
    ("Normal", "batch"): {"loc": REAL, "scale": POSITIVE},
    ("Normal", "numbers"): {"loc": 0.0, "scale": 1.5},
    ("OneHotCategorical", "probs"): {"probs": SIMPLEX},
    ("OneHotCategoricalStraightThrough", "logits"): {"logits": REAL},
    ("Pareto", "batch"): {"scale": POSITIVE, "alpha": POSITIVE[::-1].copy()},
    ("Poisson", "batch"): {"rate": POSITIVE},
    ("RelaxedBernoulli", "probs"): {"temperature": np.array(0.7), "probs": INSIDE},
    ("RelaxedOneHotCategorical", "probs"): {"temperature": np.array(0.7), "probs": SIMPLEX},
    ("StudentT", "batch"): {"df": POSITIVE + 1, "loc": REAL, "scale": POSITIVE},
    ("Uniform", "batch"): {"low": REAL, "high": REAL + POSITIVE},
    ("VonMises", "batch"): {"loc": REAL, "concentration": POSITIVE},
    ("Weibull", "batch"): {"scale": POSITIVE, "concentration": POSITIVE[::-1].copy()},
    ("Wishart", "covariance"): {"df": POSITIVE[:, 0] + 3, "covariance_matrix": COVARIANCE},
    ("Wishart", "precision"): {"df": POSITIVE[:, 0] + 3, "precision_matrix": COVARIANCE},
    ("Wishart", "factor"): {"df": POSITIVE[:, 0] + 3, "scale_tril": FACTOR},
}

#: Whose draws go by way of gamma, Poisson or binomial numbers, which have no torch's seed (docs/RANDOM.md).
NO_SEED = {
    "Beta", "Binomial", "Chi2", "Dirichlet", "FisherSnedecor", "Gamma", "InverseGamma", "LKJCholesky",
    "NegativeBinomial", "Poisson", "StudentT", "Wishart",
}  # fmt: skip


def build(library: Any, name: str, parameters: dict[str, Any]) -> tuple[Any, list[Any]]:
    """The distribution, and its tensors."""
    made = {
        key: library.tensor(value, requires_grad=True) if isinstance(value, np.ndarray) else value
        for key, value in parameters.items()
    }
    leaves = [value for value in made.values() if isinstance(value, library.Tensor)]
    return getattr(library.distributions, name)(**made), leaves


def outcome(call: Callable[[], Any]) -> Any:
    """What a call gives as an array, or the type of its error."""
    try:
        result = call()
    except (NotImplementedError, ValueError) as error:
        return type(error).__name__
    return result.detach().numpy()
