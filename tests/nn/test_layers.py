"""Layers and losses: they print as torch's do and, with the same parameters, give the same values and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd

RNG = np.random.default_rng(0)


def draw(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


X = draw(4, 6)
IMAGE = draw(3, 4, 5, 2)
CLASSES = np.array([0, 2, 1, 5])

#: How to make the module, and its inputs.
CASES: list[tuple[Any, tuple]] = [
    (lambda nn: nn.Linear(6, 3), (X,)),
    (lambda nn: nn.Linear(6, 3, bias=False), (X,)),
    (lambda nn: nn.Bilinear(6, 6, 2), (X, draw(4, 6))),
    (lambda nn: nn.Identity(3, 4), (X,)),
    (lambda nn: nn.Embedding(7, 3, padding_idx=1), (CLASSES,)),
    (lambda nn: nn.Embedding(7, 3, norm_type=1.0, scale_grad_by_freq=True), (CLASSES,)),
    (lambda nn: nn.LayerNorm(6), (X,)),
    (lambda nn: nn.LayerNorm((4, 6), elementwise_affine=False), (X,)),
    (lambda nn: nn.LayerNorm(6, bias=False), (X,)),
    (lambda nn: nn.RMSNorm(6), (X,)),
    (lambda nn: nn.GroupNorm(2, 4), (IMAGE,)),
    (lambda nn: nn.BatchNorm1d(6), (X,)),
    (lambda nn: nn.BatchNorm1d(6, affine=False).eval(), (X,)),
    (lambda nn: nn.BatchNorm1d(6, momentum=None), (X,)),
    (lambda nn: nn.BatchNorm2d(4, track_running_stats=False), (IMAGE,)),
    (lambda nn: nn.InstanceNorm2d(4), (IMAGE,)),
    (lambda nn: nn.InstanceNorm2d(4, affine=True, track_running_stats=True), (IMAGE,)),
    (lambda nn: nn.Dropout(0.3).eval(), (X,)),
    (lambda nn: nn.Dropout(1.0), (X,)),
    (lambda nn: nn.Flatten(), (IMAGE,)),
    (lambda nn: nn.Unflatten(1, (2, 3)), (X,)),
    (lambda nn: nn.ReLU(), (X,)),
    (lambda nn: nn.ReLU6(), (X,)),
    (lambda nn: nn.Tanh(), (X,)),
    (lambda nn: nn.Sigmoid(), (X,)),
    (lambda nn: nn.LogSigmoid(), (X,)),
    (lambda nn: nn.GELU(), (X,)),
    (lambda nn: nn.GELU("tanh"), (X,)),
    (lambda nn: nn.SiLU(), (X,)),
    (lambda nn: nn.Mish(), (X,)),
    (lambda nn: nn.SELU(), (X,)),
    (lambda nn: nn.CELU(2.0), (X,)),
    (lambda nn: nn.ELU(2.0), (X,)),
    (lambda nn: nn.LeakyReLU(0.2), (X,)),
    (lambda nn: nn.PReLU(6), (X,)),
    (lambda nn: nn.Softplus(2), (X,)),
    (lambda nn: nn.Softsign(), (X,)),
    (lambda nn: nn.Softshrink(), (X,)),
    (lambda nn: nn.Hardshrink(), (X,)),
    (lambda nn: nn.Tanhshrink(), (X,)),
    (lambda nn: nn.Hardtanh(-0.5, 0.7), (X,)),
    (lambda nn: nn.Hardsigmoid(), (X,)),
    (lambda nn: nn.Hardswish(), (X,)),
    (lambda nn: nn.Threshold(0.1, -2.0), (X,)),
    (lambda nn: nn.GLU(), (X,)),
    (lambda nn: nn.Softmax(1), (X,)),
    (lambda nn: nn.Softmin(0), (X,)),
    (lambda nn: nn.LogSoftmax(-1), (X,)),
    (lambda nn: nn.Softmax2d(), (IMAGE,)),
    (lambda nn: nn.MSELoss(), (X, draw(4, 6))),
    (lambda nn: nn.MSELoss(reduction="sum"), (X, draw(4, 6))),
    (lambda nn: nn.L1Loss(), (X, draw(4, 6))),
    (lambda nn: nn.SmoothL1Loss(beta=0.5), (X, draw(4, 6))),
    (lambda nn: nn.HuberLoss(delta=0.5), (X, draw(4, 6))),
    (lambda nn: nn.NLLLoss(), (X, CLASSES)),
    (lambda nn: nn.CrossEntropyLoss(label_smoothing=0.1, ignore_index=2), (X, CLASSES)),
    (lambda nn: nn.BCEWithLogitsLoss(), (X, np.abs(np.tanh(draw(4, 6))))),
    (lambda nn: nn.BCELoss(), (1 / (1 + np.exp(-X)), np.abs(np.tanh(draw(4, 6))))),
    (lambda nn: nn.KLDivLoss(reduction="batchmean", log_target=True), (X, draw(4, 6))),
    (lambda nn: nn.CosineSimilarity(), (X, draw(4, 6))),
    (lambda nn: nn.PairwiseDistance(), (X, draw(4, 6))),
]


def run(module: Any, inputs: list[Any]) -> tuple[Any, list[Any]]:
    result = module(*inputs)
    if result.requires_grad:
        (result * result).sum().backward()
    wanted = [*inputs, *module.parameters()]
    return result.detach().numpy(), [None if x.grad is None else x.grad.numpy() for x in wanted]


@pytest.mark.parity
@pytest.mark.parametrize("make, inputs", CASES)
def test_same_values_and_gradients(make: Any, inputs: tuple) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = make(retrograd.nn), make(torch.nn)
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ours.double(), theirs.double()
    state = {name: retrograd.from_numpy(value.numpy().copy()) for name, value in theirs.state_dict().items()}
    ours.load_state_dict(state)
    sides = []
    for package, module in ((retrograd, ours), (torch, theirs)):
        tensors = [package.from_numpy(value.copy()) for value in inputs]
        sides.append(run(module, [t.requires_grad_() if t.is_floating_point() else t for t in tensors]))
    (value, grads), (value_there, grads_there) = sides
    np.testing.assert_allclose(value, value_there, rtol=1e-10, atol=1e-12)
    for mine, other in zip(grads, grads_there, strict=True):
        assert (mine is None) == (other is None)
        if mine is not None:
            # torch takes 1/6 in single precision for the gradient of hardsigmoid.
            np.testing.assert_allclose(mine, other, rtol=1e-7 if repr(ours) == "Hardsigmoid()" else 1e-9, atol=1e-11)
    for name, buffer in ours.named_buffers():
        np.testing.assert_allclose(buffer.numpy(), theirs.get_buffer(name).numpy(), rtol=1e-12)


@pytest.mark.parametrize("make, inputs", CASES)
def test_layers_run(make: Any, inputs: tuple) -> None:
    module = make(retrograd.nn).double()
    assert module(*[retrograd.from_numpy(value.copy()) for value in inputs]) is not None


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
