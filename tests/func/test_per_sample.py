"""grad(losses, params, is_outputs_batched=True): the gradient of each sample, from an ordinary graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as torch
from retrograd import nn
from retrograd.func import per_sample

F = nn.functional


class Attention(nn.Module):
    def __init__(self, causal: bool | None = None) -> None:
        super().__init__()
        self.causal = causal
        self.table, self.norm = nn.Embedding(10, 8), nn.LayerNorm(8)
        self.heads, self.out = nn.Linear(8, 24), nn.Linear(8, 4)

    def forward(self, x: Any) -> Any:
        h = self.table(x)
        b, t, _ = h.shape
        q, k, v = (part.view(b, t, 2, 4).transpose(1, 2) for part in self.heads(self.norm(h)).chunk(3, -1))
        if self.causal is None:
            mixed = torch.softmax(q @ k.transpose(-2, -1) / 2, -1) @ v
        else:
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out((h + mixed.transpose(1, 2).reshape(b, t, 8)).mean(1))


MODELS = {
    "mlp": (
        lambda: nn.Sequential(nn.Linear(5, 6), nn.ReLU(), nn.LayerNorm(6), nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 4)),
        lambda: torch.randn(6, 5), True,
    ),
    "convolutions": (
        lambda: nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(27, 4)),
        lambda: torch.randn(6, 2, 8, 8), True,
    ),
    "group normalization": (
        lambda: nn.Sequential(nn.Conv2d(2, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 4)),
        lambda: torch.randn(6, 2, 8, 8), True,
    ),
    "attention": (Attention, lambda: torch.randint(0, 10, (6, 4)), True),
    "fused attention": (lambda: Attention(False), lambda: torch.randint(0, 10, (6, 4)), True),
    "causal attention": (lambda: Attention(True), lambda: torch.randint(0, 10, (6, 4)), True),
    # Samples lie along other dimensions on the way, or side by side along one.
    "encoder layer": (lambda: nn.Sequential(nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), _Mean(8)),
                      lambda: torch.randn(6, 5, 8), True),
    "encoder layer, sizes alike": (
        lambda: nn.Sequential(nn.TransformerEncoderLayer(6, 6, 6, 0.0, batch_first=True, norm_first=True), _Mean(6)),
        lambda: torch.randn(6, 6, 6), True,
    ),
    "instance normalization": (
        lambda: nn.Sequential(nn.Conv2d(2, 3, 3), nn.InstanceNorm2d(3, affine=True), nn.ReLU(), nn.Flatten(),
                              nn.Linear(108, 4)),
        lambda: torch.randn(6, 2, 8, 8), True,
    ),
    "instance normalization, sizes alike": (
        lambda: nn.Sequential(nn.InstanceNorm1d(6, affine=True), nn.Flatten(), nn.Linear(36, 4)),
        lambda: torch.randn(6, 6, 6), True,
    ),
    "lstm": (lambda: _Recurrent(nn.LSTM), lambda: torch.randn(6, 5, 3), True),
    "gru": (lambda: _Recurrent(nn.GRU), lambda: torch.randn(6, 6, 3), True),
    "class token": (lambda: _ClassToken(), lambda: torch.randn(6, 5, 8), True),
    # Here samples are mixed, or lie along another dimension: each loss is differentiated by itself.
    "batch normalization": (lambda: nn.Sequential(nn.Linear(5, 6), nn.BatchNorm1d(6), nn.Linear(6, 4)),
                            lambda: torch.randn(6, 5), False),
    "shuffled": (lambda: nn.Sequential(nn.Linear(5, 4), _Flipped()), lambda: torch.randn(6, 5), False),
}  # fmt: skip


class _Mean(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.out = nn.Linear(width, 4)

    def forward(self, x: Any) -> Any:
        return self.out(x.mean(1))


class _Recurrent(nn.Module):
    def __init__(self, kind: Any) -> None:
        super().__init__()
        self.layers, self.out = kind(3, 4, 2, batch_first=True, bidirectional=True), nn.Linear(8, 4)

    def forward(self, x: Any) -> Any:
        return self.out(self.layers(x)[0][:, -1])


class _ClassToken(nn.Module):
    """What all samples share is expanded, and stands before each."""

    def __init__(self) -> None:
        super().__init__()
        self.token, self.places = nn.Parameter(torch.randn(1, 1, 8)), nn.Parameter(torch.randn(6, 8))
        self.mixed, self.out = nn.Linear(8, 8), nn.Linear(8, 4)

    def forward(self, x: Any) -> Any:
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
        return self.out(self.mixed(x).tanh().amax(1))


class _Flipped(nn.Module):
    def forward(self, x: Any) -> Any:
        return x + x.flip(0) * 2


@pytest.mark.parametrize("name", MODELS)
def test_each_sample_has_the_gradient_of_its_own_loss(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    make, draw, direct = MODELS[name]
    model, inputs, targets = make().double(), draw(), torch.randint(0, 4, (6,))
    inputs = inputs.double() if inputs.is_floating_point() else inputs
    apart: list[int] = []
    original = per_sample._one_by_one
    monkeypatch.setattr(per_sample, "_one_by_one", lambda *args: apart.append(1) or original(*args))

    def losses() -> Any:
        return F.cross_entropy(model(inputs), targets, reduction="none")

    params = list(model.parameters())
    found = torch.autograd.grad(losses(), params, is_outputs_batched=True)
    assert (not apart) == direct
    for i in range(6):
        for got, expected in zip(found, torch.autograd.grad(losses()[i], params), strict=True):
            np.testing.assert_allclose(got[i].numpy(), expected.numpy(), 1e-8, 1e-10)


def test_weights_and_the_graph() -> None:
    w = torch.randn(3, requires_grad=True)
    x = torch.randn(4, 3)
    out = (x * w).sin()
    weights = torch.randn(4, 3)
    (found,) = torch.autograd.grad(out, w, weights, is_outputs_batched=True)
    np.testing.assert_allclose(found.numpy(), (weights * x * (x * w).cos()).detach().numpy(), 1e-5, 1e-6)
    with pytest.raises(RuntimeError, match="a second time"):
        torch.autograd.grad(out, w, weights)
    losses = (x @ w).exp()
    torch.autograd.grad(losses, w, is_outputs_batched=True, retain_graph=True)
    torch.autograd.grad(losses.sum(), w)


def test_refusals() -> None:
    w = torch.randn(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="first dimension of the same size"):
        torch.autograd.grad((w * w).sum(), w, is_outputs_batched=True)
    with pytest.raises(RuntimeError, match="one number per sample"):
        torch.autograd.grad(torch.ones(2, 3) * w, w, is_outputs_batched=True)
    with pytest.raises(RuntimeError, match="neither create_graph"):
        torch.autograd.grad(w * w, w, is_outputs_batched=True, create_graph=True)
    with pytest.raises(RuntimeError, match="does not require grad"):
        torch.autograd.grad(torch.ones(2), w, is_outputs_batched=True)
    unused = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="not have been used"):
        torch.autograd.grad(w * w, (w, unused), is_outputs_batched=True)
