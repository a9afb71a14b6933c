"""Steps that are compiled beside the same steps on NumPy alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd
from retrograd import backends
from retrograd.optim.update import COMPILED

pytestmark = pytest.mark.skipif(
    not backends.fast.is_available(), reason="retrograd[fast] is not installed (make fast)"
)
SETTINGS: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {}),
    ("SGD", {"maximize": True, "weight_decay": 0.1}),
    ("SGD", {"momentum": 0.9}),
    ("SGD", {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("SGD", {"momentum": 0.5, "dampening": 0.3, "maximize": True}),
    ("Adam", {}),
    ("Adam", {"amsgrad": True, "weight_decay": 0.1}),
    ("Adam", {"betas": (0.4, 0.9), "maximize": True}),
    ("AdamW", {"weight_decay": 0.2}),
    ("AdamW", {"weight_decay": 0.2, "amsgrad": True, "foreach": True}),
    ("RMSprop", {}),
    ("RMSprop", {"momentum": 0.9, "maximize": True}),
    ("RMSprop", {"centered": True, "weight_decay": 0.1}),
    ("RMSprop", {"momentum": 0.9, "centered": True, "alpha": 0.3}),
    ("Adagrad", {"lr_decay": 0.1, "weight_decay": 0.1}),
    ("Adadelta", {"maximize": True}),
    ("Adamax", {}),
    ("Adamax", {"betas": (0.3, 0.9), "weight_decay": 0.1}),
    ("NAdam", {"weight_decay": 0.1}),
    ("NAdam", {"betas": (0.3, 0.9), "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {}),  # which divides by variances after five steps
    ("RAdam", {"betas": (0.3, 0.999), "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("Rprop", {}),
    ("Rprop", {"maximize": True, "etas": (0.3, 1.7), "step_sizes": (0.05, 0.12)}),
    ("ASGD", {"weight_decay": 0.1}),
    ("ASGD", {"t0": 0, "maximize": True}),  # whose mean is taken from the second step on, by less than a half later
    ("ASGD", {"t0": 2, "lambd": 0.5}),
]
SHAPES = [(), (0,), (1,), (5,), (17, 3), (130, 257), (1 << 15,)]


def steps(name: str, options: dict[str, Any], dtype: Any, enabled: bool) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    params = [retrograd.tensor(rng.standard_normal(shape), dtype=dtype, requires_grad=True) for shape in SHAPES]
    params.append(retrograd.tensor(rng.standard_normal((7, 9)), dtype=dtype).t().requires_grad_())  # not contiguous
    whole = retrograd.tensor(rng.standard_normal(40), dtype=dtype)
    params += [whole[:25].requires_grad_(), whole[15:].requires_grad_()]  # one after the other
    optimizer = getattr(retrograd.optim, name)(params, lr=0.1, **options)
    with backends.fast.flags(enabled=enabled):
        for _ in range(8):
            for p in params:
                p.grad = retrograd.tensor(rng.standard_normal(tuple(p.shape)), dtype=dtype)
            optimizer.step()
    state = [value for p in params for value in optimizer.state[p].values() if value is not None]
    return [t.detach().numpy() for t in [*params, *state]]


@pytest.mark.parametrize("dtype", [retrograd.float32, retrograd.float64])
@pytest.mark.parametrize("name, options", SETTINGS)
def test_steps(name: str, options: dict[str, Any], dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tolerance = {"rtol": 1e-4, "atol": 1e-5} if dtype is retrograd.float32 else {"rtol": 1e-12, "atol": 1e-13}
    expected = steps(name, options, dtype, False)
    found = steps(name, options, dtype, True)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, **tolerance)


def test_rules_have_their_kernels() -> None:
    """A rule that is said to be compiled is, and changes what it is given."""
    from retrograd.kernels import compiled

    names = ["ASGD", "Adadelta", "Adagrad", "Adam", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD"]
    for name in names:
        getattr(retrograd.optim, name)
    assert sorted(COMPILED.values()) == sorted([*[f"{name.lower()}_step" for name in names], "sgd_plain"])
    p, g = np.ones(4), np.ones(4)
    assert compiled.update("sgd_plain", [[p, g]], (-0.5,)) and (p == 0.5).all()
    assert not compiled.update("sgd_plain", [[p, g.astype(np.float32)]], (-0.5,)) and (p == 0.5).all()
    assert not compiled.update("sgd_plain", [[p, g], [p[::2], g[::2]]], (-0.5,)) and (p == 0.5).all()
    assert not compiled.update("no such rule", [[p, g]], (-0.5,))
