"""LBFGS: iteration for iteration what torch's does, with and without its line search."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd
from retrograd.optim.lbfgs import _cubic_interpolate, _Point, _strong_wolfe

OPTIONS: list[dict[str, Any]] = [
    {"lr": 0.1},
    {"lr": 0.1, "history_size": 3},
    {"lr": 0.1, "max_iter": 5, "max_eval": 4},
    {"line_search_fn": "strong_wolfe"},
    {"line_search_fn": "strong_wolfe", "history_size": 2, "max_iter": 7},
    {"line_search_fn": "strong_wolfe", "max_eval": 3},
    {"line_search_fn": "strong_wolfe", "max_eval": 1},
    {"line_search_fn": "strong_wolfe", "tolerance_grad": 1e-2},
    {"line_search_fn": "strong_wolfe", "tolerance_change": 1e-2},
    {"line_search_fn": "strong_wolfe", "lr": 0.01},
    {"line_search_fn": "strong_wolfe", "lr": 30.0},
]


def minimize(torch: Any, options: dict[str, Any], dtype: str, steps: int = 4) -> tuple[list[Any], list[float], dict]:
    values = np.array([[-1.2, 1.0], [0.7, 2.0]]).astype(dtype)
    a = torch.from_numpy(values.copy()).requires_grad_()
    b = torch.from_numpy((values[0] * (1j if dtype[0] == "c" else 1)).copy()).requires_grad_()
    unused = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([a, b, unused], **options)
    losses: list[float] = []

    def closure() -> Any:
        optimizer.zero_grad()
        x, y = a[0].abs(), a[1].abs()
        loss = ((1 - x) ** 2 + 10 * (y - x * x) ** 2).sum() + ((b.abs() - x) ** 2).sum()
        loss.backward()
        losses.append(loss.item())
        return loss

    for _ in range(steps):
        optimizer.step(closure)
    return [a.detach().numpy(), b.detach().numpy()], losses, optimizer.state_dict()["state"][0]


@pytest.mark.parity
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_beside_torch(options: dict[str, Any], dtype: str) -> None:
    torch = pytest.importorskip("torch")
    steps = 4 if "line_search_fn" in options else 2  # later short steps make much of the last bits
    (ours, losses, state), (theirs, others, other_state) = (
        minimize(package, options, dtype, steps) for package in (retrograd, torch)
    )
    assert losses == pytest.approx(others, rel=1e-7, abs=1e-12)  # each value that a closure gave, in order
    for mine, other in zip(ours, theirs):
        np.testing.assert_allclose(mine, other, rtol=1e-7, atol=1e-9)
    assert (state["func_evals"], state["n_iter"]) == (other_state["func_evals"], other_state["n_iter"])


def test_it_finds_the_minimum(torch: Any) -> None:
    (a, _), losses, _ = minimize(torch, {"line_search_fn": "strong_wolfe", "max_iter": 100}, "float64", steps=2)
    assert losses[-1] < 1e-9 * losses[0]
    np.testing.assert_allclose(np.abs(a), 1, atol=1e-4)


def test_a_gradient_of_zero_ends_it(torch: Any) -> None:
    w = torch.zeros(2, requires_grad=True)
    optimizer = torch.optim.LBFGS([w])
    calls: list[int] = []

    def closure() -> Any:
        calls.append(1)
        optimizer.zero_grad()
        loss = (w * w).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 0 and len(calls) == 1
    assert set(optimizer.state[w]) == {"func_evals", "n_iter"}


def test_the_line_search_meets_its_conditions() -> None:
    """Strong Wolfe: the loss has fallen by c1, the slope flattened by c2, from starts far too short or long."""

    def line(t: float) -> _Point:
        return _Point(t, (t - 3) ** 4 + t, retrograd.zeros(1), 4 * (t - 3) ** 3 + 1)

    start = line(0.0)
    for first in (1e-3, 0.1, 1.0, 5.0, 50.0):
        found, looked = _strong_wolfe(line, start, first, 1.0, 25)
        assert found.loss <= start.loss + 1e-4 * found.t * start.slope
        assert abs(found.slope) <= 0.9 * abs(start.slope)
        assert looked < 25


def test_cubics() -> None:
    """A cubic is found from two points of it: t³ - 3t has its minimum at 1; and nothing is divided by zero."""

    def point(t: float) -> _Point:
        return _Point(t, t**3 - 3 * t, retrograd.zeros(1), 3 * t * t - 3)

    assert _cubic_interpolate(point(0.0), point(3.0)) == pytest.approx(1.0)
    assert _cubic_interpolate(point(3.0), point(0.0)) == pytest.approx(1.0)
    assert _cubic_interpolate(point(0.0), point(3.0), (2.0, 3.0)) == 2.0
    flat = _Point(1.0, 2.0, retrograd.zeros(1), 0.0)
    _cubic_interpolate(flat, flat)
