"""The gradient of a function that is made of straight pieces has a derivative: 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

PIECES: list[tuple[str, Callable[[Any, Any], Any]]] = [
    ("relu", lambda F, x: F.relu(x)),
    ("leaky_relu", lambda F, x: F.leaky_relu(x, 0.2)),
    ("leaky_relu_", lambda F, x: F.leaky_relu(x * 1, 0.2, inplace=True)),
    ("hardtanh", lambda F, x: F.hardtanh(x)),
    ("relu6", lambda F, x: F.relu6(x)),
    ("hardshrink", lambda F, x: F.hardshrink(x)),
    ("softshrink", lambda F, x: F.softshrink(x)),
    ("prelu", lambda F, x: F.prelu(x, x.detach().reshape(-1)[:1])),
    ("prelu's slope", lambda F, x: F.prelu(x.detach(), x.reshape(-1)[:1])),
    ("rrelu", lambda F, x: F.rrelu(x)),
    ("rrelu, training", lambda F, x: F.rrelu(x, training=True)),
    ("rrelu_, training", lambda F, x: F.rrelu(x * 1, training=True, inplace=True)),
    ("max_pool1d", lambda F, x: F.max_pool1d(x[0], 2)),
    ("max_pool2d", lambda F, x: F.max_pool2d(x, 2)),
    ("max_pool3d", lambda F, x: F.max_pool3d(x, 2)),
    ("adaptive_max_pool1d", lambda F, x: F.adaptive_max_pool1d(x[0], 2)),
    ("adaptive_max_pool2d", lambda F, x: F.adaptive_max_pool2d(x, 2)),
    ("fractional_max_pool2d", lambda F, x: F.fractional_max_pool2d(x, 2, 2)),
    ("nll_loss", lambda F, x: F.nll_loss(x, (x.detach().sum(1) * 0).long())),
]


@pytest.mark.parametrize("function", [f for _, f in PIECES], ids=[name for name, _ in PIECES])
def test_the_second_derivative_is_zero(torch: Any, function: Callable[[Any, Any], Any]) -> None:
    x = torch.linspace(-2, 2, 64, dtype=torch.float64).reshape(2, 2, 4, 4).requires_grad_()
    result = function(torch.nn.functional, x)
    (first,) = torch.autograd.grad(result.sum(), x, create_graph=True)
    assert first.requires_grad and first.abs().sum() > 0
    (second,) = torch.autograd.grad(first.sum(), x)
    assert second.shape == x.shape and not second.any()


def test_of_hardsigmoid() -> None:
    """It is of the same kind; torch has no second derivative of it."""
    import retrograd as torch

    x = torch.linspace(-4, 4, 9).requires_grad_()
    (first,) = torch.autograd.grad(torch.nn.functional.hardsigmoid(x).sum(), x, create_graph=True)
    assert torch.autograd.grad(first.sum(), x)[0].tolist() == [0] * 9


def test_of_prelu_in_both(torch: Any) -> None:
    """The slope times what is below 0: that varies with both."""
    x = torch.tensor([[-2.0, 3.0], [5.0, -7.0]], dtype=torch.float64, requires_grad=True)
    slope = torch.tensor([0.5, 0.25], dtype=torch.float64, requires_grad=True)
    given = torch.tensor([[1.0, 10.0], [100.0, 1000.0]], dtype=torch.float64, requires_grad=True)
    result = torch.nn.functional.prelu(x, slope)
    assert result.grad_fn.name() == "PreluKernelBackward0"
    of_x, of_slope = torch.autograd.grad(result, (x, slope), given, create_graph=True)
    assert of_x.tolist() == [[0.5, 10], [100, 250]] and of_slope.tolist() == [-2, -7000]
    found = torch.autograd.grad(of_x.sum(), (x, slope, given), retain_graph=True)
    assert [t.tolist() for t in found] == [[[0, 0], [0, 0]], [1, 1000], [[0.5, 1], [1, 0.25]]]
    found = torch.autograd.grad(of_slope.sum(), (x, slope, given))
    assert [t.tolist() for t in found] == [[[1, 0], [0, 1000]], [0, 0], [[-2, 0], [0, -7]]]
    assert torch.autograd.gradcheck(torch.nn.functional.prelu, (x, slope))
    assert torch.autograd.gradgradcheck(torch.nn.functional.prelu, (x, slope))


@pytest.mark.parametrize("name", ["hardshrink", "softshrink"])
def test_of_what_is_shrunk(torch: Any, name: str) -> None:
    """At both ends of the middle piece the derivative is that of the middle; NaN and inf are beyond it."""
    x = torch.tensor([-1.0, -0.5, 0.0, 0.5, 1.0, float("inf"), float("nan")], requires_grad=True)
    result = getattr(torch.nn.functional, name)(x)
    assert result.grad_fn.name() == f"{name.capitalize()}Backward0" and len(result.grad_fn.next_functions) == 1
    result.backward(torch.full((7,), float("inf")))
    assert x.grad.tolist() == [float("inf"), 0, 0, 0, *[float("inf")] * 3]
    assert result[:6].tolist() == ([-1, 0, 0, 0, 1] if name == "hardshrink" else [-0.5, 0, 0, 0, 0.5]) + [float("inf")]
    assert result[6].isnan()
