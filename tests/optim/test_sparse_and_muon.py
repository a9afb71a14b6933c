"""Optimizers for sparse gradients and for matrices, beside torch's."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest

import retrograd

ROWS = [[0, 2], [2, 3], [1, 2], []]


def gradients(torch: Any) -> list[tuple[Any, Any]]:
    rng = np.random.default_rng(3)
    return [
        (
            torch.tensor([rows], dtype=torch.int64),
            torch.from_numpy(rng.standard_normal((len(rows), 2))),
        )
        for rows in ROWS
    ]


def run(torch: Any, name: str, **settings: Any) -> tuple[Any, Any]:
    w = torch.from_numpy(np.random.default_rng(4).standard_normal((4, 2))).requires_grad_()
    optimizer = getattr(torch.optim, name)([w], **settings)
    for indices, values in gradients(torch):
        w.grad = torch.sparse_coo_tensor(indices, values, (4, 2), check_invariants=True)
        optimizer.step()
    return w, optimizer.state[w]


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore:Sparse invariant checks")  # torch's Adagrad makes tensors itself
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("SparseAdam", {"lr": 0.1}),
        ("SparseAdam", {"lr": 0.1, "maximize": True}),
        ("Adagrad", {"lr": 0.1, "lr_decay": 0.1}),
        ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ],
)
def test_sparse_gradients(name: str, settings: Any) -> None:
    torch = pytest.importorskip("torch")
    (mine, own), (theirs, state) = (run(module, name, **settings) for module in (retrograd, torch))
    np.testing.assert_allclose(mine.detach().numpy(), theirs.detach().numpy(), rtol=1e-12)
    assert set(own) == set(state)
    for key, value in state.items():
        if key != "step":
            np.testing.assert_allclose(own[key].to_dense().numpy(), value.to_dense().numpy(), rtol=1e-12)


def test_adagrad_refuses_weight_decay_of_sparse_gradients() -> None:
    with pytest.raises(RuntimeError, match="weight_decay option is not compatible with sparse gradients"):
        run(retrograd, "Adagrad", weight_decay=1)


@pytest.mark.parametrize(
    "name", ["Adam", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop", "Adadelta", "ASGD", "Adafactor"]
)
def test_dense_optimizers_refuse_sparse_gradients(name: str) -> None:
    p = retrograd.ones(2, requires_grad=True)
    p.grad = retrograd.sparse_coo_tensor([[0]], [1.0], (2,))
    with pytest.raises(RuntimeError, match=f"{name} does not support sparse gradients"):
        getattr(retrograd.optim, name)([p]).step()


@pytest.mark.parity
@pytest.mark.parametrize("shape", [(4, 4), (3, 8), (9, 2)])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"nesterov": False, "momentum": 0.5},
        {"adjust_lr_fn": "match_rms_adamw", "weight_decay": 0.0},
        {"ns_steps": 3, "ns_coefficients": (3.0, -4.0, 2.0), "eps": 1e-3},
    ],
)
def test_muon(shape: tuple[int, int], settings: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    results = []
    for package in (retrograd, torch):
        rng = np.random.default_rng(5)
        w = package.from_numpy(rng.standard_normal(shape).astype("float32")).requires_grad_()
        optimizer = package.optim.Muon([w], lr=0.1, **settings)
        for _ in range(3):
            w.grad = package.from_numpy(rng.standard_normal(shape).astype("float32"))
            optimizer.step()
        results.append((w.detach().numpy(), optimizer.state[w]["momentum_buffer"].numpy()))
    (ours, buffer), (theirs, other) = results
    np.testing.assert_allclose(buffer, other, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(ours, theirs, rtol=0.01, atol=0.005)  # sums in another order round otherwise in bfloat16


def test_muon_makes_orthogonal() -> None:
    """The singular values of its update are about 1, whatever those of the gradient were."""
    grad = retrograd.from_numpy(np.random.default_rng(6).standard_normal((6, 4)) @ np.diag([1.0, 3.0, 0.3, 2.0]))
    orthogonal = import_module("retrograd.optim._muon")._zeropower_via_newtonschulz
    update = orthogonal(grad, (3.4445, -4.7750, 2.0315), 5, 1e-7)
    values = np.linalg.svd(update.float().numpy())[1]
    assert (values > 0.6).all() and (values < 1.3).all()
