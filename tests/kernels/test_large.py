"""Large arrays: the NumPy kernels by blocks, and the compiled kernels beside them.

Every case is a call and the same computed plainly in float64.  The NumPy kernels are compared with the latter; the
compiled ones (skipped where `retrograd[fast]` is not installed) with the NumPy kernels.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from retrograd import backends, derivatives, kernels
from retrograd.core import threads
from retrograd.derivatives.formulas.comparison import clamp_backward
from retrograd.kernels import blocks, compiled, compiled_products

needs_library = pytest.mark.skipif(
    not backends.fast.is_available(), reason="retrograd[fast] is not installed (make fast)"
)
ROWS, WIDTH = 33, 1031  # odd, and more than kernels take for large
assert ROWS * WIDTH > compiled.LARGE

TOLERANCE = {np.float32: {"rtol": 2e-5, "atol": 2e-5}, np.float64: {"rtol": 1e-11, "atol": 1e-11}}


class Case:
    """`call(*arrays)` runs the kernel, `plain(*arrays)` computes the same step by step.

    `function` is the compiled one, if its name is another; None where there is none.
    """

    def __init__(
        self, name: str, shapes: list[tuple[int, ...]], call: Callable, plain: Callable, function: str | None = ""
    ) -> None:
        self.name, self.shapes, self.call, self.plain = name, shapes, call, plain
        self.function = name if function == "" else function

    def arrays(self, dtype: type) -> list[np.ndarray]:
        rng = np.random.default_rng(len(self.name))
        return [rng.standard_normal(shape).astype(dtype) for shape in self.shapes]


def outputs(result: Any) -> list[np.ndarray]:
    return [r for r in result if r is not None] if isinstance(result, (tuple, list)) else [result]


# --------------------------------------------------------------------------------------------------- plain formulas


def logistic(x):
    return 1 / (1 + np.exp(-x))


def erf(x):
    from scipy.special import erf

    return erf(x)


def gelu_slope(x):
    return 0.5 * (1 + erf(x / np.sqrt(2))) + x * np.exp(-x * x / 2) / np.sqrt(2 * np.pi)


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def gelu_tanh_slope(x):
    step = 1e-6
    return (gelu_tanh(x + step) - gelu_tanh(x - step)) / (2 * step)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def layer_norm(x, w, b):
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    rstd = 1 / np.sqrt(var + 1e-5)
    return (x - mean) * rstd * w + b, mean, rstd


def layer_norm_backward(g, x, w):
    """By the chain rule through mean and variance, one after the other."""
    n = x.shape[-1]
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True) + 1e-5
    d = g * w
    d_var = (d * (x - mean)).sum(-1, keepdims=True) * -0.5 * var**-1.5
    d_mean = -(d / np.sqrt(var)).sum(-1, keepdims=True) - 2 * d_var * (x - mean).mean(-1, keepdims=True)
    return d / np.sqrt(var) + d_var * 2 * (x - mean) / n + d_mean / n, (g * (x - mean) / np.sqrt(var)).sum(0), g.sum(0)


def run_layer_norm_backward(g, x, w):
    _, mean, rstd = kernels.layer_norm(x, (x.shape[-1],), w, None, 1e-5)
    return kernels.layer_norm_backward(g, x, (x.shape[-1],), mean, rstd, w, None, (True, True, True))


def batch_norm(x, w, b):
    mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3))
    column = lambda v: v[None, :, None, None]
    return column(w / np.sqrt(var + 1e-5)) * (x - column(mean)) + column(b), mean, 1 / np.sqrt(var + 1e-5)


def run_batch_norm_backward(training):
    def call(g, x, w):
        mean = np.zeros(x.shape[1], x.dtype)
        var = np.ones(x.shape[1], x.dtype)
        _, mean, rstd = kernels.native_batch_norm(x, w, None, mean, var, training, 0.1, 1e-5)
        return kernels.native_batch_norm_backward(g, x, w, mean, rstd, training, 1e-5, (1, 1, 1))

    return call


def batch_norm_backward(training):
    def plain(g, x, w):
        column = lambda v: v[None, :, None, None]
        axes = (0, 2, 3)
        mean = x.mean(axes) if training else np.zeros(x.shape[1])
        rstd = 1 / np.sqrt((x.var(axes) if training else np.ones(x.shape[1])) + 1e-5)
        normal = (x - column(mean)) * column(rstd)
        total, along = g.sum(axes), (g * normal).sum(axes)
        n = x.size // x.shape[1] if training else np.inf
        return column(w * rstd) * (g - column(total) / n - normal * column(along) / n), along, total

    return plain


def group_norm(x, w, b):
    parts = x.reshape(x.shape[0], 4, -1)
    mean, rstd = parts.mean(-1, keepdims=True), 1 / np.sqrt(parts.var(-1, keepdims=True) + 1e-5)
    column = lambda v: v[None, :, None, None]
    return ((parts - mean) * rstd).reshape(x.shape) * column(w) + column(b), mean[..., 0], rstd[..., 0]


def run_group_norm(x, w, b):
    return kernels.native_group_norm(x, w, b, *x.shape[:2], x[0, 0].size, 4, 1e-5)


def run_group_norm_backward(g, x, w):
    images = (*x.shape[:2], x[0, 0].size)
    _, mean, rstd = kernels.native_group_norm(x, w, None, *images, 4, 1e-5)
    return kernels.native_group_norm_backward((g, None, None), x, w, mean, rstd, *images, 4, 1e-5, (1, 1, 1))


def group_norm_backward(g, x, w):
    shape = x.shape[0], 4, -1
    column = lambda v: v[None, :, None, None]
    parts, d = x.reshape(shape), (g * column(w)).reshape(shape)
    rstd = 1 / np.sqrt(parts.var(-1, keepdims=True) + 1e-5)
    normal = (parts - parts.mean(-1, keepdims=True)) * rstd
    grad = rstd * (d - d.mean(-1, keepdims=True) - normal * (d * normal).mean(-1, keepdims=True))
    return grad.reshape(x.shape), (g * normal.reshape(x.shape)).sum((0, 2, 3)), g.sum((0, 2, 3))


def windows(x, kernel, stride, padding):
    """(planes, rows, columns, taps) of an array that is padded with -inf, and the cell of each tap (-1: padding)."""
    planes = x.reshape(-1, *x.shape[-2:])
    height, width = planes.shape[1:]
    cells = np.pad(np.arange(height * width).reshape(height, width), padding, constant_values=-1)
    padded = np.pad(planes, ((0, 0), (padding, padding), (padding, padding)), constant_values=-np.inf)
    view = np.lib.stride_tricks.sliding_window_view
    taken = view(padded, (kernel, kernel), (1, 2))[:, ::stride, ::stride]
    return taken.reshape(*taken.shape[:3], -1), view(cells, (kernel, kernel))[::stride, ::stride].reshape(
        *taken.shape[1:3], -1
    )


def max_pool(kernel, stride, padding):
    def call(x):
        return kernels.max_pool(x, [kernel] * 2, [stride] * 2, [padding] * 2, [1, 1], False)

    def plain(x):
        taken, _ = windows(x, kernel, stride, padding)
        shape = *x.shape[:2], *taken.shape[1:3]
        return taken.max(-1).reshape(shape), taken.argmax(-1).reshape(shape)

    return call, plain


def max_pool_backward(kernel, stride, padding):
    def call(x):
        values, taps = max_pool(kernel, stride, padding)[0](x)
        shape = [kernel] * 2, [stride] * 2, [padding] * 2, [1, 1]
        return kernels.max_pool_backward(values, taps, x.shape, *shape)

    def plain(x):
        taken, cells = windows(x, kernel, stride, padding)
        result = np.zeros((x.shape[0] * x.shape[1], x.shape[2] * x.shape[3]))
        where = np.broadcast_to(cells, taken.shape)
        at = np.take_along_axis(where, taken.argmax(-1)[..., None], -1)[..., 0]
        for plane in range(len(result)):
            np.add.at(result[plane], at[plane].reshape(-1), taken.max(-1)[plane].reshape(-1))
        return result.reshape(x.shape)

    return call, plain


def averaged(shape, kernel, stride, padding, include):
    """For each window, the cells of it that are in the plane, and what their sum is divided by."""
    for r, c in np.ndindex(*[(n + 2 * padding - kernel) // stride + 1 for n in shape[2:]]):
        first = r * stride - padding, c * stride - padding
        cells = tuple(slice(max(at, 0), min(at + kernel, n)) for at, n in zip(first, shape[2:]))
        yield r, c, (..., *cells), kernel**2 if include else np.prod([part.stop - part.start for part in cells])


def avg_pool(kernel, stride, padding, include):
    def call(x):
        return kernels.avg_pool(x, [kernel] * 2, [stride] * 2, [padding] * 2, False, include, None)

    def plain(x):
        result = np.zeros((*x.shape[:2], *[(n + 2 * padding - kernel) // stride + 1 for n in x.shape[2:]]))
        for r, c, cells, divisor in averaged(x.shape, kernel, stride, padding, include):
            result[..., r, c] = x[cells].sum((-2, -1)) / divisor
        return result

    return call, plain


def avg_pool_backward(kernel, stride, padding, include):
    def call(x):
        g = avg_pool(kernel, stride, padding, include)[0](x)
        return kernels.avg_pool_backward(g, x.shape, [kernel] * 2, [stride] * 2, [padding] * 2, include, None)

    def plain(x):
        g, result = avg_pool(kernel, stride, padding, include)[1](x), np.zeros(x.shape)
        for r, c, cells, divisor in averaged(x.shape, kernel, stride, padding, include):
            result[cells] += g[..., r, c, None, None] / divisor
        return result

    return call, plain


def logsumexp(x):
    largest = x.max(-1)
    return largest + np.log(np.exp(x - largest[..., None]).sum(-1))


def run_logsumexp_backward(g, x):
    return derivatives.formulas.logsumexp_backward(kernels, g, x, kernels.logsumexp(x, 1), 1, False)


def attention(causal):
    def call(q, k, v):
        return kernels.attention(q, k, v, 0.0, causal)

    def plain(q, k, v):
        scores = q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1])
        if causal:
            scores[..., np.arange(k.shape[-2]) > np.arange(q.shape[-2])[:, None]] = -np.inf
        weights = softmax(scores)
        return weights @ v, weights

    return call, plain


def convolution(groups):
    def call(x, w, b):
        return kernels.convolution(x, w, b, [1, 1], [1, 1], [1, 1], False, [0, 0], groups)

    def plain(x, w, b):
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        result = np.zeros((x.shape[0], len(w), *x.shape[2:]))
        each = x.shape[1] // groups
        for o in range(len(w)):
            first = o // (len(w) // groups) * each
            for c in range(each):
                for i in range(3):
                    for j in range(3):
                        part = padded[:, first + c, i : i + x.shape[2], j : j + x.shape[3]]
                        result[:, o] += w[o, c, i, j] * part
            result[:, o] += b[o]
        return result

    return call, plain


INDEX = np.random.default_rng(7).integers(0, WIDTH, (ROWS, WIDTH))
INNER = INDEX.reshape(WIDTH, ROWS) % WIDTH
COLUMNS = np.random.default_rng(8).integers(0, WIDTH, WIDTH)
MATRIX = (ROWS, WIDTH)


def scattered(add):
    def plain(x, source):
        result = x.copy()
        for i in range(ROWS):
            for j in range(WIDTH):
                result[i, INDEX[i, j]] = source[i, j] + (result[i, INDEX[i, j]] if add else 0)
        return result

    return plain


def index_added(dim):
    def plain(x, source):
        result = np.moveaxis(x.copy(), dim, 0)
        for place, part in zip(COLUMNS % x.shape[dim], np.moveaxis(source, dim, 0)):
            result[place] += part
        return np.moveaxis(result, 0, dim)

    return plain


IMAGES = (6, 8, 31, 33)
CASES = [
    Case("sigmoid", [MATRIX], kernels.sigmoid, logistic),
    Case("relu", [MATRIX], kernels.relu, lambda x: x * (x > 0)),
    Case("silu", [MATRIX], kernels.silu, lambda x: x * logistic(x)),
    Case("gelu", [MATRIX], kernels.gelu, lambda x: 0.5 * x * (1 + erf(x / np.sqrt(2)))),
    Case("gelu, tanh", [MATRIX], lambda x: kernels.gelu(x, "tanh"), gelu_tanh, "gelu_tanh"),
    Case("sigmoid_backward", [MATRIX] * 2, kernels.sigmoid_backward, lambda g, y: g * y * (1 - y)),
    Case("tanh_backward", [MATRIX] * 2, kernels.tanh_backward, lambda g, y: g * (1 - y * y)),
    Case("silu_backward", [MATRIX] * 2, kernels.silu_backward,
         lambda g, x: g * logistic(x) * (1 + x * (1 - logistic(x)))),
    Case("gelu_backward", [MATRIX] * 2, kernels.gelu_backward, lambda g, x: g * gelu_slope(x)),
    Case("gelu_backward, tanh", [MATRIX] * 2, lambda g, x: kernels.gelu_backward(g, x, "tanh"),
         lambda g, x: g * gelu_tanh_slope(x), "gelu_tanh_backward"),
    Case("threshold_backward", [MATRIX] * 2, lambda g, x: kernels.threshold_backward(g, x, 0.5),
         lambda g, x: g * (x > 0.5)),
    Case("where", [MATRIX] * 2, lambda x, y: kernels.where(x > 0.3, x, y), lambda x, y: np.where(x > 0.3, x, y)),
    Case("where, else a number", [MATRIX], lambda x: kernels.where(x > 0.3, x, -1.5),
         lambda x: np.where(x > 0.3, x, -1.5), "where"),
    Case("where a number, else", [MATRIX], lambda x: kernels.where(x > 0.3, np.asarray(x[0, 0]), x),
         lambda x: np.where(x > 0.3, x[0, 0], x), "where"),
    Case("where, of numbers", [MATRIX], lambda x: kernels.where(x > 0.3, np.asarray(x[0, 0]), np.asarray(x[0, 1])),
         lambda x: np.where(x > 0.3, x[0, 0], x[0, 1]), "where"),
    Case("masked_fill", [MATRIX], lambda x: kernels.masked_fill(x, x < 0, 2.0),
         lambda x: np.where(x < 0, 2.0, x), "where"),
    Case("clamp", [MATRIX], lambda x: kernels.clamp(x, -0.5, 1), lambda x: np.clip(x, -0.5, 1)),
    Case("clamp from below", [MATRIX], lambda x: kernels.clamp(x, -0.5), lambda x: np.maximum(x, -0.5), "clamp"),
    Case("clamp_backward", [MATRIX] * 2, lambda g, x: clamp_backward(kernels, g, x, -0.5, 1),
         lambda g, x: g * ((x >= -0.5) & (x <= 1))),
    Case("clamp_backward from above", [MATRIX] * 2, lambda g, x: clamp_backward(kernels, g, x, None, 1),
         lambda g, x: g * (x <= 1), "clamp_backward"),
    Case("hardtanh", [MATRIX], kernels.hardtanh, lambda x: np.clip(x, -1, 1), None),
    Case("leaky_relu", [MATRIX], kernels.leaky_relu, lambda x: np.where(x > 0, x, 0.01 * x), "where"),
    Case("elu", [MATRIX], kernels.elu, lambda x: np.where(x > 0, x, np.expm1(x)), "where"),
    Case("softplus", [MATRIX], lambda x: kernels.softplus(x, 2, 1),
         lambda x: np.where(2 * x > 1, x, np.log1p(np.exp(2 * x)) / 2), "where"),
    Case("softmax", [MATRIX], lambda x: kernels.softmax(x, -1), softmax),
    Case("softmax of three dimensions", [(3, 50, 701)], lambda x: kernels.softmax(x, 2), softmax, "softmax"),
    Case("log_softmax", [MATRIX], lambda x: kernels.log_softmax(x, 1), lambda x: np.log(softmax(x))),
    Case("softmax_backward", [MATRIX] * 2, lambda g, y: kernels.softmax_backward(g, y, -1),
         lambda g, y: y * (g - (g * y).sum(-1, keepdims=True))),
    Case("log_softmax_backward", [MATRIX] * 2, lambda g, y: kernels.log_softmax_backward(g, y, 1),
         lambda g, y: g - np.exp(y) * g.sum(-1, keepdims=True)),
    Case("layer_norm", [MATRIX, (WIDTH,), (WIDTH,)],
         lambda x, w, b: kernels.layer_norm(x, (WIDTH,), w, b, 1e-5), layer_norm),
    Case("layer_norm_backward", [MATRIX, MATRIX, (WIDTH,)], run_layer_norm_backward, layer_norm_backward),
    Case("batch_norm", [IMAGES, (8,), (8,)],
         lambda x, w, b: kernels.native_batch_norm(x, w, b, None, None, True, 0.1, 1e-5), batch_norm,
         "channel_moments"),
    Case("batch_norm_backward", [IMAGES, IMAGES, (8,)], run_batch_norm_backward(True), batch_norm_backward(True),
         "channel_combine"),
    Case("batch_norm_backward in eval", [IMAGES, IMAGES, (8,)], run_batch_norm_backward(False),
         batch_norm_backward(False), "channel_sums"),
    Case("group_norm", [IMAGES, (8,), (8,)], run_group_norm, group_norm),
    Case("group_norm_backward", [IMAGES, IMAGES, (8,)], run_group_norm_backward, group_norm_backward),
    Case("max_pool of 2", [(6, 8, 30, 34)], *max_pool(2, 2, 0), "max_pool2d_by_two"),
    Case("max_pool of 2, odd", [(6, 8, 31, 35)], *max_pool(2, 2, 0), "max_pool2d_by_two"),
    Case("max_pool of 3 by 2", [IMAGES], *max_pool(3, 2, 1), "max_pool2d"),
    Case("max_pool_backward of 2", [(12, 13, 31, 35)], *max_pool_backward(2, 2, 0), "max_pool2d_by_two_backward"),
    Case("max_pool_backward of 3 by 2", [(12, 13, 31, 35)], *max_pool_backward(3, 2, 1), "max_pool2d_backward"),
    Case("avg_pool of 2", [(6, 8, 30, 34)], *avg_pool(2, 2, 0, True), "avg_pool2d"),
    Case("avg_pool of 3 by 2", [IMAGES], *avg_pool(3, 2, 1, False), "avg_pool2d"),
    Case("avg_pool of 4 by 3", [IMAGES], *avg_pool(4, 3, 2, True), "avg_pool2d"),
    Case("avg_pool_backward of 2", [(12, 13, 31, 35)], *avg_pool_backward(2, 2, 0, True), "avg_pool2d_backward"),
    Case("avg_pool_backward of 3 by 1", [IMAGES], *avg_pool_backward(3, 1, 1, False), "avg_pool2d_backward"),
    Case("avg_pool_backward of 4 by 3", [(12, 13, 31, 35)], *avg_pool_backward(4, 3, 2, True), "avg_pool2d_backward"),
    Case("logsumexp", [MATRIX], lambda x: kernels.logsumexp(x, 1), logsumexp),
    Case("logsumexp, kept", [(3, 40, 1100)], lambda x: kernels.logsumexp(x, (-1,), True),
         lambda x: logsumexp(x)[..., None], "logsumexp"),
    Case("logsumexp_backward", [(ROWS,), MATRIX], run_logsumexp_backward, lambda g, x: g[:, None] * softmax(x)),
    Case("attention", [(2, 3, 40, 8), (2, 3, 70, 8), (2, 3, 70, 8)], *attention(False), "attention_weights"),
    Case("attention to what was", [(2, 3, 70, 8), (2, 3, 50, 8), (2, 3, 50, 8)], *attention(True), "attention_weights"),
    Case("cumsum", [MATRIX], lambda x: kernels.cumsum(x, 1), lambda x: x.cumsum(1), "scan"),
    Case("cumsum of columns", [MATRIX], lambda x: kernels.cumsum(x, 0), lambda x: x.cumsum(0), "scan"),
    Case("cumsum in the middle", [(3, 101, 57)], lambda x: kernels.cumsum(x, 1), lambda x: x.cumsum(1), "scan"),
    Case("cumsum from the end", [(WIDTH, ROWS)], lambda x: kernels.cumsum_from_end(x, 1),
         lambda x: x[:, ::-1].cumsum(1)[:, ::-1], "scan"),
    Case("cumsum of columns from the end", [MATRIX], lambda x: kernels.cumsum_from_end(x, -2),
         lambda x: x[::-1].cumsum(0)[::-1], "scan"),
    Case("cumprod", [MATRIX], lambda x: kernels.cumprod(1 + x / 1000, 1), lambda x: (1 + x / 1000).cumprod(1), "scan"),
    Case("convolution, depthwise", [(9, 6, 31, 33), (6, 1, 3, 3), (6,)], *convolution(6), "conv_forward"),
    Case("convolution of one channel", [(9, 1, 31, 33), (6, 1, 3, 3), (6,)], *convolution(1), "conv_forward"),
    Case("sum", [MATRIX], kernels.sum_all, lambda x: x.sum(), "sum_rows"),
    Case("sum in stretches", [(64, 2048)], kernels.sum_all, lambda x: x.sum(), "sum_rows"),
    Case("sum of rows", [(64, 2048)], lambda x: kernels.sum(x, 1), lambda x: x.sum(1), "sum_rows"),
    Case("sum of rows, kept", [(3, 40, 1100)], lambda x: kernels.sum(x, (2, 1), True),
         lambda x: x.sum((1, 2), keepdims=True), None),
    Case("mean of rows", [(64, 2048)], lambda x: kernels.mean(x, -1), lambda x: x.mean(1), "sum_rows"),
    Case("gather", [MATRIX], lambda x: kernels.gather(x, 1, INDEX), lambda x: np.take_along_axis(x, INDEX, 1)),
    Case("gather of columns", [(WIDTH, ROWS)], lambda x: kernels.gather(x, 0, INNER),
         lambda x: np.take_along_axis(x, INNER, 0), "gather"),
    Case("scatter", [MATRIX] * 2, lambda x, s: kernels.scatter(x, 1, INDEX, s), scattered(False)),
    Case("scatter_add", [MATRIX] * 2, lambda x, s: kernels.scatter_add(x, 1, INDEX, s), scattered(True), "scatter"),
    Case("index_add of columns", [MATRIX] * 2, lambda x, s: kernels.index_add(x, 1, COLUMNS, s), index_added(1),
         "index_add"),
    Case("index_add of rows", [(50, 103), (WIDTH, 103)], lambda x, s: kernels.index_add(x, 0, COLUMNS % 50, s),
         index_added(0), "index_add"),
    Case("index_add in the middle", [(3, 40, 17), (3, WIDTH, 17)],
         lambda x, s: kernels.index_add(x, 1, COLUMNS % 40, s), index_added(1), "index_add"),
    Case("embedding_backward", [(WIDTH, 64)],
         lambda g: kernels.embedding_backward(g, COLUMNS % 100, 100),
         lambda g: index_added(0)(np.zeros((100, 64)), g), "rows_added"),
]  # fmt: skip
BY_NAME = {case.name: case for case in CASES}
parametrized = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
dtyped = pytest.mark.parametrize("dtype", [np.float32, np.float64])


@pytest.fixture
def called(monkeypatch):
    """The names of the compiled functions that were called."""
    names: list[str] = []
    original = compiled.run_on

    def record(many: int, name: str, *args: Any) -> None:
        names.append(name)
        original(many, name, *args)

    monkeypatch.setattr(compiled, "run_on", record)
    monkeypatch.setattr(compiled_products, "run_on", record)
    return names


@pytest.fixture(params=[False, True], ids=["whole", "blocks"])
def small_blocks(request, monkeypatch):
    """With blocks so small that the arrays here have several, and as they are."""
    if request.param:
        monkeypatch.setattr(blocks, "_BLOCK", 1 << 12)
        monkeypatch.setattr(blocks, "_FEW", 1 << 13)


def close(got: Any, wanted: Any, dtype: type) -> None:
    for a, b in zip(outputs(got), outputs(wanted), strict=True):
        assert a.shape == b.shape
        scale = max(1.0, float(np.max(np.abs(b), initial=0, where=np.isfinite(b))))
        tolerance = TOLERANCE[dtype]
        np.testing.assert_allclose(a / scale, b / scale, rtol=tolerance["rtol"], atol=tolerance["atol"])


# ---------------------------------------------------------------------------------------------------------- NumPy


@dtyped
@parametrized
def test_numpy_kernel_beside_the_plain_formula(case, dtype, small_blocks):
    arrays = case.arrays(dtype)
    with backends.fast.flags(enabled=False):
        got = case.call(*arrays)
    # The slope of gelu's approximation is a difference quotient here.
    loose = np.float32 if case.function == "gelu_tanh_backward" else dtype
    close(got, case.plain(*[a.astype(np.float64) for a in arrays]), loose)
    for result in outputs(got):
        assert result.dtype in (dtype, np.uint8)


@pytest.mark.parametrize("dtype", ["float16", "complex64", "complex128"])
@pytest.mark.parametrize("name", ["sigmoid", "silu", "softmax", "log_softmax", "layer_norm", "gelu"])
def test_blocks_in_other_dtypes(name, dtype, small_blocks):
    if name not in ("sigmoid", "silu") and dtype.startswith("complex"):
        pytest.skip("torch has no complex one either")
    case = BY_NAME[name]
    arrays = [a.astype(dtype) for a in case.arrays(np.float64)]
    if dtype.startswith("complex"):
        arrays = [(a + 0.5j * a[::-1]).astype(dtype) for a in arrays]
    with backends.fast.flags(enabled=False):
        got = case.call(*arrays)
    wide = [a.astype(np.complex128 if dtype.startswith("complex") else np.float64) for a in arrays]
    tolerance = 4e-3 if dtype == "float16" else 1e-4 if dtype == "complex64" else 1e-10
    for a, b in zip(outputs(got), outputs(case.plain(*wide)), strict=True):
        assert a.dtype == dtype
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


# ------------------------------------------------------------------------------------------------------- compiled


@needs_library
@dtyped
@parametrized
def test_compiled_kernel_beside_the_numpy_kernel(case, dtype, called):
    arrays = case.arrays(dtype)
    before = [a.copy() for a in arrays]
    with backends.fast.flags(enabled=True):
        got = case.call(*arrays)
    assert called == [] if case.function is None else case.function in called
    for a, b in zip(arrays, before):
        np.testing.assert_array_equal(a, b)
    with backends.fast.flags(enabled=False):
        close(got, case.call(*arrays), dtype)


ODD = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40, 3e38, -3e38, 88.0, 89.5, -87.5, -103.5, -104.5, 1e4])


@needs_library
@dtyped
@pytest.mark.parametrize("name", [
    "sigmoid", "relu", "silu", "gelu", "gelu, tanh", "sigmoid_backward", "threshold_backward", "silu_backward",
    "gelu_backward", "softmax", "log_softmax", "softmax_backward", "log_softmax_backward", "layer_norm", "sum",
    "max_pool of 2", "max_pool of 3 by 2", "group_norm", "batch_norm", "where", "clamp", "clamp_backward", "hardtanh",
    "logsumexp", "logsumexp_backward", "cumsum", "avg_pool of 2", "avg_pool of 3 by 2", "attention",
])  # fmt: skip
def test_nan_infinity_and_extremes(name, dtype):
    case = BY_NAME[name]
    arrays = case.arrays(dtype)
    flat = arrays[-1 if name.endswith("backward") else 0].reshape(-1)
    with np.errstate(over="ignore"):
        odd = ODD.astype(dtype)
    for i, value in enumerate(odd):  # each alone in a row, and all in one
        flat[i * 2063 : i * 2063 + 2] = value
    flat[-len(odd) :] = odd
    with np.errstate(all="ignore"):
        with backends.fast.flags(enabled=True):
            got = case.call(*arrays)
        with backends.fast.flags(enabled=False):
            wanted = case.call(*arrays)
    for a, b in zip(outputs(got), outputs(wanted), strict=True):
        np.testing.assert_array_equal(np.isnan(a), np.isnan(b))
        # Sums of a row are taken in another order, and here the rows have large elements.
        tolerance = 5e-4 if dtype is np.float32 else 1e-10
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@needs_library
@pytest.mark.parametrize("size", [compiled.LARGE + 1, compiled.LARGE + 17, 3 * compiled.LARGE + 4095])
@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_any_number_of_threads_gives_the_same(count, size):
    x = np.random.default_rng(0).standard_normal(size).astype(np.float32)
    before = threads.get_num_threads()
    threads.set_num_threads(count)
    try:
        np.testing.assert_allclose(kernels.gelu(x), 0.5 * x * (1 + erf(x / np.sqrt(2))), rtol=1e-5, atol=1e-6)
        rows = x[: size // 5 * 5].reshape(5, -1)
        np.testing.assert_allclose(kernels.softmax(rows, 1), softmax(rows.astype(np.float64)), rtol=1e-5, atol=1e-9)
        g, w = rows[::-1].copy(), rows[0]
        close(run_layer_norm_backward(g, rows, w), layer_norm_backward(*[a.astype(float) for a in (g, rows, w)]),
              np.float32)
        np.testing.assert_allclose(kernels.sum_all(x), x.sum(dtype=np.float64), rtol=1e-5, atol=1e-2)
    finally:
        threads.set_num_threads(before)


@needs_library
@parametrized
def test_other_layouts_and_dtypes_are_left_to_numpy(case, called):
    def strided(a):
        wide = np.zeros((*a.shape[:-1], 2 * a.shape[-1]), a.dtype)
        wide[..., ::2] = a
        return wide[..., ::2]

    arrays = case.arrays(np.float64)
    with backends.fast.flags(enabled=True):
        got = case.call(*[strided(a) for a in arrays])
    own_result = (
        "where", "masked_fill", "leaky_relu", "elu", "softplus", "embedding_backward", "scatter", "index_add",
        "convolution", "pool_backward", "_norm", "attention", "from the end", "cumprod",
    )  # fmt: skip
    if not any(part in case.name for part in own_result):  # those make contiguous arrays of their own
        assert called == []
    close(got, case.plain(*arrays), np.float32 if "tanh" in case.name else np.float64)


@needs_library
def test_small_arrays_are_left_to_numpy(called):
    x = np.ones((8, 8), np.float32)
    kernels.sigmoid(x)
    kernels.softmax(x, 0)
    kernels.gather(x, 1, np.zeros((8, 8), np.int64))
    assert called == []


@needs_library
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (8, 8), (5, 1), (3, 300), (64, 40), (2, 3, 4), (0, 3), (3, 0)])
def test_rows_of_small_arrays_are_not(called, shape, dtype):
    """One call costs less than the steps of these in NumPy, which give the same."""
    rng = np.random.default_rng(0)
    x, grad, weight, bias = (rng.standard_normal(s).astype(dtype) for s in (shape, shape, shape[-1:], shape[-1:]))

    def run():
        found = [kernels.softmax(x, -1), kernels.log_softmax(x, -1)] if x.size else []
        for scale, shift in ((weight, bias), (None, None)):
            normal = kernels.native_layer_norm(x, shape[-1:], scale, shift, 1e-5)
            edges = (1, None, 1) if scale is None else (1, 1, 1)
            given = grad, x, shape[-1:], *normal[1:], scale, 1e-5, edges
            found += [*normal, *kernels.native_layer_norm_backward(*given)]
        return found

    with np.errstate(all="ignore"):
        ours = run()
        assert called if x.size else not called
        with backends.fast.flags(enabled=False):
            right = run()
    tolerance = 1e-6 if dtype == np.float32 else 1e-14
    for a, b in zip(ours, right, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            assert a.shape == b.shape and a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=20 * tolerance)


@needs_library
def test_turned_off(called):
    x = np.ones(compiled.LARGE + 1, np.float32)
    with backends.fast.flags(enabled=False):
        assert not backends.fast.is_enabled()
        kernels.sigmoid(x)
    assert called == []
    with backends.fast.flags(enabled=True):
        assert backends.fast.is_enabled()
        kernels.sigmoid(x)
    assert called == ["sigmoid"]


@needs_library
def test_indices_out_of_bounds_are_refused_before_anything_is_written():
    x = np.ones((200, 300), np.float32)
    index = np.zeros((200, 300), np.int64)
    index[150, 7] = 300
    for call in (
        lambda: kernels.gather(x, 1, index),
        lambda: kernels.scatter(x, 1, index, x.copy(), None, x),
        lambda: kernels.index_add(x, 1, index[150], x.copy(), 1, x),
    ):
        with pytest.raises(RuntimeError, match="index 300 is out of bounds for dimension 1 with size 300"):
            call()
    assert (x == 1).all()


def test_a_source_that_is_the_target_is_read_before_it_is_written():
    x = np.random.default_rng(0).standard_normal((200, 300))
    index = np.random.default_rng(1).permuted(np.tile(np.arange(300), (200, 1)), axis=1)
    wanted = x.copy()
    np.put_along_axis(wanted, index, x.copy(), 1)
    kernels.scatter(x, 1, index, x, None, x)
    np.testing.assert_array_equal(x, wanted)


@needs_library
def test_a_window_in_the_padding_alone_gets_no_gradient():
    # Taps three apart around a plane of two by two: with one cell of padding each falls outside.
    options = [2, 2], [1, 1], [1, 1], [3, 3]
    values, taps = kernels.max_pool(np.ones((compiled.LARGE + 1, 2, 2)), *options, False)
    assert np.isneginf(values).all()
    assert not kernels.max_pool_backward(np.ones_like(values), taps, (len(values), 2, 2), *options).any()


def in_fresh_interpreter(code: str, **environment: str) -> str:
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env={**os.environ, **environment}
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


@needs_library
def test_importing_retrograd_loads_the_library_unless_it_is_turned_off():
    code = "import sys, retrograd; print('retrograd_fast' in sys.modules)"
    assert in_fresh_interpreter(code, RETROGRAD_FAST="1") == "True"
    assert in_fresh_interpreter(code, RETROGRAD_FAST="0") == "False"


@needs_library
def test_environment_turns_it_off():
    code = "import retrograd as t; print(t.backends.fast.is_available(), t.backends.fast.is_enabled())"
    assert in_fresh_interpreter(code, RETROGRAD_FAST="0") == "True False"
    assert in_fresh_interpreter(code, RETROGRAD_FAST="1") == "True True"


@needs_library
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_forked_child_computes_without_the_parents_threads():
    code = (
        "import os, numpy as np\n"
        "from retrograd import kernels\n"
        "from retrograd.core import threads\n"
        "threads.set_num_threads(3)\n"
        "x = np.ones(1 << 18, np.float32)\n"
        "wanted = kernels.sigmoid(x)\n"
        "pid = os.fork()\n"
        "if not pid:\n"
        "    os._exit(0 if (kernels.sigmoid(x) == wanted).all() else 1)\n"
        "print(os.waitpid(pid, 0)[1])\n"
    )
    assert in_fresh_interpreter(code) == "0"


@needs_library
def test_a_library_of_another_version_is_not_loaded(monkeypatch):
    retrograd_fast = pytest.importorskip("retrograd_fast")
    monkeypatch.setattr(retrograd_fast, "VERSION", -1)
    assert compiled._load() is None
