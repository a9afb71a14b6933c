"""Profiles: what they see, what it took, and the files that they write. Tests with `torch` hold for torch as well."""

from __future__ import annotations

import gc
import gzip
import json
import pickle
import sys
import threading

import pytest

import retrograd


def _events(profile, name):
    return [event for event in profile.function_events if event.name == name]


def test_a_node_has_the_number_of_the_operator_that_made_it(torch):
    x = torch.ones(3, requires_grad=True)
    with torch.autograd.profiler.profile() as profile:
        (x * x).exp().sum().backward()
    for forward, node in (("aten::mul", "MulBackward0"), ("aten::exp", "ExpBackward0"), ("aten::sum", "SumBackward0")):
        made = _events(profile, forward)[0]
        (outer,) = _events(profile, f"autograd::engine::evaluate_function: {node}")
        (inner,) = _events(profile, node)
        assert made.sequence_nr >= 0 and made.fwd_thread == 0
        assert outer.sequence_nr == inner.sequence_nr == made.sequence_nr
        assert outer.fwd_thread == inner.fwd_thread == made.thread
        assert inner.cpu_parent is outer and inner in outer.cpu_children
    within = {child.name for event in _events(profile, "ExpBackward0") for child in event.cpu_children}
    assert "aten::mul" in within
    assert any("AccumulateGrad" in event.name for event in profile.function_events)


def test_operators_that_record_nothing_have_no_number():
    """(Torch gives them the number that the next node will have.)"""
    torch = retrograd
    x = torch.ones(3)
    with torch.autograd.profiler.profile() as profile:
        x.exp()
    assert [event.sequence_nr for event in _events(profile, "aten::exp")] == [-1]


def test_functions_composed_of_operators_are_seen_around_them(torch):
    layer, x = torch.nn.Linear(4, 5), torch.ones(2, 4)
    with torch.autograd.profiler.profile(record_shapes=True) as profile:
        layer(x)
        torch.rand(3)
    (linear,) = _events(profile, "aten::linear")
    assert linear.input_shapes == [[2, 4], [5, 4], [5]]
    assert _events(profile, "aten::addmm")[0].cpu_parent is linear
    (rand,) = _events(profile, "aten::rand")
    assert "aten::empty" in [child.name for child in rand.cpu_children]


def test_memory_is_counted_when_it_is_taken_and_when_it_goes(torch):
    with torch.autograd.profiler.profile(profile_memory=True) as profile:
        with torch.autograd.profiler.record_function("taken"):
            x = torch.rand(10, 10)
        with torch.autograd.profiler.record_function("more"):
            y = x + x
        with torch.autograd.profiler.record_function("views"):
            z = y.t()
        with torch.autograd.profiler.record_function("given back"):
            del x, y
        with torch.autograd.profiler.record_function("and the rest"):
            del z
    used = {event.key: event.cpu_memory_usage for event in profile.key_averages()}
    wanted = {"taken": 400, "more": 400, "views": 0, "given back": -400, "and the rest": -400, "aten::add": 400}
    assert {name: used[name] for name in wanted} == wanted
    assert used["aten::rand"] == used["aten::empty"] == 400
    (add,) = [event for event in profile.key_averages() if event.key == "aten::add"]
    assert add.self_cpu_memory_usage == 400
    assert "Self CPU Mem" in profile.key_averages().table(sort_by="self_cpu_memory_usage")


def test_arithmetic_is_counted(torch):
    a, image, kernel = torch.ones(3, 4), torch.ones(2, 3, 8, 9), torch.ones(5, 3, 3, 3)
    with torch.autograd.profiler.profile(with_flops=True) as profile:
        torch.mm(a, a.t())
        torch.addmm(torch.ones(3), a, a.t())
        torch.bmm(a[None], a.t()[None])
        a * a
        torch.nn.functional.conv2d(image, kernel, padding=1, stride=2)
    flops = {event.key: event.flops for event in profile.key_averages() if event.flops}
    convolution = flops.pop("aten::conv2d", None) or flops.pop("aten::convolution")
    assert flops == {"aten::mm": 72, "aten::addmm": 72, "aten::bmm": 72, "aten::mul": 12}
    assert convolution == 2 * 2 * 4 * 5 * (5 * 3 * 3 * 3)
    assert "FLOPs" in profile.key_averages().table()


def _lines_of_this_file(event):
    return [line for line in event.stack if "test_profiler.py" in line]


def test_stacks_are_lines_of_the_program(tmp_path):
    torch = retrograd

    def inner(x):
        return x.exp()

    def outer(x):
        return inner(x) + x.cos()

    x = torch.ones(1000, requires_grad=True)
    with torch.autograd.profiler.profile(with_stack=True) as profile:
        outer(x).sum().backward()
    (exp,), (cos,) = _events(profile, "aten::exp"), _events(profile, "aten::cos")
    assert [line.rpartition(": ")[2] for line in _lines_of_this_file(exp)[:3]] == ["inner", "outer", _here()]
    assert [line.rpartition(": ")[2] for line in _lines_of_this_file(cos)[:2]] == ["outer", _here()]
    assert _events(profile, "ExpBackward0")[0].stack == exp.stack  # of a node, the lines that made it
    apart = [e for e in profile.key_averages(group_by_stack_n=1) if e.key in ("aten::exp", "aten::cos", "aten::mul")]
    assert all(len(event.stack) == 1 for event in apart)
    assert "Source Location" in profile.key_averages(group_by_stack_n=2).table()
    profile.export_stacks(str(tmp_path / "stacks"), "self_cpu_time_total")
    lines = (tmp_path / "stacks").read_text().splitlines()
    assert any(line.split()[0].endswith("outer;" + _last_part(exp)) and int(line.split()[1]) > 0 for line in lines)
    with pytest.raises(ValueError, match="metric should be one of"):
        profile.export_stacks(str(tmp_path / "stacks"), "count")


def _here():
    return sys._getframe(1).f_code.co_name


def _last_part(event):
    return event.stack[0].replace(" ", "_")


def test_modules_and_loops_have_names():
    torch = retrograd
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(4, 2)), batch_size=2)
    with torch.autograd.profiler.profile(with_modules=True) as profile:
        for (x,) in loader:
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
    counts = {event.key: event.count for event in profile.key_averages()}
    assert counts["nn.Module: Sequential_0"] == counts["nn.Module: Linear_0"] == counts["nn.Module: Linear_1"] == 2
    assert counts["Optimizer.step#SGD.step"] == counts["Optimizer.zero_grad#SGD.zero_grad"] == 2
    assert counts["enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"] == 3
    assert _events(profile, "nn.Module: Linear_0")[0].cpu_parent.name == "nn.Module: Sequential_0"


def test_a_trace_has_lanes_arrows_and_memory(tmp_path):
    """By the rules of the format: https://github.com/google/trace-viewer, "Trace Event Format"."""
    torch = retrograd
    x = torch.ones(4, requires_grad=True)
    with torch.autograd.profiler.profile(record_shapes=True, profile_memory=True, with_stack=True) as profile:
        with torch.autograd.profiler.record_function("outer"), torch.autograd.profiler.record_function("inner"):
            y = x * 2
        later = torch.jit.fork(torch.exp, y)
        torch.jit.wait(later).sum().backward()
    path = tmp_path / "trace.json.gz"
    profile.export_chrome_trace(str(path))
    with gzip.open(path, "rt") as file:
        found = json.load(file)["traceEvents"]
    assert {event["ph"] for event in found} == {"M", "X", "s", "f", "i", "C"}
    slices = [event for event in found if event["ph"] == "X"]
    for event in slices:
        assert event["dur"] >= 0 and isinstance(event["ts"], float) and isinstance(event["name"], str)
    # Slices of one lane lie within each other or apart: else a viewer draws them wrong.
    for lane in {event["tid"] for event in slices}:
        around: list[float] = []
        for event in sorted((e for e in slices if e["tid"] == lane), key=lambda e: (e["ts"], -e["dur"])):
            while around and event["ts"] >= around[-1]:
                around.pop()
            assert not around or event["ts"] + event["dur"] <= around[-1]
            around.append(event["ts"] + event["dur"])
    (exp,) = [event for event in slices if event["name"] == "aten::exp"]
    (mul,) = [event for event in slices if event["name"] == "aten::mul" and "Sequence number" in event["args"]]
    assert exp["tid"] != mul["tid"]  # a lane each
    assert {event["tid"] for event in found if event["name"] == "thread_name"} == {event["tid"] for event in slices}
    starts = {event["id"]: event for event in found if event["ph"] == "s"}
    ends = {event["id"]: event for event in found if event["ph"] == "f"}
    assert starts.keys() == ends.keys() and len(starts) == 3
    by_time = {(event["tid"], event["ts"]): event["name"] for event in slices}
    arrows = {
        by_time[starts[i]["tid"], starts[i]["ts"]]: by_time[ends[i]["tid"], ends[i]["ts"]].rpartition(": ")[2]
        for i in starts
    }
    assert arrows == {"aten::mul": "MulBackward0", "aten::exp": "ExpBackward0", "aten::sum": "SumBackward0"}
    assert all(starts[i]["ts"] < ends[i]["ts"] for i in starts)
    bytes_taken = [event["args"]["Bytes"] for event in found if event["ph"] == "i"]
    assert bytes_taken[0] == 16 and {event["name"] for event in found if event["ph"] == "i"} == {"[memory]"}


def test_remarks_are_in_the_trace(torch, tmp_path):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        profile.add_metadata("who", "someone")
        profile.add_metadata_json("many", json.dumps([1, {"two": 3}]))
        torch.ones(2).exp()
    profile.export_chrome_trace(str(tmp_path / "trace.json"))
    written = json.loads((tmp_path / "trace.json").read_text())
    assert written["who"] == "someone" and written["many"] == [1, {"two": 3}]


def test_traces_for_tensorboard(tmp_path):
    torch = retrograd
    plan = torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=2)
    handler = torch.profiler.tensorboard_trace_handler(str(tmp_path / "runs"), "worker", use_gzip=True)
    with torch.profiler.profile(schedule=plan, on_trace_ready=handler) as profile:
        for _ in range(4):
            torch.ones(2).exp()
            profile.step()
    files = sorted((tmp_path / "runs").iterdir())
    assert len(files) == 2 and all(file.name.startswith("worker.") for file in files)
    for file in files:
        with gzip.open(file, "rt") as text:
            assert "aten::exp" in [event["name"] for event in json.load(text)["traceEvents"]]
    (tmp_path / "file").write_text("")
    with pytest.raises(RuntimeError, match="Can't create directory"):
        torch.profiler.tensorboard_trace_handler(str(tmp_path / "file"))


def test_tables(torch):
    x = torch.ones(100, 100)
    with torch.autograd.profiler.profile(record_shapes=True) as profile:
        for _ in range(3):
            torch.nn.functional.linear(x, x)
        x.exp()
    averages = profile.key_averages()
    rows = [line.split() for line in averages.table(sort_by="count", row_limit=-1).splitlines()]
    counts = {row[0]: int(row[-1]) for row in rows if row and row[0].startswith("aten::")}
    assert counts["aten::linear"] == 3 and counts["aten::exp"] == 1
    assert list(counts.values()) == sorted(counts.values(), reverse=True)
    assert len(averages.table(row_limit=1).splitlines()) == len(averages.table(row_limit=2).splitlines()) - 1
    assert "100, 100" in profile.key_averages(group_by_input_shape=True).table()
    assert averages.table(header="A TITLE").splitlines()[1].strip("= ") == "A TITLE"
    assert "ms" in averages.table(time_unit="ms") and "us" not in averages.table(time_unit="ms")
    top = profile.table(top_level_events_only=True)
    assert "aten::linear" in top and "aten::t " not in top
    with pytest.raises(AttributeError, match="nonsense"):
        profile.table(sort_by="nonsense")
    total = profile.total_average()
    assert total.key == "Total" and total.count == len(profile.function_events)
    assert profile.self_cpu_time_total == pytest.approx(averages.self_cpu_time_total)
    assert str(profile) == profile.table()


def test_only_the_thread_that_asked_is_seen(torch):
    x = torch.ones(3)
    with torch.autograd.profiler.profile() as profile:
        thread = threading.Thread(target=x.exp)
        thread.start()
        thread.join()
        x.cos()
    names = [event.name for event in profile.function_events]
    assert "aten::cos" in names and "aten::exp" not in names


def test_all_threads_are_seen_if_asked(torch):
    config = torch._C._profiler._ExperimentalConfig(profile_all_threads=True)
    ready, go, done, end = [threading.Event() for _ in range(4)]

    def before():
        torch.ones(2).exp()
        ready.set()
        go.wait(60)
        with torch.profiler.record_function("in a thread that was there"):
            torch.ones(2).exp()
        done.set()
        end.wait(60)  # (a thread that begins after it has ended may have its number)

    old = threading.Thread(target=before)
    old.start()
    ready.wait(60)
    with torch.profiler.profile(experimental_config=config) as profile:
        go.set()
        assert done.wait(60)
        new = threading.Thread(target=lambda: torch.ones(2).sin())
        new.start()
        new.join()
        torch.ones(2).cos()
    end.set()
    old.join()
    torch.ones(2).tan()
    found = {event.name: event.thread for event in profile.events()}
    assert {"aten::exp", "in a thread that was there", "aten::sin", "aten::cos"} <= set(found)
    assert "aten::tan" not in found and sum(event.name == "aten::exp" for event in profile.events()) == 1
    assert len({found["aten::exp"], found["aten::sin"], found["aten::cos"]}) == 3
    assert found["aten::exp"] == found["in a thread that was there"]


def test_other_options():
    torch = retrograd
    config = torch.profiler._ExperimentalConfig
    with torch.profiler.profile(experimental_config=config(record_python_gc_info=True)) as profile:
        gc.collect()
    assert "Python GC" in [event.name for event in profile.events()]
    with torch.profiler.profile(experimental_config=config(trace_only=True)) as profile:
        torch.ones(2).exp()
    with pytest.raises(RuntimeError, match="trace_only"):
        profile.events()
    with pytest.raises(ValueError, match="profiler_metrics"):
        torch.profiler.profile(experimental_config=config(profiler_metrics=["kineto__tensor_core_insts"]))
    with pytest.raises(TypeError, match="experimental_config"):
        torch.profiler.profile(experimental_config={"profile_all_threads": True})
    again = pickle.loads(pickle.dumps(config(profile_all_threads=True)))
    assert again.profile_all_threads and not again.trace_only


def test_a_trace_alone_is_written(tmp_path):
    torch = retrograd
    config = torch.profiler._ExperimentalConfig(trace_only=True)
    with torch.profiler.profile(experimental_config=config) as profile:
        torch.ones(2).exp()
    profile.export_chrome_trace(str(tmp_path / "trace.json"))
    assert "aten::exp" in [e["name"] for e in json.loads((tmp_path / "trace.json").read_text())["traceEvents"]]


def test_nothing_is_left_when_it_is_over(clean_state):
    torch = retrograd
    before = sys.getprofile()
    with pytest.raises(ZeroDivisionError), torch.profiler.profile(with_stack=True, profile_memory=True):
        assert torch.autograd._profiler_enabled() and torch.autograd.profiler._is_profiler_enabled
        raise ZeroDivisionError
    assert sys.getprofile() is before
    assert not torch.autograd._profiler_enabled() and not torch.autograd.profiler._is_profiler_enabled


def test_profiles_within_profiles():
    torch = retrograd
    x = torch.ones(2, 2)
    with torch.autograd.profiler.profile() as outer:
        x.exp()
        with torch.autograd.profiler.profile() as inner:
            torch.nn.functional.linear(x, x)
    assert [event.name for event in inner.function_events][:1] == ["aten::linear"]
    assert [event.name for event in outer.function_events][:1] == ["aten::exp"]
    assert _events(outer, "aten::linear")


def test_refusals():
    torch = retrograd
    profiler = torch.autograd.profiler
    for marks in (profiler.emit_nvtx, profiler.emit_itt):
        with pytest.raises(RuntimeError, match="no such profiler"), marks():
            pass
        with marks(enabled=False):
            pass
    with profiler.profile() as found:
        with pytest.raises(RuntimeError, match="not reentrant"):
            found.__enter__()
        with pytest.raises(RuntimeError, match="didn't finish"):
            found.key_averages()
    with pytest.raises(AssertionError, match="requires with_stack"):
        found.export_stacks("nowhere")
    with pytest.raises(AssertionError, match="No valid profiler activities"):
        torch.profiler.profile(activities=[])
    assert torch.profiler.kineto_available() is False and torch.profiler.itt.is_available() is False


def test_an_execution_trace(tmp_path):
    torch = retrograd
    path = str(tmp_path / "trace.json")
    observer = torch.profiler.ExecutionTraceObserver().register_callback(path)
    x = torch.ones(2, 3)
    with torch.profiler.profile(execution_trace_observer=observer), torch.profiler.record_function("block"):
        y = x * 2
        y.exp_()
    observer.unregister_callback()
    nodes = {node["name"]: node for node in json.loads((tmp_path / "trace.json").read_text())["nodes"]}
    assert nodes["aten::mul"]["ctrl_deps"] == nodes["block"]["id"]
    assert nodes["aten::mul"]["inputs"]["shapes"] == [[2, 3], []] and nodes["aten::mul"]["inputs"]["values"][1] == 2
    of_x, of_y = nodes["aten::mul"]["inputs"]["values"][0], nodes["aten::exp_"]["inputs"]["values"][0]
    assert of_x[3:] == [6, 4, "cpu"] and of_x[0] != of_y[0]


def test_a_future_ends_a_block():
    torch = retrograd
    future = torch.futures.Future()
    with torch.profiler.profile() as profile:
        with torch.profiler.record_function("waiting") as block:
            after = block._call_end_callbacks_on_future(future)
        torch.ones(2).exp()
        future.set_result(3)
        assert after.wait() == 3
    (waiting,) = [event for event in profile.events() if event.name == "waiting"]
    assert "aten::exp" in [child.name for child in waiting.cpu_children]
