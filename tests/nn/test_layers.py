"""Layers and losses: what a table of values does not show."""

from __future__ import annotations

from typing import Any

import pytest


def test_inplace_activations(torch: Any) -> None:
    for name in ("ReLU", "ReLU6", "SiLU", "Mish", "SELU", "Hardsigmoid", "Hardswish", "LeakyReLU", "ELU", "CELU"):
        x = torch.tensor([-1.0, 2.0])
        y = x + 0
        result = getattr(torch.nn, name)(inplace=True)(y)
        assert result is y, name
        assert torch.allclose(y, getattr(torch.nn, name)()(x)), name
    assert repr(torch.nn.ReLU(True)) == "ReLU(inplace=True)" and repr(torch.nn.Hardswish(True)) == "Hardswish()"


def test_first_values_lie_within_bounds(torch: Any) -> None:
    layer = torch.nn.Linear(16, 300)
    for parameter in (layer.weight, layer.bias):
        assert 0.2 < parameter.abs().max().item() <= 0.25
        assert abs(parameter.mean().item()) < 0.05
    assert torch.nn.Bilinear(4, 3, 50).weight.abs().max().item() <= 0.5
    table = torch.nn.Embedding(500, 4, padding_idx=-1)
    assert table.padding_idx == 499 and (table.weight[499] == 0).all()
    assert abs(table.weight.std().item() - 1) < 0.1
    assert (torch.nn.PReLU().weight == 0.25).all()


def test_older_reduction_arguments(torch: Any) -> None:
    with pytest.warns(UserWarning, match="size_average and reduce args will be deprecated"):
        assert torch.nn.MSELoss(size_average=False).reduction == "sum"


def test_pretrained_embedding(torch: Any) -> None:
    rows = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    table = torch.nn.Embedding.from_pretrained(rows)
    assert not table.weight.requires_grad
    assert table(torch.tensor([1])).tolist() == [[3, 4]]


def test_batch_norm_keeps_running_values(torch: Any) -> None:
    m = torch.nn.BatchNorm1d(2, momentum=0.5)
    x = torch.tensor([[1.0, 0.0], [3.0, 4.0]])
    m(x)
    assert m.running_mean.tolist() == [1, 1] and m.running_var.tolist() == [1.5, 4.5]
    assert m.num_batches_tracked.item() == 1
    with pytest.raises(ValueError, match="Expected more than 1 value per channel when training"):
        m(torch.ones(1, 2))
    with pytest.raises(ValueError, match="expected 2D or 3D input"):
        m(torch.ones(2))


def test_data_parallel_without_accelerators(torch: Any) -> None:
    net = torch.nn.DataParallel(torch.nn.Linear(2, 2))
    assert list(net.state_dict()) == ["module.weight", "module.bias"]
    net(torch.ones(1, 2)).sum().backward()
    assert net.module.weight.grad is not None
