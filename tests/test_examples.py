"""The scripts in `examples/`: a few steps of each beside torch, and a run that is killed and resumed.

Whole runs take a minute each and are the reader's; here each example is made small.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd

EXAMPLES = Path(__file__).parent.parent / "examples"
STEPS = 20

# The class of each example, and what makes it small.
SMALL = {
    "digits": ("Digits", dict(images=160, batch=8, channels=4)),
    "char_transformer": ("Writer", dict(width=16, heads=2, context=16, batch=4)),
    "vae": ("Drawing", dict(images=160, batch=8, hidden=16)),
    "lstm_names": ("Names", dict(width=12, batch=6)),
    "neural_ode": ("Spiral", dict(hidden=8, observations=20, batch=4, length=4)),
    "hamiltonian": ("Pendulum", dict(hidden=8, points=32, batch=8)),
    "gaussian_process": ("Fit", dict(points=20)),
    "cart_pole": ("Balance", dict(hidden=8, carts=4, ticks=30)),
    "scipy_fit": ("Bootstrap", dict(points=30)),
}


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Any:
    """``load(name, library)``: the example as a module, with the import lines naming the library."""

    def load_one(name: str, library: str) -> types.ModuleType:
        path = EXAMPLES / f"{name}.py"
        source = re.sub(r"^(import|from) retrograd\b", rf"\1 {library}", path.read_text(encoding="utf-8"), flags=re.M)
        module = types.ModuleType(name)
        module.__file__ = str(path)
        monkeypatch.setitem(sys.modules, name, module)
        exec(compile(source, path, "exec"), module.__dict__)
        return module

    def load_with_data(name: str, library: str) -> types.ModuleType:
        load_one("rendered_digits", library)  # some of them import it
        return load_one(name, library)

    return load_with_data


def make(module: types.ModuleType, library: Any) -> Any:
    cls, sizes = SMALL[module.__name__]
    library.manual_seed(3)
    if hasattr(module, "TEXT"):  # a text that stays as it is: whether rounding errors grow depends on what is read
        module.TEXT = (EXAMPLES.parent / "LICENSE").read_text(encoding="utf-8") * 4
        module.ALPHABET = sorted(set(module.TEXT))
    task = getattr(module, cls)(**sizes)
    task.model.train()
    return task


def batches(task: Any) -> Any:
    while True:
        yield from task.batches()


def test_every_example_is_tested() -> None:
    scripts = {path.stem for path in EXAMPLES.glob("*.py") if "__main__" in path.read_text(encoding="utf-8")}
    assert scripts - {"training"} == set(SMALL)


@pytest.mark.parity
@pytest.mark.parametrize("name", SMALL)
def test_twenty_steps_are_those_of_torch(name: str, load: Any) -> None:
    """The same code from the same weights: losses and gradients agree to 1e-5 all the way."""
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    theirs = make(load(name, "torch"), torch)
    ours = make(load(name, "retrograd"), retrograd)
    weights = {key: value.numpy().copy() for key, value in theirs.model.state_dict().items()}
    for key, value in ours.model.state_dict().items():
        np.testing.assert_allclose(value.numpy(), weights[key], rtol=1e-5, atol=1e-6, err_msg=f"{key} at the start")
    ours.model.load_state_dict({key: retrograd.from_numpy(value) for key, value in weights.items()})

    # Each library draws its batches and dropout from its own generator, so they take turns by whole steps.
    for step, (their_batch, our_batch) in zip(range(STEPS), zip(batches(theirs), batches(ours))):
        expected, got = theirs.step(their_batch), ours.step(our_batch)
        assert got == pytest.approx(expected, rel=1e-5, abs=1e-5), f"loss of step {step}"
        gradients = dict(ours.model.named_parameters())
        for key, parameter in theirs.model.named_parameters():
            where = f"gradient of {key} in step {step}"
            gradient, wanted = gradients[key].grad, parameter.grad
            if wanted is None:  # a constant added to an energy moves nothing
                assert gradient is None, where
                continue
            np.testing.assert_allclose(gradient.numpy(), wanted.numpy(), rtol=1e-5, atol=1e-5, err_msg=where)
        if step % 7 == 6 and hasattr(ours, "scheduler"):
            theirs.scheduler.step()
            ours.scheduler.step()


def test_the_adjoint_is_the_gradient_through_the_solver(load: Any) -> None:
    """Two ways to one gradient, equal up to the solver's error, which is small with this many steps."""
    module = load("neural_ode", "retrograd")
    retrograd.manual_seed(3)
    law = module.Law(6).double()
    start = retrograd.tensor([0.9, -0.4], dtype=retrograd.float64, requires_grad=True)
    times = retrograd.tensor([0.0, 0.2, 0.5], dtype=retrograd.float64)
    weights = retrograd.tensor([[1.0, 2.0], [-1.0, 0.5], [0.3, 3.0]], dtype=retrograd.float64)
    inputs = [start, *law.parameters()]

    adjoint = module.Odeint.apply(law, times, 30, start, *law.parameters())
    states = [(start,)]
    for span in (0.2, 0.3):
        states.append(module.rk4(lambda state: (law(*state),), states[-1], span, 30))
    direct = retrograd.stack([state for (state,) in states])
    np.testing.assert_allclose(adjoint.detach().numpy(), direct.detach().numpy(), rtol=1e-12)
    by_adjoint = retrograd.autograd.grad((adjoint * weights).sum(), inputs)
    by_solver = retrograd.autograd.grad((direct * weights).sum(), inputs)
    for one, other in zip(by_adjoint, by_solver):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("name", SMALL)
def test_every_example_resumes_where_it_was(name: str, load: Any, tmp_path: Path) -> None:
    module, training = load(name, "retrograd"), load("training", "retrograd")
    whole = training.train(make(module, retrograd), 3, 2, tmp_path / "whole.pt", resume=False)
    training.train(make(module, retrograd), 1, 2, tmp_path / "part.pt", resume=False)
    resumed = training.train(make(module, retrograd), 3, 2, tmp_path / "part.pt", resume=True)
    assert len(whole) == 6 and len(set(whole)) > 1
    assert resumed == whole


def test_a_killed_run_that_is_resumed_gives_the_same_losses(tmp_path: Path) -> None:
    """With momentum, running statistics, dropout, shuffling and a schedule: all of it must come from the checkpoint."""
    steps = 6

    def start(folder: str, epochs: int, *options: str) -> subprocess.Popen:
        sizes = ["--epochs", str(epochs), "--steps", str(steps), "--out", str(tmp_path / folder)]
        return subprocess.Popen([sys.executable, str(EXAMPLES / "digits.py"), *sizes, *options])

    killed = start("killed", 10_000)  # it would never end by itself, however late the kill comes
    checkpoint = tmp_path / "killed" / "digits.pt"
    deadline = time.monotonic() + 120
    try:
        while not checkpoint.exists():
            assert killed.poll() is None and time.monotonic() < deadline, "no checkpoint was written"
            time.sleep(0.001)
    finally:
        killed.kill()
    assert killed.wait() != 0
    epochs = retrograd.load(checkpoint)["epochs"] + 2

    assert start("killed", epochs, "--resume").wait() == 0
    assert start("whole", epochs).wait() == 0
    resumed, whole = (retrograd.load(tmp_path / folder / "digits.pt") for folder in ("killed", "whole"))
    assert len(whole["losses"]) == epochs * steps
    assert resumed["losses"] == whole["losses"]
    for key, value in whole["model"].items():
        assert retrograd.equal(resumed["model"][key], value), key
