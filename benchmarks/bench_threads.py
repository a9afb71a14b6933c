"""What a second thread is worth: retrograd on two threads beside retrograd on one, on tensors of a million elements.

    python benchmarks/bench_threads.py [--quick] [--only TEXT] [--json FILE] [--markdown FILE] [--strict]

The bar is a ratio of 0.59: 1.7 times the speed. It wants two processors that nobody else uses, and `retrograd[fast]`,
without which nothing but BLAS is shared. BENCH_THREADS=16 compares sixteen threads with one; the bar is of two.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

# isort: off
os.environ.setdefault("BENCH_THREADS", "2")
import harness  # before NumPy, whose thread counts it sets
from harness import THREADS, Case, both

from bench_kernels import Call, Setup, attention, batch_norm, binary, conv2d, cross_entropy, group_norm, indexed
from bench_kernels import layer_norm, linear, real, unary
# isort: on

BAR = 1 / 1.7
SIZE = (1024, 1024)


def scaled(name: str, setup: Callable[[ModuleType], Call], same: bool = True) -> Case:
    """On all threads, and on one."""
    sides = f"retrograd:{THREADS}", "retrograd:1"
    labels = f"{THREADS} threads", "one thread"
    return both(
        name, setup, sides=sides, labels=labels, bar=BAR, sample_s=0.03, repeats=21, quick_repeats=9, same=same
    )


def passes(name: str, setup: Setup, same: bool = True) -> list[Case]:
    """Forward without a graph, and backward."""

    def forward(lib: ModuleType) -> Call:
        call, _ = setup(lib)

        def run() -> Any:
            with lib.no_grad():
                return call()

        return run

    def backward(lib: ModuleType) -> Call:
        call, leaves = setup(lib)
        result = call()
        gradient = lib.ones_like(result).contiguous()
        return lambda: lib.autograd.grad(result, leaves, gradient, retain_graph=True)

    return [scaled(f"{name}: forward", forward, same), scaled(f"{name}: backward", backward, same)]


def forward(name: str, function: Callable[[ModuleType, Any], Any], *shape: int) -> Case:
    """An operator of one tensor, without a graph."""
    return passes(name, unary(function, *(shape or SIZE)))[0]


def only_forward(name: str, setup: Setup) -> Case:
    """What has nothing to compute for its gradient: views, or the gradient as it is."""
    return passes(name, setup)[0]


def step(optimizer: str, **options: Any) -> Callable[[ModuleType], Call]:
    """A step on a million numbers in four tensors."""

    def setup(lib: ModuleType) -> Call:
        leaves = [real(lib, 512, 512, seed=seed) for seed in range(4)]
        for leaf in leaves:
            leaf.grad = lib.ones_like(leaf) * 0.01
        return getattr(lib.optim, optimizer)(leaves, **options).step

    return setup


def lbfgs(lib: ModuleType) -> Call:
    """One iteration of LBFGS with ten steps before it, on a million numbers; the function costs next to nothing."""
    x = real(lib, 1024, 1024)
    x.grad = lib.ones_like(x)
    loss = lib.zeros(())
    optimizer = lib.optim.LBFGS([x], lr=1e-4, max_iter=1, history_size=10, tolerance_grad=0.0, tolerance_change=0.0)

    def closure() -> Any:
        x.grad.mul_(0.9999)  # as if the step had been of some use: else it would not be remembered
        return loss

    def run() -> Any:
        optimizer.step(closure)

    for _ in range(12):
        run()
    return run


def foreach(name: str, *numbers: float) -> Callable[[ModuleType], Call]:
    """One operator on a list of tensors."""

    def setup(lib: ModuleType) -> Call:
        tensors = [real(lib, *SIZE, seed=seed, requires_grad=False) for seed in range(4)]
        return lambda: getattr(lib, name)(tensors, *numbers)

    return setup


CASES: list[Case] = [
    only_forward("add", binary(lambda lib, x, y: x + y, SIZE, SIZE)),
    *passes("add a row", binary(lambda lib, x, y: x + y, SIZE, (1024,))),
    *passes("add a column", binary(lambda lib, x, y: x + y, SIZE, (1024, 1))),
    *passes("mul", binary(lambda lib, x, y: x * y, SIZE, SIZE)),
    *passes("mul by a row", binary(lambda lib, x, y: x * y, SIZE, (1024,))),
    *passes("mul by a column", binary(lambda lib, x, y: x * y, SIZE, (1024, 1))),
    *passes("mul of images by channels", binary(lambda lib, x, y: x * y, (32, 64, 24, 24), (64, 1, 1))),
    *passes("div by a column", binary(lambda lib, x, y: x / y, SIZE, (1024, 1))),
    *passes("div", binary(lambda lib, x, y: x / y, SIZE, SIZE)),
    *passes("exp", unary(lambda lib, x: x.exp(), *SIZE)),
    *passes("tanh", unary(lambda lib, x: x.tanh(), *SIZE)),
    *passes("sigmoid", unary(lambda lib, x: x.sigmoid(), *SIZE)),
    *passes("relu", unary(lambda lib, x: x.relu(), *SIZE)),
    *passes("gelu", unary(lambda lib, x: lib.nn.functional.gelu(x), *SIZE)),
    *passes("pow 2", unary(lambda lib, x: x**2, *SIZE)),
    *passes("abs", unary(lambda lib, x: x.abs(), *SIZE)),
    *passes("clamp", unary(lambda lib, x: x.clamp(-1, 1), *SIZE)),
    *passes("where", binary(lambda lib, x, y: lib.where(x > 0, x, y), SIZE, SIZE)),
    forward("compare", lambda lib, x: x > 0),
    forward("sum", lambda lib, x: x.sum()),
    forward("sum of rows", lambda lib, x: x.sum(1)),
    forward("sum of columns", lambda lib, x: x.sum(0)),
    forward("mean of rows", lambda lib, x: x.mean(1)),
    forward("mean of columns", lambda lib, x: x.mean(0)),
    *passes("var", unary(lambda lib, x: x.var(), *SIZE)),
    *passes("var of rows", unary(lambda lib, x: x.var(1), *SIZE)),
    *passes("std of columns", unary(lambda lib, x: x.std(0), *SIZE)),
    *passes("norm", unary(lambda lib, x: x.norm(), *SIZE)),
    *passes("norm of rows", unary(lambda lib, x: x.norm(dim=1), *SIZE)),
    *passes("1-norm", unary(lambda lib, x: x.norm(1), *SIZE)),
    *passes("amax of rows", unary(lambda lib, x: x.amax(1), *SIZE)),
    *passes("amin of columns", unary(lambda lib, x: x.amin(0), *SIZE)),
    *passes("max", unary(lambda lib, x: x.max(), *SIZE)),
    forward("argmax of rows", lambda lib, x: x.argmax(1)),
    *passes("cumsum of rows", unary(lambda lib, x: x.cumsum(1), *SIZE)),
    *passes("logsumexp of rows", unary(lambda lib, x: x.logsumexp(1), *SIZE)),
    forward("copy of a transposed matrix", lambda lib, x: x.t().contiguous()),
    forward("copy of heads", lambda lib, x: x.permute(0, 2, 1, 3).contiguous(), 8, 128, 16, 64),
    forward("clone", lambda lib, x: x.clone()),
    only_forward("cat", binary(lambda lib, x, y: lib.cat([x, y], 1), (1024, 512), (1024, 512))),
    only_forward("cat of rows", binary(lambda lib, x, y: lib.cat([x, y]), (512, 1024), (512, 1024))),
    *passes("index_select of rows", indexed(lambda lib, x, at: x.index_select(0, at), SIZE, 1024, (1024,))),
    *passes("gather", indexed(lambda lib, x, at: x.gather(1, at), SIZE, 1024, SIZE)),
    *passes("embedding", indexed(
        lambda lib, x, at: lib.nn.functional.embedding(at, x), (10000, 256), 10000, (4096,))),
    *passes("softmax", unary(lambda lib, x: x.softmax(1), *SIZE)),
    *passes("log_softmax", unary(lambda lib, x: x.log_softmax(1), *SIZE)),
    *passes("cross_entropy", cross_entropy(*SIZE)),
    *passes("layer_norm", layer_norm(*SIZE)),
    *passes("batch_norm", batch_norm(True, 32, 64, 24, 24)),
    *passes("group_norm", group_norm(8, 32, 64, 24, 24)),
    *passes("instance_norm", unary(lambda lib, x: lib.nn.functional.instance_norm(x), 32, 64, 24, 24)),
    *passes("rms_norm", unary(lambda lib, x: lib.nn.functional.rms_norm(x, (1024,)), *SIZE)),
    *passes("max_pool2d of 3 by 2", unary(lambda lib, x: lib.nn.functional.max_pool2d(x, 3, 2, 1), 32, 32, 32, 32)),
    *passes("avg_pool2d of 3 by 2", unary(lambda lib, x: lib.nn.functional.avg_pool2d(x, 3, 2, 1), 32, 32, 32, 32)),
    *passes("adaptive_avg_pool2d", unary(lambda lib, x: lib.nn.functional.adaptive_avg_pool2d(x, 8), 32, 32, 32, 32)),
    *passes("max_pool2d", unary(lambda lib, x: lib.nn.functional.max_pool2d(x, 2), 32, 32, 32, 32)),
    *passes("avg_pool2d", unary(lambda lib, x: lib.nn.functional.avg_pool2d(x, 2), 32, 32, 32, 32)),
    *passes("dropout", unary(lambda lib, x: lib.nn.functional.dropout(x, 0.1), *SIZE), same=False),
    *passes("products of batches", binary(lambda lib, x, y: x @ y, (64, 128, 128), (64, 128, 128))),
    *passes("linear", linear(1024, 256, 1024)),
    *passes("attention", attention(False, 8, 8, 128, 64)),
    *passes("conv2d", conv2d(16, 32, 32, 32, 3, padding=1)),
    *passes("conv2d, depthwise", conv2d(16, 64, 64, 32, 3, padding=1, groups=64)),
    scaled("SGD", step("SGD", lr=1e-3)),
    scaled("SGD with momentum", step("SGD", lr=1e-3, momentum=0.9)),
    scaled("Adam", step("Adam", lr=1e-3)),
    scaled("AdamW, foreach", step("AdamW", lr=1e-3, foreach=True)),
    *[scaled(name, step(name, lr=1e-3)) for name in (
        "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "Rprop", "ASGD", "Adafactor", "Muon")],
    scaled("LBFGS", lbfgs, same=False),
    scaled("foreach add", foreach("_foreach_add", 1.0)),
    scaled("foreach mul in place", foreach("_foreach_mul_", 1.0)),
]  # fmt: skip


if __name__ == "__main__":
    sys.exit(harness.command_line((__doc__ or "").splitlines()[0], CASES, harness.versions("numpy", "retrograd")))
