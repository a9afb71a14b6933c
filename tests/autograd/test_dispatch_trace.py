"""The dispatch trace: which calls it shows, and that it is gone afterwards."""

from __future__ import annotations

import io
import operator

import pytest

import retrograd as torch
from retrograd.core.state import local

pytestmark = pytest.mark.usefixtures("clean_state")


def ops(trace):
    return [(call.op, call.key) for call in trace.calls]


def test_the_basic_example():
    """As in the seeds: ``A @ x``, then the sum."""
    a = torch.tensor([[2.0, 3.0], [1.0, 4.0]], requires_grad=True)
    x = torch.tensor([[6.0], [-5.0]], requires_grad=True)
    file = io.StringIO()
    with torch.autograd.dispatch_trace(file=file):
        y = a @ x
        y.sum()
    assert file.getvalue().split("\n")[:-1] == [
        "[call] op=[matmul], key=[AutogradCPU]",
        " [call] op=[mm], key=[AutogradCPU]",
        "  [call] op=[mm], key=[CPU]",
        "[call] op=[sum], key=[AutogradCPU]",
        " [call] op=[sum], key=[CPU]",
    ]


def test_collecting(capsys):
    x = torch.ones(2)
    with torch.autograd.dispatch_trace(show=False) as trace:
        x.exp()
    assert ops(trace) == [("exp", "AutogradCPU"), ("exp", "CPU")]
    assert [call.depth for call in trace.calls] == [0, 1]
    assert capsys.readouterr().out == ""


def test_a_composite_is_announced_once_a_call():
    x = torch.ones(2, 2)
    with torch.autograd.dispatch_trace(show=False) as trace:
        torch.matmul(x, x)
        torch.matmul(x, x)
    assert [call.op for call in trace.calls].count("matmul") == 2


def test_inference_mode_skips_autograd():
    with torch.inference_mode(), torch.autograd.dispatch_trace(show=False) as trace:
        torch.ones(2).exp()
    assert ops(trace) == [("exp", "CPU")]


def test_in_place_and_backward():
    x = torch.ones(2, requires_grad=True)
    with torch.autograd.dispatch_trace(show=False) as trace:
        y = x.exp()
        y.mul_(2)
    assert ("mul_.Tensor", "CPU") in ops(trace)
    z = x.exp().sum()
    with torch.autograd.dispatch_trace(show=False) as trace:
        z.backward()
    assert ("mul.Tensor", "CPU") in ops(trace)  # grad * result
    assert x.grad.tolist() == pytest.approx([2.718281828] * 2)


def test_nothing_is_left_when_it_is_off():
    before = local.state.observers
    with pytest.raises(ZeroDivisionError), torch.autograd.dispatch_trace(show=False):
        1 / 0
    assert local.state.observers is before or local.state.observers == before
    assert local.state.interceptor is None


def test_traces_nest():
    x = torch.ones(2)
    with torch.autograd.dispatch_trace(show=False) as outer:
        x.exp()
        with torch.autograd.dispatch_trace(show=False) as inner:
            x.sin()
    assert ("exp", "CPU") not in ops(inner) and ("sin", "CPU") in ops(inner)
    assert ("exp", "CPU") in ops(outer) and ("sin", "CPU") in ops(outer)


@pytest.mark.parametrize(
    "call, names",
    [
        (lambda x: x.fill_(1.0), ["fill_.Scalar"]),
        (lambda x: x**2, ["pow.Tensor_Scalar"]),
        (lambda x: 1 - x, ["rsub.Scalar"]),
        (lambda x: x.max(dim=0), ["max.dim"]),
        (lambda x: x.min(), ["min"]),
        (lambda x: x.sum(0), ["sum.dim_IntList"]),
        (lambda x: x.std(0), ["std.correction"]),
    ],
)
def test_operators_have_torch_s_names(call, names):
    with torch.autograd.dispatch_trace(show=False) as trace:
        call(torch.ones(3))
    assert [c.op for c in trace.calls if c.key == "AutogradCPU"] == names


class Stranger:
    """Knows what to do with a tensor on its left."""

    def answer(self, other):
        return "stranger"

    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = __rmatmul__ = answer
    __rand__ = __ror__ = __rxor__ = __rlshift__ = __rrshift__ = __lt__ = __gt__ = __le__ = __ge__ = __eq__ = answer
    __hash__ = None


@pytest.mark.parametrize(
    "sign", ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor", "lshift",
             "rshift", "lt", "gt", "le", "ge", "eq", "iadd", "isub", "imul", "itruediv"],
)  # fmt: skip
@pytest.mark.parametrize(
    "mode",
    [
        lambda: torch.autograd.dispatch_trace(show=False),
        lambda: torch.autograd.set_detect_anomaly(True),
        lambda: torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t),
    ],
    ids=["trace", "anomaly", "saved"],
)
def test_strangers_answer_under_observers_too(sign, mode):
    function = getattr(operator, sign)
    plain = function(torch.ones(2, 2), Stranger())
    with mode():
        assert function(torch.ones(2, 2), Stranger()) == plain == "stranger"
        assert (torch.ones(2) == None) is False  # noqa: E711
        with pytest.raises(TypeError, match="unsupported operand"):
            torch.ones(2) + "x"
