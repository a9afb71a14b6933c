"""What an operation costs beside its arithmetic: retrograd and torch on one thread, each in a process of its own.

    python benchmarks/bench_overhead.py [--quick] [--only TEXT] [--json FILE] [--markdown FILE] [--strict]

To add a case, write a function that takes the library and returns the function to time, and name it in `CASES`; what it
returns is compared.
"""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Callable
from time import perf_counter
from types import ModuleType

# isort: off
import harness  # before NumPy and torch, whose thread counts it sets
from harness import Case, Sampler, both, in_subprocess

import numpy

from retrograd.core import compiled
# isort: on


def bar(python: float, with_the_core: float) -> float:
    """The bar of a row, without and with the compiled core."""
    return python if compiled.library is None else with_the_core


CHAIN = 200  # links of the chain; each is a product and a sum


# ------------------------------------------------------------------------------------------ a chain of small products


def small(lib: ModuleType, value: float, requires_grad: bool = True):
    """An 8×8 float32 leaf near `value`; the chain neither overflows nor dies away on it."""
    noise = numpy.random.default_rng(0).standard_normal((8, 8)) * 0.001
    return lib.tensor(noise + value, dtype=lib.float32, requires_grad=requires_grad)


def chain_forward(only_x: bool) -> Callable[[ModuleType], Callable[[], object]]:
    """200 times `x*b + c`, building the graph (and, with the result, dropping it)."""

    def setup(lib: ModuleType) -> Callable[[], object]:
        x, b, c = small(lib, 1.0), small(lib, 0.99, not only_x), small(lib, 0.01, not only_x)

        def run() -> None:
            y = x
            for _ in range(CHAIN):
                y = y * b + c

        return run

    return setup


def chain_backward(only_x: bool) -> Callable[[ModuleType], Callable[[], object]]:
    """The same, and its gradients."""

    def setup(lib: ModuleType) -> Callable[[], object]:
        x, b, c = small(lib, 1.0), small(lib, 0.99, not only_x), small(lib, 0.01, not only_x)
        ones = lib.ones(8, 8)

        def run() -> None:
            y = x
            for _ in range(CHAIN):
                y = y * b + c
            y.backward(ones)
            x.grad = b.grad = c.grad = None

        return run

    return setup


# ----------------------------------------------------------------------------------------------------- single calls


def sum_backward(lib: ModuleType) -> Callable[[], object]:
    """`x.sum().backward()`: one operation, one node and a leaf."""
    x = small(lib, 1.0)

    def run() -> None:
        x.sum().backward()
        x.grad = None

    return run


def backward_alone(lib: ModuleType) -> Callable[[], object]:
    """`backward()` over and over on one graph of one node."""
    x = small(lib, 1.0)
    loss = x.sum()

    def run() -> None:
        loss.backward(retain_graph=True)
        x.grad = None

    return run


def product(lib: ModuleType) -> Callable[[], object]:
    """`a * b`, nothing requiring grad."""
    a, b = small(lib, 1.0, False), small(lib, 0.99, False)
    return lambda: a * b


def scalar_program(lib: ModuleType) -> Callable[[], object]:
    """The gradient of a 50-dimensional Rosenbrock function, written with indices and numbers."""
    x = lib.tensor(numpy.linspace(-1, 1, 50), dtype=lib.float64, requires_grad=True)

    def run() -> object:
        total = 0.0
        for i in range(49):
            total = total + 100 * (x[i + 1] - x[i] ** 2) ** 2 + (1 - x[i]) ** 2
        total.backward()
        gradient, x.grad = x.grad, None
        return gradient

    return run


# ------------------------------------------------------------------------------------- operators on small tensors


def step(call: Callable[[ModuleType, list], object], *shapes: tuple[int, ...]) -> Callable[[ModuleType], Callable]:
    """``call(lib, leaves)`` and the gradients of its result for the leaves, of these shapes."""

    def setup(lib: ModuleType) -> Callable[[], object]:
        rng = numpy.random.default_rng(0)
        leaves = [lib.tensor(rng.standard_normal(s), dtype=lib.float32, requires_grad=True) for s in shapes]
        # (not ones, with which a softmax has a gradient of nothing but rounding)
        cotangent = lib.tensor(rng.standard_normal(tuple(call(lib, leaves).shape)), dtype=lib.float32)

        def run() -> object:
            call(lib, leaves).backward(cotangent)
            found = [leaf.grad for leaf in leaves]
            for leaf in leaves:
                leaf.grad = None
            return found

        return run

    return setup


def chosen(lib: ModuleType) -> Callable[[], object]:
    """`where` of two small tensors, and its gradients."""
    condition = small(lib, 0.0, False) > 0
    return step(lambda lib, leaves: lib.where(condition, *leaves), (8, 8), (8, 8))(lib)


def class_losses(lib: ModuleType) -> Callable[[], object]:
    """`cross_entropy` of eight small rows, and its gradient."""
    target = lib.tensor([0, 3, 2, 7, 1, 5, 4, 6])
    return step(lambda lib, leaves: lib.nn.functional.cross_entropy(leaves[0], target), (8, 8))(lib)


def hooked(lib: ModuleType) -> Callable[[], object]:
    """A product under `saved_tensors_hooks` that do nothing, and its gradients."""
    hooks = lib.autograd.graph.saved_tensors_hooks

    def unchanged(x: object) -> object:
        return x

    def call(lib: ModuleType, leaves: list) -> object:
        with hooks(unchanged, unchanged):
            return leaves[0] * leaves[1]

    return step(call, (8, 8), (8, 8))(lib)


# ------------------------------------------------------------------------------------------- views and in-place writes


def add_in_place(lib: ModuleType) -> Callable[[], object]:
    """`x.add_(y)`, both with history: a chain that grows, begun anew every 100 writes."""
    a, y = small(lib, 1.0), small(lib, 0.001)

    def run() -> None:
        x = a * 1
        for _ in range(100):
            x.add_(y)

    return run


def subscript(lib: ModuleType) -> Callable[[], object]:
    """`x[i]` of a result."""
    x = small(lib, 1.0) * 1
    return lambda: x[3]


def slice_subscript(lib: ModuleType) -> Callable[[], object]:
    """`x[a:b]` of a result."""
    x = small(lib, 1.0) * 1
    return lambda: x[2:5]


def new_shape(lib: ModuleType) -> Callable[[], object]:
    """`x.view(...)` of a result."""
    x = small(lib, 1.0) * 1
    return lambda: x.view(4, 16)


def assign_subscript(lib: ModuleType) -> Callable[[], object]:
    """`x[i] = v`, both with history."""
    a, v = small(lib, 1.0), small(lib, 0.5)[0].detach().requires_grad_()

    def run() -> None:
        x = a * 1
        for i in range(8):
            x[i] = v

    return run


# ---------------------------------------------------------------------------------------------------------- deep graphs


def deep_chain(nodes: int) -> Sampler:
    """Seconds per node to build a chain of `nodes` nodes, differentiate it and free it."""
    lib = importlib.import_module("retrograd")
    x = lib.ones(1, requires_grad=True)
    b = lib.ones(1)

    def build_and_free() -> None:
        y = x
        for _ in range(nodes):
            y = y * b
        y.backward()
        x.grad = None

    rounds = max(1, 100_000 // nodes)

    def sample() -> float:
        gc.collect()
        start = perf_counter()
        for _ in range(rounds):
            build_and_free()
        return (perf_counter() - start) / (rounds * nodes)

    return sample


# --------------------------------------------------------------------------------------------------------- forward mode


def mlp_jvp(weights_vary: bool) -> Callable[[ModuleType], Callable[[], object]]:
    """The directional derivative of a 16-32-32-4 tanh network by forward mode, a batch of 8."""

    def setup(lib: ModuleType) -> Callable[[], object]:
        rng = numpy.random.default_rng(0)

        def drawn(*shape: int) -> object:
            return lib.tensor(rng.standard_normal(shape) / 4, dtype=lib.float32)

        layers = [(drawn(n, m), drawn(n, m), drawn(m), drawn(m)) for n, m in ((16, 32), (32, 32), (32, 4))]
        x, t = drawn(8, 16), drawn(8, 16)
        forward_ad = importlib.import_module(f"{lib.__name__}.autograd.forward_ad")
        make_dual, unpack_dual = forward_ad.make_dual, forward_ad.unpack_dual

        def for_the_input() -> object:
            with forward_ad.dual_level():
                hidden = make_dual(x, t)
                for weight, _, bias, _ in layers:
                    hidden = (hidden @ weight + bias).tanh()
                return unpack_dual(hidden).tangent

        def for_the_weights() -> object:
            with forward_ad.dual_level():
                hidden = x
                for weight, weight_t, bias, bias_t in layers:
                    hidden = (hidden @ make_dual(weight, weight_t) + make_dual(bias, bias_t)).tanh()
                return unpack_dual(hidden).tangent

        return for_the_weights if weights_vary else for_the_input

    return setup


FORWARD, BACKWARD = bar(0.7, 0.4), bar(0.6, 0.4)
CASES = [
    both("chain forward", chain_forward(only_x=False), 2 * CHAIN, unit="operation", bar=FORWARD),
    both("chain forward, only x requires grad", chain_forward(only_x=True), 2 * CHAIN, unit="operation", bar=FORWARD),
    both("chain forward + backward", chain_backward(only_x=False), 2 * CHAIN, unit="operation", bar=BACKWARD),
    both("chain fwd + bwd, only x requires grad", chain_backward(True), 2 * CHAIN, unit="operation", bar=BACKWARD),
    both("x.sum().backward()", sum_backward, bar=bar(0.33, 0.25)),
    both("backward() alone, one node", backward_alone, bar=bar(0.3, 0.25)),
    both("a * b without grad", product, bar=bar(0.7, 0.35)),
    both("gradient of a scalar program", scalar_program, bar=bar(0.5, 0.35)),
    both("where, and backward", chosen, bar=0.8),
    both("softmax, and backward", step(lambda lib, x: lib.softmax(x[0], -1), (8, 8)), bar=0.8),
    both("layer_norm, and backward",
         step(lambda lib, x: lib.nn.functional.layer_norm(x[0], (8,), x[1], x[2]), (8, 8), (8,), (8,)), bar=0.8),
    both("linear, and backward",
         step(lambda lib, x: lib.nn.functional.linear(*x), (8, 8), (8, 8), (8,)), bar=0.8),
    both("cross_entropy, and backward", class_losses, bar=0.8),
    both("x[i], and backward", step(lambda lib, x: x[0][3], (8, 8)), bar=0.8),
    both("x[a:b], and backward", step(lambda lib, x: x[0][2:5], (8, 8)), bar=0.8),
    both("x[i, j], and backward", step(lambda lib, x: x[0][3, 4], (8, 8)), bar=0.8),
    both("a product under saved_tensors_hooks", hooked, bar=1.0),
    both("x.add_(y)", add_in_place, 100, unit="operation", bar=1.0),
    both("x[i]", subscript, bar=1.0),
    both("x[a:b]", slice_subscript, bar=1.0),
    both("x.view(4, 16)", new_shape, bar=1.0),
    both("x[i] = v", assign_subscript, 8, unit="operation"),
    both("forward-mode derivative of a small network", mlp_jvp(weights_vary=False), bar=0.8),
    both("the same, for the weights", mlp_jvp(weights_vary=True), bar=0.8),
    Case(
        "import, in a fresh interpreter",
        subject=lambda: in_subprocess("import retrograd"),
        reference=lambda: in_subprocess("import torch"),
        bar=0.2,
        unit="start",
        repeats=9,
        quick_repeats=3,
    ),
    Case(
        "import, beside NumPy's own",
        subject=lambda: in_subprocess("import retrograd"),
        reference=lambda: in_subprocess("import numpy"),
        unit="start",
        labels=("retrograd", "numpy"),
        repeats=9,
        quick_repeats=3,
    ),
    Case(
        "deep chain, per node",
        subject=lambda: deep_chain(1_000_000),
        reference=lambda: deep_chain(10_000),
        bar=1.5,
        unit="node",
        labels=("1,000,000", "10,000"),
        repeats=5,
        quick_repeats=1,
    ),
]  # fmt: skip


if __name__ == "__main__":
    found = harness.versions("numpy", "torch", "retrograd")
    found["core"] = "Python" if compiled.library is None else "compiled"
    build = "" if compiled.library is None else ", compiled core"
    sys.exit(harness.command_line((__doc__ or "").splitlines()[0], CASES, found, build))
