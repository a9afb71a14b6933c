"""The memory of captured steps: gradients that are made anew, the order of calls, results over operands."""

import os
import subprocess
import sys
import weakref

import numpy as np
import pytest

import retrograd as torch
import retrograd.nn.functional as F
from retrograd import nn
from retrograd.capture.compiling import compiler
from retrograd.capture.ordering import ordered
from retrograd.capture.values import Call, Storage, Value

needs_compiler = pytest.mark.skipif(compiler() is None, reason="there is no C compiler")
BACKENDS = ["plain", pytest.param("native", marks=needs_compiler)]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("RETROGRAD_CAPTURE_CACHE", str(tmp_path / "cache"))


def wide():
    """A step of a network with weights of 512 KiB, and its parts."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(128, 1024), nn.GELU(), nn.Linear(1024, 128))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    def regress(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return model, step, regress


def program_of(captured):
    return captured._last.recording.program


@needs_compiler
@pytest.mark.parametrize("backend", ["plain", "native"])
def test_large_gradients_are_made_anew_and_earlier_ones_stay(backend):
    (model, _, step), (twin, _, other) = wide(), wide()
    captured = torch.capture(step, backend=backend)
    held, expected = [], []
    for number in range(7):
        x = torch.randn(256, 128)
        assert torch.allclose(captured(x), other(x), rtol=1e-5)
        if number % 2:
            held += [p.grad for p in model.parameters()]
            expected += [p.grad.clone() for p in twin.parameters()]
    assert len(program_of(captured).fresh) == 2
    for one, two in zip(held, expected, strict=True):
        assert torch.allclose(one, two, rtol=1e-4, atol=1e-7)


@needs_compiler
def test_large_gradients_of_the_last_run_are_gone_before_anything_is_made():
    model, _, step = wide()
    captured = torch.capture(step, backend="plain")
    x = torch.randn(256, 128)
    for _ in range(4):
        captured(x)
    assert captured.source.splitlines()[1].strip() == "release()"
    last = [weakref.ref(model[number].weight.grad._memory_) for number in (0, 2)]
    own = torch.ones(1024)
    model[0].bias.grad = own
    captured._last._release()
    assert [one() for one in last] == [None, None]
    assert model[0].weight.grad is None
    assert model[0].bias.grad is own


@needs_compiler
def test_gradients_stay_if_a_value_is_refused():
    model, step, _ = wide()
    captured = torch.capture(step, backend="plain")
    x = torch.randn(256, 128)
    y = torch.randint(0, 128, (256,))
    for _ in range(6):
        captured(x, y)
    assert program_of(captured).fresh
    grads = [p.grad for p in model.parameters()]
    values = [g.clone() for g in grads]
    with pytest.raises(IndexError):
        captured(x, y + 128)
    assert all(p.grad is g for p, g in zip(model.parameters(), grads, strict=True))
    assert all(torch.equal(p.grad, v) for p, v in zip(model.parameters(), values, strict=True))


def test_what_lets_go_of_much_memory_comes_first():
    """The weight's gradient is the last to read the activation: it comes before the activation's gradient."""
    _, _, step = wide()
    captured = torch.capture(step, backend="plain")
    x = torch.randn(256, 128)
    for _ in range(4):
        captured(x)
    products = [call for call in program_of(captured).calls if call.kind in ("product", "opaque") and call.results]
    shapes = [call.results[0].shape for call in products if call.results[0] is not None]
    assert shapes.index((128, 1024)) < shapes.index((256, 1024), shapes.index((256, 128)))


@pytest.mark.parametrize("obstacle", [None, "it reads what was written", "it writes what was read", "a draw"])
def test_calls_do_not_pass_what_they_hang_on(obstacle):
    large, small = np.empty(100), np.empty(1)
    a, b, c, d = (Value(Storage(n, None, x.nbytes, "new"), 0, x) for n, x in enumerate([large, large, small, small]))

    def call(name, reads, results):
        return Call("opaque", name, None, (), {}, None, reads, results)

    start, take, free = call("start", [], [a, c]), call("take", [], [b]), call("free", [a], [d])
    if obstacle == "it reads what was written":
        take.writes, free.reads = [c], [a, c]
    elif obstacle == "it writes what was read":
        take.reads, free.writes = [c], [c]
    take.impure = obstacle == "a draw"
    names = [one.name for one in ordered([start, take, free, call("end", [b, d], [])], 100, set())]
    assert names == (["start", "take", "free", "end"] if obstacle else ["start", "free", "take", "end"])


@pytest.mark.parametrize("obstacle", [None, "another reads the weight", "a draw"])
def test_a_step_that_frees_a_gradient_comes_before_the_next_gradient(obstacle):
    """The gradient times the learning rate comes along; what the second gradient reads is not passed."""
    large, small = np.empty(100), np.empty(1)
    first, second = (Value(Storage(n, None, large.nbytes, "new"), 0, large) for n in range(2))
    weight, loss = (Value(Storage(n, None, small.nbytes, "new"), 0, small) for n in (2, 3))

    def call(name, reads, results, writes=()):
        return Call("opaque", name, None, (), {}, None, reads, results, writes)

    calls = [
        call("start", [], [weight, loss]), call("first", [loss], [first]), call("second", [loss], [second]),
        call("use", [second], [], [loss]), call("scale", [first], [], [first]),
        call("subtract", [weight, first], [], [weight]), call("end", [weight, loss], []),
    ]  # fmt: skip
    if obstacle == "another reads the weight":
        calls[2].reads = [weight]
    calls[2].impure = obstacle == "a draw"
    names = [one.name for one in ordered(calls, 100, set())]
    if obstacle:
        assert names == ["start", "first", "second", "scale", "subtract", "use", "end"]
    else:
        assert names == ["start", "first", "scale", "subtract", "second", "use", "end"]


def test_parameters_change_as_soon_as_their_gradients_are_there():
    weights = [torch.randn(128, 1024) * 0.1, torch.randn(1024, 128) * 0.1]
    twins = [weight.clone() for weight in weights]

    def step_of(parameters):
        def step(x):
            first, second = [p.detach().requires_grad_() for p in parameters]
            loss = (F.relu(x @ first) @ second).square().mean()
            grads = torch.autograd.grad(loss, [first, second])
            with torch.no_grad():
                for p, grad in zip(parameters, grads, strict=True):
                    p -= 0.1 * grad
            return loss.detach()

        return step

    captured, eager = torch.capture(step_of(weights), backend="plain"), step_of(twins)
    for _ in range(5):
        x = torch.randn(64, 128)
        assert torch.equal(captured(x), eager(x))
    assert all(torch.equal(one, other) for one, other in zip(weights, twins, strict=True))
    calls = program_of(captured).calls
    happens = ""
    for call in calls:
        if any(value is not None and value.shape in ((128, 1024), (1024, 128)) for value in call.results):
            happens += "makes "
        elif any(value.storage.kind == "outside" for value in call.writes):
            happens += "writes "
    assert happens == "makes writes makes writes "


@pytest.mark.parametrize("size", [65_536, 65_636, 200_001])
@pytest.mark.parametrize("name", ["gelu", "relu"])
def test_kernels_of_elements_write_over_their_operand(name, size):
    weight = torch.linspace(0.5, 2.0, size)

    def step(x):
        x = x.detach().requires_grad_()
        y = getattr(F, name)(x * weight)
        (y * weight).sum().backward()
        return x.grad

    captured = torch.capture(step, backend="plain")
    for _ in range(4):
        x = torch.randn(size)
        assert torch.equal(captured(x), step(x))
    calls = [call for call in program_of(captured).calls if call.name.endswith("_backward")]
    assert [(len(call.results), len(call.writes)) for call in calls] == [(0, 1)]


def test_gelu_is_recorded_without_loading_scipys_functions():
    code = (
        "import sys, retrograd as torch\n"
        "step = torch.capture(lambda x: torch.nn.functional.gelu(x).sum(), backend='plain')\n"
        "x = torch.ones(5000)\n"
        "for _ in range(3): step(x)\n"
        "assert 'scipy.special' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "RETROGRAD_FAST": "0"})


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("deterministic", [False, True])
def test_memory_that_is_made_inside_and_filled_later(backend, deterministic):
    """What was in it before is nobody's business."""

    def fill(x):
        whole = torch.empty(4)
        whole[:2] = x
        whole[2:] = x * 2
        return whole, torch.empty(2).copy_(x), torch.add(x, 1, out=torch.empty(2)), torch.empty_like(x).fill_(3.0)

    torch.use_deterministic_algorithms(deterministic)
    try:
        captured = torch.capture(fill, backend=backend, check=True)
        for number in range(5):
            x = torch.full((2,), float(number))
            litter = [torch.full((size,), float(number)) for size in (2, 4) for _ in range(20)]
            del litter
            for one, two in zip(captured(x), fill(x), strict=True):
                assert torch.equal(one, two)
    finally:
        torch.use_deterministic_algorithms(False)
