"""Names around the core that programs use, beside torch: accelerators, profiles, futures, containers, processes."""

from __future__ import annotations

import importlib
import json
import os
import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

import retrograd


@pytest.fixture
def both() -> list[Any]:
    """retrograd and torch."""
    return [retrograd, pytest.importorskip("torch")]


# ---------------------------------------------------------------------------------------------------- accelerators


@pytest.mark.parity
def test_there_is_no_accelerator(both):
    """As torch says it where there is none: torch's answer on a machine that has one is another."""
    answers = []
    for torch in both:
        if torch.cuda.is_available():
            pytest.skip("torch has an accelerator here")
        x = torch.ones(1)
        words = []
        for call in (torch.accelerator.current_device_index, torch.accelerator.synchronize):
            with pytest.raises(RuntimeError, match="Cannot access accelerator device when none is available"):
                call()
        for call in (lambda torch=torch: torch.cuda.FloatTensor(2), lambda torch=torch: torch.cuda.LongTensor([1])):
            with pytest.raises(TypeError, match=r"not available\. Torch not compiled with CUDA enabled") as error:
                call()
            words.append(str(error.value).split(".")[2])
        answers.append((
            torch.accelerator.is_available(), torch.accelerator.current_accelerator(), torch.accelerator.device_count(),
            isinstance(x, torch.cuda.FloatTensor), isinstance(x, torch.FloatTensor), words,
            torch.cuda.OutOfMemoryError is torch.OutOfMemoryError, torch.OutOfMemoryError.__bases__,
            [getattr(x, name) for name in ("is_xpu", "is_mps", "is_xla", "is_mtia", "is_vulkan", "is_sparse_csr")],
            torch.cuda.set_rng_state(torch.zeros(1)), torch.typename(x), torch.typename(3), torch.typename(max),
            torch.typename(torch.nn.Linear).rpartition(".")[2], torch.typename(torch.nn.ReLU()).rpartition(".")[2],
        ))  # fmt: skip
    assert answers[0] == answers[1]


@pytest.mark.parity
def test_the_default_by_a_type(both):
    for torch in both:
        try:
            for way in ("torch.DoubleTensor", torch.DoubleTensor):
                torch.set_default_tensor_type(way)
                assert torch.ones(1).dtype == torch.float64
                torch.set_default_tensor_type("torch.FloatTensor")
                assert torch.ones(1).dtype == torch.float32
            for wrong in (torch.LongTensor, 3, "torch.cuda.FloatTensor"):
                with pytest.raises(TypeError, match=r"only floating-point|invalid type|not available"):
                    torch.set_default_tensor_type(wrong)
            assert torch.ones(1).dtype == torch.float32
        finally:
            torch.set_default_dtype(torch.float32)


# ---------------------------------------------------------------------------------------------------------- profiles


@pytest.mark.parity
def test_a_profile_counts_operators_as_torchs_does(both):
    found = []
    for torch in both:
        x = torch.ones(3, 4, requires_grad=True)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as profile:
            for _ in range(3):
                with torch.profiler.record_function("step"):
                    y = torch.mm(x, x.t()).exp()
            y.sum().backward()
        counts = {event.key: event.count for event in profile.key_averages()}
        by_shape = profile.key_averages(group_by_input_shape=True)
        shapes = {str(event.input_shapes[0]) for event in by_shape if event.key == "aten::exp"}
        found.append(({key: counts[key] for key in ("step", "aten::exp")}, counts["aten::mm"] > 3, shapes))
        step = next(event for event in profile.key_averages() if event.key == "step")
        assert step.cpu_time_total >= step.self_cpu_time_total > 0
        assert step.cpu_time * 3 == pytest.approx(step.cpu_time_total)
        text = profile.key_averages().table(sort_by="cpu_time_total", row_limit=100)
        assert "Self CPU %" in text and "# of Calls" in text
        assert [line.split()[-1] for line in text.splitlines() if line.split()[:1] == ["step"]] == ["3"]
    assert found[0] == found[1]


@pytest.mark.parity
def test_the_plan_of_a_profile(both):
    plans = []
    for torch in both:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plans.append([
                [torch.profiler.schedule(**options)(step).name for step in range(12)]
                for options in (
                    {"wait": 1, "warmup": 1, "active": 2}, {"wait": 0, "warmup": 0, "active": 1, "repeat": 2},
                    {"wait": 2, "warmup": 1, "active": 1, "skip_first": 3, "repeat": 1},
                    {"wait": 2, "warmup": 1, "active": 1, "skip_first": 1, "skip_first_wait": 1},
                )
            ])  # fmt: skip
    assert plans[0] == plans[1]


def test_a_profile_in_steps(tmp_path):
    torch = retrograd
    seen = []
    x = torch.ones(2)
    plan = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=2)
    with torch.profiler.profile(schedule=plan, on_trace_ready=lambda p: seen.append(p.events())) as profile:
        for _ in range(9):
            x.exp()
            profile.step()
    x.exp()
    assert [[event.key for event in events] for events in seen] == [
        ["ProfilerStep#2", "aten::exp", "ProfilerStep#3", "aten::exp"],
        ["ProfilerStep#6", "aten::exp", "ProfilerStep#7", "aten::exp"],
    ]
    parents = [event.cpu_parent.key for event in seen[0] if event.key == "aten::exp"]
    assert parents == ["ProfilerStep#2", "ProfilerStep#3"]
    profile.export_chrome_trace(str(tmp_path / "trace.json"))
    written = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert len([event for event in written if event["ph"] == "X"]) == 4


def test_a_profile_ends_with_its_block():
    torch = retrograd
    x = torch.ones(2)
    with pytest.raises(ZeroDivisionError), torch.autograd.profiler.profile() as profile:
        with torch.autograd.profiler.record_function("block"):
            x.exp()
            raise ZeroDivisionError
    x.exp()
    assert [event.key for event in profile.function_events] == ["block", "aten::exp"]
    assert profile.function_events[0].cpu_time_total > 0 and profile.total_average().count == 2
    with torch.autograd.profiler.profile(enabled=False):
        x.exp()

    @torch.profiler.record_function("named")
    def f(x):
        return x + 1

    with torch.profiler.profile() as profile:
        f(f(x))
    assert [event.key for event in profile.events()] == ["named", "aten::add"] * 2


# --------------------------------------------------------------------------------------------- values that come later


@pytest.mark.parity
def test_futures(both):
    for torch in both:
        first, second = torch.futures.Future(), torch.futures.Future()
        after = first.then(lambda done: done.value() * 2)
        failed = first.then(lambda done: 1 / 0)
        both_done = torch.futures.collect_all([first, second])
        assert not after.done() and not both_done.done()
        first.set_result(3)
        second.set_result(4)
        assert after.wait() == 6 and [one.wait() for one in both_done.wait()] == [3, 4]
        assert torch.futures.wait_all([first, second]) == [3, 4]
        with pytest.raises(RuntimeError, match=r"(?s)Got the following error.*division by zero"):
            failed.wait()
        with pytest.raises(RuntimeError, match="Future can only be marked completed once"):
            first.set_result(5)
        first.add_done_callback(lambda: None)  # takes no argument: nobody hears of it
        told = []
        first.add_done_callback(lambda done, told=told: told.append(done.wait()))
        assert told == [3] and first.wait() == 3
        for call in (torch.futures.wait_all, torch.futures.collect_all):
            with pytest.raises(RuntimeError, match="Future can't be None"):
                call([first, None])
        with pytest.raises(RuntimeError, match=r"Can not pickle torch\.futures\.Future"):
            pickle.dumps(first)


# ------------------------------------------------------------------------------------------------- nested containers


@pytest.mark.parity
def test_nested_containers(both):
    """What torch makes of the same structures: leaves in its order, the same errors, paths and specs that are equal."""
    from collections import OrderedDict, defaultdict, deque, namedtuple

    Point = namedtuple("Point", "x y")
    trees = [
        3, [], (), {}, [1, [2, (3, None)]], {"b": 1, "a": [2]}, Point(1, [2]), OrderedDict(z=1, a=2),
        deque([1, 2], maxlen=3), defaultdict(list, {"k": [1]}), [Point(1, 2), {"q": (Point(3, 4),)}],
    ]  # fmt: skip
    modules = [importlib.import_module(f"{torch.__name__}.utils._pytree") for torch in both]
    for tree in trees:
        (leaves, spec), (theirs, spec_of_torch) = (p.tree_flatten(tree) for p in modules)
        assert leaves == theirs and spec.num_leaves == spec_of_torch.num_leaves
        assert spec.num_nodes == spec_of_torch.num_nodes
        back = modules[0].tree_unflatten(leaves, spec)
        assert back == tree and type(back) is type(tree)
        assert modules[0].tree_map(str, tree) == modules[1].tree_map(str, tree)
        assert modules[0].tree_map_only(int, lambda x: -x, tree) == modules[1].tree_map_only(int, lambda x: -x, tree)
        ours, theirs = ([modules[i].keystr(path) for path, _ in modules[i].tree_leaves_with_path(tree)] for i in (0, 1))
        assert ours == theirs
        assert spec == modules[0].tree_structure(tree)
    for p in modules:
        assert p.tree_map(lambda a, b: (a, b), [1, (2,)], [3, ([4, 5],)]) == [(1, 3), ((2, [4, 5]),)]
    assert [p.tree_leaves([(1, 2), 3], is_leaf=lambda x: isinstance(x, tuple)) for p in modules] == [[(1, 2), 3]] * 2
    for p in modules:
        assert p.tree_structure([1, 2]) != p.tree_structure((1, 2)) and p.tree_structure([1]) != p.tree_structure([[1]])
        for call, words in (
            (lambda p=p: p.tree_unflatten([1], p.tree_structure([1, 2])), "`leaves` has length 1"),
            (lambda p=p: p.tree_map(max, [1, 2], [1]), "arity mismatch; expected 2, but got 1"),
            (lambda p=p: p.tree_map(max, [1, 2], (1, 2)), "type mismatch; expected <class 'list'>"),
        ):
            with pytest.raises(ValueError, match=words):
                call()
    deep = []
    for _ in range(100_000):
        deep = [deep, 1]
    assert len(modules[0].tree_leaves(deep)) == 100_000
    while deep:
        deep = deep[0]


# --------------------------------------------------------------------------------------------------------- processes

SPAWNS = """
import sys
import torch
import torch.multiprocessing as mp

def work(rank, names):
    with open(names[rank], "w") as file:
        file.write(f"{torch.__name__} {rank} {torch.ones(2).sum().item()}")

def fail(rank):
    if rank == 1:
        raise ZeroDivisionError("on purpose")

if __name__ == "__main__":
    mp.spawn(work, args=(sys.argv[1:],), nprocs=2)
    try:
        mp.spawn(fail, nprocs=2)
    except mp.ProcessRaisedException as error:
        assert error.error_index == 1 and "on purpose" in str(error), error
    else:
        raise AssertionError("the error was lost")
"""


def test_processes_that_are_started_afresh_import_the_same_torch(tmp_path):
    """``spawn`` runs the program's module again in each process, where ``torch`` has to mean retrograd too."""
    (tmp_path / "program.py").write_text(SPAWNS)
    environment = {**os.environ, "PYTHONPATH": str(Path(retrograd.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-m", "retrograd", "program.py", "a", "b"],
        capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [(tmp_path / name).read_text() for name in "ab"] == ["retrograd 0 2.0", "retrograd 1 2.0"]


# ----------------------------------------------------------------------------------------------------------- devices


@pytest.mark.parity
def test_devices_that_are_not_here(both):
    """Their names are taken, and using them fails in torch's words."""
    answers = []
    for torch in both:
        found = [str(torch.device(name)) for name in ("mps", "xpu:1", "meta", "hpu")]
        x = torch.ones(1)
        for kind, error in (("cuda", AssertionError), ("xpu", AssertionError), ("mps", RuntimeError)):
            if kind == "cuda" and torch.cuda.is_available():
                pytest.skip("torch has an accelerator here")
            for call in (lambda x=x, k=kind: x.to(k), lambda torch=torch, k=kind: torch.nn.Linear(1, 1).to(k)):
                with pytest.raises(error, match=r"Torch not compiled with|PyTorch is not linked with") as caught:
                    call()
                found.append(str(caught.value).partition(":")[0])
        with pytest.raises(RuntimeError, match="Expected one of cpu, cuda") as caught:
            torch.device("nosuch")
        found.append(str(caught.value))
        with pytest.raises(RuntimeError, match="Cannot access accelerator device when none is available"):
            torch.device(1)
        with torch.device("cpu") as where:
            found += [str(torch.zeros(1).device), str(where)]
        answers.append(found)
    assert answers[0] == answers[1]


# ---------------------------------------------------------------------------------- more that programs import and ask


@pytest.mark.parity
def test_points_of_sobol_are_torchs(both):
    scrambled = {"dimension": 3, "scramble": True, "seed": 7}, {"dimension": 1, "scramble": True}
    for options in ({"dimension": 4}, *scrambled):
        drawn = []
        for torch in both:
            torch.manual_seed(5)
            engine = torch.quasirandom.SobolEngine(**options)
            points = [engine.draw(3), engine.fast_forward(5).draw(2, dtype=torch.float64), engine.reset().draw_base2(2)]
            with pytest.raises(ValueError, match="power of 2"):
                engine.draw_base2(3)
            drawn.append(([p.tolist() for p in points], [str(p.dtype) for p in points], repr(engine)))
        assert drawn[0] == drawn[1]


@pytest.mark.parity
def test_versions_are_compared_as_torch_compares_them(both):
    from itertools import product

    texts = ("2.13.0+cpu", "2.13.0", "2.13", "1.9.1", "2.0.0a0", "2.0.0", "10.0")
    others = (*texts, (2, 13), (1, 10), "2.13.1", "2", "3.0.0rc1")
    results = []
    for torch in both:
        T = importlib.import_module(f"{torch.__name__}.torch_version").TorchVersion
        results.append([
            # Without !=: torch's says True of versions that are equal and written differently.
            (T(a) < b, T(a) <= b, T(a) == b, T(a) >= b, T(a) > b) for a, b in product(texts, others)
        ])  # fmt: skip
    assert results[0] == results[1]
    T = importlib.import_module("retrograd.torch_version").TorchVersion
    assert not T("2.13.0") != "2.13" and T("2.13.0") != "2.14"


def test_the_version_that_programs_read(tmp_path):
    """Programs do without what came after torch's version: `python -m retrograd` says the one that is followed."""
    (tmp_path / "program.py").write_text(
        "import torch\n"
        "assert torch.__version__ >= '2.13' and int(torch.__version__.split('.')[0]) == 2\n"
        "assert torch.__version__ < (2, 14)\n"
        "from torch.version import __version__ as v\n"
        "print(torch.__version__, v, torch.__name__)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(retrograd.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-m", "retrograd", "program.py"], capture_output=True, text=True, cwd=tmp_path, env=environment
    )
    assert done.returncode == 0, done.stderr
    own = retrograd.__version__
    assert done.stdout.split() == [f"2.13.0+retrograd.{own}"] * 2 + ["retrograd"] and own.startswith("0.")


@pytest.mark.parity
def test_operators_of_a_program(both):
    """Defined from a function, with a formula; called by its name; refused in the same cases."""
    results = []
    for torch in both:
        space = f"test_names_{torch.__name__}"

        def scaled(x, by: float = 2.0):
            return x * by

        scaled.__annotations__ = {"x": torch.Tensor, "by": float, "return": torch.Tensor}
        operator = torch.library.custom_op(f"{space}::scaled", scaled, mutates_args=())
        x = torch.arange(3.0, requires_grad=True)
        with pytest.raises(RuntimeError, match=r"register_autograd|autograd formula|no formula|does not require grad"):
            operator(x, 3.0).sum().backward()
        operator.register_autograd(
            lambda ctx, grad: (grad * ctx.by, None),
            setup_context=lambda ctx, inputs, output: setattr(ctx, "by", inputs[1]),
        )
        y = getattr(torch.ops, space).scaled(x, by=3.0)
        y.sum().backward()

        def fill(x, value: float) -> None:
            x.fill_(value)

        fill.__annotations__ = {"x": torch.Tensor, "value": float, "return": None}
        writes = torch.library.custom_op(f"{space}::fill", fill, mutates_args={"x"})
        z = torch.zeros(2)
        writes(z, 4.0)
        for wrong in ("nocolons", 3):
            with pytest.raises((ValueError, AttributeError, TypeError)):
                torch.library.custom_op(wrong, scaled, mutates_args=())
        results.append((y.tolist(), x.grad.tolist(), z.tolist(), operator(x).tolist()))
    assert results[0] == results[1]


def test_parts_of_a_batch():
    """Where there is one device: torch's functions want an accelerator."""
    torch, parallel = retrograd, retrograd.nn.parallel
    net = torch.nn.Linear(2, 2)
    x = torch.ones(3, 2)
    assert torch.equal(parallel.data_parallel(net, x), net(x))
    one, other = parallel.parallel_apply([net, torch.nn.ReLU()], [x, -x])
    assert torch.equal(one, net(x)) and other.sum() == 0
    assert parallel.replicate(net, ["cpu"]) == [net] and parallel.scatter(x, ["cpu"])[0] is x
    assert torch.equal(parallel.gather([x[:1], x[1:]], "cpu"), x)
    assert parallel.gather([{"a": x}, {"a": x}], "cpu")["a"].shape == (6, 2)


@pytest.mark.parity
def test_the_older_comparison(both):
    for torch in both:
        close = torch.testing.assert_allclose
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            close(torch.ones(2), torch.ones(2, dtype=torch.float64) + 5e-5)
            close(torch.tensor([float("nan")]), torch.tensor([float("nan")]))
            close([1.0, 2.0], torch.tensor([1.0, 2.0]))
            for actual, expected in ((torch.ones(2), torch.ones(2) + 2e-4), (torch.ones(2), torch.ones(3))):
                with pytest.raises(AssertionError):
                    close(actual, expected)
            with pytest.raises(AssertionError):
                close(torch.tensor([float("nan")]), torch.tensor([float("nan")]), equal_nan=False)


@pytest.mark.parity
def test_older_arguments_of_losses(both):
    found = []
    for torch in both:
        module = importlib.import_module(f"{torch.__name__}.nn._reduction")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pairs = [(a, b) for a in (None, True, False) for b in (None, True, False)]
            words = [module.legacy_get_string(*pair) for pair in pairs] + [module.legacy_get_enum(*p) for p in pairs]
        with pytest.raises(ValueError, match="nosuch is not a valid value for reduction"):
            module.get_enum("nosuch")
        found.append(words)
    assert found[0] == found[1]


MORE_IMPORTS = (
    "import torch._dynamo; torch._dynamo.config.suppress_errors = True; torch._dynamo.reset()",
    "from torch._inductor import config; config.triton.unique_kernel_names = True",
    "from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, MixedPrecision, ShardingStrategy",
    "from torch.distributed.tensor import DTensor, Replicate",
    "from torch.distributed.device_mesh import init_device_mesh",
    "import torch.distributed.checkpoint as dcp; import torch.distributed.rpc as rpc",
    "from torch.distributed.optim import ZeroRedundancyOptimizer; import torch.distributed.nn",
    "from torch.distributed.elastic.multiprocessing.errors import record",
    "from torch.distributed.algorithms.join import Join; from torch.distributed import ProcessGroup",
    "from torch.nn.parallel.scatter_gather import gather, scatter; from torch.nn.parallel.parallel_apply import *",
    "import torch.xpu, torch.mps, torch.cpu, torch.mtia; assert not torch.xpu.is_available()",
    "import torch.cuda.nvtx, torch.cuda.memory, torch.cuda.random, torch.cuda.streams",
    "from torch.fx import symbolic_trace, wrap; import torch.functional; torch.functional.einsum",
    "from torch._tensor import Tensor; from torch.nn import _reduction; from torch.jit import TracerWarning",
    "from torch.distributions.utils import _standard_normal, _sum_rightmost",
    "from torch.distributions.transforms import _InverseTransform",
)


@pytest.mark.parametrize("line", MORE_IMPORTS)
def test_import_lines(line):
    exec(line.replace("torch", "retrograd"), {})


def test_what_they_refuse_has_a_reason():
    from retrograd.distributed import fsdp

    for call, words in (
        (lambda: retrograd.distributed.rpc.init_rpc("me"), "not supported"),
        (lambda: retrograd.fx.symbolic_trace(retrograd.nn.Linear(1, 1)), "TorchDispatchMode"),
        (lambda: retrograd.cuda.nvtx.range_push("x"), "NVTX"),
        (lambda: retrograd._dynamo.explain(max), "compiles nothing"),
        (lambda: retrograd.mps.synchronize(), "mps"),
    ):
        with pytest.raises(RuntimeError, match=words):
            call()
    with pytest.raises(AssertionError, match="XPU"):
        retrograd.xpu.synchronize()
    assert not isinstance(3, fsdp.FullyShardedDataParallel)
    with pytest.raises(ValueError, match="MASTER_ADDR"):
        retrograd.distributed.init_process_group("gloo")
    with retrograd._dynamo.config.patch(verbose=True):
        assert retrograd._dynamo.config.verbose is True
    assert not retrograd._dynamo.config.verbose


def test_modules_that_nobody_has_imported():
    names = [
        "_custom_op.impl", "_custom_ops", "_library.utils", "_utils", "utils._device", "utils._mode_utils",
        "utils._pytree", "utils._traceback", "utils.collect_env", "utils.weak.WeakIdKeyDictionary",
    ]  # fmt: skip
    for name in names:  # each in its turn, since one may import another
        code = f"import retrograd as torch; torch.{name}"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert not done.returncode, done.stderr


@pytest.mark.parity
def test_older_types_of_sparse_tensors(both):
    found = []
    for torch in both:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            where, values = torch.tensor([[0, 1], [1, 0]]), torch.tensor([1.0, 2.0])
            made = [
                torch.sparse.FloatTensor(where, values, torch.Size([2, 3])), torch.sparse.FloatTensor(where, values),
                torch.sparse.DoubleTensor(2, 3), torch.sparse.LongTensor(),
            ]  # fmt: skip
            with pytest.raises(RuntimeError, match="expected scalar type Long but found Float"):
                torch.sparse.FloatTensor(where.float(), values)
        types = (torch.sparse.FloatTensor, torch.sparse.DoubleTensor, torch.FloatTensor)
        found.append([
            (x.to_dense().tolist(), tuple(x.shape), str(x.dtype), x._nnz(), [isinstance(x, t) for t in types[:2]])
            for x in made
        ] + [isinstance(values, types[0]), repr(types[0])])  # fmt: skip
    assert found[0] == found[1]
