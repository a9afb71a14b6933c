"""What recordings hold, against what is known of the runs: hooks, finite differences, arithmetic by hand."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest

import retrograd as torch
from retrograd import explorer, nn
from retrograd.core import devices
from retrograd.core.state import local, process
from retrograd.explorer import events as ev
from retrograd.explorer.__main__ import main
from retrograd.explorer.record import Recording
from retrograd.tensor import wrap
from retrograd.utils.checkpoint import checkpoint

PROGRAMS = Path(__file__).parent / "programs"


def names(run: dict, kind: int) -> list[str]:
    """The titles of the nodes that events of a kind are about, in order."""
    events, nodes = run["events"], run["nodes"]
    found = [about for type_, about in zip(events["type"], events["about"]) if type_ == kind]
    leaf = (1, 3)  # and an input: these go by their names
    ops = run["ops"]
    return [nodes["label"][n] if nodes["kind"][n] in leaf else ops[nodes["op"][n]] for n in found]


def rows(run: dict, kind: int) -> list[dict]:
    events = run["events"]
    return [
        {name: events[name][index] for name in ev.COLUMNS}
        for index, type_ in enumerate(events["type"])
        if type_ == kind
    ]


def record(function) -> dict:
    with explorer.record() as recording:
        function()
    return recording.data()


# ------------------------------------------------------------------------------------------------------------ one pass


def test_nodes_run_in_the_order_that_the_engine_says():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = torch.tensor([3.0, 4.0], requires_grad=True)
    loss = (x * y + x.exp()).sum()
    seen = []
    waiting = [loss.grad_fn]
    for node in waiting:
        node.register_prehook(lambda grads, node=node: seen.append(node.name().rpartition("::")[2]))
        waiting += [below for below, _ in node.next_functions if below not in waiting]
    run = explorer.record(loss, open=False).backward().runs[0]
    assert [run["ops"][run["nodes"]["op"][row["about"]]] for row in rows(run, ev.RUN)] == seen
    assert names(run, ev.RUN) == ["SumBackward0", "AddBackward0", "ExpBackward0", "MulBackward0", "x", "y"]
    # exp was made after mul, and runs before it; x waits for both of them, y does not.
    edges = run["edges"]
    waits = [(run["nodes"]["label"][edges["to"][row["about"]]], row["value"]) for row in rows(run, ev.GRAD)]
    assert [pair for pair in waits if pair[0] == "x"] == [("x", 1), ("x", 0)]
    assert [pair for pair in waits if pair[0] == "y"] == [("y", 0)]
    assert [row["type"] for row in rows(run, ev.BEGIN) + rows(run, ev.END)] == [ev.BEGIN, ev.END]


def test_norms_are_those_of_the_gradients():
    x = torch.tensor([3.0, 4.0], dtype=torch.float64, requires_grad=True)
    run = explorer.record((x * x).sum(), open=False).backward().runs[0]
    by_edge = [row["norm"] for row in rows(run, ev.GRAD)]
    # ones(2), then x twice (as either factor): the norms of (1, 1) and of (3, 4).
    assert by_edge == pytest.approx([np.sqrt(2), 5.0, 5.0], rel=1e-3)
    assert rows(run, ev.DONE)[-1]["norm"] == pytest.approx(10.0)  # x.grad is 2 x
    assert [run["edges"]["output"][row["about"]] for row in rows(run, ev.GRAD)] == [0, 0, 1]  # two edges to one leaf


def test_memory_falls_by_what_nodes_let_go():
    x = torch.ones(100, requires_grad=True)
    y = x.exp()  # saves its result, 400 bytes; the product saves it once more, and x, which is there anyway
    run = explorer.record((y * x).sum(), open=False).backward().runs[0]
    assert run["memory"] == [400]
    freed = [(run["ops"][run["nodes"]["op"][row["about"]]], row["value"]) for row in rows(run, ev.RELEASE)]
    assert freed == [("ExpBackward0", 400)]  # the last that held it
    assert sum(run["nodes"]["bytes"]) == 400


def test_retained_graphs_keep_their_memory():
    x = torch.ones(100, requires_grad=True)
    run = explorer.record(x.exp().sum(), open=False).backward(retain_graph=True).runs[0]
    assert run["memory"] == [400] and rows(run, ev.RELEASE) == []


def test_hooks_fire_where_they_do():
    x = torch.tensor([1.0], requires_grad=True)
    y = x * 2
    seen = []
    y.register_hook(lambda grad: seen.append("tensor"))
    y.grad_fn.register_prehook(lambda grads: seen.append("pre"))
    y.grad_fn.register_hook(lambda *grads: seen.append("post"))
    x.register_post_accumulate_grad_hook(lambda leaf: seen.append("leaf"))
    run = explorer.record(y, open=False).backward().runs[0]
    assert seen == ["tensor", "pre", "post", "leaf"]
    texts = [run["events"]["texts"][row["value"]].split()[0] for row in rows(run, ev.HOOK)]
    assert texts == ["tensor", "pre-hook", "post-hook", "post-accumulate"]
    assert len(run["nodes"]["hooks"][0]) == 3


def test_grad_hands_out_what_was_asked_for():
    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    recording = explorer.record((x * y).sum(), open=False)
    run = recording.grad(x).runs[0]
    assert recording.result[0].tolist() == [1.0, 1.0]
    assert names(run, ev.CAPTURE) == ["x"] and x.grad is None
    assert names(run, ev.RUN) == ["SumBackward0", "MulBackward0"]


def test_gradients_are_those_without_a_recording():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    data = torch.randn(5, 4)
    net(data).square().mean().backward()
    expected = [parameter.grad.clone() for parameter in net.parameters()]
    net.zero_grad()
    record(lambda: net(data).square().mean().backward())
    for parameter, grad in zip(net.parameters(), expected, strict=True):
        assert torch.equal(parameter.grad, grad)


def test_nothing_is_left_on():
    x = torch.ones(1, requires_grad=True)
    record(lambda: (x * 2).backward())
    with pytest.raises(ZeroDivisionError), explorer.record():
        1 / 0
    with explorer.watch():
        pass
    assert process.modes == () and local.state.observers == () and local.state.interceptor is None
    from retrograd.nn.modules import module_hooks

    assert not module_hooks.any_global


def test_nothing_is_kept_alive():
    x = torch.ones(100, requires_grad=True)
    y = x.exp()
    node, array = weakref.ref(y.grad_fn), weakref.ref(y._numbers_)
    gc.disable()
    try:
        page = explorer.record((y * y).sum(), open=False).backward(retain_graph=True)
        with explorer.record() as recording:
            (y * 2).sum().backward()
        recording.page()
        del y, recording
        assert node() is None and array() is None, "no ring of references, no frame's dict of variables"
    finally:
        gc.enable()
    assert page.runs[0]["nodes"]["label"].count("x") == 1


# ------------------------------------------------------------------------------------------------- passes of all kinds


def test_a_pass_inside_a_pass():
    inner = torch.tensor(2.0, requires_grad=True)

    def hook(grad):
        with torch.enable_grad():
            (inner * inner).backward()

    x = torch.tensor(1.0, requires_grad=True)
    y = x * 3
    y.register_hook(hook)
    run = explorer.record(y.sin(), open=False).backward().runs[0]
    assert [row["value"] for row in rows(run, ev.BEGIN)] == [0, 1]
    passes = run["events"]["pass"]
    begin, end = passes.index(1), len(passes) - passes[::-1].index(1)
    assert set(passes[begin:end]) == {1}, "the inner pass is one block of the outer one"
    assert 0 in passes[end:]
    assert {"inner", "x"} <= set(names(run, ev.DONE))


def test_checkpoints_hold_less():
    torch.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 16)) for _ in range(4)]

    def step(checkpointed: bool) -> dict:
        def run() -> None:
            x = torch.ones(32, 16)
            for layer in layers:
                x = checkpoint(layer, x, use_reentrant=False) if checkpointed else layer(x)
            x.sum().backward()

        return record(run)

    plain, saved = step(False), step(True)
    # Of each layer its input alone, 32·16 floats; that of the first was made outside, and is kept all the same.
    assert saved["memory"][0] == 4 * 32 * 16 * 4
    assert saved["memory"][0] < plain["memory"][0] / 4

    def curve(run: dict) -> list[int]:
        held = [run["memory"][0]]
        for kind, value in zip(run["events"]["type"], run["events"]["value"]):
            held.append(held[-1] + (value if kind == ev.GROW else -value if kind == ev.RELEASE else 0))
        return held

    assert curve(plain)[-1] == 0 and curve(saved)[-1] == 0
    # What is computed again is there for one layer at a time.
    assert saved["memory"][0] < max(curve(saved)) < max(curve(plain))
    page = explorer.compare(explorer.Page([plain]), explorer.Page([saved]), open=False)
    assert len(page.runs) == 2


def test_recorded_passes():
    x = torch.tensor(2.0, requires_grad=True)
    (first,) = torch.autograd.grad(x**3, x, create_graph=True)
    with explorer.record() as recording:
        (grad,) = torch.autograd.grad(x**3, x, create_graph=True)
        grad.backward()
    run = recording.data()
    assert x.grad.item() == 12.0 and first.item() == 12.0
    assert len(rows(run, ev.BEGIN)) == 2 and max(run["nodes"]["parent"]) >= 0  # nodes that the first pass has made


def test_threads_have_lanes():
    leaves = [torch.ones(3, requires_grad=True) for _ in range(3)]
    losses = [(leaf * leaf).sum() for leaf in leaves]

    def work() -> None:
        threads = [threading.Thread(target=loss.backward, name=f"worker {n}") for n, loss in enumerate(losses)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    run = record(work)
    assert set(run["events"]["lanes"]) == {"worker 0", "worker 1", "worker 2"}
    assert all(leaf.grad.tolist() == [2.0] * 3 for leaf in leaves)
    assert len(rows(run, ev.END)) == 3 and len(rows(run, ev.DONE)) == 9


class DeviceArray(np.ndarray):
    """An array of a device that computes on the CPU."""


def test_devices_have_lanes():
    device = torch.device("cuda", 0)
    devices.register_array_class(DeviceArray, device)
    try:
        there = wrap(np.ones(2, np.float32).view(DeviceArray)).requires_grad_()
        here = torch.ones(2, requires_grad=True)
        ones = np.ones(2, np.float32)
        outputs = [there * there, here * 2]

        def step() -> None:
            torch.autograd.backward(outputs, [wrap(ones.view(DeviceArray)), wrap(ones)])

        run = record(step)
        assert set(run["events"]["lanes"]) == {"cuda:0", threading.current_thread().name}
        lanes = {run["nodes"]["label"][row["about"]]: run["events"]["lanes"][row["lane"]] for row in rows(run, ev.RUN)}
        assert lanes["there"] == "cuda:0" and lanes["here"] == threading.current_thread().name
        assert "(2,) float32 cuda:0" in run["metas"]
        assert there.grad.tolist() == [2.0, 2.0] and here.grad.tolist() == [2.0, 2.0]
        assert len(rows(run, ev.DONE)) == 5 and len(rows(run, ev.END)) == 1  # GraphRoot, two products, two leaves
    finally:
        del devices._BY_ARRAY_CLASS[DeviceArray]
        devices.accelerators.remove(device)


def test_a_pass_that_fails():
    class Broken(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            raise ValueError("as it should")

    x = torch.ones(1, requires_grad=True)
    recording = explorer.record(Broken.apply(x) * 2, open=False)
    with pytest.raises(ValueError, match="as it should") as caught:
        recording.backward()
    assert any("explorer shows" in note for note in caught.value.__notes__)
    run = recording.data()
    assert names(run, ev.ERROR) == ["BrokenBackward"] and "as it should" in run["error"]
    Path(caught.value.__notes__[0].rpartition(" ")[2]).unlink()


def test_dual_numbers():
    def function(x, w):
        return (x * w).sin().sum()

    x, w = torch.tensor([0.5, 1.0], dtype=torch.float64), torch.tensor([2.0, 3.0], dtype=torch.float64)
    t = torch.tensor([1.0, -1.0], dtype=torch.float64)
    recording = explorer.record(function, open=False)
    run = recording.jvp((x, w), (t, torch.zeros_like(w))).runs[0]
    h = 1e-6
    expected = (function(x + h * t, w) - function(x - h * t, w)).item() / (2 * h)
    assert recording.result[1].item() == pytest.approx(expected, rel=1e-8)
    assert run["kind"] == "forward" and names(run, ev.DONE) == ["x", "w", "mul", "sin", "sum"]
    norms = [row["norm"] for row in rows(run, ev.DONE)]
    product = np.array([2.0, -3.0])
    assert norms[2:4] == pytest.approx(
        [np.linalg.norm(product), np.linalg.norm(product * np.cos([1.0, 3.0]))], rel=1e-3
    )
    assert norms[4] == pytest.approx(abs(expected), rel=1e-3)
    quotient = explorer.record(lambda x, w: torch.div(x, other=w), open=False).jvp((x, w), (t, t)).runs[0]
    assert [quotient["nodes"]["label"][node] for node in quotient["edges"]["to"]] == ["x", "w"]
    with pytest.raises(RuntimeError, match="one tangent for each primal"):
        explorer.record(function, open=False).jvp((x, w), (t,))


def test_tensors_of_other_kinds():
    """Sparse gradients, tensors without values, complex numbers and bfloat16: what has a norm has the right one."""
    table = torch.ones(4, 3, requires_grad=True)
    wave = torch.tensor([3 + 4j], requires_grad=True)
    rough = torch.tensor([2.0], dtype=torch.bfloat16, requires_grad=True)

    def step() -> None:
        torch.nn.functional.embedding(torch.tensor([1, 2]), table, sparse=True).sum().backward()
        (wave * 1).abs().sum().backward()
        (rough * 2).sum().backward()

    run = record(step)
    norms = {run["nodes"]["label"][row["about"]]: row["norm"] for row in rows(run, ev.DONE)}
    assert norms["table"] == pytest.approx(np.sqrt(6), rel=1e-3)  # of the values, without the indices
    assert norms["wave"] == pytest.approx(1.0) and norms["rough"] == 2.0

    with torch.device("meta"):
        net = nn.Linear(1000, 1000, bias=False)
        data = torch.randn(8, 1000)
    run = record(lambda: net(data).tanh().sum().backward())
    assert run["memory"] == [2 * 8 * 1000 * 4]  # what the product and tanh save; the weight is there anyway
    assert {norm for norm in run["events"]["norm"]} == {None}


# ------------------------------------------------------------------------------------------------------------- answers


def answer(run: dict, which: str) -> dict:
    return next(one for one in run["answers"] if one["id"] == which)


def test_why_a_leaf_has_no_gradient():
    used, cut, idle = (torch.ones(2, requires_grad=True) for _ in range(3))

    def step() -> None:
        half = (cut * 0.5).detach()
        (used * half).sum().backward()

    run = record(step)
    found = answer(run, "no-gradient")
    assert found["answer"] == "2 leaves get no gradient."
    (first,) = [item for item in found["items"] if item["cut"] is not None]
    assert "cut: cut off by detach() at test_record.py" in first["text"]
    assert "(cut * 0.5).detach()" in run["files"][0]["text"][run["lines"][first["line"]][1] - run["files"][0]["first"]]
    assert run["cuts"][first["cut"]]["leaves"] == [run["nodes"]["label"].index("cut")]
    assert any(item["text"].startswith("idle:") for item in found["items"])
    assert idle.grad is None and cut.grad is None and used.grad is not None


def test_no_grad_is_a_cut_too():
    w = torch.ones(2, requires_grad=True)
    x = torch.ones(2, requires_grad=True)

    def step() -> None:
        with torch.no_grad():
            scale = w * 2
        (x * scale.exp()).sum().backward()  # what is made of it is behind the cut as well

    run = record(step)
    (item,) = answer(run, "no-gradient")["items"]
    assert "no_grad() around" in item["text"] and item["text"].startswith("w:")


def test_cuts_do_not_keep_graphs_alive():
    w = torch.ones(2, requires_grad=True)
    alive = []
    with explorer.watch() as watcher:
        state = torch.zeros(2)
        for _ in range(5):
            before = w * state.detach()
            alive.append(torch.autograd.graph.get_gradient_edge(before).node)
            state = before
    nodes = [weakref.ref(node) for node in alive]
    alive.clear()
    del before
    assert [node() is None for node in nodes] == [True] * 4 + [False]
    assert watcher.cuts() == [] or len(watcher.cuts()) <= 5


def test_what_keeps_the_memory():
    x = torch.ones(1000, requires_grad=True)

    def step() -> None:
        y = x.exp()
        z = torch.sin(y[:10])
        (y.sum() + z.sum()).backward()

    found = answer(record(step), "memory")
    assert found["items"][0]["text"].startswith("3.9 KiB")
    assert "ExpBackward0" in found["items"][0]["text"]


def test_where_the_nan_comes_from():
    x = torch.tensor([0.0, 1.0], requires_grad=True)

    def step() -> None:
        y = torch.sqrt(x) * torch.tensor([0.0, 1.0])
        y.sum().backward()

    run = record(step)
    found = answer(run, "nan")
    (item,) = found["items"]
    assert "SqrtBackward0" in found["answer"] and "grad / (result * 2).conj()" in item["text"]
    assert "torch.sqrt(x)" in run["files"][0]["text"][run["lines"][item["line"]][1] - run["files"][0]["first"]]


def test_a_nan_of_the_forward_pass():
    x = torch.tensor([-1.0], requires_grad=True)
    run = record(lambda: torch.log(x).exp().sum().backward())
    item = answer(run, "nan")["items"][0]
    assert item["text"].startswith("Forward: the result of LogBackward0")


def test_there_is_no_nan():
    x = torch.ones(1, requires_grad=True)
    assert answer(record(lambda: (x * 2).backward()), "nan")["items"] == []


# -------------------------------------------------------------------------------------------- lines, modules and names


def test_lines_and_modules():
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(2, 2), nn.Linear(2, 1)

        def forward(self, x):
            return self.second(self.first(x).relu())

    net = Net()
    with explorer.watch():
        loss = net(torch.ones(1, 2)).sum()
    run = explorer.show(loss, open=False).runs[0]
    paths = [(path, cls) for path, cls, _, _ in run["modules"]]
    assert sorted(paths) == [("Net", "Net"), ("first", "Linear"), ("second", "Linear")]
    assert {"net.first.weight", "net.second.bias"} <= set(run["nodes"]["label"])
    linear = run["nodes"]["label"].index("net.first.weight")
    assert run["modules"][run["nodes"]["module"][linear]][0] == "first"
    texts = {run["files"][file]["text"][line - run["files"][file]["first"]].strip() for file, line, _ in run["lines"]}
    assert texts == {"return self.second(self.first(x).relu())", "loss = net(torch.ones(1, 2)).sum()"}


def test_variables_name_leaves_and_results():
    weight = torch.ones(2, requires_grad=True)
    hidden = weight * 2
    total = hidden.sum()
    run = explorer.show(total, open=False).runs[0]
    assert run["nodes"]["label"] == ["total", "hidden", "weight"]

    def step(layers):
        out = layers[0] * 3
        out.sum().backward()

    run = record(lambda: step([torch.ones(1, requires_grad=True)]))
    assert run["nodes"]["label"] == [None, "out", "layers[0]", "weight"]  # the last is not reached


def test_tensors_of_earlier_passes_are_let_go():
    """A script's steps are recorded one after the other: only the last is kept."""
    recording = Recording(last=True)
    seen = []

    def step(state):
        x = torch.ones(3, requires_grad=True)
        y = x * state
        seen.append((weakref.ref(x), weakref.ref(y)))
        y.sum().backward()

    gc.disable()
    try:
        with recording:
            for number in range(4):
                step(number)
    finally:
        gc.enable()
    assert [x() is None and y() is None for x, y in seen[:-1]] == [True] * 3
    assert len(rows(recording.data(), ev.BEGIN)) == 1


def test_anomaly_mode_has_lines_too():
    x = torch.ones(1, requires_grad=True)
    with pytest.warns(UserWarning, match="Anomaly"), torch.autograd.detect_anomaly():
        y = x * 2
    assert len(explorer.show(y, open=False).runs[0]["lines"]) == 1


def test_show_needs_a_graph():
    with pytest.raises(RuntimeError, match="does not require grad and does not have a grad_fn"):
        explorer.show(torch.ones(1), open=False)


def test_in_place_writes_and_custom_functions_are_nodes():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = torch.ones(3, requires_grad=True)

    def step() -> None:
        y = Double.apply(x)
        z = torch.zeros(3)
        z[:2] = y[:2]
        z.sum().backward()

    run = record(step)
    assert x.grad.tolist() == [2.0, 2.0, 0.0]
    assert {"CopySlices", "DoubleBackward"} <= set(run["ops"])
    double = run["nodes"]["op"].index(run["ops"].index("DoubleBackward"))
    assert run["nodes"]["saved"][double][0][:3] == ["saved_tensors[0]", "(3,)", "float32"]
    assert all(run["nodes"]["line"][node] >= 0 for node, kind in enumerate(run["nodes"]["kind"]) if kind != 1)


# ----------------------------------------------------------------------------------------------------------- the shell


def explore(tmp_path: Path, *arguments: str) -> tuple[int, Path]:
    """What the command returns, run in this process, and where its page is."""
    page = tmp_path / "page.html"
    return main(["--no-open", "-o", str(page), *arguments]), page


def data_of(page: Path) -> dict:
    text = page.read_text(encoding="utf-8")
    return json.loads(text.partition('id="data">')[2].partition("</script>")[0])


def test_a_script_is_run_and_its_last_pass_explored(tmp_path):
    script = tmp_path / "training.py"
    script.write_text(
        "import sys\n"
        "import retrograd as torch\n"
        "w = torch.ones(3, requires_grad=True)\n"
        "for step in range(4):\n"
        "    w.grad = None\n"
        "    (w * (step + 1)).sum().backward()\n"
        "print('argument', sys.argv[1], __name__)\n"
    )
    page = tmp_path / "page.html"
    command = [sys.executable, "-m", "retrograd.explorer", "--no-open", "-o", str(page), str(script), "5"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "argument 5 __main__\n" and str(page) in done.stderr
    (run,) = data_of(page)["runs"]
    assert len(rows(run, ev.BEGIN)) == 1 and run["nodes"]["label"] == [None, None, "w"]
    assert rows(run, ev.DONE)[-1]["norm"] == pytest.approx(np.sqrt(48), rel=1e-3)  # of the last: w.grad is 4


def test_a_script_without_a_pass_and_one_that_fails(tmp_path, capsys):
    script = tmp_path / "nothing.py"
    script.write_text("print(1)\n")
    status, page = explore(tmp_path, str(script))
    assert status == 1 and "no backward pass" in capsys.readouterr().err and not page.exists()
    script.write_text(
        "import retrograd as torch\nx = torch.ones(1, requires_grad=True)\n(x * 2).backward()\n"
        "raise ValueError('later')\n"
    )
    status, page = explore(tmp_path, str(script))
    assert status == 1 and "ValueError: later" in capsys.readouterr().err
    assert "later" in data_of(page)["runs"][0]["error"]


def test_the_program_with_a_nan(tmp_path):
    status, page = explore(tmp_path, str(PROGRAMS / "nan.py"))
    assert status == 0
    run = data_of(page)["runs"][0]
    assert "SqrtBackward0 (distance), nan.py:10" in answer(run, "nan")["answer"]
    assert "scale: cut off by detach() at nan.py:7" == answer(run, "no-gradient")["items"][0]["text"]
