"""Optimizer: groups, state, saving and loading, hooks, printing; as torch does it."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import retrograd
from optim_settings import TYPICAL


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


# -------------------------------------------------------------------------------------------- refusals, class by class

#: What torch refuses: (class, settings), settings as a function of the package where they hold tensors.
WRONG: list[tuple[str, Any]] = [
    ("SGD", {"lr": -0.5}),
    ("SGD", {"momentum": -0.5}),
    ("SGD", {"weight_decay": -0.5}),
    ("SGD", {"nesterov": True}),
    ("SGD", {"fused": True, "foreach": True}),
    ("SGD", {"fused": True, "differentiable": True}),
    ("SGD", lambda t: {"lr": t.ones(2)}),
    ("Adam", {"lr": -1}),
    ("Adam", {"lr": float("nan")}),
    ("Adam", {"eps": -1}),
    ("Adam", {"betas": (1.0, 0.5)}),
    ("Adam", {"betas": (0.5, -0.1)}),
    ("Adam", {"betas": (0, 0.5)}),
    ("Adam", {"weight_decay": -1}),
    ("Adam", {"fused": True, "foreach": True}),
    ("Adam", {"fused": True, "differentiable": True}),
    ("Adam", lambda t: {"lr": t.ones(2)}),
    ("Adam", lambda t: {"lr": t.tensor(0.1), "foreach": True}),
    ("Adam", lambda t: {"betas": (t.tensor(0.1), 0.5)}),
    ("Adam", lambda t: {"betas": (t.tensor(0.1), t.tensor(0.5)), "foreach": True}),
    ("Adam", lambda t: {"betas": (t.tensor(0.1), t.tensor([0.5, 0.5]))}),
    ("AdamW", {"weight_decay": -1}),
    ("Adamax", {"lr": -1}),
    ("Adamax", {"eps": -1}),
    ("Adamax", {"betas": (0.5, 1.0)}),
    ("Adamax", {"weight_decay": -1}),
    ("NAdam", {"momentum_decay": -1}),
    ("NAdam", {"betas": (-0.5, 1.0)}),
    ("RAdam", {"eps": -1}),
    ("RAdam", {"weight_decay": -1}),
    ("RMSprop", {"momentum": -1}),
    ("RMSprop", {"alpha": -1}),
    ("RMSprop", {"eps": -1}),
    ("Rprop", {"etas": (1.1, 1.2)}),
    ("Rprop", {"lr": -1}),
    ("Adagrad", {"lr_decay": -0.5}),
    ("Adagrad", {"initial_accumulator_value": -0.5}),
    ("Adagrad", {"fused": True, "foreach": True}),
    ("Adadelta", {"rho": 1.1}),
    ("Adadelta", {"eps": -1}),
    ("ASGD", {"weight_decay": -0.5}),
    ("LBFGS", {"lr": -1}),
    ("SparseAdam", {"lr": 0.0}),
    ("SparseAdam", {"eps": 0.0}),
    ("SparseAdam", {"betas": (0.1, 1.0)}),
    ("Adafactor", {"lr": -1}),
    ("Adafactor", {"beta2_decay": 0.5}),
    ("Adafactor", {"eps": (-1, 1)}),
    ("Adafactor", {"eps": (None, -1)}),
    ("Adafactor", {"d": 0.5}),
    ("Adafactor", {"weight_decay": -1}),
    ("Muon", {"lr": -1}),
    ("Muon", {"momentum": -1}),
    ("Muon", {"weight_decay": -1}),
    ("Muon", {"adjust_lr_fn": "loud"}),
]


@pytest.mark.parity
@pytest.mark.parametrize("name, settings", WRONG)
def test_settings_that_torch_refuses(name: str, settings: Any) -> None:
    real = pytest.importorskip("torch")
    messages = []
    for package in (retrograd, real):
        given = settings(package) if callable(settings) else settings
        with pytest.raises((ValueError, RuntimeError)) as caught:
            getattr(package.optim, name)([package.ones(2, 2, requires_grad=True)], **given)
        messages.append((caught.type, str(caught.value)))
    assert messages[0] == messages[1]


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad"])
def test_fused_wants_real_numbers(torch: Any, name: str) -> None:
    w = torch.ones(2, dtype=torch.complex64, requires_grad=True)
    w.grad = torch.ones(2, dtype=torch.complex64)
    optimizer = getattr(torch.optim, name)([w], fused=True)
    with pytest.raises(RuntimeError, match="`fused=True` requires all the params to be floating point Tensors"):
        optimizer.step()
    assert w.tolist() == [1, 1]


@pytest.mark.parametrize(
    "name", ["Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop", "Adadelta", "ASGD"]
)
def test_nothing_is_captured_on_the_cpu(torch: Any, name: str) -> None:
    w = torch.ones(2, requires_grad=True)
    w.grad = torch.ones(2)
    optimizer = getattr(torch.optim, name)([w], capturable=True)
    with pytest.raises(AssertionError, match=r"If capturable=True, params.* must be on supported devices"):
        optimizer.step()
    assert w.tolist() == [1, 1]


@pytest.mark.parametrize("call", [
    lambda t, w: t.optim.Muon([t.ones(2, requires_grad=True)]),
    lambda t, w: t.optim.LBFGS([{"params": [w]}, {"params": [t.ones(1, requires_grad=True)]}]),
    lambda t, w: t.optim.LBFGS([w], line_search_fn="golden").step(lambda: (w * w).sum()),
    lambda t, w: t.optim.SparseAdam([t.ones(2, dtype=t.complex64, requires_grad=True)]),
    lambda t, w: t.optim.SparseAdam([w]).step(),
    lambda t, w: t.optim.Optimizer([w], {}).step(),
    lambda t, w: t.optim.SGD([("a", w), t.ones(1, requires_grad=True)]),
    lambda t, w: t.optim.SGD([("a", w)]).add_param_group({"params": [t.ones(1, requires_grad=True)]}),
    lambda t, w: t.optim.SGD([w]).add_param_group([t.ones(1, requires_grad=True)]),
    lambda t, w: t.optim.Optimizer([w], {"lr": t.optim.optimizer.required}),
])  # fmt: skip
@pytest.mark.parity
def test_calls_that_torch_refuses(call: Any) -> None:
    real = pytest.importorskip("torch")
    import importlib

    messages = []
    for package in (retrograd, real):
        package.optim.optimizer = importlib.import_module(f"{package.__name__}.optim.optimizer")
        w = package.ones(2, 2, requires_grad=True)
        w.grad = package.ones(2, 2)
        with pytest.raises((ValueError, RuntimeError, TypeError)) as caught:
            call(package, w)
        messages.append((caught.type, str(caught.value)))
    (ours, mine), (theirs, said) = messages
    assert ours is theirs and (mine == said or not said)


# ------------------------------------------------------------------------------------------------------------- hooks


def test_hooks_of_all_optimizers(torch: Any) -> None:
    from importlib import import_module

    module = import_module(f"{torch.__name__}.optim.optimizer")
    (p,) = params(torch, 1)
    p.grad = torch.ones(2)
    optimizer = torch.optim.SGD([p], lr=1)
    seen: list[str] = []
    handles = [
        module.register_optimizer_step_pre_hook(lambda o, args, kwargs: seen.append("all before")),
        module.register_optimizer_step_post_hook(lambda o, args, kwargs: seen.append("all after")),
        optimizer.register_step_pre_hook(lambda o, args, kwargs: seen.append("before")),
        optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append("after")),
    ]
    try:
        optimizer.step()
        torch.optim.Adam([p]).step()
    finally:
        for handle in handles:
            handle.remove()
    optimizer.step()
    assert seen == ["all before", "before", "after", "all after", "all before", "all after"]


def test_a_hook_may_change_the_arguments(torch: Any) -> None:
    (p,) = params(torch, 1)
    p.grad = torch.ones(2)
    optimizer = torch.optim.SGD([p], lr=1)
    given: list[Any] = []

    def replace(o: Any, args: Any, kwargs: Any) -> Any:
        given.append((args, kwargs))
        return (o,), {"closure": lambda: 7}

    optimizer.register_step_pre_hook(replace)
    assert optimizer.step() == 7
    assert given == [((optimizer,), {})]
    optimizer.register_step_pre_hook(lambda o, args, kwargs: 3)
    with pytest.raises(RuntimeError, match="must return None or a tuple of"):
        optimizer.step()


def test_hooks_of_state_dicts(torch: Any) -> None:
    (p,) = params(torch, 1)
    optimizer = torch.optim.SGD([p], lr=1)
    seen: list[str] = []
    optimizer.register_state_dict_pre_hook(lambda o: seen.append("pre"))
    optimizer.register_state_dict_pre_hook(lambda o: seen.append("first"), prepend=True)
    optimizer.register_state_dict_post_hook(lambda o, state: {**state, "more": 1})
    optimizer.register_load_state_dict_pre_hook(lambda o, state: {**state, "param_groups": state["groups"]})
    optimizer.register_load_state_dict_post_hook(lambda o: seen.append("loaded"))
    saved = optimizer.state_dict()
    assert saved["more"] == 1 and seen == ["first", "pre"]
    saved["groups"] = copy.deepcopy(saved["param_groups"])
    saved["groups"][0]["lr"] = 5
    optimizer.load_state_dict(saved)
    assert optimizer.param_groups[0]["lr"] == 5 and seen[-1] == "loaded"


def test_names_that_profilers_look_for(torch: Any) -> None:
    (p,) = params(torch, 1)
    optimizer = torch.optim.SGD([p], lr=1)
    assert optimizer._zero_grad_profile_name == "Optimizer.zero_grad#SGD.zero_grad"
    assert torch.optim.SGD.step.hooked is True
    calls: list[int] = []
    optimizer._optimizer_step_code = lambda: calls.append(1)
    optimizer.step()
    assert calls == [1]


def test_a_subclass_keeps_its_step(torch: Any) -> None:
    class Twice(torch.optim.SGD):
        def step(self, closure: Any = None) -> Any:
            super().step()
            return super().step()

    (p,) = params(torch, 1)
    p.grad = torch.ones(2)
    optimizer = Twice([p], lr=0.25)
    seen: list[int] = []
    optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append(1))
    optimizer.step()
    assert p.tolist() == [0.5, 0.5] and seen


# ---------------------------------------------------------------------------------------------------- names and states


def test_names_survive_saving(torch: Any) -> None:
    net = torch.nn.Linear(1, 1)
    named, plain = torch.optim.SGD(net.named_parameters()), torch.optim.SGD(net.parameters())
    plain.load_state_dict(named.state_dict())
    assert plain.param_groups[0]["param_names"] == ["weight", "bias"]
    other = torch.optim.SGD([("w", net.weight), ("b", net.bias)])
    other.load_state_dict(torch.optim.SGD(net.parameters()).state_dict())
    assert other.param_groups[0]["param_names"] == ["w", "b"]
    assert "    param_names: ['weight', 'bias']\n" in repr(named)


def test_duplicates(torch: Any) -> None:
    (p,) = params(torch, 1)
    with pytest.warns(UserWarning, match="duplicate parameters"):
        optimizer = torch.optim.SGD([p, p])
    assert optimizer.state_dict()["param_groups"][0]["params"] == [1, 1]


def test_numbers_of_older_state_dicts_become_tensors(torch: Any) -> None:
    (p,) = params(torch, 1)
    p.grad = torch.ones(2)
    for name, numbers in (("Adam", ("step",)), ("NAdam", ("step", "mu_product")), ("ASGD", ("step", "eta", "mu"))):
        optimizer = getattr(torch.optim, name)([p])
        optimizer.step()
        saved = optimizer.state_dict()
        for number in numbers:
            saved["state"][0][number] = saved["state"][0][number].item()
        del saved["param_groups"][0]["maximize"]
        optimizer.load_state_dict(saved)
        assert all(isinstance(optimizer.state[p][number], torch.Tensor) for number in numbers)
        assert optimizer.param_groups[0]["maximize"] is False
        optimizer.step()
        assert optimizer.state[p]["step"] == 2


def test_a_state_dict_of_adam_loads_into_adamw(torch: Any) -> None:
    (p,) = params(torch, 1)
    optimizer = torch.optim.AdamW([p])
    optimizer.load_state_dict(torch.optim.Adam([p]).state_dict())
    assert optimizer.param_groups[0]["decoupled_weight_decay"] is True


def test_what_is_loaded_is_a_copy() -> None:
    """torch's goes on sharing tensors with the state dict, and with the optimizer that it came from: two optimizers
    then write to one state."""
    (p,) = params(retrograd, 1)
    p.grad = retrograd.ones(2)
    first, second = retrograd.optim.Adam([p]), retrograd.optim.Adam([p])
    first.step()
    second.load_state_dict(first.state_dict())
    second.step()
    assert first.state[p]["step"] == 1 and second.state[p]["step"] == 2
    assert (first.state[p]["exp_avg"] != second.state[p]["exp_avg"]).all()


@pytest.mark.parametrize("name", [*TYPICAL, "LBFGS", "Muon"])
def test_every_optimizer_can_be_copied_and_pickled(name: str) -> None:
    cls = getattr(retrograd.optim, name)
    w = retrograd.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    optimizer = cls([w])

    def run(optimizer: Any) -> Any:
        (w,) = optimizer.param_groups[0]["params"]

        def closure() -> Any:
            optimizer.zero_grad()
            loss = (w**4).sum()
            loss.backward()
            return loss

        optimizer.step(closure)
        return w

    run(optimizer)
    twins = copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))
    for _ in range(3):
        run(optimizer)
    for twin in twins:
        for _ in range(2):
            run(twin)
        q = run(twin)
        assert q is not w and (q == w).all()
        assert repr(twin) == repr(optimizer)


def test_parameters_may_be_added_late(torch: Any) -> None:
    for name in ("SGD", "Adam", "Adagrad", "ASGD", "Rprop", "Adafactor"):
        a, b = params(torch)
        a.grad = torch.ones(2)
        optimizer = getattr(torch.optim, name)([a])
        optimizer.step()
        optimizer.add_param_group({"params": [b], "lr": 0.5})
        b.grad = torch.ones(2)
        optimizer.step()
        if name != "SGD":
            assert [optimizer.state[p]["step"].item() for p in (a, b)] == [2, 1]
        assert b.tolist() != [2, 2]


def test_other_tensors_for_a_while(torch: Any) -> None:
    swap = torch.optim.swap_in_optimizer_params_and_state
    (p,) = params(torch, 1)
    q = torch.zeros(2, requires_grad=True)
    p.grad = q.grad = torch.ones(2)
    optimizer = torch.optim.Adam([p], lr=0.1)
    with pytest.raises(RuntimeError, match="requires initialized optimizer state"), swap(optimizer, {"w": q}, {}):
        pass
    optimizer.step()
    saved = copy.deepcopy(optimizer.state_dict())
    saved["param_groups"][0]["lr"] = 1.0
    before = p.tolist(), optimizer.state[p]["step"].item()
    with swap(optimizer, {"w": q}, saved):
        assert optimizer.param_groups[0]["lr"] == 1.0
        optimizer.step()
        assert optimizer.state[q]["step"] == 2
    assert (p.tolist(), optimizer.state[p]["step"].item()) == before
    assert q.tolist() == pytest.approx([-1, -1], abs=1e-4) and optimizer.param_groups[0]["lr"] == 0.1
    for change, phrase in (
        (lambda s: s.update(state=3), "to be a dict mapping packed parameter ids"),
        (lambda s: s.update(param_groups={}), "to be a list of param-group dicts"),
        (lambda s: s.update(param_groups=[]), "different number of parameter groups"),
        (lambda s: s["param_groups"][0].update(params=[0, 1]), "different number of params"),
        (lambda s: s["param_groups"][0].update(more=1), "to exactly match the live optimizer group keys"),
        (lambda s: s["state"].update({5: {}}), "got extra keys"),
        (lambda s: s["state"].update({0: 1}), "entries to be dictionaries"),
    ):
        wrong = copy.deepcopy(saved)
        change(wrong)
        with pytest.raises(RuntimeError, match=phrase), swap(optimizer, {"w": q}, wrong):
            pass
    with pytest.raises(RuntimeError, match=r"to match optimizer\.param_groups ordering"), swap(optimizer, {}, saved):
        pass


# --------------------------------------------------------------------------------------------------- names and modules


@pytest.mark.parity
def test_names_are_torchs() -> None:
    """Every public name, and the functional form of each optimizer with torch's arguments in torch's order."""
    import inspect
    from importlib import import_module

    real = pytest.importorskip("torch")
    assert set(retrograd.optim.__all__) == set(real.optim.__all__)
    for module in ("lr_scheduler", "swa_utils"):
        ours, theirs = (import_module(f"{name}.optim.{module}") for name in ("retrograd", "torch"))
        assert set(ours.__all__) == set(theirs.__all__)
    modules = ("sgd", "adam", "adamw", "adamax", "nadam", "radam", "rmsprop", "rprop", "adagrad", "adadelta", "asgd",
               "_adafactor", "_muon", "lbfgs", "sparse_adam", "_functional")  # fmt: skip
    compared = 0
    for module in modules:
        ours, theirs = (import_module(f"{name}.optim.{module}") for name in ("retrograd", "torch"))
        for name in getattr(theirs, "__all__", ["sparse_adam"]):
            mine, other = (inspect.signature(getattr(m, name)).parameters for m in (ours, theirs))
            assert [(p.name, p.kind, p.default) for p in mine.values()] == [
                (p.name, p.kind, p.default) for p in other.values()
            ]
            compared += 1
    assert compared == 28


def test_modules_are_found() -> None:
    import subprocess
    import sys

    code = "import retrograd as t; t.optim.adam.Adam; t.optim._functional.sgd; t.optim.lr_scheduler.StepLR"
    subprocess.run([sys.executable, "-c", code], check=True)
    code = "import retrograd, sys; assert not [m for m in sys.modules if m.startswith('retrograd.optim.s')]"
    subprocess.run([sys.executable, "-c", code], check=True)  # importing the package does not import optimizers
    with pytest.raises(AttributeError, match=r"retrograd\.optim"):
        retrograd.optim.Adamantium


def test_foreach_from_the_start(torch: Any) -> None:
    from importlib import import_module

    module = import_module(f"{torch.__name__}.optim._multi_tensor")
    optimizer = module.Adam(params(torch), lr=0.5)
    assert optimizer.param_groups[0]["foreach"] is True and optimizer.param_groups[0]["lr"] == 0.5


def test_nothing_is_compiled(torch: Any) -> None:
    compiler = torch.compiler
    assert not compiler.is_compiling() and not compiler.is_dynamo_compiling() and not compiler.is_exporting()
    if torch is retrograd:

        @compiler.disable
        def f() -> int:
            return 1

        assert f() == compiler.disable()(f)() == 1
