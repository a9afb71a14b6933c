"""Note [Products with zeros] in derivatives/formulas/reduce.py: formulas look for them, in few numbers and in many."""

from __future__ import annotations

import math

import pytest

import retrograd as torch

SIZES = (3, 5000)  # few and many, which are looked at in different ways


def gradient(x: torch.Tensor) -> torch.Tensor:
    x = x.detach().requires_grad_()
    y = x.prod()
    return torch.autograd.grad(y, x, torch.ones_like(y))[0]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64])
def test_the_product_of_the_others(size, dtype):
    x = torch.ones(size, dtype=dtype)
    x[1] = 4
    assert gradient(x)[:3].tolist() == [4, 1, 4]
    x[0] = -0.0
    assert gradient(x)[:3].tolist() == [4, 0, 0]
    x[2] = 0
    assert not gradient(x).any()


@pytest.mark.parametrize("size", SIZES)
def test_nan_is_no_zero(size):
    x = torch.ones(size)
    x[1] = math.nan
    assert gradient(x).isnan().all()


@pytest.mark.parametrize("size", SIZES)
def test_a_captured_step_sees_them_too(size):
    captured = torch.capture(gradient, backend="plain")
    x = torch.ones(size)
    for first in (2.0, 0.0, 3.0, 0.0):
        x[0] = first
        assert captured(x).tolist() == gradient(x).tolist()
