"""What programs import around the core: switches, compilers, processes, scalers, timers. Importable, and honest."""

from __future__ import annotations

import importlib
import pickle
import sys
import warnings

import pytest

import retrograd

pytestmark = pytest.mark.usefixtures("clean_state")

#: Lines of programs, which must not stop them.
IMPORTS = (
    "import torch.distributed as dist",
    "from torch.distributed import init_process_group, destroy_process_group",
    "from torch.nn.parallel import DistributedDataParallel as DDP",
    "import torch.backends.cudnn as cudnn",
    "import torch.backends.mps, torch.backends.mkl, torch.backends.cuda, torch.backends.openmp, torch.backends.mkldnn",
    "import torch.jit; from torch.jit import Final, script",
    "import torch.utils.benchmark as benchmark",
    "from torch.utils.model_zoo import load_url",
    "from torch.cuda.amp import autocast, GradScaler",
    "from torch.amp import autocast, GradScaler",
    "import torch.multiprocessing as mp",
    "import torch.hub, torch.onnx, torch.version, torch.__config__, torch.utils.cpp_extension",
    "from torch.version import cuda",
    "from torch.profiler import ProfilerActivity, profile, record_function, schedule, tensorboard_trace_handler",
    "import torch.autograd.profiler as profiler; from torch.autograd.profiler import record_function",
    "from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten",
    "import torch.accelerator, torch.futures; from torch.futures import Future",
)


@pytest.mark.parametrize("line", IMPORTS)
def test_import_lines(line):
    exec(line.replace("torch", "retrograd"), {})


def test_a_program_that_looks_for_devices(torch):
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.deterministic = True
    torch.backends.cuda.matmul.allow_tf32 = True
    device = (
        "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    )
    torch.cuda.manual_seed_all(3)
    torch.cuda.empty_cache()
    assert device == "cpu" and torch.cuda.device_count() == 0 and torch.cuda.memory_allocated() == 0
    assert torch.version.cuda is None and torch.backends.mps.is_built() is False
    torch.backends.cudnn.benchmark = torch.backends.cudnn.deterministic = False
    torch.backends.cuda.matmul.allow_tf32 = False
    with pytest.raises((AssertionError, RuntimeError)):
        torch.ones(1).cuda()
    with pytest.raises((AssertionError, RuntimeError)):
        torch.cuda.current_device()


@pytest.mark.parametrize("name", ["cudnn", "mkldnn", "nnpack", "mha"])
def test_switches_go_back(name):
    module = importlib.import_module(f"retrograd.backends.{name}")
    assert module.enabled is True and module.is_available() is False
    with pytest.raises(ZeroDivisionError), module.flags(enabled=False):
        assert module.enabled is False
        raise ZeroDivisionError
    assert module.enabled is True
    with pytest.raises(TypeError, match="unexpected keyword argument 'nosuch'"):
        module.flags(nosuch=1)


def test_cudnn_set_flags():
    from retrograd.backends import cudnn

    before = cudnn.set_flags(_benchmark=True)
    assert cudnn.benchmark is True and before[:2] == (True, False)
    cudnn.set_flags(_benchmark=False)


# --------------------------------------------------------------------------------------------------------- compilers


def test_compilers_give_back_and_say_so_once():
    from retrograd import jit
    from retrograd.core import said_once

    said_once._said.clear()

    def f(x):
        return x + 1

    for way in (retrograd.compile, jit.script, jit.trace):
        with pytest.warns(UserWarning, match="nothing in retrograd"):
            assert way(f) is f
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert way(f) is f

    @retrograd.compile(mode="max-autotune", fullgraph=True)
    def g(x):
        return x * 2

    @jit.ignore
    def h(x):
        return x

    assert g(3) == 6 and h(1) == 1 and not jit.is_scripting() and not retrograd.compiler.is_compiling()
    with pytest.raises(RuntimeError, match="Either mode or options"):
        retrograd.compile(f, mode="default", options={})
    assert jit.wait(jit.fork(f, 1)) == 2
    for refused in (lambda: jit.save(f, "x"), lambda: jit.load("x")):
        with pytest.raises(RuntimeError, match="compiled programs"):
            refused()


def test_what_is_refused_says_what_to_do():
    for call, words in (
        (lambda: retrograd.hub.load("a/b", "c"), "Get the code"),
        (lambda: retrograd.hub.load_state_dict_from_url("http://x"), "Download the file yourself"),
        (lambda: retrograd.onnx.export(None), "export there"),
        (lambda: importlib.import_module("retrograd.utils.cpp_extension").load("a", []), "autograd.Function"),
        (lambda: retrograd.distributed.init_process_group("nccl"), "no GPUs found"),
    ):
        with pytest.raises(RuntimeError, match=words):
            call()
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        retrograd.nn.parallel.DistributedDataParallel(retrograd.nn.Linear(1, 1))
    assert retrograd.distributed.is_available() and not retrograd.distributed.is_initialized()
    with pytest.raises(AttributeError, match="nosuch"):
        retrograd.distributed.nosuch


def test_config_in_words():
    import numpy

    assert numpy.__version__ in retrograd.__config__.show()
    assert "get_num_threads" in retrograd.__config__.parallel_info()


def test_the_configuration_says_which_core_is_used_and_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of Python, if there is no compiled one, or it cannot be used; to ask for that one is then an error."""
    from retrograd.core import compiled

    expected = "compiled" if compiled.library is not None else f"Python ({compiled.reason})"
    assert f"core (operators and the engine's loop): {expected}\n" in retrograd.__config__.show()
    monkeypatch.setattr(sys, "version", "3.14.0 free-threading build (main)")
    for name in ("RETROGRAD_CORE", "RETROGRAD_FAST"):
        monkeypatch.delenv(name, raising=False)
    library, reason = compiled._load()
    assert library is None and "free-threaded" in reason
    monkeypatch.setenv("RETROGRAD_CORE", "compiled")
    with pytest.raises(ImportError, match="free-threaded"):
        compiled._load()


# ------------------------------------------------------------------------------------------------------- grad scalers


def train(torch, gradients, **settings):
    """Steps with given gradients of the unscaled loss; everything that the scaler says on the way."""
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.25)
    scaler = torch.amp.GradScaler("cpu", **settings)
    said = []
    for number in gradients:
        optimizer.zero_grad()
        scaler.scale((w * number).sum()).backward()
        if number == 3.0:
            scaler.unscale_(optimizer)
            said.append(w.grad.tolist())
        scaler.step(optimizer)
        scaler.update()
        said.append((w.tolist(), scaler.get_scale(), scaler.state_dict()))
    return said


def test_scaled_steps(torch):
    inf = float("inf")
    said = train(torch, (1.0, 3.0, inf, 1.0, 1.0), init_scale=8.0, growth_interval=2)
    values = [entry[0] for entry in said if isinstance(entry, tuple)]
    scales = [entry[1] for entry in said if isinstance(entry, tuple)]
    assert values == [[0.75, 1.75], [0.0, 1.0], [0.0, 1.0], [-0.25, 0.75], [-0.5, 0.5]]
    assert scales == [8.0, 16.0, 8.0, 8.0, 16.0] and said[1] == [3.0, 3.0]


@pytest.mark.parity
def test_scalers_agree():
    theirs = pytest.importorskip("torch")
    for gradients in ((1.0, 3.0, float("nan"), 2.0), (float("inf"),), (1.0,) * 5):
        for settings in ({"growth_interval": 2}, {"init_scale": 4.0, "growth_factor": 3.0, "backoff_factor": 0.25}):
            assert train(retrograd, gradients, **settings) == train(theirs, gradients, **settings)


def test_scalers_refuse(torch):
    w = torch.ones(1, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=1.0)
    scaler = torch.amp.GradScaler("cpu")
    with pytest.raises(AssertionError, match=r"did not use scaler\.scale"):
        scaler.update()
    scaler.scale(w.sum()).backward()
    with pytest.raises(AssertionError, match="No inf checks"):
        scaler.update()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already been called on this optimizer"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="already been called since the last"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="being called after step"):
        scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="Closure use is not currently supported"):
        scaler.step(optimizer, closure=lambda: None)
    with pytest.raises(RuntimeError, match="The source state dict is empty"):
        scaler.load_state_dict({})
    off = torch.amp.GradScaler("cpu", enabled=False)
    assert off.scale(w) is w and off.get_scale() == 1.0 and off.state_dict() == {}
    with pytest.warns(UserWarning, match="CUDA is not available"):
        assert not torch.amp.GradScaler("cuda").is_enabled()


def test_a_scaler_goes_on(torch):
    first, second = (torch.amp.GradScaler("cpu", init_scale=s) for s in (8.0, 2.0))
    second.load_state_dict(first.state_dict())
    assert second.get_scale() == 8.0
    w = torch.ones(2, requires_grad=True)
    scaled = first.scale([w, (w, w)])
    assert isinstance(scaled, list) and isinstance(scaled[1], tuple) and scaled[1][0].tolist() == [8.0, 8.0]


def test_a_scaler_holds_tensors_once_it_scales(torch):
    scaler = torch.amp.GradScaler("cpu", init_scale=3.0, growth_factor=4.0, growth_interval=2)
    assert scaler._scale is None and scaler.get_scale() == 3.0
    assert scaler.scale(torch.tensor([4.0])).tolist() == [12.0]
    assert scaler._scale.tolist() == 3.0 and scaler._growth_tracker.dtype is torch.int32
    again = pickle.loads(pickle.dumps(scaler))
    assert again._scale is None and again.state_dict() == scaler.state_dict()
    assert again._per_optimizer_states["x"] == torch.amp.grad_scaler._refresh_per_optimizer_state()
    scaler.load_state_dict({**scaler.state_dict(), "scale": 5.0, "_growth_tracker": 1})
    assert scaler._scale.tolist() == 5.0 and scaler._get_growth_tracker() == 1 and scaler._init_growth_tracker == 1


def test_a_scaler_gives_itself_to_optimizers_that_scale(torch):
    class Plain(torch.optim.SGD):
        _step_supports_amp_scaling = True
        seen = None

        def step(self, closure=None):
            self.seen = self.grad_scale.tolist(), self.found_inf.tolist()

    class Older(Plain):
        def step(self, closure=None, *, grad_scaler=None):
            self.seen = grad_scaler

    w = torch.ones(2, requires_grad=True)
    plain, older = Plain([w], lr=1.0), Older([w], lr=1.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
    scaler.scale(w.sum() / 0).backward()
    with pytest.warns(FutureWarning, match="going to stop passing itself"):
        scaler.step(older)
    scaler.step(plain)
    assert older.seen is scaler and plain.seen == (2.0, 1.0) and not hasattr(plain, "grad_scale")
    scaler.update()
    assert scaler.get_scale() == 1.0


def test_what_scalers_are_made_of(torch):
    nan = float("nan")
    for numbers, found in (([4.0, 8.0], 0.0), ([4.0, nan], 1.0)):
        grads = [torch.tensor(numbers), torch.tensor(numbers, dtype=torch.float16)]
        flag = torch.zeros(1)
        torch._amp_foreach_non_finite_check_and_unscale_(grads, flag, torch.full((1,), 0.25))
        assert flag.item() == found and grads[0][0] == grads[1][0] == 1.0
    scale, tracker = torch.full((1,), 4.0), torch.zeros(1, dtype=torch.int32)
    seen = []
    for found in (0.0, 0.0, 1.0):
        torch._amp_update_scale_(scale, tracker, torch.full((1,), found), 2.0, 0.25, 2)
        seen.append((scale.item(), tracker.item()))
    assert seen == [(4.0, 1), (8.0, 0), (2.0, 0)]
    with pytest.raises(RuntimeError, match="found_inf must be a 1-element tensor"):
        torch._amp_foreach_non_finite_check_and_unscale_(grads, torch.zeros(2), scale)
    with pytest.raises(RuntimeError, match="growth_tracker must be an int tensor"):
        torch._amp_update_scale_(scale, scale, scale, 2.0, 0.25, 2)
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        torch._amp_foreach_non_finite_check_and_unscale_([torch.ones(2).long()], flag, scale)


def test_sparse_gradients_are_unscaled(torch):
    p = torch.sparse_coo_tensor([[0, 1]], [16.0, 32.0], (3,))
    optimizer, scaler = torch.optim.SGD([p], lr=1.0), torch.amp.GradScaler("cpu")
    p.grad = p.clone()
    found = scaler._unscale_grads_(optimizer, torch.full((1,), 0.25), torch.zeros(1), False)
    assert p.grad.to_dense().tolist() == [4.0, 8.0, 0.0] and [f.item() for f in found.values()] == [0.0]


# ------------------------------------------------------------------------------------------------------------ timers


def test_timers():
    from retrograd.utils import benchmark

    calls = []
    timer = benchmark.Timer("f(1)", globals={"f": calls.append}, label="append", description="a list")
    measured = timer.timeit(50)
    assert measured.number_per_run == 50 and len(calls) == 52 and measured.median == measured.mean > 0
    for measured in (
        timer.blocked_autorange(min_run_time=0.01),
        timer.adaptive_autorange(min_run_time=0.005, max_run_time=0.05),
    ):
        assert sum(measured.raw_times) >= 0.005 and measured.iqr >= 0
        assert ("append" in repr(measured) and "Median" in repr(measured)) or len(measured.raw_times) == 1
    table = benchmark.Compare([measured, timer.timeit(10)])
    table.trim_significant_figures()
    table.highlight_warnings()
    assert "append" in str(table) and "a list" in str(table)
    with pytest.raises(ValueError, match="statements of Python"):
        benchmark.Timer("x", language="c++")
    with pytest.raises(ValueError, match="Expected an instance of `Measurement`"):
        benchmark.Compare([1])


def test_helpers_of_torchs_own_code(torch):
    import importlib

    utils = importlib.import_module(f"{torch.__name__}._utils")
    many = [torch.ones(2), torch.zeros(2, 2), torch.ones(0)]
    flat = utils._flatten_dense_tensors(many)
    assert flat.tolist() == [1, 1, 0, 0, 0, 0]
    assert [t.tolist() for t in utils._unflatten_dense_tensors(flat, many)] == [t.tolist() for t in many]
    mixed = [torch.ones(4), torch.ones(4).double(), torch.ones(8), torch.ones(2)]
    assert [[len(t) for t in group] for group in utils._take_tensors(mixed, 40)] == [[4], [8, 2], [4]]
    pair = [torch.ones(1), torch.ones(1).double()]
    found = utils._reorder_tensors_as(pair, pair[::-1])
    assert [t.dtype for t in found] == [torch.float64, torch.float32]
    sizes = [utils._element_size(d) for d in (torch.bool, torch.float16, torch.int32, torch.complex64)]
    assert sizes == [1, 2, 4, 8]
    assert utils._handle_complex(torch.ones(1, dtype=torch.complex64)).shape == (1, 2)
    assert utils._get_device_index("cpu", allow_cpu=True) == -1 and utils._get_device_index(3) == 3
    with pytest.raises(ValueError, match=r"non cpu device|Expected a"):
        utils._get_device_index("cpu")
