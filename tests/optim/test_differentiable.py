"""Steps that are differentiated: gradients of parameters after some, by those before and by settings."""

from __future__ import annotations

from typing import Any

import pytest

import retrograd

#: Values that are far from where a rule has an edge (signs of Rprop, the largest of Adamax).
SETTINGS: dict[str, dict[str, Any]] = {
    "SGD": {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1, "dampening": 0.2},
    "Adam": {"lr": 0.1, "weight_decay": 0.1, "amsgrad": True},
    "AdamW": {"lr": 0.1},
    "Adamax": {"lr": 0.1, "weight_decay": 0.1},
    "NAdam": {"lr": 0.1, "weight_decay": 0.1},
    "RAdam": {"lr": 0.1, "betas": (0.7, 0.8), "weight_decay": 0.1},
    "RMSprop": {"lr": 0.1, "momentum": 0.5, "centered": True, "eps": 1e-2},
    "Rprop": {"lr": 0.1},
    "Adagrad": {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1},
    "Adadelta": {"lr": 1.0, "weight_decay": 0.1},
    "ASGD": {"lr": 0.1, "t0": 1, "weight_decay": 0.1},
}


def unrolled(torch: Any, name: str, settings: dict[str, Any], p: Any, grads: list[Any]) -> Any:
    """The parameter after a step for each gradient."""
    q = p.clone()
    optimizer = getattr(torch.optim, name)([q], differentiable=True, **settings)
    for grad in grads:
        q.grad = grad
        optimizer.step()
    return q


@pytest.mark.parametrize("name", SETTINGS)
def test_gradients_are_right(name: str) -> None:
    """Against finite differences, through three steps."""
    torch = retrograd
    make = torch.tensor
    p = make([0.5, -1.5, 2.0], dtype=torch.float64, requires_grad=True)
    grads = [make([1.0, -2.0, 0.5], dtype=torch.float64, requires_grad=True) for _ in range(3)]
    grads = [(grad.detach() * (1 + i / 3)).requires_grad_() for i, grad in enumerate(grads)]

    def function(p: Any, *grads: Any) -> Any:
        return unrolled(torch, name, SETTINGS[name], p, [grad * 1 for grad in grads])

    assert torch.autograd.gradcheck(function, (p, *grads))


@pytest.mark.parametrize("name", [name for name in SETTINGS if name not in ("Rprop", "ASGD")])
def test_gradients_of_the_learning_rate(name: str) -> None:
    """Rprop and ASGD have none: they copy the rate into their state when they begin."""
    torch = retrograd
    p = torch.tensor([0.5, -1.5], dtype=torch.float64, requires_grad=True)
    lr = torch.tensor(0.1, dtype=torch.float64, requires_grad=True)

    def function(lr: Any) -> Any:
        settings = {**SETTINGS[name], "lr": lr}
        grads = [torch.tensor([1.0 + i, -2.0], dtype=torch.float64) for i in range(3)]
        return unrolled(torch, name, settings, p.detach(), grads)

    assert torch.autograd.gradcheck(function, (lr,))


@pytest.mark.parametrize("name, setting", [("SGD", "weight_decay"), ("Adam", "weight_decay"), ("Adam", "betas")])
def test_gradients_of_other_settings(name: str, setting: str) -> None:
    torch = retrograd
    values = [torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in (0.3, 0.6)]

    def function(first: Any, second: Any) -> Any:
        settings = {"lr": 0.1, setting: (first, second) if setting == "betas" else first * second}
        p = torch.tensor([0.5, -1.5], dtype=torch.float64)
        grads = [torch.tensor([1.0 + i, -2.0], dtype=torch.float64) for i in range(3)]
        return unrolled(torch, name, settings, p, grads)

    assert torch.autograd.gradcheck(function, tuple(values))


#: torch's second step of these writes to what the first one has saved, so that it cannot be differentiated.
ONE_STEP = ("Adam", "AdamW", "Adamax", "RMSprop", "Rprop")


@pytest.mark.parity
@pytest.mark.parametrize("name", [name for name in SETTINGS if name != "SGD"])
def test_torch_says_the_same(name: str, doubles: Any) -> None:
    torch = pytest.importorskip("torch")
    doubles(torch)
    results = []
    for package in (retrograd, torch):
        p = package.tensor([0.5, -1.5], dtype=package.float64, requires_grad=True)
        grads = [
            package.tensor([1.0 + i, -2.0], dtype=package.float64, requires_grad=True)
            for i in range(1 if name in ONE_STEP else 3)
        ]
        out = unrolled(package, name, SETTINGS[name], p, [grad * 1 for grad in grads])
        wanted = package.autograd.grad((out * package.arange(1.0, 3.0)).sum(), [p, *grads], allow_unused=True)
        results.append([out.tolist(), *[[0, 0] if grad is None else grad.tolist() for grad in wanted]])
    for mine, other in zip(*results):
        assert mine == pytest.approx(other, rel=1e-10, abs=1e-11)


def test_the_first_step_of_momentum_has_its_gradient() -> None:
    """torch's buffer begins with a detached copy of the gradient, so that its first step has none: after one step the
    parameter is ``p - lr * grad`` with momentum as without, and so must the derivative be."""
    torch = retrograd
    p = torch.tensor([1.0], dtype=torch.float64, requires_grad=True)
    grad = torch.tensor([2.0], dtype=torch.float64, requires_grad=True)
    out = unrolled(torch, "SGD", {"lr": 0.5, "momentum": 0.9}, p, [grad * 1])
    out.backward()
    assert grad.grad.item() == -0.5 and p.grad.item() == 1.0


def test_nothing_is_recorded_without_it(torch: Any) -> None:
    p = torch.tensor([1.0], requires_grad=True)
    p.grad = torch.ones(1, requires_grad=True) * 2
    optimizer = torch.optim.Adam([p])
    optimizer.step()
    assert p.grad_fn is None and not any(value.requires_grad for value in optimizer.state[p].values())
    assert torch.is_grad_enabled()


def test_counts_have_no_gradient(torch: Any) -> None:
    p = torch.tensor([1.0])
    p.grad = torch.ones(1)
    optimizer = torch.optim.Adam([p], differentiable=True)
    optimizer.step()
    optimizer.state[p]["step"].requires_grad_()
    with pytest.raises(RuntimeError, match="`requires_grad` is not supported for `step` in differentiable mode"):
        optimizer.step()
