"""nn.init: bounds, deviations and shapes of what the functions draw, in torch and here."""

from __future__ import annotations

import math
from typing import Any

import pytest


def test_gains(torch: Any) -> None:
    gain = torch.nn.init.calculate_gain
    for name, value in (
        ("linear", 1), ("conv2d", 1), ("sigmoid", 1), ("tanh", 5 / 3), ("relu", math.sqrt(2)), ("selu", 0.75),
        ("leaky_relu", math.sqrt(2 / (1 + 1e-4))),
    ):  # fmt: skip
        assert gain(name) == pytest.approx(value)
    assert gain("leaky_relu", math.sqrt(5)) == pytest.approx(math.sqrt(1 / 3))
    with pytest.raises(ValueError, match="Unsupported nonlinearity"):
        gain("no")


@pytest.mark.parametrize(
    "name, kwargs, bound, std",
    [
        ("uniform_", {"a": -2.0, "b": 4.0}, 4, None),
        ("normal_", {"std": 3.0}, None, 3),
        ("trunc_normal_", {"std": 2.0, "a": -1.0, "b": 1.0}, 1, None),
        ("xavier_uniform_", {}, math.sqrt(6 / 180), math.sqrt(2 / 180)),
        ("xavier_normal_", {"gain": 2.0}, None, 2 * math.sqrt(2 / 180)),
        ("kaiming_uniform_", {"a": math.sqrt(5)}, 1 / math.sqrt(80), math.sqrt(1 / 240)),
        ("kaiming_uniform_", {"nonlinearity": "relu", "mode": "fan_out"}, math.sqrt(6 / 100), math.sqrt(2 / 100)),
        ("kaiming_normal_", {"nonlinearity": "relu"}, None, math.sqrt(2 / 80)),
    ],
)
def test_draws(torch: Any, name: str, kwargs: dict, bound: float | None, std: float | None) -> None:
    w = torch.nn.Parameter(torch.empty(100, 80))
    assert getattr(torch.nn.init, name)(w, **kwargs) is w
    assert w.requires_grad and w.is_leaf
    if bound is not None:
        assert 0.95 * bound < w.abs().max().item() <= bound * 1.0001
    if std is not None:
        assert w.std().item() == pytest.approx(std, rel=0.05)


def test_fans_of_convolutions(torch: Any) -> None:
    w = torch.empty(10, 4, 3, 3)
    assert torch.nn.init._calculate_fan_in_and_fan_out(w) == (36, 90)
    with pytest.raises(ValueError, match="fewer than 2 dimensions"):
        torch.nn.init.xavier_uniform_(torch.empty(3))


def test_fixed_values(torch: Any) -> None:
    init = torch.nn.init
    assert init.zeros_(torch.ones(2)).tolist() == [0, 0]
    assert init.ones_(torch.zeros(2)).tolist() == [1, 1]
    assert init.constant_(torch.zeros(2), 0.5).tolist() == [0.5, 0.5]
    assert init.eye_(torch.zeros(2, 3)).tolist() == [[1, 0, 0], [0, 1, 0]]
    d = init.dirac_(torch.zeros(4, 2, 3), 2)
    assert d.sum().item() == 4 and d[0, 0, 1] == d[1, 1, 1] == d[2, 0, 1] == d[3, 1, 1] == 1


@pytest.mark.parametrize("shape", [(4, 6), (6, 4), (4, 2, 3)])
def test_orthogonal(torch: Any, shape: tuple) -> None:
    w = torch.nn.init.orthogonal_(torch.empty(*shape, dtype=torch.float64), gain=2.0).reshape(shape[0], -1)
    product = w @ w.T if w.shape[0] <= w.shape[1] else w.T @ w
    assert torch.allclose(product, 4 * torch.eye(product.shape[0], dtype=torch.float64))


def test_sparse(torch: Any) -> None:
    w = torch.nn.init.sparse_(torch.empty(10, 5), 0.3)
    assert ((w == 0).sum(0) == 3).all()


def test_generator(torch: Any) -> None:
    a, b = (torch.nn.init.normal_(torch.empty(5), generator=torch.Generator().manual_seed(3)) for _ in range(2))
    assert (a == b).all()


def test_older_names(torch: Any) -> None:
    with pytest.warns(FutureWarning, match="deprecated"):
        torch.nn.init.uniform(torch.empty(2))


def test_nothing_is_drawn_on_meta(torch):
    x = torch.empty(3, 4, device="meta")
    assert torch.nn.init.trunc_normal_(x) is x and torch.nn.init.trunc_normal_(x, 5.0) is x
