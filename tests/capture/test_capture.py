"""Captured steps: training, guards, what cannot be captured, reading, modules, the cache of compiled programs."""

import copy
import gc
import os
import subprocess
import sys
import threading
import tracemalloc
import warnings
import weakref

import numpy as np
import pytest

import retrograd as torch
import retrograd.nn.functional as F
from retrograd import kernels, nn
from retrograd.capture import CaptureError, api, comparing, session
from retrograd.capture.compiling import compiler
from retrograd.capture.runtime import runtime

needs_compiler = pytest.mark.skipif(compiler() is None, reason="there is no C compiler")
BACKENDS = ["plain", pytest.param("native", marks=needs_compiler)]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("RETROGRAD_CAPTURE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Dropout(0.25), nn.Linear(8, 3))


def training(model, optimizer):
    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    return step


def trained(make_optimizer, backend, calls=6):
    """The losses, the parameters, their gradients and versions after some steps."""
    model = net()
    optimizer = make_optimizer(model.parameters())
    step = training(model, optimizer)
    if backend is not None:
        step = torch.capture(step, backend=backend)
    torch.manual_seed(1)
    losses = [step(torch.randn(5, 6), torch.randint(0, 3, (5,))) for _ in range(calls)]
    parameters = list(model.parameters())
    return losses, parameters, [p.grad for p in parameters], [p._version for p in parameters], torch.rand(2), step


OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), "Adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.01, amsgrad=True), "RMSprop": lambda p: torch.optim.RMSprop(p),
    "Adagrad": lambda p: torch.optim.Adagrad(p), "NAdam": lambda p: torch.optim.NAdam(p),
    "RAdam": lambda p: torch.optim.RAdam(p), "Adamax": lambda p: torch.optim.Adamax(p),
    "ASGD": lambda p: torch.optim.ASGD(p), "Rprop": lambda p: torch.optim.Rprop(p),
    "Adadelta": lambda p: torch.optim.Adadelta(p),
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_step_as_eagerly(name):
    eager, captured = (trained(OPTIMIZERS[name], backend) for backend in (None, "plain"))
    for one, two in zip(eager[0] + eager[1] + eager[2], captured[0] + captured[1] + captured[2], strict=True):
        assert torch.equal(one, two)
    assert eager[3] == captured[3]
    assert torch.equal(eager[4], captured[4]), "the generator has drawn other numbers"


@needs_compiler
def test_native_training():
    eager, captured = (trained(OPTIMIZERS["Adam"], backend) for backend in (None, "native"))
    for one, two in zip(eager[0] + eager[1] + eager[2], captured[0] + captured[1] + captured[2], strict=True):
        torch.testing.assert_close(one, two)
    assert "native_0(pointers)" in captured[5].source


def test_no_tensor_no_node_and_no_engine_in_a_replay(monkeypatch):
    """A replay makes no Tensor but its result, no node and no backward pass."""
    w = torch.ones(3, requires_grad=True)

    @torch.capture(backend="plain")
    def step(x):
        w.grad = None
        ((w * x).exp().sum()).backward()
        return w.grad.sum()

    for _ in range(3):
        step(torch.ones(3))
    from retrograd._generated import nodes
    from retrograd.autograd.engine import Engine

    def never(*args, **kwargs):
        raise AssertionError("this is not to happen")

    monkeypatch.setattr(Engine, "execute", never)
    monkeypatch.setattr(nodes, "MulBackward0", never)
    assert torch.allclose(step(torch.full((3,), 2.0)), torch.tensor(3 * 2.0).mul(torch.tensor(2.0).exp()))


# --------------------------------------------------------------------------------------------------------------- guards


def test_shapes_dtypes_and_numbers_have_programs_of_their_own():
    @torch.capture(backend="plain")
    def f(x, k):
        return x * k

    for _ in range(3):
        for x in (torch.ones(2), torch.ones(3), torch.ones(2, dtype=torch.float64), torch.ones(2, 2).t()):
            for k in (2, 2.5, True):
                result = f(x, k)
                assert torch.equal(result, x * k)
                assert result.dtype == (x * k).dtype


def test_a_global_number_is_watched():
    factor = 2.0

    @torch.capture(backend="plain")
    def f(x):
        return x * factor

    for _ in range(4):
        assert f(torch.ones(1)).item() == 2
    factor = 3.0
    for _ in range(4):
        assert f(torch.ones(1)).item() == 3


def test_training_flags_and_frozen_parameters_are_watched():
    model = net()
    step = torch.capture(training(model, torch.optim.SGD(model.parameters(), lr=0.0)), backend="plain")
    x, y = torch.randn(5, 6), torch.randint(0, 3, (5,))
    for _ in range(4):
        step(x, y)
    model.eval()
    expected = F.cross_entropy(model(x), y)
    assert all(torch.equal(step(x, y), expected) for _ in range(4))
    model[0].weight.requires_grad_(False)
    for _ in range(4):
        step(x, y)
    assert model[0].weight.grad is None
    assert model[0].bias.grad is not None


def test_state_that_changes_its_shape_is_captured_anew():
    buffer = torch.zeros(2)

    @torch.capture(backend="plain")
    def f(x):
        buffer.add_(x.sum())
        return buffer * 2

    for size in (2, 3):
        buffer.data = torch.zeros(size)
        for call in range(1, 5):
            assert torch.equal(f(torch.ones(2)), torch.full((size,), 4.0 * call))


@pytest.mark.filterwarnings("error")
def test_calls_that_fail_are_not_counted_as_programs():
    captured = torch.capture(lambda x: torch.linalg.cholesky(x), backend="plain")
    for _ in range(12):
        with pytest.raises(torch.linalg.LinAlgError):
            captured(-torch.eye(2))


def test_too_many_programs_end_in_eager_runs_and_one_warning():
    numbers = [0]

    @torch.capture(backend="plain")
    def f(x):
        return x + numbers[0]

    with pytest.warns(UserWarning, match=r"captured 8 times .* numbers\[0\] was another") as said:
        for number in range(20):
            numbers[0] = number
            assert f(torch.zeros(1)).item() == number
    assert len(said) == 1


def test_results_and_gradients_of_earlier_calls_stay():
    w = torch.ones(2, requires_grad=True)

    @torch.capture(backend="plain")
    def step(x):
        w.grad = None
        (w * x).sum().backward()
        return x * 2

    kept = []
    for call in range(6):
        kept.append((call, step(torch.full((2,), float(call))), w.grad))
    for call, result, grad in kept:
        assert result.tolist() == [2.0 * call] * 2
        assert grad.tolist() == [float(call)] * 2


def test_learning_rates_and_schedulers_are_live():
    results = []
    for captured in (False, True):
        w = torch.ones(3, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.5)
        scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)

        def step(x, w=w, optimizer=optimizer, scheduler=scheduler):
            optimizer.zero_grad()
            ((w - x) ** 2).sum().backward()
            optimizer.step()
            scheduler.step()
            return w.detach().clone()

        step = torch.capture(step, backend="plain") if captured else step
        results.append([step(torch.zeros(3)) for _ in range(6)])
        optimizer.param_groups[0]["lr"] = 0.25
        results[-1].append(step(torch.zeros(3)))
    assert all(torch.equal(one, two) for one, two in zip(*results, strict=True))


# -------------------------------------------------------------------------------------------------- what cannot be done


def refused(function, *args):
    with pytest.raises(CaptureError) as error:
        torch.capture(function, backend="plain")(*args)
    text = str(error.value)
    assert "test_capture.py:" in text, "the line is not named"
    return text


def test_values_of_tensors_are_refused():
    x = torch.ones(3)
    assert "item()" in refused(lambda x: x.sum().item(), x)
    assert "control flow" in refused(lambda x: x if x.sum() > 0 else -x, x)
    assert "foreign NumPy" in refused(lambda x: x.numpy(), x)
    assert "tolist" in refused(lambda x: x.tolist(), x)
    assert "nonzero" in refused(lambda x: x.nonzero(), x)
    assert "print()" in refused(lambda x: print("x"), x)
    assert "manual_seed" in refused(lambda x: torch.manual_seed(0), x)


def test_a_refused_step_leaves_the_world_as_it_was():
    w = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.Adam([w], lr=0.1)

    def step(x):
        (w * x).sum().backward()
        optimizer.step()
        return w.sum().item()

    with pytest.raises(CaptureError):
        torch.capture(step, backend="plain")(torch.ones(2))
    assert w.tolist() == [1.0, 1.0]
    assert w.grad is None
    assert not optimizer.state
    assert w._version == 0


def test_what_changes_outside_is_refused():
    seen = []
    total = [0]

    def appends(x):
        seen.append(1)
        return x * 2

    def counts(x):
        total[0] += 1
        return x * 2

    def keeps(x):
        kept["x"] = x * 2
        return x

    kept = {"x": None}
    for function, name in ((appends, "seen"), (counts, "total"), (keeps, "kept")):
        with pytest.raises(CaptureError, match=name):
            torch.capture(function, backend="plain")(torch.ones(2))


def test_numbers_that_change_from_call_to_call_are_found():
    numbers = [iter(range(10))] * 5000  # so many that nobody looks into them
    f = torch.capture(lambda x: x + next(numbers[0]), backend="plain")
    f(torch.zeros(1))
    with pytest.raises(CaptureError, match="two calls that look alike did different things"):
        f(torch.zeros(1))


def test_a_graph_from_outside_is_refused():
    y = torch.ones(2, requires_grad=True).exp()
    with pytest.raises(CaptureError, match="recorded before the captured call"):
        torch.capture(lambda x: (y * x).sum().backward(), backend="plain")(torch.ones(2))


def test_a_split_program_takes_the_path_of_its_values():
    w = torch.zeros(2)

    @torch.capture(backend="plain", split=True)
    def f(x):
        w.add_(1)
        if x.sum() > 0:
            return x * 2
        return x - 1

    for call in range(12):
        x = torch.full((2,), 1.0 if call % 3 else -1.0)
        assert torch.equal(f(x), x * 2 if call % 3 else x - 1)
    assert w.tolist() == [12.0, 12.0]


def test_a_failing_replay_leaves_the_state_as_it_was():
    buffer = torch.zeros(2, 2)

    @torch.capture(backend="plain")
    def f(x):
        buffer.add_(1)
        return torch.linalg.cholesky(x)

    for _ in range(4):
        f(torch.eye(2))
    with pytest.raises(torch.linalg.LinAlgError):
        f(-torch.eye(2))
    assert buffer[0, 0].item() == 4
    assert f(torch.eye(2)).tolist() == [[1.0, 0.0], [0.0, 1.0]]


# -------------------------------------------------------------------------------------------------------------- reading


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_source_can_be_read(backend):
    b = torch.ones(4)

    @torch.capture(backend=backend)
    def f(x):
        unused = x.exp()  # noqa: F841
        y = x * b
        return y + torch.ones(4) * 2

    for _ in range(3):
        f(torch.ones(4))
    source = f.source
    assert "y = x * b" in source
    assert "test_capture.py:" in source
    assert "float32[4]" in source
    assert "exp" not in source.partition("#")[0], "what nobody reads is not computed"
    assert source.count("multiply(") == 1, "what hangs on constants alone is computed once"
    text = f.explain()
    assert "4 calls were recorded" in text or "calls were recorded" in text
    if backend == "native":
        assert "became one loop" in text
    compile(source, "source", "exec")


def test_checking_runs_both():
    model = net().eval()
    step = torch.capture(training(model, torch.optim.Adam(model.parameters())), backend="plain", check=True)
    for _ in range(5):
        step(torch.randn(5, 6), torch.randint(0, 3, (5,)))
    entry = step._last
    entry.run = entry._bind_memory = lambda: None  # a program that does nothing
    with pytest.raises(CaptureError, match="differs from the function"):
        step(torch.randn(5, 6), torch.randint(0, 3, (5,)))


# -------------------------------------------------------------------------------------------------------------- modules


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_module_inside_of_a_larger_graph(backend):
    model = nn.Sequential(net(), nn.BatchNorm1d(3))
    twin = copy.deepcopy(model)
    captured = torch.capture(model, backend=backend)
    for call in range(4):
        x = torch.randn(5, 6, requires_grad=True)
        found = []
        for one in (captured, twin):
            leaf = x.detach().requires_grad_()
            torch.manual_seed(call)
            first, second = one(leaf * 2), one(leaf * 3)
            (first * second).sum().backward()
            found.append([first, leaf.grad])
        for one, two in zip(*found, strict=True):
            torch.testing.assert_close(one, two)
    for one, two in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(one.grad, two.grad)
    for one, two in zip(model.buffers(), twin.buffers(), strict=True):
        torch.testing.assert_close(one, two)
    assert "yield" in captured.source
    assert len(captured._last.instances) == 2, "two calls that wait for their backward pass need two memories"


def test_make_graphed_callables():
    layer, twin = nn.Linear(3, 2), nn.Linear(3, 2)
    twin.load_state_dict(layer.state_dict())
    graphed = torch.capture.make_graphed_callables(layer, (torch.zeros(4, 3),), backend="plain")
    assert graphed is layer
    x = torch.randn(4, 3)
    graphed(x).square().sum().backward()
    twin(x).square().sum().backward()
    assert torch.equal(layer.weight.grad, twin.weight.grad)
    with pytest.raises(TypeError, match="sample_args"):
        torch.capture.make_graphed_callables(layer, torch.zeros(4, 3))


def test_samples_of_arguments_leave_no_trace():
    block = nn.Sequential(nn.BatchNorm1d(3), nn.Dropout(0.5))
    drawn, before, version = torch.get_rng_state(), copy.deepcopy(block.state_dict()), block[0].running_mean._version
    torch.capture.make_graphed_callables(block, (torch.zeros(4, 3, requires_grad=True),), backend="plain")
    assert torch.equal(torch.get_rng_state(), drawn)
    assert all(torch.equal(one, before[name]) for name, one in block.state_dict().items())
    assert block[0].running_mean._version == version


# ------------------------------------------------------------------------------------------------------------ the cache


def simple():
    f = torch.capture(lambda x: (x * 2 + 1) * x, backend="native")
    for _ in range(3):
        f(torch.ones(100))
    return f(torch.full((100,), 3.0))[0].item()


@needs_compiler
def test_the_cache_is_used_and_rebuilt(cache, monkeypatch):
    runtime()  # what all programs share is made once in a process, wherever the cache is then
    before = set(cache.glob("*")) if cache.exists() else set()
    assert simple() == 21
    (library,) = set(cache.glob("*.so")) - before
    made = library.stat().st_mtime_ns
    assert simple() == 21
    assert library.stat().st_mtime_ns == made, "it was compiled again"
    library.unlink()
    library.write_bytes(b"not a library")  # (another file: a loaded one must not be written to)
    assert simple() == 21
    assert library.read_bytes() != b"not a library"
    left = set(cache.iterdir()) - before
    assert sorted(p.suffix for p in left) == [".so", ".sum"], "something else was left behind"


@needs_compiler
def test_many_processes_share_the_cache(cache):
    code = (
        "import retrograd as torch; f = torch.capture(lambda x: (x * 2 + 1) * x, backend='native');"
        "[f(torch.ones(100)) for _ in range(3)]; assert f(torch.full((100,), 3.0))[0].item() == 21"
    )
    running = [subprocess.Popen([sys.executable, "-c", code], env=dict(os.environ)) for _ in range(3)]
    assert [one.wait() for one in running] == [0, 0, 0]
    assert len(list(cache.glob("*.so"))) == 2, "the program, and what all programs share"


def test_without_a_compiler_it_runs_on_numpy(monkeypatch):
    from retrograd.capture import compiling

    monkeypatch.setattr(compiling, "compiler", lambda: None)
    monkeypatch.setattr(compiling, "_said", [])
    with pytest.warns(UserWarning, match="no C compiler") as said:
        functions = [torch.capture(lambda x: x + 1, backend="native") for _ in range(2)]
    assert len(said) == 1
    assert all(f(torch.zeros(1)).item() == 1 for f in functions for _ in range(4))


@needs_compiler
def test_numbers_collapse_to_one_function_in_c():
    @torch.capture(backend="native")
    def gradient(x):
        x = x.detach().requires_grad_()
        total = 0
        for i in range(9):
            total = total + 100 * (x[i + 1] - x[i] ** 2) ** 2 + (1 - x[i]) ** 2
        return torch.autograd.grad(total, x)[0]

    x = torch.linspace(-1, 1, 10, dtype=torch.float64)
    for _ in range(3):
        found = gradient(x)
    inner = torch.zeros(10, dtype=torch.float64)  # the formula of the gradient, written by hand
    inner[:-1] += -400 * x[:-1] * (x[1:] - x[:-1] ** 2) - 2 * (1 - x[:-1])
    inner[1:] += 200 * (x[1:] - x[:-1] ** 2)
    torch.testing.assert_close(found, inner)
    code = [line for line in gradient.source.splitlines()[1:] if not line.strip().startswith("#")]
    assert [line.strip() for line in code] == ["native_0(pointers)", "return"]


def test_other_threads_are_not_recorded():
    """While one thread records, another computes eagerly."""
    stop, failures = threading.Event(), []

    def other():
        while not stop.is_set():
            x = torch.ones(3, requires_grad=True)
            (x * 2).exp().sum().backward()
            if type(x.grad._memory_).__name__ != "ndarray":
                failures.append(x)

    thread = threading.Thread(target=other)
    thread.start()
    try:
        for _ in range(20):
            f = torch.capture(lambda x: (x * 2).tanh().sum(), backend="plain")
            assert f(torch.zeros(3)).item() == 0
    finally:
        stop.set()
        thread.join()
    assert not failures


def test_what_guards_dtypes_for_storing_does_not_hide_kernels():
    """The first tensor of such a dtype puts guards before the kernels, which stay there."""
    small = torch.ones(2, dtype=torch.float8_e4m3fn)
    eager, captured = (trained(OPTIMIZERS["Adam"], backend) for backend in (None, "plain"))
    assert all(torch.equal(a, b) for a, b in zip(eager[1], captured[1], strict=True))
    with pytest.raises(NotImplementedError, match="not implemented for 'Float8_e4m3fn'"):
        small + small
    with pytest.raises(torch.capture.CaptureError, match="a tensor of float8_e4m3fn"):
        torch.capture(lambda x: x.float() + 1)(small)


@pytest.mark.parametrize("backend", ["plain", "native"])
@pytest.mark.parametrize("action", ["always", "error"])
def test_numpys_warnings_stay_inside(action, backend):
    def step(x):
        return sum(y.sum() for y in (1 / x, x.log(), x * 1e10, x**0.5, x / 0, (x - x) / (x - x)))

    captured = torch.capture(step, backend=backend)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter(action)
        for _ in range(4):
            assert captured(torch.tensor([0.0, -1.0, 3e38])).isnan()
        network = torch.capture(nn.Sequential(nn.Linear(1, 1)), backend=backend)
        for _ in range(4):
            network(torch.tensor([[float("inf")]])).sum().backward()
    assert not caught


DRAWS = {
    "poisson": lambda x: torch.poisson(x.abs()),
    "binomial": lambda x: torch.binomial(torch.full_like(x, 5), x.sigmoid()),
    "gamma": lambda x: torch._standard_gamma(x.abs() + 0.1),
    "dirichlet": lambda x: torch._sample_dirichlet(x.abs() + 0.1),
    "rrelu": lambda x: F.rrelu(x, training=True),
    "multinomial": lambda x: torch.multinomial(x.abs(), 3),
    "multinomial with replacement": lambda x: torch.multinomial(x.abs(), 3, replacement=True),
    "bernoulli": lambda x: torch.bernoulli(x.sigmoid()),
    "normal": lambda x: torch.normal(x, 1.0),
    "uniform_": lambda x: torch.empty(4, 6).uniform_(-0.3, 0.7),
    "uniform_ in float64": lambda x: torch.empty(4, 6, dtype=torch.float64).uniform_(-0.3, 0.7),
    "init": lambda x: nn.init.kaiming_uniform_(torch.empty(4, 6)),
    "exponential_": lambda x: torch.empty_like(x).exponential_(),
    "geometric_": lambda x: torch.empty_like(x).geometric_(0.3),
    "cauchy_": lambda x: torch.empty_like(x).cauchy_(),
    "log_normal_": lambda x: torch.empty_like(x).log_normal_(),
    "random_": lambda x: torch.empty_like(x).random_(),
    "randperm": lambda x: torch.randperm(6),
    "dropout": lambda x: F.dropout(x, 0.3),
    "alpha_dropout": lambda x: F.alpha_dropout(x, training=True),
    "gumbel_softmax": lambda x: F.gumbel_softmax(x),
}


@pytest.mark.parametrize("name", DRAWS)
def test_draws_are_those_of_an_eager_run(name):
    """The same numbers, and the generator stands where it would."""
    found = []
    for function in (DRAWS[name], torch.capture(DRAWS[name], backend="plain")):
        torch.manual_seed(3)
        found.append([function(torch.linspace(-1, 1, 24).reshape(4, 6)) for _ in range(5)] + [torch.rand(2)])
    for one, two in zip(*found, strict=True):
        assert torch.equal(one, two)
    assert not torch.equal(found[0][3], found[0][4]), "nothing was drawn"


def test_ways_that_hang_on_values_are_programs_of_their_own():
    """The package itself looks at values now and then: trunc_normal_ draws again what is too far out."""

    def function(x):
        return nn.init.trunc_normal_(torch.empty_like(x), a=-1.0, b=1.0) + x

    found = []
    for one in (function, torch.capture(function, backend="plain")):
        torch.manual_seed(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.append([one(torch.zeros(2)) for _ in range(20)] + [torch.rand(2)])
    for one, two in zip(*found, strict=True):
        assert torch.equal(one, two)


@pytest.mark.parametrize("calls", [0, 1, 4])
def test_a_failing_step_leaves_generators_and_optimizers_as_they_were(calls):
    w = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.Adam([w], lr=0.1)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)

    @torch.capture(backend="plain")
    def step(x):
        optimizer.zero_grad()
        (w * torch.rand(2) * F.dropout(w, 0.5)).sum().backward()
        optimizer.step()
        scheduler.step()
        return torch.linalg.cholesky(x)

    for _ in range(calls):
        step(torch.eye(2))
    drawn = torch.default_generator.get_state()
    before = copy.deepcopy([w.detach(), optimizer.state_dict(), scheduler.state_dict()])
    with pytest.raises(torch.linalg.LinAlgError):
        step(-torch.eye(2))
    after = [w.detach(), optimizer.state_dict(), scheduler.state_dict()]
    assert str(after) == str(before)
    assert torch.equal(torch.default_generator.get_state(), drawn)
    step(torch.eye(2))
    assert optimizer.state[w]["step"] == calls + 1


@pytest.mark.parametrize("frozen", [False, True])
def test_what_was_recorded_is_no_young_garbage(frozen):
    """The collector does not look through it at once; what the user has set aside stays aside."""

    def step(x):
        for _ in range(500):
            x = x * 2.0 - 1.0
        return x

    captured = torch.capture(step, backend="plain")
    x = torch.ones(3)
    young = []

    def look(phase, info):
        if phase == "start":
            young.append(len(gc.get_objects(generation=0)))

    gc.collect()
    threshold = gc.get_threshold()
    gc.set_threshold(700)  # every Python's collector looks while the lists are made
    if frozen:
        gc.freeze()
    gc.callbacks.append(look)
    try:
        captured(x)
        lists = [[] for _ in range(1000)]
    finally:
        gc.callbacks.remove(look)
        gc.set_threshold(*threshold)
        aside = gc.get_freeze_count()
        gc.unfreeze()
    assert gc.isenabled()
    assert bool(aside) is frozen
    assert frozen or max(young) < 2 * len(lists)


def test_a_large_result_lies_where_an_operand_lay_that_nobody_reads_any_more():
    step = torch.capture(lambda x: ((x * 2.0 + 1.0) * 3.0).sum(), backend="plain")
    x = torch.linspace(0.0, 1.0, 20_000)
    results = [step(x).item() for _ in range(4)]
    assert results == [((x * 2.0 + 1.0) * 3.0).sum().item()] * 4
    assert step._last.recording.program.plan.arena < 1.1 * x._memory_.nbytes


def test_the_second_recording_is_gone_when_it_was_compared(monkeypatch):
    recorders = []

    class Watched(session.Recorder):
        def __init__(self, *args):
            super().__init__(*args)
            recorders.append(weakref.ref(self))

    monkeypatch.setattr(session, "Recorder", Watched)
    x = torch.rand(4, 6)
    step = torch.capture(lambda x: x.softmax(1).roll(1, 0).sort(0)[0].sum(), backend="plain")
    gc.disable()  # all that it held goes at once, and not when garbage is collected
    try:
        step(x), step(x)
    finally:
        gc.enable()
    assert len(recorders) == 2
    assert recorders[1]() is None


@pytest.mark.parametrize("backend", BACKENDS)
def test_empty_parts_of_arrays_can_be_written_to(backend):
    def step(x):
        nothing = (x * 2)[:0].t().reshape(0, 3)
        return nothing.add_(1), torch.cat([nothing, x]).roll(1, 0)

    captured = torch.capture(step, backend=backend)
    for _ in range(4):
        x = torch.rand(3, 3)
        nothing, rolled = captured(x)
        assert nothing.shape == (0, 3)
        assert torch.equal(rolled, x.roll(1, 0))


def test_a_second_recording_shares_the_calls_of_the_first(monkeypatch):
    seen = []

    def difference(first, second):
        seen.append((len(first.calls), sum([a is b for a, b in zip(first.calls, second.calls)])))
        return comparing.difference(first, second)

    monkeypatch.setattr(api, "difference", difference)
    b = torch.rand(3)

    def step(x):
        x = x.detach().requires_grad_()
        y = ((x * b + 1.5) ** 2 - b)[0]
        return torch.autograd.grad(y, x)[0]

    captured = torch.capture(step, backend="plain")
    for _ in range(3):
        x = torch.rand(3)
        assert torch.equal(captured(x), step(x))
    [(calls, shared)] = seen
    assert shared >= calls - 1 > 5  # the gradient that a pass starts with comes another way


@pytest.mark.parametrize("at", range(4))
def test_calls_that_differ_are_not_shared(at):
    runs = [iter(range(10))] * 5000  # so many that nobody looks into them

    def step(x):
        number = 2.0 + next(runs[0]) * (at != 3)
        y = x.clone()
        if at == 0:
            y = y * number  # another number
        elif at == 1:
            y[int(number) - 2] = 0.0  # another place
        elif at == 2:
            y = y * x if number == 2 else x * y  # other operands
        else:
            y = torch.zeros(2) + y[:2] if next(runs[0]) == 1 else torch.ones(2) + y[:2]
        return y + 1

    captured = torch.capture(step, backend="plain")
    captured(torch.rand(3))
    with pytest.raises(CaptureError, match="did different things"):
        captured(torch.rand(3))


@pytest.mark.parametrize("calls", [1, 2])
def test_recorded_calls_hold_no_more_than_eager_ones(calls):
    x = torch.rand(1 << 17)

    def step(x):
        for _ in range(20):
            x = (x * 1.5).sin().flip(0)
        return x.sum()

    def peak(function):
        tracemalloc.start()
        try:
            for _ in range(calls):
                function(x)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(torch.capture(step, backend="plain")) < 2 * peak(step)


def test_memory_that_is_used_again_is_other_memory():
    table = torch.rand(3, 3)

    def step(x):
        for number in range(30):
            x = (x.flip(0) + 1.0).roll(number, 1)  # each lies where one before it lay
            x = torch.cat([x[:1], table[1:] * number]) - x.t()
        return x

    captured = torch.capture(step, backend="plain")
    for _ in range(4):
        x = torch.rand(3, 3)
        assert torch.equal(captured(x), step(x))


def test_constants_in_memory_that_looks_like_what_changes():
    def step(x):
        like = torch.empty_like(x).fill_(3.0)
        like.mul_(2.0)
        return x + like, torch.full_like(x, 0.5) * x

    captured = torch.capture(step, backend="plain")
    for _ in range(4):
        x = torch.rand(5, 7).t()
        for one, two in zip(captured(x), step(x), strict=True):
            assert torch.equal(one, two)


@needs_compiler
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_c_has_eager_nans_infinities_and_zeros(dtype):
    inf, nan = float("inf"), float("nan")
    special = torch.tensor([0.0, -0.0, inf, -inf, nan, 1.0, -1.5, 1e-40, 3e38, 7.0], dtype=dtype)
    a, b = (one.reshape(-1) for one in torch.meshgrid(special, special, indexing="ij"))
    counts = torch.arange(100)

    def step(a, b, counts):
        return (
            a + b, a - b, a * b, a / b, torch.maximum(a, b), torch.minimum(a, b), a.relu(), a.clamp(-1, 1), a.sqrt(),
            a.abs(), -a, a**2, a**3, a == b, a < b, a >= b, torch.where(a > b, a, b), (a > 0).to(dtype) * b,
            counts * a, counts * 2 + 1, counts.to(dtype) / 3, (a * 2).sum(), (b + 1)[:5].sum(), a.sigmoid(), a.sign(),
        )  # fmt: skip

    captured = torch.capture(step, backend="native")
    for _ in range(4):
        found = captured(a, b, counts)
    assert "native_0" in captured.source
    for position, (one, two) in enumerate(zip(found, step(a, b, counts), strict=True)):
        assert one.dtype == two.dtype, position
        np.testing.assert_array_equal(one.numpy(), two.numpy(), str(position))
        if one.is_floating_point():
            numbers = ~one.isnan()
            assert torch.equal(one.signbit()[numbers], two.signbit()[numbers]), position


@needs_compiler
def test_gelu_in_c_is_the_kernels_to_the_last_digits():
    """Its values, and NaN, infinities and zeros; with `retrograd[fast]`, it is that library's."""
    special = torch.tensor([0.0, -0.0, float("nan"), float("inf"), -float("inf"), 1e20, -1e20, 20.0, -20.0, 1e-40])
    weight = torch.linspace(0.5, 2.0, 10_010)

    def step(x):
        x = x.detach().requires_grad_()
        y = F.gelu(x)
        (y * weight).sum().backward()
        return y.detach(), x.grad

    captured = torch.capture(step, backend="native")
    for _ in range(4):
        x = torch.cat([special, torch.randn(10_000) * 3])
        for one, two in zip(captured(x), step(x), strict=True):
            assert torch.allclose(one, two, rtol=1e-5, atol=1e-6, equal_nan=True)
            assert torch.equal(one[:9].signbit() & ~one[:9].isnan(), two[:9].signbit() & ~two[:9].isnan())
    if not kernels.compiled.is_used():
        assert not any(call.name.startswith("kernels.gelu") and call.kind == "opaque"
                       for call in captured._last.recording.program.calls)  # fmt: skip
