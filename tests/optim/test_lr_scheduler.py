"""Schedulers: the rates and momenta that torch's give, step by step, and what they save, warn of and refuse."""

from __future__ import annotations

import copy
import gc
import pickle
import warnings
import weakref
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import pytest

import retrograd

Make = Callable[[Any, Any], Any]


def schedulers(torch: Any) -> Any:
    return import_module(f"{torch.__name__}.optim.lr_scheduler")


def sequence(s: Any, o: Any) -> Any:
    return s.SequentialLR(
        o, [s.LinearLR(o, 0.1, total_iters=3), s.ExponentialLR(o, 0.8), s.StepLR(o, 2, 0.5)], milestones=[3, 8]
    )


def nested(s: Any, o: Any) -> Any:
    return s.SequentialLR(o, [s.ChainedScheduler([s.ConstantLR(o), s.ExponentialLR(o, 0.8)]), s.StepLR(o, 3)], [4])


#: Schedulers over their options, each a function of torch's module and an optimizer with two groups and momentum.
MAKERS: dict[str, Make] = {
    "lambda": lambda s, o: s.LambdaLR(o, lambda epoch: 0.9**epoch),
    "lambdas": lambda s, o: s.LambdaLR(o, [lambda epoch: 0.9**epoch, lambda epoch: 1 / (1 + epoch)]),
    "multiplicative": lambda s, o: s.MultiplicativeLR(o, lambda epoch: 0.5 + 1 / (1 + epoch)),
    "step": lambda s, o: s.StepLR(o, 3),
    "step gamma": lambda s, o: s.StepLR(o, 2, gamma=0.7),
    "milestones": lambda s, o: s.MultiStepLR(o, [2, 5, 5, 9], gamma=0.5),
    "constant": lambda s, o: s.ConstantLR(o),
    "constant 2": lambda s, o: s.ConstantLR(o, factor=0.5, total_iters=4),
    "linear": lambda s, o: s.LinearLR(o),
    "linear 2": lambda s, o: s.LinearLR(o, start_factor=0.9, end_factor=0.2, total_iters=7),
    "exponential": lambda s, o: s.ExponentialLR(o, 0.9),
    "polynomial": lambda s, o: s.PolynomialLR(o),
    "polynomial 2": lambda s, o: s.PolynomialLR(o, total_iters=8, power=2.5),
    "cosine": lambda s, o: s.CosineAnnealingLR(o, 5),
    "cosine 2": lambda s, o: s.CosineAnnealingLR(o, T_max=4, eta_min=0.01),
    "restarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 3),
    "restarts 2": lambda s, o: s.CosineAnnealingWarmRestarts(o, 2, T_mult=2, eta_min=0.01),
    "cyclic": lambda s, o: s.CyclicLR(o, 0.01, 0.1, step_size_up=3),
    "cyclic 2": lambda s, o: s.CyclicLR(o, [0.01, 0.02], [0.1, 0.3], 3, 5, mode="triangular2", base_momentum=0.5),
    "cyclic 3": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 3, mode="exp_range", gamma=0.9, cycle_momentum=False),
    "cyclic 4": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 3, scale_fn=lambda x: 0.5 * x, scale_mode="iterations"),
    "one cycle": lambda s, o: s.OneCycleLR(o, max_lr=1.0, total_steps=14),
    "one cycle 2": lambda s, o: s.OneCycleLR(o, [1.0, 2.0], epochs=2, steps_per_epoch=7, anneal_strategy="linear"),
    "one cycle 3": lambda s, o: s.OneCycleLR(o, 1.0, 14, three_phase=True, div_factor=3, final_div_factor=7),
    "one cycle 4": lambda s, o: s.OneCycleLR(o, 1.0, 14, pct_start=0.5, cycle_momentum=False),
    "sequence": sequence,
    "nested": nested,
    "chained": lambda s, o: s.ChainedScheduler([s.LinearLR(o), s.CosineAnnealingLR(o, 5), s.StepLR(o, 4)]),
    "swa": lambda s, o: import_module(s.__name__.replace("lr_scheduler", "swa_utils")).SWALR(o, 0.5, anneal_epochs=4),
    "swa linear": lambda s, o: import_module(s.__name__.replace("lr_scheduler", "swa_utils")).SWALR(
        o, [0.5, 0.1], anneal_epochs=0, anneal_strategy="linear"
    ),
}
PLATEAUS: dict[str, dict[str, Any]] = {
    "plain": {"patience": 2},
    "max": {"mode": "max", "patience": 1, "factor": 0.5},
    "absolute": {"threshold_mode": "abs", "threshold": 0.5, "patience": 0},
    "absolute max": {"threshold_mode": "abs", "threshold": 0.5, "patience": 0, "mode": "max"},
    "cooldown": {"patience": 0, "cooldown": 2, "min_lr": [0.01, 0.1]},
    "eps": {"patience": 0, "eps": 0.01},
}


def optimizer_of(torch: Any, kind: str = "SGD", lr: Any = 0.3) -> Any:
    p, q = (torch.ones(1, requires_grad=True) for _ in range(2))
    settings = {"momentum": 0.9} if kind == "SGD" else {}
    return getattr(torch.optim, kind)([{"params": [p]}, {"params": [q], "lr": 0.05}], lr=lr, **settings)


def number(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def settings_of(optimizer: Any) -> list[Any]:
    return [
        [number(group["lr"]), number(group.get("momentum", 0)), *map(number, group.get("betas", ()))]
        for group in optimizer.param_groups
    ]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def trace(torch: Any, make: Make, kind: str = "SGD", lr: Any = 0.3, steps: int = 12) -> list[Any]:
    optimizer = optimizer_of(torch, kind, lr)
    scheduler = make(schedulers(torch), optimizer)
    found = []
    for _ in range(steps):
        optimizer.step()
        found.append((settings_of(optimizer), [number(rate) for rate in scheduler.get_last_lr()]))
        scheduler.step()
    return found


def flat(value: Any) -> list[float]:
    return [x for item in value for x in flat(item)] if isinstance(value, (list, tuple)) else [value]


@pytest.mark.parity
@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_beside_torch(name: str, kind: str) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = (trace(package, MAKERS[name], kind) for package in (retrograd, torch))
    assert flat(ours) == pytest.approx(flat(theirs), rel=1e-13, abs=1e-16)


@pytest.mark.parity
@pytest.mark.parametrize("name", [name for name in MAKERS if name != "lambdas"])
def test_rates_that_are_tensors(name: str) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = (
        trace(package, MAKERS[name], lr=package.tensor(0.3, dtype=package.float64)) for package in (retrograd, torch)
    )
    assert flat(ours) == pytest.approx(flat(theirs), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("name", MAKERS)
def test_a_tensor_stays_the_same_tensor(torch: Any, name: str) -> None:
    rate = torch.tensor(0.3)
    optimizer = optimizer_of(torch, lr=rate)
    scheduler = MAKERS[name](schedulers(torch), optimizer)
    optimizer.step()
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] is rate
    assert scheduler.get_last_lr()[0] is not rate


@pytest.mark.parity
@pytest.mark.parametrize("options", PLATEAUS.values(), ids=PLATEAUS)
def test_plateaus_beside_torch(options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    traces = []
    for package in (retrograd, torch):
        optimizer = optimizer_of(package)
        scheduler = schedulers(package).ReduceLROnPlateau(optimizer, **options)
        found = []
        for metric in (3.0, 2.0, 2.0, 1.9, 1.9, 1.9, 5.0, float("nan"), 1.0, 1.0, 1.0, 0.2, 0.2):
            scheduler.step(package.tensor(metric))
            found.append((settings_of(optimizer), scheduler.get_last_lr(), scheduler.num_bad_epochs, scheduler.best))
        traces.append(found)
    assert flat(traces[0]) == pytest.approx(flat(traces[1]), nan_ok=True)


@pytest.mark.parity
@pytest.mark.parametrize("name", MAKERS)
def test_going_to_an_epoch(name: str) -> None:
    """``step(epoch)`` takes the closed form, where there is one."""
    torch = pytest.importorskip("torch")
    traces = []
    for package in (retrograd, torch):
        optimizer = optimizer_of(package)
        scheduler = MAKERS[name](schedulers(package), optimizer)
        found = []
        if name in ("sequence", "nested", "chained"):
            for epoch in (1, 2):
                with pytest.raises(TypeError):
                    scheduler.step(epoch)
            return
        for epoch in (1, 4, 2, 7, 0):
            scheduler.step(epoch)
            found.append((settings_of(optimizer), scheduler.last_epoch))
        traces.append(found)
    assert flat(traces[0]) == pytest.approx(flat(traces[1]))


@pytest.mark.parity
@pytest.mark.parametrize("name", [name for name in MAKERS if name not in ("sequence", "nested", "chained")])
def test_resuming_at_an_epoch(name: str) -> None:
    torch = pytest.importorskip("torch")
    traces = []
    for package in (retrograd, torch):
        module = schedulers(package)
        optimizer = optimizer_of(package)
        scheduler = MAKERS[name](module, optimizer)
        for _ in range(3):
            optimizer.step()
            scheduler.step()

        class Resumed:
            """The module's schedulers, which all get a `last_epoch`."""

            def __init__(self, module: Any) -> None:
                self.module, self.__name__ = module, module.__name__

            def __getattr__(self, name: str) -> Any:
                cls = getattr(self.module, name)
                return lambda *args, **kwargs: cls(*args, **kwargs, last_epoch=2)

        if name.startswith("swa"):
            swa = import_module(module.__name__.replace("lr_scheduler", "swa_utils"))
            again = swa.SWALR(optimizer, 0.5, anneal_epochs=4, last_epoch=2)
        else:
            again = MAKERS[name](Resumed(module), optimizer)
        found = [settings_of(optimizer)]
        for _ in range(4):
            optimizer.step()
            again.step()
            found.append(settings_of(optimizer))
        traces.append(found)
    assert flat(traces[0]) == pytest.approx(flat(traces[1]))


# ------------------------------------------------------------------------------------------------------------- saving


@pytest.mark.parametrize("name", MAKERS)
def test_a_saved_scheduler_goes_on(torch: Any, name: str) -> None:
    optimizer = optimizer_of(torch)
    scheduler = MAKERS[name](schedulers(torch), optimizer)
    for _ in range(4):
        optimizer.step()
        scheduler.step()
    saved = pickle.loads(pickle.dumps((scheduler.state_dict(), optimizer.state_dict())))
    other = optimizer_of(torch)
    resumed = MAKERS[name](schedulers(torch), other)
    before = copy.deepcopy(saved[0])
    resumed.load_state_dict(saved[0])
    other.load_state_dict(saved[1])
    if torch is retrograd:  # torch's CyclicLR takes a key away from it
        assert saved[0] == before
    for _ in range(4):
        for o, s in ((optimizer, scheduler), (other, resumed)):
            o.step()
            s.step()
        assert settings_of(other) == settings_of(optimizer)


@pytest.mark.parity
@pytest.mark.parametrize("name", MAKERS)
def test_the_other_library_goes_on(name: str) -> None:
    torch = pytest.importorskip("torch")
    states = {}
    for package in (retrograd, torch):
        optimizer = optimizer_of(package)
        scheduler = MAKERS[name](schedulers(package), optimizer)
        for _ in range(4):
            optimizer.step()
            scheduler.step()
        states[package] = scheduler.state_dict(), optimizer.state_dict()["param_groups"]
    assert set(states[retrograd][0]) == set(states[torch][0])
    for first, second in ((retrograd, torch), (torch, retrograd)):
        ends = []
        for package in (first, second):
            optimizer = optimizer_of(package)
            scheduler = MAKERS[name](schedulers(package), optimizer)
            scheduler.load_state_dict(copy.deepcopy(states[first][0]))
            for group, saved in zip(optimizer.param_groups, states[first][1]):
                group.update({key: value for key, value in saved.items() if key != "params"})
            found = []
            for _ in range(4):
                optimizer.step()
                scheduler.step()
                found.append(settings_of(optimizer))
            ends.append(found)
        assert flat(ends[0]) == pytest.approx(flat(ends[1]))


def test_functions_that_are_objects_are_saved(torch: Any) -> None:
    class Factor:
        def __init__(self, base: float) -> None:
            self.base = base

        def __call__(self, epoch: float) -> float:
            return self.base**epoch

    s = schedulers(torch)
    for make in (
        lambda o, f: s.LambdaLR(o, f),
        lambda o, f: s.MultiplicativeLR(o, f),
        lambda o, f: s.CyclicLR(o, 0.1, 0.2, scale_fn=f),
    ):
        first, second = Factor(0.5), Factor(0.9)
        saved = make(optimizer_of(torch), first).state_dict()
        make(optimizer_of(torch), second).load_state_dict(saved)
        assert second.base == 0.5


# ---------------------------------------------------------------------------------------------------------- behaviour


def test_nothing_keeps_a_scheduler_alive(torch: Any) -> None:
    gc.disable()
    try:
        for make in MAKERS.values():
            optimizer = optimizer_of(torch)
            watch = weakref.ref(make(schedulers(torch), optimizer))
            assert watch() is None
            owner = weakref.ref(optimizer)
            del optimizer
            assert owner() is None
    finally:
        gc.enable()


def test_warnings(torch: Any) -> None:
    s = schedulers(torch)
    optimizer = optimizer_of(torch)
    scheduler = s.StepLR(optimizer, 3)
    with pytest.warns(UserWarning, match="Detected call of `lr_scheduler.step\\(\\)` before `optimizer.step\\(\\)`"):
        scheduler.step()
    with pytest.warns(UserWarning, match="The epoch parameter in `scheduler.step\\(\\)` was not necessary"):
        scheduler.step(5)
    with pytest.warns(UserWarning, match="please use `get_last_lr\\(\\)`"):
        scheduler.get_lr()
    optimizer = optimizer_of(torch)
    scheduler = s.StepLR(optimizer, 3)
    optimizer.step = type(optimizer).step.__get__(optimizer)
    optimizer.step()
    with pytest.warns(UserWarning, match="`optimizer.step\\(\\)` has been overridden"):
        scheduler.step()


def test_the_right_order_warns_of_nothing(torch: Any) -> None:
    for name, make in MAKERS.items():
        if name == "nested":  # a chain in a sequence does its first step twice, and says so
            continue
        optimizer = optimizer_of(torch)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            scheduler = make(schedulers(torch), optimizer)
            for _ in range(6):
                optimizer.step()
                scheduler.step()


def test_a_warning_names_the_users_line() -> None:
    scheduler = retrograd.optim.lr_scheduler.ExponentialLR(optimizer_of(retrograd), 0.5)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scheduler.step()
    assert [warning.filename for warning in caught] == [__file__]


WRONG: dict[str, Make] = {
    "no optimizer": lambda s, o: s.StepLR(3, 3),
    "no optimizer 2": lambda s, o: s.CyclicLR(3, 0.1, 0.2),
    "no optimizer 3": lambda s, o: s.OneCycleLR(3, 0.1, 10),
    "no optimizer 4": lambda s, o: s.ReduceLROnPlateau(3),
    "no initial_lr": lambda s, o: s.StepLR(o, 3, last_epoch=2),
    "functions": lambda s, o: s.LambdaLR(o, [lambda epoch: 1]),
    "not a function": lambda s, o: s.MultiplicativeLR(o, [1, 2]),
    "constant": lambda s, o: s.ConstantLR(o, factor=1.5),
    "linear start": lambda s, o: s.LinearLR(o, start_factor=0),
    "linear end": lambda s, o: s.LinearLR(o, end_factor=2),
    "no schedulers": lambda s, o: s.SequentialLR(o, [], []),
    "milestones": lambda s, o: s.SequentialLR(o, [s.ConstantLR(o)], [3]),
    "no schedulers 2": lambda s, o: s.ChainedScheduler([]),
    "plateau in it": lambda s, o: s.SequentialLR(o, [s.ConstantLR(o), s.ReduceLROnPlateau(o)], [3]),
    "plateau in it 2": lambda s, o: s.ChainedScheduler([s.ReduceLROnPlateau(o)]),
    "nothing in it": lambda s, o: s.SequentialLR(o, [3, 4], [2]),
    "factor": lambda s, o: s.ReduceLROnPlateau(o, factor=1.0),
    "mode": lambda s, o: s.ReduceLROnPlateau(o, mode="down"),
    "threshold mode": lambda s, o: s.ReduceLROnPlateau(o, threshold_mode="more"),
    "min_lr": lambda s, o: s.ReduceLROnPlateau(o, min_lr=[0.1]),
    "cyclic mode": lambda s, o: s.CyclicLR(o, 0.1, 0.2, mode="square"),
    "cyclic length": lambda s, o: s.CyclicLR(o, [0.1], 0.2),
    "T_0": lambda s, o: s.CosineAnnealingWarmRestarts(o, 0),
    "T_mult": lambda s, o: s.CosineAnnealingWarmRestarts(o, 1, T_mult=0.5),
    "eta_min": lambda s, o: s.CosineAnnealingWarmRestarts(o, 1, eta_min="0"),
    "epoch": lambda s, o: s.CosineAnnealingWarmRestarts(o, 1).step(-1),
    "total_steps": lambda s, o: s.OneCycleLR(o, 0.1, 0),
    "neither": lambda s, o: s.OneCycleLR(o, 0.1, epochs=2),
    "epochs": lambda s, o: s.OneCycleLR(o, 0.1, epochs=-2, steps_per_epoch=2),
    "pct_start": lambda s, o: s.OneCycleLR(o, 0.1, 5, pct_start=2),
    "strategy": lambda s, o: s.OneCycleLR(o, 0.1, 5, anneal_strategy="square"),
}


@pytest.mark.parity
@pytest.mark.parametrize("make", WRONG.values(), ids=WRONG)
def test_calls_that_torch_refuses(make: Make) -> None:
    torch = pytest.importorskip("torch")
    messages = []
    for package in (retrograd, torch):
        with pytest.raises((ValueError, TypeError, KeyError)) as caught:
            make(schedulers(package), optimizer_of(package))
        messages.append((caught.type, str(caught.value)))
    assert messages[0] == messages[1]


def test_momentum_is_wanted(torch: Any) -> None:
    optimizer = torch.optim.Rprop([torch.ones(1, requires_grad=True)])
    s = schedulers(torch)
    for make in (lambda: s.CyclicLR(optimizer, 0.1, 0.2), lambda: s.OneCycleLR(optimizer, 0.1, 5)):
        with pytest.raises(ValueError, match="optimizer must support momentum or beta1"):
            make()


def test_steps_beyond_the_cycle(torch: Any) -> None:
    optimizer = optimizer_of(torch)
    scheduler = schedulers(torch).OneCycleLR(optimizer, 0.1, 2)
    optimizer.step()
    scheduler.step()
    scheduler.step()
    with pytest.raises(ValueError, match=r"Tried to step 3 times\. The specified number of total steps is 2"):
        scheduler.step()


def test_a_group_that_came_later(torch: Any) -> None:
    optimizer = optimizer_of(torch)
    scheduler = schedulers(torch).ReduceLROnPlateau(optimizer, patience=0, min_lr=[0.1, 0.1])
    optimizer.add_param_group({"params": [torch.ones(1, requires_grad=True)]})
    scheduler.step(1.0)
    with pytest.raises(RuntimeError, match="differs from when `ReduceLROnPlateau` was initialized"):
        scheduler.step(1.0)


def test_the_old_name(torch: Any) -> None:
    s = schedulers(torch)
    assert issubclass(s._LRScheduler, s.LRScheduler) and isinstance(s.EPOCH_DEPRECATION_WARNING, str)
