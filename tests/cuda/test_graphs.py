"""Captured graphs: the numbers of a run without one, memory that is nobody else's, and what cannot be captured."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

import retrograd as torch
from gpu import simulated


def _model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)).to("cuda")


def _batches(count):
    torch.manual_seed(1)
    return [(torch.randn(5, 6).to("cuda"), torch.randn(5, 3).to("cuda")) for _ in range(count)]


def _step(model, optimizer):
    def step(x, y):
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    return step


def _replayed(step, x, y, batches):
    """The losses of a graph of `step`, captured with `x` and `y`, which are written to before each launch."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step(x, y)
    found = []
    for batch in batches:
        x.copy_(batch[0])
        y.copy_(batch[1])
        graph.replay()
        found.append(loss.item())
    return found


def test_a_graph_gives_the_numbers_of_a_run_without_it(gpu):
    model, other = _model(), _model()
    step, plain = (_step(m, torch.optim.SGD(m.parameters(), lr=0.1)) for m in (model, other))
    batches = _batches(6)
    x, y = (one.clone() for one in batches[0])
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        step(x, y)
    torch.cuda.current_stream().wait_stream(side)
    expected = [plain(*batch).item() for batch in batches]
    found = _replayed(step, x, y, batches[1:])
    assert found == expected[1:]
    for mine, theirs in zip(model.parameters(), other.parameters(), strict=True):
        assert mine.cpu().tolist() == theirs.cpu().tolist()
        assert mine.grad.cpu().tolist() == theirs.grad.cpu().tolist()


def test_the_memory_of_a_graph_is_given_to_nobody_else(gpu):
    x = torch.ones(64, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = ((x * 2 + 1) * 3 - x).exp().log()  # whose steps lie in memory that was let go before the block ended
    gc.collect()
    others = [torch.full((64,), float("nan"), device="cuda") for _ in range(50)]
    graph.replay()
    assert y.cpu().tolist() == pytest.approx([8.0] * 64)
    assert all(one.isnan().all().item() for one in others)  # and the graph writes to nobody else's
    before = y.cpu().tolist()
    others = [torch.full((64,), float("nan"), device="cuda") for _ in range(50)]
    assert y.cpu().tolist() == before
    if not gpu.real:
        simulated.poison()
        graph.replay()
        assert y.cpu().tolist() == before


def test_constants_are_kept_and_inputs_are_read_anew(gpu):
    x = torch.zeros(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x + torch.arange(4, device="cuda")
    for value in (1.0, 5.0):
        x.fill_(value)
        graph.replay()
        assert y.cpu().tolist() == [value + i for i in range(4)]


@pytest.mark.parametrize(
    ("what", "phrase"),
    [
        (lambda x: x.sum().item(), "reading values on the host"),
        (lambda x: bool((x > 0).all()), "reading values on the host"),
        (lambda x: x[x > 0], "an index of booleans"),
        (lambda x: x.nonzero(), "shape that values decide"),
        (lambda x: x.unique(), "shape that values decide|on the host"),
        (lambda x: torch.ones(3).to("cuda"), "a copy from the host"),
        (lambda x: torch.cuda.synchronize(), "synchronize"),
        (lambda x: torch.poisson(x), "another generator|on the host"),
    ],
)
def test_what_cannot_be_captured_says_so_and_where(gpu, what, phrase):
    x = torch.ones(3, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match=phrase) as caught, torch.cuda.graph(graph):
        what(x)
    assert "not permitted when stream is capturing" in str(caught.value)
    assert "test_graphs.py" in str(caught.value)
    assert (x + 1).cpu().tolist() == [2.0, 2.0, 2.0]  # all goes on as before
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        graph.replay()


@pytest.mark.parametrize(
    "draw",
    [lambda x: torch.nn.functional.dropout(x, 0.5), torch.rand_like, torch.randn_like],
    ids=["dropout", "rand_like", "randn_like"],
)
def test_numbers_are_drawn_anew_in_each_launch(gpu, draw):
    x = torch.ones(1000, device="cuda")
    graph = torch.cuda.CUDAGraph()
    torch.cuda.manual_seed(0)
    with torch.cuda.graph(graph):
        y = draw(x)
    torch.cuda.manual_seed(7)
    found = []
    for _ in range(2):
        graph.replay()
        found.append(y.cpu().tolist())
    torch.cuda.manual_seed(7)
    assert found == [draw(x).cpu().tolist() for _ in range(2)]
    assert found[0] != found[1]


def test_the_default_stream_is_not_captured(gpu):
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="must be captured on a non-default stream"):
        graph.capture_begin()


def test_a_graph_has_one_capture(gpu):
    graph = torch.cuda.CUDAGraph()
    x = torch.ones(2, device="cuda")
    with torch.cuda.graph(graph):
        assert torch.cuda.is_current_stream_capturing()
        y = x + 1
    assert not torch.cuda.is_current_stream_capturing()
    with pytest.raises(RuntimeError, match="already owns a captured graph"), torch.cuda.graph(graph):
        pass
    graph.reset()
    with torch.cuda.graph(graph):
        y = x + 2
    graph.replay()
    assert y.cpu().tolist() == [3.0, 3.0]


def test_graphs_share_a_pool(gpu):
    x = torch.ones(8, device="cuda")
    first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(first):
        y = x * 2
    with torch.cuda.graph(second, pool=first.pool()):
        z = y + 1
    assert first.pool() == second.pool()
    x.fill_(3)
    first.replay()
    second.replay()
    assert z.cpu().tolist() == [7.0] * 8


def test_graphed_callables_are_differentiated(gpu):
    model, other = _model(), _model()
    graphed = torch.cuda.make_graphed_callables(model, (torch.zeros(5, 6, device="cuda", requires_grad=True),))
    assert graphed is model
    for x, y in _batches(3):
        x.requires_grad_()
        twin = x.detach().clone().requires_grad_()
        for one in (model, other):
            one.zero_grad()
        ((model(x) - y) ** 2).sum().backward()
        ((other(twin) - y) ** 2).sum().backward()
        assert x.grad.cpu().tolist() == twin.grad.cpu().tolist()
        for mine, theirs in zip(model.parameters(), other.parameters(), strict=True):
            assert mine.grad.cpu().tolist() == theirs.grad.cpu().tolist()


@pytest.mark.parametrize("capturable", [False, True])
@pytest.mark.parametrize("name", ["Adam", "AdamW", "RMSprop", "SGD"])
def test_steps_of_optimizers_go_on_counting(gpu, name, capturable):
    if capturable and name == "SGD":
        options = {"lr": 0.1, "momentum": 0.9}
    else:
        options = {"lr": 0.01, **({} if name == "SGD" else {"capturable": capturable})}
    make = getattr(torch.optim, name)
    model, other = _model(), _model()
    optimizer = make(model.parameters(), **options)
    step, plain = _step(model, optimizer), _step(other, make(other.parameters(), **options))
    batches = _batches(5)
    x, y = (one.clone() for one in batches[0])
    torch.cuda.graphs.warm_up(lambda: step(x, y))
    expected = [plain(*batch).item() for batch in batches]
    found = _replayed(step, x, y, batches[1:])
    assert found == pytest.approx(expected[1:], rel=1e-6)
    if name.startswith("Adam"):
        assert {float(state["step"]) for state in optimizer.state.values()} == {5.0}


def test_a_captured_step_gives_the_numbers_of_the_step(gpu):
    model, other = _model(), _model()
    optimizers = [torch.optim.Adam(m.parameters(), lr=0.05) for m in (model, other)]
    step, plain = torch.capture(_step(model, optimizers[0])), _step(other, optimizers[1])
    for number, (x, y) in enumerate(_batches(8)):
        if number == 5:  # another learning rate: another graph
            for optimizer in optimizers:
                optimizer.param_groups[0]["lr"] = 0.01
        loss = step(x, y)
        assert loss.item() == pytest.approx(plain(x, y).item(), rel=1e-5)
        for mine, theirs in zip(model.parameters(), other.parameters(), strict=True):
            torch.testing.assert_close(mine.detach().cpu(), theirs.detach().cpu(), rtol=1e-5, atol=1e-6)
            torch.testing.assert_close(mine.grad.cpu(), theirs.grad.cpu(), rtol=1e-5, atol=1e-6)
    assert "One graph" in step.explain()
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()


def test_results_of_captured_steps_are_their_own(gpu):
    double = torch.capture(lambda x: x * 2)
    found = [double(torch.full((3,), float(i), device="cuda")) for i in range(4)]
    assert [one.cpu().tolist() for one in found] == [[2.0 * i] * 3 for i in range(4)]


def test_gradients_that_are_added_to(gpu):
    w = torch.ones(3, device="cuda", requires_grad=True)

    @torch.capture
    def step(x):
        (w * x).sum().backward()

    for i in range(4):
        step(torch.full((3,), float(i), device="cuda"))
    assert w.grad.cpu().tolist() == [6.0] * 3
    w.grad = None
    step(torch.ones(3, device="cuda"))
    assert w.grad.cpu().tolist() == [1.0] * 3


def test_a_step_that_cannot_be_captured_leaves_the_world_alone(gpu):
    w = torch.ones(3, device="cuda", requires_grad=True)

    @torch.capture
    def step(x):
        w.grad = None
        loss = (w * x).sum()
        loss.backward()
        return loss.item()

    x = torch.ones(3, device="cuda")
    assert step(x) == 3.0
    grad = w.grad
    with pytest.raises(RuntimeError, match=r"reading values on the host at .*test_graphs.py:\d+ in step"):
        step(x)
    assert w.grad is grad and grad.cpu().tolist() == [1.0] * 3


@pytest.mark.parametrize("kind", ["bool", "added", "causal"])
def test_attention_with_dropout_can_be_captured(gpu, kind):
    torch.manual_seed(0)
    q = torch.randn(2, 2, 9, 8).to("cuda")
    mask = torch.ones(9, 9, dtype=torch.bool).tril()
    mask[3] = False
    v = torch.ones(2, 2, 9, 8, device="cuda", requires_grad=True)
    given = None if kind == "causal" else mask.to("cuda")
    if kind == "added":
        given = torch.zeros(9, 9, device="cuda").masked_fill(~given, float("-inf"))

    @torch.capture
    def step():
        v.grad = None
        y = torch.nn.functional.scaled_dot_product_attention(q, q, v, given, 0.5, kind == "causal")
        y.sum().backward()
        return y

    found = [step().clone() for _ in range(4)]
    assert not torch.equal(found[2], found[3])
    for y in found:
        assert torch.isfinite(y).all()
        assert given is None or not y[:, :, 3].any()
    assert torch.isfinite(v.grad).all()


ON_THE_CPU = """
import sys
sys.path.insert(0, "tests")
import retrograd as torch
from gpu import simulated
from retrograd.arrays import places

if sys.argv[1] == "beside a device":
    places.start(simulated.library(1))
weight, bias = torch.ones(4, 3, requires_grad=True), torch.ones(4, requires_grad=True)


@torch.capture(backend="plain")
def step(x):
    return torch.nn.functional.linear(x, weight, bias).relu().sum()


for _ in range(3):
    step(torch.ones(2, 3))
print(step.source)
"""


def test_steps_of_the_cpu_are_recorded_alike_beside_a_device():
    """In processes of their own: what chooses among devices stood before the kernels when capturing was imported."""

    def source(where):
        command = [sys.executable, "-c", ON_THE_CPU, where]
        root = Path(__file__).parents[2]
        return subprocess.run(command, capture_output=True, text=True, check=True, cwd=root, env=os.environ).stdout

    alone = source("alone")
    assert "def replay" in alone and source("beside a device") == alone
