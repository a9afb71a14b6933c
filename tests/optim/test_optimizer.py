"""Optimizer: groups, state, saving and loading, hooks, printing; as torch does it."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import retrograd


def params(torch: Any, n: int = 2) -> list[Any]:
    return [torch.full((2,), float(i + 1), requires_grad=True) for i in range(n)]


def test_groups(torch: Any) -> None:
    a, b, c = params(torch, 3)
    optimizer = torch.optim.SGD([{"params": [a]}, {"params": b, "lr": 0.5}], lr=0.1, momentum=0.9)
    optimizer.add_param_group({"params": (p for p in [c]), "momentum": 0})
    assert [g["lr"] for g in optimizer.param_groups] == [0.1, 0.5, 0.1]
    assert [g["momentum"] for g in optimizer.param_groups] == [0.9, 0.9, 0]
    assert [len(g["params"]) for g in optimizer.param_groups] == [1, 1, 1]
    assert set(optimizer.defaults) == {
        "lr", "momentum", "dampening", "weight_decay", "nesterov", "maximize", "foreach", "differentiable", "fused",
    }  # fmt: skip


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda t, p: t.optim.SGD([], lr=1), ValueError, "empty parameter list"),
        (lambda t, p: t.optim.SGD(p, lr=1), TypeError, "iterable of Tensors or dicts"),
        (lambda t, p: t.optim.SGD([p * 2], lr=1), ValueError, "can't optimize a non-leaf Tensor"),
        (lambda t, p: t.optim.SGD([3], lr=1), TypeError, "can only optimize Tensors"),
        (lambda t, p: t.optim.SGD([{"params": [p]}, {"params": [p]}], lr=1), ValueError, "more than one parameter"),
        (lambda t, p: t.optim.SGD([{"params": {p}}], lr=1), TypeError, "ordered collections"),
        (lambda t, p: t.optim.SGD([p], lr=-1), ValueError, "Invalid learning rate: -1"),
        (lambda t, p: t.optim.SGD([p], momentum=-1), ValueError, "Invalid momentum value: -1"),
        (lambda t, p: t.optim.SGD([p], weight_decay=-1), ValueError, "Invalid weight_decay value: -1"),
        (lambda t, p: t.optim.SGD([p], nesterov=True), ValueError, "Nesterov momentum requires"),
        (lambda t, p: t.optim.Adam([p], betas=(1, 0.9)), ValueError, "Invalid beta parameter at index 0: 1"),
        (lambda t, p: t.optim.Adam([p], eps=-1), ValueError, "Invalid epsilon value: -1"),
    ],
)
def test_refusals(torch: Any, call: Any, error: type, text: str) -> None:
    with pytest.raises(error, match=text):
        call(torch, torch.ones(2, requires_grad=True))


def test_zero_grad(torch: Any) -> None:
    (p,) = params(torch, 1)
    optimizer = torch.optim.SGD([p], lr=1)
    (p * p).sum().backward()
    optimizer.zero_grad(set_to_none=False)
    assert p.grad.tolist() == [0, 0]
    optimizer.zero_grad()
    assert p.grad is None


def test_step_needs_gradients_only_where_there_are_some(torch: Any) -> None:
    a, b = params(torch)
    a.grad = torch.ones(2)
    torch.optim.Adam([a, b], lr=0.1).step()
    assert a.tolist() == pytest.approx([0.9, 0.9]) and b.tolist() == [2, 2]


def test_closure(torch: Any) -> None:
    (p,) = params(torch, 1)
    optimizer = torch.optim.SGD([p], lr=0.25)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 2
    assert p.tolist() == [0.5, 0.5] and p.requires_grad and p.is_leaf


def test_state_dict(torch: Any) -> None:
    a, b = params(torch)
    optimizer = torch.optim.Adam([{"params": [a]}, {"params": [b], "lr": 0.5}], lr=0.1)
    a.grad, b.grad = torch.ones(2), torch.ones(2)
    optimizer.step()
    saved = optimizer.state_dict()
    assert list(saved) == ["state", "param_groups"]
    assert [g["params"] for g in saved["param_groups"]] == [[0], [1]]
    assert list(saved["state"][0]) == ["step", "exp_avg", "exp_avg_sq"] and saved["state"][1]["step"] == 1
    c, d = (torch.full((2,), v, dtype=torch.float64, requires_grad=True) for v in (1.0, 2.0))
    other = torch.optim.Adam([{"params": [c]}, {"params": [d]}], lr=3)
    other.load_state_dict(saved)
    assert [g["lr"] for g in other.param_groups] == [0.1, 0.5]
    assert other.param_groups[0]["params"][0] is c
    assert other.state[c]["exp_avg"].dtype == torch.float64 and other.state[c]["step"].dtype == torch.float32
    assert other.state[c]["exp_avg"] is not saved["state"][0]["exp_avg"]
    with pytest.raises(ValueError, match="different number of parameter groups"):
        torch.optim.Adam([c]).load_state_dict(saved)
    with pytest.raises(ValueError, match="doesn't match the size of optimizer's group"):
        torch.optim.Adam([{"params": [c, d]}, {"params": params(torch, 1)}]).load_state_dict(saved)


def test_resumed_training_goes_on_the_same(torch: Any) -> None:
    def train(p: Any, optimizer: Any, steps: int) -> None:
        for _ in range(steps):
            optimizer.zero_grad()
            (p**4).sum().backward()
            optimizer.step()

    (p,) = params(torch, 1)
    optimizer = torch.optim.Adam([p], lr=0.1)
    train(p, optimizer, 3)
    q = p.detach().clone().requires_grad_()
    resumed = torch.optim.Adam([q], lr=9)
    resumed.load_state_dict(copy.deepcopy(optimizer.state_dict()))  # torch's would go on sharing it
    train(p, optimizer, 3)
    train(q, resumed, 3)
    assert (p == q).all()


def test_step_hooks(torch: Any) -> None:
    (p,) = params(torch, 1)
    p.grad = torch.ones(2)
    optimizer = torch.optim.SGD([p], lr=1)
    seen: list[Any] = []
    optimizer.register_step_pre_hook(lambda o, args, kwargs: seen.append(p[0].item()))
    handle = optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append(p[0].item()))
    optimizer.step()
    handle.remove()
    optimizer.step()
    assert seen == [1, 0, 0]


def test_printing(torch: Any) -> None:
    assert (
        repr(torch.optim.SGD(params(torch), lr=0.1))
        == """SGD (
Parameter Group 0
    dampening: 0
    differentiable: False
    foreach: None
    fused: None
    lr: 0.1
    maximize: False
    momentum: 0
    nesterov: False
    weight_decay: 0
)"""
    )


def test_named_parameters(torch: Any) -> None:
    net = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(net.named_parameters(), lr=0.1)
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["weight", "bias"]


def test_copies() -> None:
    (p,) = params(retrograd, 1)
    p.grad = retrograd.ones(2)
    optimizer = retrograd.optim.Adam([p], lr=0.5)
    optimizer.step()
    for other in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        (q,) = other.param_groups[0]["params"]
        assert q is not p and (q == p).all() and other.state[q]["step"] == 1
        q.grad = retrograd.ones(2)
        other.step()
