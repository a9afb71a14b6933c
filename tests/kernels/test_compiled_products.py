"""Products and convolutions by the compiled kernels, beside NumPy's: random shapes, strides, numbers of threads."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import threading

import ml_dtypes
import numpy as np
import pytest

from retrograd import backends, kernels
from retrograd.core.threads import set_num_threads, threads
from retrograd.kernels import compiled, compiled_products, conv, pool
from retrograd.kernels.compiled import on_threads, tell_threads

pytestmark = pytest.mark.skipif(not backends.fast.is_available(), reason="retrograd[fast] is not installed")

#: Relative to the largest result: sums are taken in another order.
TOLERANCE = {np.float32: 3e-5, np.float64: 1e-12}
dtyped = pytest.mark.parametrize("dtype", [np.float32, np.float64])


@pytest.fixture(params=[1, 2, 5])
def many_threads(request):
    before = threads[0]
    threads[0] = request.param
    yield request.param
    threads[0] = before


def assert_close(got, expected, case):
    assert got is not None, case
    assert got.dtype == expected.dtype, case
    assert got.shape == expected.shape, case
    off = np.abs(got - expected).max() / max(1, np.abs(expected).max())
    assert off <= TOLERANCE[expected.dtype.type], case


def matrix(rng, dtype, *shape):
    """A matrix (or a batch) that lies in one of five ways."""
    *batch, rows, columns = shape
    match rng.integers(5):
        case 4:
            turned = rng.standard_normal((rows, *batch, columns)).astype(dtype)
            return np.moveaxis(turned, 0, -2)
        case 0:
            return rng.standard_normal(shape).astype(dtype)
        case 1:
            return rng.standard_normal((*batch, columns, rows)).astype(dtype).swapaxes(-1, -2)
        case 2:
            return rng.standard_normal((*batch, 2 * rows, 3 * columns)).astype(dtype)[..., ::2, ::3]
    return rng.standard_normal(shape).astype(dtype)[..., ::-1, ::-1]


@dtyped
def test_products(dtype, many_threads):
    rng = np.random.default_rng(many_threads)
    taken = 0
    for _ in range(80):
        m, n, k = (int(rng.integers(low, high)) for low, high in ((4, 150), (8, 300), (1, 900)))
        batch = [int(rng.integers(1, 6)) for _ in range(rng.integers(3))]
        a, b = matrix(rng, dtype, *batch, m, k), matrix(rng, dtype, *batch, k, n)
        bias = rng.standard_normal(n).astype(dtype) if not batch and rng.integers(2) else None
        got = compiled_products.product(a, b, bias)
        if got is None:
            assert m * n * k < 1 << 12
            continue
        taken += 1
        expected = np.matmul(a, b)
        assert_close(got, expected if bias is None else expected + bias, (m, n, k, batch, a.strides, b.strides))
    assert taken > 60


@dtyped
def test_a_large_product_is_packed_once(dtype, many_threads):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((300, 700)).astype(dtype), rng.standard_normal((700, 501)).astype(dtype)
    bias = rng.standard_normal(501).astype(dtype)
    assert_close(compiled_products.product(a, b, bias), a @ b + bias, "large")


def test_a_product_with_nothing_to_multiply_by_is_not_zero_if_it_meets_a_nan():
    a, b = np.zeros((16, 16), np.float32), np.ones((16, 16), np.float32)
    b[3, 5] = np.nan
    got = compiled_products.product(a, b)
    assert np.isnan(got[:, 5]).all()
    assert (np.delete(got, 5, 1) == 0).all()


@dtyped
def test_convolutions_and_their_gradients(dtype, many_threads, monkeypatch):
    rng = np.random.default_rng(10 + many_threads)
    compared = 0
    for _ in range(60):
        dims = int(rng.choice([1, 2, 2]))
        groups, each, outputs = (int(rng.choice(of)) for of in ([1, 1, 2, 8], [1, 2, 3, 16], [1, 2, 5, 9, 17]))
        size, kernel, stride, padding, dilation = (
            [int(v) for v in rng.integers(low, high, dims)] for low, high in ((5, 40), (1, 5), (1, 4), (0, 4), (1, 3))
        )
        if any(s + 2 * p < d * (k - 1) + 1 for s, p, d, k in zip(size, padding, dilation, kernel, strict=True)):
            continue
        x = rng.standard_normal((int(rng.integers(1, 5)), groups * each, *size)).astype(dtype)
        w = rng.standard_normal((groups * outputs, each, *kernel)).astype(dtype)
        b = rng.standard_normal(len(w)).astype(dtype) if rng.integers(2) else None
        grad = None
        found = []
        for least in (0, 1 << 60):  # all of them, and none
            monkeypatch.setattr(conv, "LARGE", least)
            y = kernels.convolution(x, w, b, stride, padding, dilation, False, [0] * dims, groups)
            grad = rng.standard_normal(y.shape).astype(dtype) if grad is None else grad
            found.append((
                y,
                kernels.convolution_backward_weight(grad, x, w.shape, stride, padding, dilation, groups),
                kernels.convolution_backward_input(grad, w, x.shape, stride, padding, dilation, groups),
            ))  # fmt: skip
        for got, expected in zip(*found, strict=True):
            assert_close(got, expected, (x.shape, w.shape, stride, padding, dilation, groups))
        compared += 1
    assert compared > 40


def test_the_compiled_convolution_is_what_is_called(monkeypatch):
    seen = []
    original = compiled_products.run_on

    def record(many, name, *args):
        seen.append(name)
        original(many, name, *args)

    monkeypatch.setattr(compiled_products, "run_on", record)
    x, w = np.ones((4, 3, 20, 20), np.float32), np.ones((5, 3, 3, 3), np.float32)
    y = kernels.convolution(x, w, None, [2, 2], [1, 1], [1, 1], False, [0, 0], 1)
    kernels.convolution_backward_weight(y, x, w.shape, [2, 2], [1, 1], [1, 1], 1)
    kernels.convolution_backward_input(y, w, x.shape, [2, 2], [1, 1], [1, 1], 1)
    assert seen[:4] == ["conv_pack", "conv_forward", "conv_weight", "conv_weight_sum"]
    assert seen[4:] == ["conv_pack", "conv_forward"] * 4  # a phase each


@dtyped
@pytest.mark.parametrize("width", [2, 3, 7, 8, 9, 15, 16, 17, 33, 70])
def test_pooling_by_two_with_ties_nan_and_infinity(dtype, width, monkeypatch):
    rng = np.random.default_rng(width)
    x = rng.integers(-2, 3, (40, 7, width)).astype(dtype)
    x[rng.random(x.shape) < 0.05] = np.nan
    x[rng.random(x.shape) < 0.05] = -np.inf
    arguments = [2, 2], [2, 2], [0, 0], [1, 1]
    results = []
    for least in (0, 1 << 60):
        monkeypatch.setattr(pool, "LARGE", least)
        values, taps = kernels.max_pool(x, *arguments, False)
        grad = np.arange(1, values.size + 1, dtype=dtype).reshape(values.shape)
        results.append((values, taps, kernels.max_pool_backward(grad, taps, x.shape, *arguments)))
    for got, expected in zip(*results, strict=True):
        np.testing.assert_array_equal(got, expected)


def _multiply(result):
    a = np.arange(90000, dtype=np.float64).reshape(300, 300) % 7
    for _ in range(20):
        got = compiled_products.product(a, a)
    result.append(np.array_equal(got, a.dot(a)))


def test_calls_from_several_threads_at_once(many_threads):
    results: list[bool] = []
    workers = [threading.Thread(target=_multiply, args=(results,)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert results == [True] * 4


def _in_child(queue):
    results: list[bool] = []
    _multiply(results)
    queue.put(results)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of forking while other tests' threads are there
def test_a_forked_child_has_workers_of_its_own(many_threads):
    _multiply([])
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(queue,))
    child.start()
    assert queue.get(timeout=60) == [True]
    child.join(60)
    assert child.exitcode == 0


UFUNCS = ["add", "multiply", "exp", "tanh", "less", "sqrt", "maximum", "negative", "divide", "logaddexp", "arctan2"]


@pytest.mark.parametrize("name", UFUNCS)
def test_shared_ufuncs_give_what_numpy_s_give(name, many_threads):
    tell_threads()
    rng = np.random.default_rng(0)
    original = getattr(np, name)
    shared = on_threads(original)
    assert shared is not original
    for dtype in (np.float32, np.float64, np.int64, np.float16):
        operands = [rng.standard_normal((3, 70001)).astype(dtype) * 3 for _ in range(original.nin)]
        for lie in (lambda a: a, lambda a: a[:, ::-1], lambda a: a[:, ::2], lambda a: a.T):
            given = [lie(a) for a in operands]
            with np.errstate(all="ignore"):
                got, expected = shared(*given), original(*given)
                np.testing.assert_array_equal(got, expected, strict=True)
                if got.dtype == dtype:
                    into, other = given[0].copy(), given[0].copy()  # (NumPy's own bits depend on the strides)
                    assert shared(into, *given[1:], into) is into
                    np.testing.assert_array_equal(into, original(other, *given[1:], other))


def test_shared_ufuncs_take_bfloat16_and_warn_as_numpy_does(many_threads):
    tell_threads()
    a = np.ones(100_000, ml_dtypes.bfloat16)
    np.testing.assert_array_equal(on_threads(np.add)(a, a), a + a, strict=True)
    zeros = np.zeros(100_000, np.float32)
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        on_threads(np.divide)(zeros + 1, zeros)
    with np.errstate(all="raise"):
        on_threads(np.divide)(zeros, zeros + 1)  # nothing is left of the one before


def test_shared_ufuncs_know_bfloat16_before_anybody_asked_for_it():
    """Their loops are copied when retrograd is imported, and ml_dtypes adds its own to NumPy's when it is."""
    program = "import retrograd as r; x = r.ones(3); x + x; y = r.ones(3, dtype=r.bfloat16); print((y + y).dtype)"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == "torch.bfloat16\n"


def test_shared_ufuncs_take_and_refuse_the_dtypes_that_numpy_s_do():
    for name in ("add", "subtract", "multiply", "true_divide", "negative", "maximum", "exp", "sqrt", "less"):
        original = getattr(np, name)
        shared = on_threads(original)
        for code in "?bBhiqefdFD":
            given = [np.ones(3, code)] * original.nin
            try:
                expected = original(*given)
            except TypeError as error:
                with pytest.raises(type(error)):
                    shared(*given)
            else:
                np.testing.assert_array_equal(shared(*given), expected, strict=True)


def test_threads_and_switches_reach_shared_ufuncs(monkeypatch):
    told = []
    monkeypatch.setattr(compiled._state["library"], "use_threads", told.append)
    before = threads[0]
    with backends.fast.flags(enabled=False):
        pass
    set_num_threads(before)
    assert told == [0, before, before]
