"""nn.utils: parameters as a vector, and gradients within bounds."""

from __future__ import annotations

import math
from typing import Any

import pytest


def test_vector_and_back(torch: Any) -> None:
    net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 1))
    vector = torch.nn.utils.parameters_to_vector(net.parameters())
    assert vector.shape == (13,) and vector.requires_grad
    torch.nn.utils.vector_to_parameters(torch.arange(13.0), net.parameters())
    assert net[0].weight.tolist() == [[0, 1], [2, 3], [4, 5]] and net[1].bias.tolist() == [12]
    assert all(p.requires_grad for p in net.parameters())


def with_grads(torch: Any, *values: float) -> list[Any]:
    params = [torch.zeros(1, requires_grad=True) for _ in values]
    for p, value in zip(params, values, strict=True):
        p.grad = torch.tensor([value])
    return params


@pytest.mark.parametrize("norm, total", [(2.0, 5), (1.0, 7), (math.inf, 4)])
def test_clip_grad_norm(torch: Any, norm: float, total: float) -> None:
    params = with_grads(torch, 3.0, -4.0)
    found = torch.nn.utils.clip_grad_norm_([*params, torch.zeros(1, requires_grad=True)], 1.0, norm)
    assert found.item() == pytest.approx(total)
    assert [p.grad.item() for p in params] == pytest.approx([3 / total, -4 / total])
    before = [p.grad.item() for p in params]
    torch.nn.utils.clip_grad_norm_(params, 100.0, norm)
    assert [p.grad.item() for p in params] == before


def test_nonfinite_norm(torch: Any) -> None:
    params = with_grads(torch, math.inf)
    with pytest.raises(RuntimeError, match="is non-finite, so it cannot be clipped"):
        torch.nn.utils.clip_grad_norm_(params, 1.0, error_if_nonfinite=True)


def test_clip_grad_value(torch: Any) -> None:
    params = with_grads(torch, 3.0, -4.0, 0.5)
    torch.nn.utils.clip_grad_value_(params, 1)
    assert [p.grad.item() for p in params] == [1, -1, 0.5]


def test_gradients_by_their_other_name(torch: Any) -> None:
    p = torch.nn.Parameter(torch.ones(2))
    p._grad = torch.tensor([3.0, 4.0])
    assert torch.nn.utils.clip_grad_norm_([p], 1.0).item() == 5 and torch.allclose(p.grad, torch.tensor([0.6, 0.8]))
    assert p._grad is p.grad
