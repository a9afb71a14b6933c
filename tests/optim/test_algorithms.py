"""SGD, Adam and AdamW: step for step what torch's give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd

SETTINGS: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.01, "maximize": True, "momentum": 0.5}),
    ("Adam", {}),
    ("Adam", {"lr": 0.1, "betas": (0.8, 0.9), "eps": 1e-3}),
    ("Adam", {"lr": 0.1, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.1, "amsgrad": True}),
    ("Adam", {"lr": 0.01, "maximize": True}),
    ("Adam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("AdamW", {"lr": 0.1}),
    ("AdamW", {"lr": 0.1, "weight_decay": 0.3, "amsgrad": True}),
]


def train(torch: Any, name: str, settings: dict[str, Any], dtype: str, steps: int = 12) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    kind = np.dtype(dtype)
    values = rng.standard_normal((3, 2)) + (1j * rng.standard_normal((3, 2)) if kind.kind == "c" else 0)
    w = torch.from_numpy(values.astype(kind)).requires_grad_()
    b = torch.from_numpy(rng.standard_normal(2).astype(kind)).requires_grad_()
    x = torch.from_numpy(rng.standard_normal((5, 3)).astype(kind))
    optimizer = getattr(torch.optim, name)([w, b], **settings)
    trace = []
    for _ in range(steps):
        optimizer.zero_grad()
        ((x @ w + b).abs() ** 2).mean().backward()
        optimizer.step()
        trace += [w.detach().numpy().copy(), b.detach().numpy().copy()]
    return trace


@pytest.mark.parity
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name, settings", SETTINGS)
def test_step_for_step(name: str, settings: dict[str, Any], dtype: str) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = (train(package, name, settings, dtype) for package in (retrograd, torch))
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-4 if dtype == "float32" else 1e-12, atol=1e-6)


@pytest.mark.parity
@pytest.mark.parametrize("name, settings", [SETTINGS[3], SETTINGS[8], SETTINGS[12]])
def test_complex_parameters(name: str, settings: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = (train(package, name, settings, "complex128") for package in (retrograd, torch))
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name, settings", SETTINGS)
def test_training_goes_somewhere(name: str, settings: dict[str, Any]) -> None:
    trace = train(retrograd, name, settings, "float64")
    assert all(np.isfinite(value).all() for value in trace)
    assert not np.array_equal(trace[0], trace[-2])


@pytest.mark.parity
@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_learning_rate_as_a_tensor(name: str) -> None:
    torch = pytest.importorskip("torch")
    results = []
    for package in (retrograd, torch):
        w = package.tensor([1.0, 2.0], requires_grad=True)
        w.grad = package.tensor([0.5, -0.5])
        getattr(package.optim, name)([w], lr=package.tensor(0.1)).step()
        results.append(w.tolist())
    assert results[0] == pytest.approx(results[1], rel=1e-6)


def test_writes_are_counted(torch: Any) -> None:
    w = torch.ones(1, requires_grad=True)
    loss = w * w
    w.grad = torch.ones(1)
    torch.optim.SGD([w], lr=0.1).step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_differentiable_step(torch: Any) -> None:
    w = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
    inner = w.clone()
    inner.grad = w * 3
    optimizer = torch.optim.SGD([inner], lr=0.5, differentiable=True)
    optimizer.step()
    inner.backward()
    assert w.grad.item() == pytest.approx(1 - 1.5)
