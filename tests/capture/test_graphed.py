"""Captured modules and functions inside of larger graphs: what the graph around them may do."""

import threading

import pytest

import retrograd as torch
from retrograd import nn


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("RETROGRAD_CAPTURE_CACHE", str(tmp_path / "cache"))


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


def test_hooks_of_parameters_run_once():
    model = net()
    captured = torch.capture(model, backend="plain")
    seen = []
    for number in range(4):
        x = torch.full((2, 3), 1.0 + number)
        expected = torch.autograd.grad(model(x).sum(), model[0].weight)[0]
        handle = model[0].weight.register_hook(lambda grad: seen.append(grad) or grad * 2)
        model.zero_grad()
        captured(x).sum().backward()
        handle.remove()
        torch.testing.assert_close(model[0].weight.grad, expected * 2)
    assert len(seen) == 4


def test_a_parameter_that_is_written_to_before_backward():
    model = net()
    captured = torch.capture(model, backend="plain")
    for _ in range(4):
        loss = captured(torch.ones(2, 3)).sum()
        with torch.no_grad():
            model[2].weight.mul_(1.1)
        with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
            loss.backward()
        loss = captured(torch.ones(2, 3)).sum()
        with torch.no_grad():
            model[2].bias.mul_(1.1)  # which no gradient needs
        loss.backward()


def test_second_derivatives_are_refused_and_never_zero():
    model = net()
    captured = torch.capture(model, backend="plain")
    for _ in range(4):
        x = torch.ones(2, 3, requires_grad=True)
        gradient, = torch.autograd.grad(captured(x).sum(), x, create_graph=True)
        torch.testing.assert_close(gradient.detach(), torch.autograd.grad(model(x).sum(), x)[0])
        with pytest.raises(RuntimeError, match="trying to differentiate twice a captured module or function"):
            (gradient.square().sum() + x.sum()).backward()


def test_a_result_that_is_not_used():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2))

        def forward(self, x):
            return x * self.a, (x * self.b).view(2, 1)

    model = Two()
    captured = torch.capture(model, backend="plain")
    for call in range(6):
        model.zero_grad()
        captured(torch.full((2,), 2.0))[call % 2].sum().backward()
        used, other = (model.b, model.a) if call % 2 else (model.a, model.b)
        assert used.grad.tolist() == [2.0, 2.0]
        assert other.grad is None


@pytest.mark.parametrize("backend", ["plain", "auto"])
def test_threads_that_call_one_program(backend):
    model = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 64))

    def quiet(x):
        with torch.no_grad():
            return model(x).sin()

    inputs = [torch.randn(100, 64) for _ in range(4)]
    for function in (quiet, model):
        captured = torch.capture(function, backend=backend)
        for x in (*inputs, *inputs):
            captured(x)
        expected = [function(x).detach() for x in inputs]
        wrong = []

        def work(captured=captured, expected=expected, wrong=wrong):
            for _ in range(10):
                for x, y in zip(inputs, expected, strict=True):
                    if not torch.allclose(captured(x), y, atol=1e-5):
                        wrong.append(y)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong


def test_checked_calls_in_inference_mode():
    model = net().eval()
    captured = torch.capture(model, backend="plain", check=True)
    for number in range(5):
        with torch.inference_mode():
            x = torch.full((2, 3), float(number))
            torch.testing.assert_close(captured(x), model(x))


@pytest.mark.parametrize("whose", ["a parameter", "an argument"])
def test_whether_there_is_a_gradient_may_be_asked(whose):
    """Inside of a function in a larger graph."""
    w, x = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    asked = w if whose == "a parameter" else x

    def function(x):
        return w * x * (1 if (w if whose == "a parameter" else x).grad is None else 2)

    captured = torch.capture(function, backend="plain")
    for call in range(8):
        if call in (4, 6):
            asked.grad = torch.ones(2) if call == 4 else None
        assert torch.equal(captured(x), function(x)), call
