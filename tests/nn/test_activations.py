"""Activations where they are not plain: in place, over overlapping elements, in half precision, out of bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

ACTIVATIONS = [
    "LogSigmoid", "Hardswish", "Softplus", "SiLU", "Mish", "ELU", "CELU", "SELU", "GELU", "LeakyReLU", "Threshold",
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("size", [50, 20000])
def test_half_precision_is_computed_in_single(torch: Any, name: str, dtype: str, size: int) -> None:
    """Both the result and the gradient are those of float32, rounded once."""
    layer = getattr(torch.nn, name)(*((0.1, 20) if name == "Threshold" else ()))
    rng = np.random.default_rng(0)
    half = getattr(torch, dtype)
    x, grad = (torch.tensor(rng.normal(size=size).astype(np.float32)).to(half) for _ in range(2))
    results = []
    for input in (x.clone().requires_grad_(), x.float().requires_grad_()):
        result = layer(input)
        result.backward(grad.to(result.dtype))
        results.append((result.detach().to(half), input.grad.to(half)))
    for ours, single in zip(*results, strict=True):
        assert ours.dtype == half
        # What lies between two numbers may be rounded either way.
        scale = np.maximum(single.float().abs().numpy(), 2.0**-4)
        step = scale * (2.0**-10 if dtype == "float16" else 2.0**-7)
        assert (np.abs(ours.float().numpy() - single.float().numpy()) <= step).all()


@pytest.mark.parametrize("name", ["elu_", "celu_", "leaky_relu_"])
def test_negative_slopes_in_place_have_no_gradient(torch: Any, name: str) -> None:
    function = getattr(torch.nn.functional, name)
    x = torch.tensor([-1.0, 1.0], requires_grad=True)
    for create_graph in (False, True):
        result = function(x.clone(), -2.0)
        with pytest.raises(RuntimeError, match="please call out-of-place version instead"):
            torch.autograd.grad(result.sum(), x, create_graph=create_graph)
    (grad,) = torch.autograd.grad(function(x.clone(), 2.0).sum(), x)
    (expected,) = torch.autograd.grad(getattr(torch.nn.functional, name[:-1])(x, 2.0).sum(), x)
    assert grad.equal(expected)
    torch.autograd.grad(getattr(torch.nn.functional, name[:-1])(x, -2.0).sum(), x)


def test_rrelu_in_place_too(torch: Any) -> None:
    x = torch.tensor([-1.0, 1.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="please call out-of-place version instead"):
        torch.nn.functional.rrelu_(x.clone(), -5.0, 1.0).sum().backward()


def test_threshold_may_write_to_elements_that_overlap(torch: Any) -> None:
    x = torch.tensor([[0.25, 0.75]]).expand(3, 2)
    torch.nn.functional.threshold_(x, 0.5, -1.0)
    torch.nn.functional.threshold(x, 0.5, -1.0, inplace=True)
    assert x.tolist() == [[-1.0, 0.75]] * 3
    for name in ("relu_", "leaky_relu_", "elu_", "hardtanh_"):
        with pytest.raises(RuntimeError, match="unsupported operation"):
            getattr(torch.nn.functional, name)(x)


def test_softshrink_into_a_tensor(torch: Any) -> None:
    x = torch.tensor([-1.0, 0.25, 2.0])
    out = torch.zeros(3)
    assert torch.nn.functional.softshrink(x, 0.5, out=out) is out
    assert out.tolist() == [-0.5, 0.0, 1.5]
    with pytest.raises(RuntimeError, match="Found dtype Double but expected Float"):
        torch.nn.functional.softshrink(x, 0.5, out=out.double())
    with pytest.raises(RuntimeError, match="unsupported operation"):
        y = x[:, None].expand(3, 3)
        torch.nn.functional.softshrink(y, out=y)


@pytest.mark.parametrize("dtype, largest", [
    ("float16", "65504"), ("bfloat16", r"3.38953e\+38"), ("float32", r"3.40282e\+38"), ("float64", r"1.79769e\+308"),
])  # fmt: skip
def test_range_of_softshrinks_lambda(torch: Any, dtype: str, largest: str) -> None:
    x = torch.ones(2, dtype=getattr(torch, dtype))
    for lambd, shown in ((-1.0, "-1"), (float("inf"), "inf"), (float("nan"), "nan")):
        with pytest.raises(RuntimeError, match=rf"lambda must be in range \[0, {largest}\].*but found {shown}"):
            torch.nn.functional.softshrink(x, lambd)
    assert torch.nn.functional.softshrink(x, 65500.0).tolist() == [0, 0]


@pytest.mark.parametrize("training", [False, True])
def test_bounds_of_rrelu(torch: Any, training: bool) -> None:
    x = torch.ones(2)
    for lower, upper, message in (
        (float("inf"), 0.3, "lower bound must be finite, got inf"),
        (0.1, float("nan"), "upper bound must be finite, got nan"),
        (float("-inf"), float("nan"), "lower bound must be finite, got -inf"),
        (0.5, 0.3, "Lower bound should be less than"),
    ):
        with pytest.raises(RuntimeError, match=message):
            torch.nn.functional.rrelu(x, lower, upper, training)
