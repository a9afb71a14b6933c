"""Captured steps beside torch: a chain of small operations, Rosenbrock's gradient, networks, second derivatives.

    python benchmarks/bench_capture.py [--quick] [--only TEXT] [--json FILE] [--markdown FILE] [--strict]

Each case runs twice, on NumPy ("plain") and with its groups in C ("native"); torch runs eagerly.  Networks are also
held against this package's own eager steps.  What it costs to capture is the time of the two recorded calls and of two
more (and of the compiler, whose cache is empty), beside an eager step.  Peak memory is that of a process during its
steps.  Where JAX is installed, its jit stands beside these, and torch.compile where torch can compile: rows that only
inform.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from time import perf_counter, process_time
from types import ModuleType
from typing import Any

import harness
import models
from harness import Case, Sampler, both

Run = Callable[[], Any]


def chain(lib: ModuleType, captured: Callable[[Any], Any]) -> Run:
    """200 times ``x * b + c`` on 8 x 8 numbers, forward and backward."""
    b, c = lib.full((8, 8), 0.9), lib.full((8, 8), 0.1)
    x = lib.ones(8, 8)

    def step(x: Any) -> Any:
        x = x.detach().requires_grad_()
        y = x
        for _ in range(200):
            y = y * b + c
        loss = y.sum()
        loss.backward()
        return loss.detach(), x.grad  # both, or a program would leave the forward pass out

    step = captured(step)
    return lambda: step(x)


def rosenbrock(lib: ModuleType, captured: Callable[[Any], Any]) -> Run:
    """The gradient of Rosenbrock's function of 50 numbers, written with a loop and indices."""
    x = lib.linspace(-1.0, 1.0, 50, dtype=lib.float64)

    def step(x: Any) -> Any:
        x = x.detach().requires_grad_()
        total = 0
        for i in range(49):
            total = total + 100 * (x[i + 1] - x[i] ** 2) ** 2 + (1 - x[i]) ** 2
        return total.detach(), lib.autograd.grad(total, x)[0]

    step = captured(step)
    return lambda: step(x)


def energy(lib: ModuleType) -> Callable[[Any], Any]:
    weights = lib.linspace(-1.0, 1.0, 2500).reshape(50, 50)
    return lambda x: (lib.tanh(weights @ x) ** 2).sum() + (x * x * x).sum() + x.sin().sum()


def hessian(lib: ModuleType, captured: Callable[[Any], Any]) -> Run:
    function, x = energy(lib), lib.linspace(-1.0, 1.0, 50)

    def step(x: Any) -> Any:
        return lib.autograd.functional.hessian(function, x)

    step = captured(step)
    return lambda: step(x)


def hvp(lib: ModuleType, captured: Callable[[Any], Any]) -> Run:
    function, x, v = energy(lib), lib.linspace(-1.0, 1.0, 50), lib.linspace(1.0, 2.0, 50)

    def step(x: Any, v: Any) -> Any:
        return lib.autograd.functional.hvp(function, x, v)

    step = captured(step)
    return lambda: step(x, v)


def network(make: Callable[[ModuleType], Run]) -> Callable[[ModuleType, Callable[[Any], Any]], Run]:
    def prepared(lib: ModuleType, captured: Callable[[Any], Any]) -> Run:
        return captured(make(lib))

    return prepared


mlp, convnet, transformer = map(network, (models.mlp_step, models.convnet_step, models.transformer_step))


def setup(lib: ModuleType, make: Any, backend: str) -> Run:
    """Captured here, eager in torch."""
    if lib.__name__ != "retrograd" or not backend:
        return make(lib, lambda step: step)
    run = make(lib, lambda step: lib.capture(step, backend=backend))
    for _ in range(4):  # the state of an optimizer is made by the first call
        run()
    return run


def first_calls(make: Any, backend: str) -> Sampler:
    """What capturing costs: the calls that record and compile, and two more.

    In processor time, if no compiler runs: its processes have clocks of their own.
    """
    lib = importlib.import_module("retrograd")
    clock = process_time if backend == "plain" else perf_counter

    def sample() -> float:
        folder = tempfile.mkdtemp()
        os.environ["RETROGRAD_CAPTURE_CACHE"] = folder
        run = make(lib, lambda step: lib.capture(step, backend=backend))
        start = clock()
        for _ in range(4):
            run()
        taken = clock() - start
        shutil.rmtree(folder)
        return taken

    return sample


def captured_steps(make: Any) -> Sampler:
    return harness.in_process(setup(importlib.import_module("retrograd"), make, "plain"), clock=process_time)


def eager_steps(make: Any) -> Sampler:
    run = make(importlib.import_module("retrograd"), lambda step: step)
    return harness.in_process(run, clock=process_time)


def cases() -> list[Case]:
    rows: list[Case] = []
    for name, make, plain, native in (
        ("chain of 200 x*b + c on 8x8", chain, 0.25, 0.05),
        ("Rosenbrock's gradient, 50 numbers", rosenbrock, 0.3, 0.03),
        ("MLP step", mlp, 0.85, 0.8),
        ("transformer step", transformer, None, 0.9),
        ("convnet step", convnet, None, 0.9),
        ("Hessian of 50 dimensions", hessian, 0.2, 0.05),
        ("Hessian-vector product", hvp, 0.1, 0.02),
    ):
        for backend, bar in (("plain", plain), ("native", native)):
            prepared = functools.partial(setup, make=make, backend=backend)
            rows.append(both(f"{name}, {backend}", prepared, bar=bar, same=make not in (mlp, transformer, convnet)))
    for name, make in (("transformer step", transformer), ("convnet step", convnet), ("MLP step", mlp)):
        rows.append(
            Case(
                f"{name}, plain, beside eager",
                functools.partial(captured_steps, make),
                functools.partial(eager_steps, make),
                bar=1.0,
                labels=("captured", "eager"),
            )
        )
    for name, make in (("chain", chain), ("Rosenbrock", rosenbrock), ("MLP", mlp), ("transformer", transformer)):
        rows.append(
            Case(
                f"to capture: {name}, plain",
                functools.partial(first_calls, make, "plain"),
                functools.partial(eager_steps, make),
                bar=10.0 + 4,
                labels=("capturing", "eager step"),
                repeats=21,  # the first of which looks for all kernels of the package
                quick_repeats=7,
            )
        )
    rows.append(
        Case(
            "to capture: transformer, native, in seconds",
            functools.partial(first_calls, transformer, "native"),
            lambda: lambda: 1.0,
            bar=3.0,
            labels=("capturing", "one second"),
            repeats=3,
            quick_repeats=2,
        )
    )
    for name in ("mlp", "convnet", "transformer"):
        for backend in ("plain", "native"):
            rows.append(
                Case(
                    f"peak memory: {name} step, {backend} (a second is a gigabyte)",
                    functools.partial(peak_memory, name, backend),
                    functools.partial(peak_memory, name, "eager"),
                    bar=1.0,
                    labels=("captured", "eager"),
                    repeats=3,
                    quick_repeats=1,
                )
            )
        rows.append(
            Case(
                f"peak memory: {name}, plain, while it is captured",
                functools.partial(peak_memory, name, "plain", False),
                functools.partial(peak_memory, name, "eager", False),
                labels=("capturing", "eager"),
                repeats=3,
                quick_repeats=1,
            )
        )
    return rows + compilers()


_PEAK = """
import ctypes, gc, sys
sys.path.insert(0, {folder!r})
import bench_capture
import retrograd

def kilobytes(name):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(name))

def tidy():
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)

run = getattr(bench_capture, {name!r})(
    retrograd, lambda step: step if {backend!r} == "eager" else retrograd.capture(step, backend={backend!r})
)
tidy()
before = kilobytes("VmRSS")
for _ in range({warm_up}):
    run()
tidy()
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")  # forget the largest size so far
for _ in range(3):
    run()
print(kilobytes("VmHWM") - before)
"""


def peak_memory(name: str, backend: str, captured: bool = True) -> Sampler:
    """The most memory that a process has during steps, beyond what it has before the first, in gigabytes (on Linux).

    Of steps that were captured before, or of the first three.
    """
    folder, warm_up = os.path.dirname(os.path.abspath(__file__)), 8 if captured else 0
    code = _PEAK.format(folder=folder, name=name, backend=backend, warm_up=warm_up)

    def sample() -> float:
        found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
        return int(found.stdout) / 1e6

    return sample


# ------------------------------------------------------------------------------------------ the others, for orientation


def compilers() -> list[Case]:
    rows: list[Case] = []
    if importlib.util.find_spec("jax") is not None:
        for name, make, reference in (
            ("chain of 200 x*b + c on 8x8", jax_chain, chain),
            ("Rosenbrock's gradient, 50 numbers", jax_rosenbrock, rosenbrock),
            ("MLP step", jax_mlp, mlp),
            ("Hessian of 50 dimensions", jax_hessian, hessian),
            ("Hessian-vector product", jax_hvp, hvp),
        ):
            rows.append(
                Case(
                    f"{name}, JAX's jit",
                    functools.partial(lambda make: harness.in_process(make()), make),
                    functools.partial(_torch, reference),
                    labels=("jax", "torch"),
                )
            )
    if importlib.util.find_spec("torch") is not None:
        for name, make in (("chain of 200 x*b + c on 8x8", chain), ("MLP step", mlp), ("convnet step", convnet),
                           ("transformer step", transformer)):  # fmt: skip
            rows.append(
                Case(
                    f"{name}, torch.compile",
                    functools.partial(_torch, make, True),
                    functools.partial(_torch, make),
                    labels=("compiled", "torch"),
                    repeats=11,
                )
            )
    return rows


def _torch(make: Any, compiled: bool = False) -> Sampler:
    lib = importlib.import_module("torch")
    lib.set_num_threads(harness.THREADS)
    return harness.in_process(make(lib, lib.compile if compiled else lambda step: step))


def _jax(run: Any, *args: Any) -> Run:
    """A jitted function of these arguments, which waits for its results."""
    jax = importlib.import_module("jax")
    return lambda: jax.block_until_ready(run(*args))


def jax_chain() -> Run:
    jax = importlib.import_module("jax")
    b, c, x = jax.numpy.full((8, 8), 0.9), jax.numpy.full((8, 8), 0.1), jax.numpy.ones((8, 8))

    def total(x: Any) -> Any:
        for _ in range(200):
            x = x * b + c
        return x.sum()

    return _jax(jax.jit(jax.value_and_grad(total)), x)


def jax_rosenbrock() -> Run:
    jax = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)
    x = jax.numpy.linspace(-1.0, 1.0, 50)

    def total(x: Any) -> Any:
        return sum(100 * (x[i + 1] - x[i] ** 2) ** 2 + (1 - x[i]) ** 2 for i in range(49))

    return _jax(jax.jit(jax.value_and_grad(total)), x)


def jax_mlp() -> Run:
    """The perceptron of models.py: a function from parameters to parameters."""
    jax = importlib.import_module("jax")
    np = importlib.import_module("numpy")
    rng = np.random.default_rng(0)
    sizes = [784, 256, 256, 10]
    weights = [
        (np.float32(rng.standard_normal((n, m)) * (2 / m) ** 0.5), np.zeros(n, np.float32))
        for m, n in itertools.pairwise(sizes)
    ]
    x, y = np.float32(rng.standard_normal((64, 784))), rng.integers(0, 10, 64)

    def loss(parameters: Any) -> Any:
        hidden = x
        for weight, bias in parameters[:-1]:
            hidden = jax.nn.relu(hidden @ weight.T + bias)
        weight, bias = parameters[-1]
        return -jax.nn.log_softmax(hidden @ weight.T + bias)[np.arange(64), y].mean()

    def step(parameters: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(parameters)
        return value, jax.tree.map(lambda p, g: p - 0.001 * g, parameters, grads)

    return _jax(jax.jit(step), jax.tree.map(jax.numpy.asarray, weights))


def _jax_energy() -> Any:
    jnp = importlib.import_module("jax").numpy
    weights = jnp.linspace(-1.0, 1.0, 2500, dtype="float32").reshape(50, 50)
    return lambda x: (jnp.tanh(weights @ x) ** 2).sum() + (x * x * x).sum() + jnp.sin(x).sum()


def jax_hessian() -> Run:
    jax = importlib.import_module("jax")
    return _jax(jax.jit(jax.hessian(_jax_energy())), jax.numpy.linspace(-1.0, 1.0, 50, dtype="float32"))


def jax_hvp() -> Run:
    jax = importlib.import_module("jax")
    function = _jax_energy()

    def product(x: Any, v: Any) -> Any:
        return function(x), jax.jvp(jax.grad(function), (x,), (v,))[1]

    x, v = (jax.numpy.linspace(a, b, 50, dtype="float32") for a, b in ((-1.0, 1.0), (1.0, 2.0)))
    return _jax(jax.jit(product), x, v)


if __name__ == "__main__":
    versions = harness.versions("numpy", "torch", "retrograd", "jax")
    sys.exit(harness.command_line((__doc__ or "").splitlines()[0], cases(), versions))
