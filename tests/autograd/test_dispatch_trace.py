"""The dispatch trace: which calls it shows, and that it is gone afterwards."""

from __future__ import annotations

import importlib
import io
import operator
import os
import subprocess
import sys

import pytest

import retrograd as torch
from retrograd.core.state import local
from retrograd.ops.registry import DECLARED

trace_module = importlib.import_module("retrograd.autograd.dispatch_trace")  # autograd's name is the class
pytestmark = pytest.mark.usefixtures("clean_state")


def ops(trace):
    return [(call.op, call.key) for call in trace.calls]


#: What the seed shows for ``A @ x`` and for the sum. (Its lines stand all at one depth, as torch printed them then.)
SEED = """\
[call] op=[aten::matmul], key=[AutogradCPU]
[call] op=[aten::mm], key=[AutogradCPU]
[call] op=[aten::resolve_conj], key=[CPU]
[call] op=[aten::sum], key=[AutogradCPU]
[call] op=[aten::sum.dim_IntList], key=[CPU]
[call] op=[aten::as_strided], key=[CPU]
[call] op=[aten::fill_.Scalar], key=[CPU]
"""
#: Of these, what torch's kernels of mm and of sum call. Ours are NumPy's.
IN_KERNELS = ("resolve_conj", "sum.dim_IntList", "as_strided", "fill_.Scalar")


def test_the_seed_s_example():
    a = torch.tensor([[2.0, 3.0], [1.0, 4.0]], requires_grad=True)
    x = torch.tensor([[6.0], [-5.0]], requires_grad=True)
    file = io.StringIO()
    with torch.autograd.dispatch_trace(file=file):
        y = a @ x
        y.sum()
    assert file.getvalue().split("\n") == [
        " [call] op=[aten::matmul], key=[AutogradCPU]",
        "  [call] op=[aten::mm], key=[AutogradCPU]",
        "   [redispatch] op=[aten::mm], key=[CPU]",
        " [call] op=[aten::sum], key=[AutogradCPU]",
        "  [redispatch] op=[aten::sum], key=[CPU]",
        "",
    ]
    shown = [line.strip() for line in file.getvalue().split("\n") if "[call]" in line]
    assert shown == [line for line in SEED.splitlines() if not any(f"aten::{name}]" in line for name in IN_KERNELS)]


def test_the_environment_asks_for_it():
    """For the whole program, in all threads, on its standard error; tensor() is no operator."""
    program = """
import threading
import retrograd as torch
x = torch.tensor([1.0], requires_grad=True)
y = torch.ones(1) * x
thread = threading.Thread(target=x.exp)
thread.start()
thread.join()
"""
    environment = {**os.environ, "TORCH_SHOW_DISPATCH_TRACE": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        " [call] op=[aten::ones], key=[BackendSelect]",
        "  [redispatch] op=[aten::ones], key=[CPU]",
        " [call] op=[aten::mul.Tensor], key=[AutogradCPU]",
        "  [redispatch] op=[aten::mul.Tensor], key=[CPU]",
        " [call] op=[aten::exp], key=[AutogradCPU]",
        "  [redispatch] op=[aten::exp], key=[CPU]",
    ]


# ----------------------------------------------------------------------------------------------------- beside torch's


def tree_in_torch(call, torch):
    """Which operators torch calls, and inside how many others, as its profiler sees them; not what kernels call."""
    from torch.profiler import ProfilerActivity, profile

    config = torch._C._profiler._ExperimentalConfig(capture_overload_names=True)
    with profile(activities=[ProfilerActivity.CPU], experimental_config=config) as profiler:
        call(torch)
    found = []
    for event in profiler.events():
        if not event.name.startswith("aten::"):
            continue
        above = []
        parent = event.cpu_parent
        while parent is not None:
            above.append(parent)
            parent = parent.cpu_parent
        names = [one.name + (f".{one.overload_name}" if one.overload_name else "") for one in [event, *above]]
        if all(is_composite_in_torch(torch, name) for name in names[1:] if name.startswith("aten::")):
            found.append((len(names) - 1, names[0]))
    return found


def is_composite_in_torch(torch, name):
    table = torch._C._dispatch_dump_table(name)
    return any(line.startswith("AutogradCPU:") and "[math kernel]" in line for line in table.split("\n"))


def keys_in_torch(torch, name):
    """What answers for an operator on ordinary tensors, one after the other."""
    table = torch._C._dispatch_dump_table(name)
    keys = ("BackendSelect", "AutogradCPU", "ADInplaceOrView", "CPU")
    lines = {line.split(":")[0]: line for line in table.split("\n") if line.split(":")[0] in keys}
    if "fallthrough" not in lines["BackendSelect"]:
        return ["BackendSelect", "CPU"]  # torch.ones switches autograd off before it calls aten::ones
    if "[math kernel]" in lines["AutogradCPU"]:
        return ["AutogradCPU"]
    return [key for key in keys[1:] if "fallthrough" not in lines[key]]


TREES = {
    "A @ x": lambda torch, a, x: a @ x,
    "sum": lambda torch, a, x: (a.sum(), a.sum(0), a.mean(), a.mean(1)),
    "numbers": lambda torch, a, x: (a * 2, a + 1, 1 - a, a / 3, a**2, a > 0, a == 1, 2**a),
    "select": lambda torch, a, x: (a[0], a[:, 1:], a[0, 1], a[None], a[..., 0]),
    "index": lambda torch, a, x: a[a > 0],
    "views": lambda torch, a, x: (a.t(), a.view(4), a.transpose(0, 1), a.unsqueeze(0), a.expand(3, 2, 2), a.detach()),
    "composed views": lambda torch, a, x: (a.reshape(4), a.narrow(0, 0, 1), a.squeeze()),
    "in place": lambda torch, a, x: a.detach().clone().mul_(2).add_(a.detach()).exp_().zero_(),
    "square": lambda torch, a, x: (a.square(), a.std()),
    "factories": lambda torch, a, x: (
        torch.ones(2), torch.zeros(2), torch.randn(2), torch.rand(2), torch.arange(3), torch.full((2,), 1.0),
        torch.zeros_like(a), torch.eye(2), torch.empty(2),
    ),
    "activations": lambda torch, a, x: (a.relu(), a.sigmoid(), torch.nn.functional.gelu(a), a.tanh()),
    "comparisons": lambda torch, a, x: (a.max(), a.max(0), a.argmax(), a.sort(), a.clamp(0, 1)),
    "joining": lambda torch, a, x: (torch.cat([a, a]), torch.stack([a, a]), torch.where(a > 0, a, a)),
    "layers": lambda torch, a, x: torch.nn.functional.layer_norm(a, (2,)),
}  # fmt: skip

#: The same where ours is composed in another way: what we call, and inside how many others.
COMPOSED_OTHERWISE = {
    "flatten asks reshape": (
        lambda torch, a, x: a.flatten(), [(0, "flatten.using_ints"), (1, "reshape"), (2, "view")],
    ),
    "linear needs no matmul to choose the product": (
        lambda torch, a, x: torch.nn.functional.linear(a, a), [(0, "linear"), (1, "t"), (1, "mm")],
    ),
    "one operator for all forms of var": (lambda torch, a, x: a.var(0), [(0, "var.correction")]),
}  # fmt: skip


def traced(call):
    a = torch.tensor([[2.0, 3.0], [1.0, 4.0]], requires_grad=True)
    x = torch.tensor([[6.0], [-5.0]], requires_grad=True)
    with torch.autograd.dispatch_trace(show=False) as trace:
        call(torch, a, x)
    return trace.calls


def tree_of(calls):
    return [(call.depth, call.op) for call in calls if call.kind == "call"]


@pytest.mark.parity
@pytest.mark.parametrize("name", [*TREES, *COMPOSED_OTHERWISE])
def test_the_tree_is_torch_s(name):
    reference = pytest.importorskip("torch")
    call, ours = (TREES[name], None) if name in TREES else COMPOSED_OTHERWISE[name]
    a = reference.tensor([[2.0, 3.0], [1.0, 4.0]], requires_grad=True)
    x = reference.tensor([[6.0], [-5.0]], requires_grad=True)
    expected = tree_in_torch(lambda module: call(module, a, x), reference)
    calls = traced(call)
    if ours is None:
        assert tree_of(calls) == expected
    else:
        assert tree_of(calls) == [(depth, f"aten::{op}") for depth, op in ours] != expected
    keys = {}
    for one in calls:
        if one.kind == "call":
            keys[one.op] = [one.key]
        else:
            keys[one.op].append(one.key)
    assert keys == {op: keys_in_torch(reference, op) for op in keys}


@pytest.mark.parity
def test_what_torch_has_no_operator_for():
    reference = pytest.importorskip("torch")
    names = [name.split("::") for name in reference._C._dispatch_get_all_op_names()]
    operators = {name.split(".")[0] for space, name in names if space == "aten"}  # (other tests define operators)
    ours = {trace_module.aten_name_of(space, title, f) for space, fs in DECLARED.items() for title, f in fs.items()}
    new, stale = ours - operators - trace_module.NOT_OPERATORS, trace_module.NOT_OPERATORS - (ours - operators)
    assert not new, f"put these into NOT_OPERATORS, in autograd/dispatch_trace.py: {sorted(new)}"
    assert not stale, f"take these out of it: {sorted(stale)}"


def test_a_profiler_hears_what_it_would_hear(capsys):
    seen = []
    x = torch.ones(2, 2)
    sys.setprofile(lambda frame, event, arg: seen.append(frame.f_code.co_name))
    try:
        with torch.autograd.dispatch_trace(show=False):
            x.matmul(x)
        profiler = sys.getprofile()
    finally:
        sys.setprofile(None)
    assert "matmul" in seen and profiler is not None


def test_collecting(capsys):
    x = torch.ones(2)
    with torch.autograd.dispatch_trace(show=False) as trace:
        x.exp()
    assert ops(trace) == [("aten::exp", "AutogradCPU"), ("aten::exp", "CPU")]
    assert [call.depth for call in trace.calls] == [0, 1]
    assert capsys.readouterr().out == ""


def test_a_composite_is_announced_once_a_call():
    x = torch.ones(2, 2)
    with torch.autograd.dispatch_trace(show=False) as trace:
        torch.matmul(x, x)
        torch.matmul(x, x)
    assert [call.op for call in trace.calls].count("aten::matmul") == 2


def test_inference_mode_skips_autograd():
    with torch.inference_mode(), torch.autograd.dispatch_trace(show=False) as trace:
        torch.ones(2).exp()
    assert ops(trace) == [("aten::ones", "BackendSelect"), ("aten::ones", "CPU"), ("aten::exp", "CPU")]


def test_in_place_and_backward():
    x = torch.ones(2, requires_grad=True)
    with torch.autograd.dispatch_trace(show=False) as trace:
        y = x.exp()
        y.mul_(2)
    assert ("aten::mul_.Tensor", "CPU") in ops(trace)
    z = x.exp().sum()
    with torch.autograd.dispatch_trace(show=False) as trace:
        z.backward()
    assert ("aten::mul.Tensor", "CPU") in ops(trace)  # grad * result
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
    assert ("aten::exp", "CPU") not in ops(inner) and ("aten::sin", "CPU") in ops(inner)
    assert ("aten::exp", "CPU") in ops(outer) and ("aten::sin", "CPU") in ops(outer)


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
    assert [c.op for c in trace.calls if c.key == "AutogradCPU"] == [f"aten::{name}" for name in names]


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
