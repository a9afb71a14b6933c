"""Optimizers for sparse gradients and for matrices, beside torch's."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest

import retrograd


class Sparse:
    """What optimizers ask of a sparse gradient: here of the rows of a matrix, already coalesced."""

    is_sparse = True

    def __init__(self, indices: Any, values: Any) -> None:
        self._indices, self._values = (lambda: indices), (lambda: values)

    def coalesce(self) -> Sparse:
        return self


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


@pytest.mark.parity
@pytest.mark.parametrize("maximize", [False, True])
def test_sparse_adam(maximize: bool) -> None:
    """Through the functional form, which is all of it that does not need sparse tensors."""
    torch = pytest.importorskip("torch")
    start = np.random.default_rng(4).standard_normal((4, 2))
    w = torch.from_numpy(start.copy()).requires_grad_()
    optimizer = torch.optim.SparseAdam([w], lr=0.1, maximize=maximize)
    for indices, values in gradients(torch):
        w.grad = torch.sparse_coo_tensor(indices, values, (4, 2), check_invariants=True)
        optimizer.step()
    mine = retrograd.from_numpy(start.copy())
    state = [retrograd.zeros(4, 2, dtype=retrograd.float64) for _ in range(2)]
    sparse_adam = import_module("retrograd.optim._functional").sparse_adam
    for step, (indices, values) in enumerate(gradients(retrograd), 1):
        sparse_adam(
            [mine], [Sparse(indices, values)], state[:1], state[1:], [step], eps=1e-8, beta1=0.9, beta2=0.999, lr=0.1,
            maximize=maximize,
        )  # fmt: skip
    np.testing.assert_allclose(mine.numpy(), w.detach().numpy(), rtol=1e-12)
    np.testing.assert_allclose(state[0].numpy(), optimizer.state[w]["exp_avg"].numpy(), rtol=1e-12)
    np.testing.assert_allclose(state[1].numpy(), optimizer.state[w]["exp_avg_sq"].numpy(), rtol=1e-12)


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore:Sparse invariant checks")  # torch's Adagrad makes tensors itself
def test_adagrad_with_sparse_gradients() -> None:
    torch = pytest.importorskip("torch")
    start = np.random.default_rng(4).standard_normal((4, 2))
    w = torch.from_numpy(start.copy()).requires_grad_()
    optimizer = torch.optim.Adagrad([w], lr=0.1, lr_decay=0.1)
    for indices, values in gradients(torch)[:3]:
        w.grad = torch.sparse_coo_tensor(indices, values, (4, 2), check_invariants=True)
        optimizer.step()
    mine, total, step = retrograd.from_numpy(start.copy()), retrograd.zeros(4, 2).double(), retrograd.tensor(0.0)
    adagrad = import_module("retrograd.optim.adagrad").adagrad
    settings = {"lr": 0.1, "lr_decay": 0.1, "eps": 1e-10, "maximize": False}
    for indices, values in gradients(retrograd)[:3]:
        adagrad([mine], [Sparse(indices, values)], [total], [step], weight_decay=0, **settings)
    np.testing.assert_allclose(mine.numpy(), w.detach().numpy(), rtol=1e-12)
    with pytest.raises(RuntimeError, match="weight_decay option is not compatible with sparse gradients"):
        adagrad([mine], [Sparse(indices, values)], [total], [step], weight_decay=1, **settings)


@pytest.mark.parametrize(
    "name", ["Adam", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop", "Adadelta", "ASGD", "Adafactor"]
)
def test_dense_optimizers_refuse_sparse_gradients(name: str) -> None:
    class Parameter(retrograd.Tensor):
        grad = Sparse(None, None)  # type: ignore[assignment]

    p = retrograd.ones(2)
    p.__class__ = Parameter
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
