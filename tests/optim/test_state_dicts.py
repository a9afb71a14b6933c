"""State dicts go both ways between retrograd and torch: training goes on with the other library as it would have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd
from optim_settings import TYPICAL

pytestmark = pytest.mark.parity

SHAPES = [(3, 2), (2,), ()]
SETTINGS = {**TYPICAL, "LBFGS": {"lr": 0.5, "max_iter": 3, "line_search_fn": "strong_wolfe"}, "Muon": {"lr": 0.1}}


def shapes(name: str) -> list[tuple[int, ...]]:
    return SHAPES[:1] if name == "Muon" else SHAPES


def run(torch: Any, leaves: list[np.ndarray], name: str, state: Any, steps: int) -> tuple[list[np.ndarray], Any]:
    """Some steps from given values and a given state; what comes of both."""
    params = [torch.from_numpy(leaf.copy()).requires_grad_() for leaf in leaves]
    optimizer = getattr(torch.optim, name)(params, **SETTINGS[name])
    if state is not None:
        optimizer.load_state_dict(state)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = sum(((param - 0.5) ** 4).sum() for param in params)
        loss.backward()
        return loss

    for _ in range(steps):
        optimizer.step(closure)
    return [param.detach().numpy() for param in params], optimizer.state_dict()


def translated(value: Any, torch: Any) -> Any:
    """A state dict with the tensors of another library."""
    if isinstance(value, dict):
        return {key: translated(item, torch) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(translated(item, torch) for item in value)
    return torch.from_numpy(value.numpy().copy()) if hasattr(value, "numpy") else value


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("ours_first", [True, False])
def test_the_other_library_goes_on(name: str, ours_first: bool) -> None:
    torch = pytest.importorskip("torch")
    first, second = (retrograd, torch) if ours_first else (torch, retrograd)
    leaves = [np.random.default_rng(i).standard_normal(shape) for i, shape in enumerate(shapes(name))]
    half, state = run(first, leaves, name, None, 3)
    ends = [run(package, half, name, translated(state, package), 3)[0] for package in (first, second)]
    tolerance = 0.005 if name == "Muon" else 1e-7  # bfloat16 within Muon; the state's numbers are float32
    for mine, other in zip(*ends):
        np.testing.assert_allclose(mine, other, rtol=tolerance, atol=tolerance)
        assert not np.array_equal(mine, half[0]) or mine.shape != half[0].shape


@pytest.mark.parametrize("name", SETTINGS)
def test_keys_and_types_are_torchs(name: str) -> None:
    torch = pytest.importorskip("torch")
    leaves = [np.random.default_rng(i).standard_normal(shape) for i, shape in enumerate(shapes(name))]
    ours, theirs = (run(package, leaves, name, None, 2)[1] for package in (retrograd, torch))
    assert [list(group) for group in ours["param_groups"]] == [list(group) for group in theirs["param_groups"]]
    assert list(ours["state"]) == list(theirs["state"])
    for number, state in theirs["state"].items():
        mine = ours["state"][number]
        assert set(mine) == set(state)
        for key, value in state.items():
            if name == "LBFGS" and key in ("t", "H_diag"):  # a float or a 0-d tensor, by how the search went
                assert float(mine[key]) == pytest.approx(float(value))
            else:
                assert kind(mine[key]) == kind(value), key


def kind(value: Any) -> Any:
    if isinstance(value, list):
        return [kind(item) for item in value]
    return (str(value.dtype), tuple(value.shape)) if hasattr(value, "dtype") else type(value)
