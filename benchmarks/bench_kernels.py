"""What operators cost on large tensors: retrograd and torch on two threads, each in a process of its own.

    python benchmarks/bench_kernels.py [--quick] [--only TEXT] [--json FILE] [--markdown FILE] [--strict]

Each operator is timed forward (recording the graph), backward (the same graph over and over) and both together. To add
one, write a function that takes the library and returns the call to time and the leaves it differentiates for.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

# isort: off
os.environ.setdefault("BENCH_THREADS", "2")
import harness  # before NumPy and torch, whose thread counts it sets
from harness import Case, both

import numpy

import models
# isort: on

NAMED, OTHER = 2.0, 5.0  # bars: for the operators that the project promises, and for every other one
SPARSE = 1.0  # and for what is sparse
FAST = importlib.util.find_spec("retrograd_fast") is not None and os.environ.get("RETROGRAD_FAST") != "0"
#: Whole steps, with their bars with the compiled kernels and without.
STEPS = [
    ("MLP 784-256-256-10, batch 64", (0.95, 1.05), models.mlp_step),
    ("convnet 28×28, batch 64", (0.75, 1.6), models.convnet_step),
    ("transformer block 8×128×256", (0.97, 1.25), models.transformer_step),
    ("LSTM 64×32×128", (1.0, None), models.lstm_step),
    ("residual block 16×64×32×32", (1.0, None), models.resnet_step),
]

Call = Callable[[], Any]
Setup = Callable[[ModuleType], tuple[Call, list[Any]]]


def timed(name: str, bar: float | None, setup: Callable[[ModuleType], Call], same: bool = True) -> Case:
    """A case that runs the same code on both libraries."""
    return both(name, setup, bar=bar, sample_s=0.02, repeats=15, quick_repeats=5, same=same)


def operator(name: str, bar: float, setup: Setup) -> list[Case]:
    """Forward, backward and both together."""

    def forward(lib: ModuleType) -> Call:
        return setup(lib)[0]

    def backward(lib: ModuleType) -> Call:
        call, leaves = setup(lib)
        result = call()
        gradient = lib.ones_like(result)
        return lambda: lib.autograd.grad(result, leaves, gradient, retain_graph=True)

    def step(lib: ModuleType) -> Call:
        call, leaves = setup(lib)
        gradient = lib.ones_like(call())
        return lambda: lib.autograd.grad(call(), leaves, gradient)

    return [
        timed(f"{name}: forward", bar, forward),
        timed(f"{name}: backward", bar, backward),
        timed(f"{name}: both", bar, step),
    ]


# ------------------------------------------------------------------------------------------------------------ operands


def real(lib: ModuleType, *shape: int, seed: int = 0, requires_grad: bool = True) -> Any:
    """A float32 leaf of normal numbers."""
    values = numpy.random.default_rng(seed).standard_normal(shape, dtype=numpy.float32)
    return lib.from_numpy(values).requires_grad_(requires_grad)


def places(lib: ModuleType, below: int, *shape: int) -> Any:
    """An int64 tensor of numbers below a bound."""
    return lib.from_numpy(numpy.random.default_rng(1).integers(0, below, shape))


def unary(function: Callable[[ModuleType, Any], Any], *shape: int) -> Setup:
    """An operator of one tensor."""

    def setup(lib: ModuleType) -> tuple[Call, list[Any]]:
        x = real(lib, *shape)
        return lambda: function(lib, x), [x]

    return setup


def binary(function: Callable[[ModuleType, Any, Any], Any], first: tuple, second: tuple) -> Setup:
    """An operator of two tensors."""

    def setup(lib: ModuleType) -> tuple[Call, list[Any]]:
        x, y = real(lib, *first), real(lib, *second, seed=1)
        return lambda: function(lib, x, y), [x, y]

    return setup


def indexed(function: Callable[[ModuleType, Any, Any], Any], shape: tuple, below: int, index: tuple) -> Setup:
    """An operator of a tensor and an index."""

    def setup(lib: ModuleType) -> tuple[Call, list[Any]]:
        x, at = real(lib, *shape), places(lib, below, *index)
        return lambda: function(lib, x, at), [x]

    return setup


def indexed_write(function: Callable[[Any, Any, Any], Any], shape: tuple, below: int, index: tuple) -> Setup:
    """An operator that writes a source at an index."""

    def setup(lib: ModuleType) -> tuple[Call, list[Any]]:
        x, source, at = real(lib, *shape), real(lib, *shape, seed=1), places(lib, below, *index)
        return lambda: function(x, at, source), [x, source]

    return setup


# --------------------------------------------------------------------------------------------- layers of networks


def cross_entropy(rows: int, classes: int) -> Setup:
    """A loss over many classes."""

    def setup(lib: ModuleType) -> tuple[Call, list[Any]]:
        x, target = real(lib, rows, classes), places(lib, classes, rows)
        return lambda: lib.nn.functional.cross_entropy(x, target), [x]

    return setup


def layer_norm(*shape: int) -> Setup:
    """Over the last dimension, with weight and bias."""

    def setup(lib: ModuleType) -> tuple[Call, list[Any]]:
        x, w, b = real(lib, *shape), real(lib, shape[-1], seed=1), real(lib, shape[-1], seed=2)
        return lambda: lib.nn.functional.layer_norm(x, shape[-1:], w, b), [x, w, b]

    return setup


def batch_norm(training: bool, *shape: int) -> Setup:
    """Over the channels, with weight and bias."""

    def setup(lib: ModuleType) -> tuple[Call, list[Any]]:
        x, w, b = real(lib, *shape), real(lib, shape[1], seed=1), real(lib, shape[1], seed=2)
        mean, var = lib.zeros(shape[1]), lib.ones(shape[1])
        return lambda: lib.nn.functional.batch_norm(x, mean, var, w, b, training), [x, w, b]

    return setup


def group_norm(groups: int, *shape: int) -> Setup:
    """Over groups of channels, with weight and bias."""

    def setup(lib: ModuleType) -> tuple[Call, list[Any]]:
        x, w, b = real(lib, *shape), real(lib, shape[1], seed=1), real(lib, shape[1], seed=2)
        return lambda: lib.nn.functional.group_norm(x, groups, w, b), [x, w, b]

    return setup


def conv2d(batch: int, channels: int, outputs: int, size: int, kernel: int, **options: Any) -> Setup:
    """With a bias; the gradients of input, weight and bias."""

    def setup(lib: ModuleType) -> tuple[Call, list[Any]]:
        x = real(lib, batch, channels, size, size)
        w = real(lib, outputs, channels // options.get("groups", 1), kernel, kernel, seed=1)
        b = real(lib, outputs, seed=2)
        return lambda: lib.nn.functional.conv2d(x, w, b, **options), [x, w, b]

    return setup


def linear(rows: int, inputs: int, outputs: int) -> Setup:
    """With a bias."""

    def setup(lib: ModuleType) -> tuple[Call, list[Any]]:
        x, w, b = real(lib, rows, inputs), real(lib, outputs, inputs, seed=1), real(lib, outputs, seed=2)
        return lambda: lib.nn.functional.linear(x, w, b), [x, w, b]

    return setup


def attention(causal: bool, *shape: int) -> Setup:
    """(batch, heads, sequence, width)."""

    def setup(lib: ModuleType) -> tuple[Call, list[Any]]:
        q, k, v = (real(lib, *shape, seed=seed) for seed in range(3))
        return lambda: lib.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal), [q, k, v]

    return setup


def adam_step(lib: ModuleType) -> Call:
    """A step of Adam on 4M numbers in 8 tensors."""
    leaves = [real(lib, 1024, 512, seed=seed) for seed in range(8)]
    for leaf in leaves:
        leaf.grad = lib.ones_like(leaf) * 0.01
    optimizer = lib.optim.Adam(leaves, lr=1e-3)
    return optimizer.step


def propagation(nodes: int, edges: int, width: int) -> Setup:
    """A graph network's: the features of each node's neighbours, added up."""

    def setup(lib: ModuleType) -> tuple[Call, list[Any]]:
        ends, features = places(lib, nodes, 2, edges), real(lib, nodes, width)
        adjacency = lib.sparse_coo_tensor(ends, lib.ones(edges), (nodes, nodes), check_invariants=True).coalesce()
        return lambda: lib.sparse.mm(adjacency, features), [features]

    return setup


def sparse_embedding_step(optimizer: str, rows: int, width: int, batch: int) -> Callable[[ModuleType], Call]:
    """A training step of a table whose gradient is sparse."""

    def setup(lib: ModuleType) -> Call:
        table = lib.nn.Embedding(rows, width, sparse=True)
        at, optim = places(lib, rows, batch), getattr(lib.optim, optimizer)(table.parameters(), lr=0.01)

        def step() -> None:
            optim.zero_grad()
            table(at).pow(2).sum().backward()
            optim.step()

        return step

    return setup


SIZES = {"1M": (1024, 1024), "4M": (2048, 2048), "16M": (4096, 4096)}

CASES: list[Case] = []
for label in ("1M", "16M"):
    size = SIZES[label]
    CASES += [
        *operator(f"sigmoid {label}", NAMED, unary(lambda lib, x: lib.sigmoid(x), *size)),
        *operator(f"gelu {label}", NAMED, unary(lambda lib, x: lib.nn.functional.gelu(x), *size)),
        *operator(f"silu {label}", NAMED, unary(lambda lib, x: lib.nn.functional.silu(x), *size)),
        *operator(f"softmax {label}", NAMED, unary(lambda lib, x: lib.softmax(x, -1), *size)),
        *operator(f"log_softmax {label}", NAMED, unary(lambda lib, x: lib.log_softmax(x, -1), *size)),
        *operator(f"cross_entropy {label}", NAMED, cross_entropy(*size)),
        *operator(f"layer_norm {label}", NAMED, layer_norm(*size)),
    ]
CASES += [
    *operator("layer_norm 8×128×256", NAMED, layer_norm(8, 128, 256)),
    *operator("batch_norm, 64×64×28×28", NAMED, batch_norm(True, 64, 64, 28, 28)),
    *operator("batch_norm in eval, 64×64×28×28", NAMED, batch_norm(False, 64, 64, 28, 28)),
    *operator("embedding, 32768 of 10000×256", NAMED, indexed(
        lambda lib, x, at: lib.nn.functional.embedding(at, x), (10000, 256), 10000, (64, 512))),
    *operator("embedding, 1024 of 1000×256", NAMED, indexed(
        lambda lib, x, at: lib.nn.functional.embedding(at, x), (1000, 256), 1000, (8, 128))),
    *operator("max_pool2d 2, 64×64×28×28", NAMED, unary(
        lambda lib, x: lib.nn.functional.max_pool2d(x, 2), 64, 64, 28, 28)),
    *operator("max_pool2d 3/2, 64×64×28×28", NAMED, unary(
        lambda lib, x: lib.nn.functional.max_pool2d(x, 3, 2, 1), 64, 64, 28, 28)),
    *operator("conv2d 64×1×28×28, 32 of 3×3", NAMED, conv2d(64, 1, 32, 28, 3, padding=1)),
    *operator("conv2d 64×32×14×14, 64 of 3×3", NAMED, conv2d(64, 32, 64, 14, 3, padding=1)),
    *operator("conv2d 32×64×28×28, 64 of 3×3", NAMED, conv2d(32, 64, 64, 28, 3, padding=1)),
    *operator("attention 8×4×128×64", NAMED, attention(False, 8, 4, 128, 64)),
    *operator("attention, causal, 8×4×128×64", NAMED, attention(True, 8, 4, 128, 64)),
    *operator("relu 4M", OTHER, unary(lambda lib, x: lib.relu(x), 2048, 2048)),
    *operator("exp 4M", OTHER, unary(lambda lib, x: lib.exp(x), 2048, 2048)),
    *operator("tanh 4M", OTHER, unary(lambda lib, x: lib.tanh(x), 2048, 2048)),
    *operator("sum 4M", OTHER, unary(lambda lib, x: x.sum(), 2048, 2048)),
    *operator("sum of rows 4M", OTHER, unary(lambda lib, x: x.sum(1), 2048, 2048)),
    *operator("sum of columns 4M", OTHER, unary(lambda lib, x: x.sum(0), 2048, 2048)),
    *operator("mean 4M", OTHER, unary(lambda lib, x: x.mean(), 2048, 2048)),
    *operator("add 4M", OTHER, binary(lambda lib, x, y: x + y, (2048, 2048), (2048, 2048))),
    *operator("dropout 4M", OTHER, unary(lambda lib, x: lib.nn.functional.dropout(x, 0.1), 2048, 2048)),
    *operator("group_norm 8 of 64×64×28×28", OTHER, group_norm(8, 64, 64, 28, 28)),
    *operator("avg_pool2d 2, 64×64×28×28", OTHER, unary(
        lambda lib, x: lib.nn.functional.avg_pool2d(x, 2), 64, 64, 28, 28)),
    *operator("conv2d of stride 2", OTHER, conv2d(32, 64, 64, 28, 3, padding=1, stride=2)),
    *operator("conv2d, depthwise", OTHER, conv2d(32, 64, 64, 28, 3, padding=1, groups=64)),
    *operator("index_select of rows", OTHER, indexed(
        lambda lib, x, at: x.index_select(0, at), (2048, 2048), 2048, (2048,))),
    *operator("index_select of columns", OTHER, indexed(
        lambda lib, x, at: x.index_select(1, at), (2048, 2048), 2048, (2048,))),
    *operator("gather", OTHER, indexed(lambda lib, x, at: x.gather(1, at), (2048, 2048), 2048, (2048, 2048))),
    *operator("scatter", OTHER, indexed_write(
        lambda x, at, source: x.scatter(1, at, source), (2048, 2048), 2048, (2048, 2048))),
    *operator("scatter_add", OTHER, indexed_write(
        lambda x, at, source: x.scatter_add(1, at, source), (2048, 2048), 2048, (2048, 2048))),
    *operator("index_add of rows", OTHER, indexed_write(
        lambda x, at, source: x.index_add(0, at, source), (2048, 2048), 2048, (2048,))),
    *operator("index_add of columns", OTHER, indexed_write(
        lambda x, at, source: x.index_add(1, at, source), (2048, 2048), 2048, (2048,))),
    *operator("matmul 1024", OTHER, binary(lambda lib, x, y: x @ y, (1024, 1024), (1024, 1024))),
    *operator("matmul 256", OTHER, binary(lambda lib, x, y: x @ y, (256, 256), (256, 256))),
    *operator("linear 1024×256×1024", OTHER, linear(1024, 256, 1024)),
    timed("Adam, 4M numbers in 8 tensors: step", OTHER, adam_step),
    *operator("sparse.mm, 2708 nodes, 10556 edges × 16", SPARSE, propagation(2708, 10556, 16)),
    *operator("sparse.mm, 20000 nodes, 200000 edges × 64", SPARSE, propagation(20000, 200000, 64)),
    timed("sparse embedding, 1024 of 100000×64: step with SGD", SPARSE, sparse_embedding_step("SGD", 100000, 64, 1024)),
    timed("sparse embedding, 1024 of 100000×64: step with SparseAdam", SPARSE,
          sparse_embedding_step("SparseAdam", 100000, 64, 1024)),
    *[timed(f"{name}: training step", bars[not FAST], step) for name, bars, step in STEPS],
]  # fmt: skip


if __name__ == "__main__":
    found = harness.versions("numpy", "torch", "retrograd")
    found["retrograd[fast]"] = "used" if FAST else "not used"
    sys.exit(harness.command_line((__doc__ or "").splitlines()[0], CASES, found))
