"""The reductions and the cumulative kernels against torch."""

import itertools
import math

import numpy as np
import pytest

from retrograd import kernels as K
from retrograd.kernels import dims

F32 = np.dtype(np.float32)
DTYPES = ["bool", "uint8", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128"]
inf, nan = math.inf, math.nan


@pytest.fixture(autouse=True)
def _silent():
    with np.errstate(all="ignore"):
        yield


def array(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.integers(-4, 5, shape) if np.dtype(dtype).kind in "biu" else rng.normal(size=shape) * 2
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.normal(size=shape)
    return np.asarray(np.abs(x) if np.dtype(dtype).kind == "u" else x).astype(dtype)


# --------------------------------------------------------------------------------------------------- against torch


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
def check(torch, kernel, reference, x, *args, indices=True, **kwargs):
    """Same dtype, shape and values as torch; or an error of the same type and wording."""
    names = {"dtype": lambda d: getattr(torch, np.dtype(d).name)}
    theirs = {k: names[k](v) if k in names else v for k, v in kwargs.items()}
    try:
        expected = reference(torch.from_numpy(x.copy()), *args, **theirs)
    except (RuntimeError, IndexError, NotImplementedError) as error:
        with pytest.raises((RuntimeError, IndexError, NotImplementedError)) as raised:
            kernel(x, *args, **kwargs)
        # Of two mistakes, torch may report the other one.
        if x.dtype.kind == "f" and (x.size or args not in (((0, 0),), ((0, -1),))):
            assert raised.type is type(error)
            assert str(raised.value)[:28] == str(error)[:28]
        return
    result = kernel(x, *args, **kwargs)
    if not isinstance(expected, torch.Tensor):
        assert type(result) is tuple
        for r, e in list(zip(result, expected))[: None if indices else 1]:
            compare(r, e)
    else:
        compare(result, expected)


def compare(result, expected):
    assert type(result) is np.ndarray
    expected = expected.numpy()
    assert result.dtype == expected.dtype
    assert result.shape == expected.shape
    rtol = {"float16": 3e-3, "float32": 5e-6, "complex64": 1e-5}.get(result.dtype.name, 1e-12)
    np.testing.assert_allclose(result, expected, rtol=rtol, atol=rtol if result.dtype.kind in "fc" else 0)


def arrays(shapes=((2, 3, 4), (3,), (), (0,), (0, 3), (2, 0))):
    return [array(shape, d) for d, shape in itertools.product(DTYPES, shapes)]


OVER_MANY = "sum mean var std var_mean std_mean amax amin all any logsumexp nansum nanmean".split()
MANY_DIMS = [None, 0, -1, (0,), (0, -1), [0, 1], (), 5, (0, 0)]
ONE_DIM = [0, -1, 5, -4]


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@pytest.mark.parametrize("dim", MANY_DIMS, ids=str)
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("name", OVER_MANY)
def test_over_many_dims(name, dim, keepdim):
    torch = pytest.importorskip("torch")
    for x in arrays():
        if dim == [0, 1] and x.ndim < 2:
            continue
        if dim is None and name in ("amax", "amin", "logsumexp"):
            continue
        if dim == () and name == "logsumexp":
            continue  # torch 2.13 fails on it
        if dim in ((0, -1), (0, 0)) and name in ("all", "any"):
            continue  # torch reports a repeated dim in other words here
        check(torch, getattr(K, name), getattr(torch, name), x, dim, keepdim=keepdim)


@pytest.mark.parametrize("correction", [0, 1, 2, 6, 7, 0.5])
@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
def test_correction(correction):
    torch = pytest.importorskip("torch")
    x = array((2, 3), "float64")
    for name in ("var", "std", "var_mean", "std_mean"):
        check(torch, getattr(K, name), getattr(torch, name), x, None, correction=correction)


@pytest.mark.parametrize("dim", ONE_DIM)
@pytest.mark.parametrize("keepdim", [False, True])
def test_over_one_dim(dim, keepdim):
    torch = pytest.importorskip("torch")
    functions = {
        "prod": torch.prod, "max_dim": torch.max, "min_dim": torch.min, "argmax": torch.argmax,
        "argmin": torch.argmin, "median": torch.median,
    }  # fmt: skip
    for (name, reference), x in itertools.product(functions.items(), arrays()):
        distinct = name != "median" or x.dtype.kind == "f"
        check(torch, getattr(K, name), reference, x, dim, keepdim, indices=distinct)
    for x in arrays():
        if x.size:
            check(torch, K.aminmax, torch.aminmax, x, dim=dim, keepdim=keepdim)


@pytest.mark.parametrize("dim", ONE_DIM)
@pytest.mark.parametrize("name", "cumsum cumprod cummax cummin".split())
def test_cumulative(name, dim):
    torch = pytest.importorskip("torch")
    for x in arrays():
        if (x.ndim and x.size) or dim in (0, -1):  # torch has another error, or none, for a wrong dim here
            check(torch, getattr(K, name), getattr(torch, name), x, dim)
    x = np.array([1.0, 3.0, 3.0, 1.0, nan, 5.0, nan], F32)
    check(torch, getattr(K, name), getattr(torch, name), x, dim)


def test_over_all():
    torch = pytest.importorskip("torch")
    functions = {
        "sum": torch.sum, "mean": torch.mean, "prod": torch.prod, "max_all": torch.max, "min_all": torch.min,
        "argmax": torch.argmax, "argmin": torch.argmin, "median_all": torch.median, "all": torch.all,
        "any": torch.any, "count_nonzero": torch.count_nonzero, "aminmax": torch.aminmax, "norm": torch.norm,
    }  # fmt: skip
    for (name, reference), x in itertools.product(functions.items(), arrays()):
        if name != "median_all" or x.size or x.dtype.kind not in "bc":
            check(torch, getattr(K, name), reference, x)
    for dim in (0, (0, 1), ()):
        check(torch, K.count_nonzero, torch.count_nonzero, array((2, 3), "float32"), dim)


@pytest.mark.parametrize("dtype", ["int64", "float32", "float64", "float16"])
def test_dtype_argument(dtype):
    torch = pytest.importorskip("torch")
    for a in DTYPES[:7]:
        x = array((2, 3), a)
        check(torch, K.sum, torch.sum, x, 0, dtype=np.dtype(dtype))
        check(torch, K.sum, torch.sum, x, dtype=np.dtype(dtype))
        check(torch, K.mean, torch.mean, x, 0, dtype=np.dtype(dtype))
        check(torch, K.prod, torch.prod, x, 1, dtype=np.dtype(dtype))
        check(torch, K.cumsum, torch.cumsum, x, 1, dtype=np.dtype(dtype))
        check(torch, K.norm, torch.norm, x, 2, dtype=np.dtype(dtype))
    check(torch, K.sum, torch.sum, array((2, 3), "float32"), dtype=np.dtype(bool))


@pytest.mark.parametrize("p", [0, 1, 2, 3, 2.5, -1, inf, -inf, "fro", None], ids=str)
def test_norm(p):
    torch = pytest.importorskip("torch")
    for a, dim, keepdim in itertools.product(["float32", "float64", "complex64"], [None, 0, (0, 1)], [False, True]):
        if keepdim and dim is None:
            continue
        check(torch, K.norm, torch.norm, array((2, 3), a), p, dim, keepdim)
        if p not in ("fro", None):
            check(torch, K.norm, torch.norm, array((0, 3), a), p, dim, keepdim)
    check(torch, K.norm, torch.norm, array((2, 3), "float32"), "nuc")


def test_infinities_and_nan():
    torch = pytest.importorskip("torch")
    x = np.array([[inf, -inf], [-inf, -inf], [inf, nan], [inf, inf], [1.0, -inf], [800.0, 801.0]], F32)
    check(torch, K.logsumexp, torch.logsumexp, x, 1)
    for name in ("amax", "amin", "argmax", "argmin", "nansum", "sum", "mean"):
        check(torch, getattr(K, name), getattr(torch, name), x, 1)
    pairs = [(K.max_dim, torch.max), (K.min_dim, torch.min), (K.median, torch.median)]
    for kernel, reference in pairs:
        check(torch, kernel, reference, x, 1, indices=kernel is not K.median)
    check(torch, K.nanmean, torch.nanmean, np.array([[nan, 1.0], [nan, nan]], F32), 1)


# ---------------------------------------------------------------------------------------------------- without torch


def test_dims():
    assert dims.normalize_dim(-1, 3) == 2
    assert dims.normalize_dim(0, 0) == 0
    assert dims.normalize_dims(None, 2) == dims.normalize_dims((), 2) == (0, 1)
    assert dims.normalize_dims([-1, 0], 3) == (2, 0)
    assert dims.normalize_dims(np.int64(1), 3) == (1,)
    with pytest.raises(IndexError, match=r"expected to be in range of \[-2, 1\], but got 5"):
        dims.normalize_dim(5, 2)
    with pytest.raises(IndexError, match=r"expected to be in range of \[-1, 0\], but got 1"):
        dims.normalize_dim(1, 0)
    with pytest.raises(RuntimeError, match="dim 0 appears multiple times in the list of dims"):
        dims.normalize_dims((0, -2), 2)
    with pytest.raises(TypeError, match="must be int, not float"):
        dims.normalize_dim(0.5, 2)


def test_values():
    x = np.array([[3.0, 1.0, 2.0], [4.0, 6.0, 5.0]], F32)
    assert K.sum(x).shape == () and K.sum(x) == 21
    np.testing.assert_array_equal(K.mean(x, 1, True), [[2], [5]])
    np.testing.assert_array_equal(K.var(x, 1), [1, 1])
    values, indices = K.max_dim(x, 1)
    np.testing.assert_array_equal(values, [3, 6])
    np.testing.assert_array_equal(indices, [0, 1])
    values, indices = K.median(np.array([3, 1, 2, 4]), 0)
    assert (values, indices) == (2, 2)
    np.testing.assert_array_equal(K.cummax(np.array([1, 3, 3, 2]), 0)[1], [0, 1, 2, 2])
    assert K.norm(np.array([3.0, 4.0])) == 5
    assert K.logsumexp(np.array([-inf, -inf]), 0) == -inf
    assert K.sum(np.ones(3, bool)).dtype == np.int64


def test_results_do_not_share_memory():
    for x in (np.array(2.0, F32), np.ones((1, 3), F32)):
        for name in ("sum", "amax", "amin", "prod", "mean", "logsumexp"):
            assert not np.shares_memory(getattr(K, name)(x, 0), x)
        for name in ("cumsum", "cumprod"):
            assert not np.shares_memory(getattr(K, name)(x, 0), x)
        for name in ("max_dim", "min_dim", "cummax", "median"):
            assert not np.shares_memory(getattr(K, name)(x, 0)[0], x)


def test_long_sums_are_exact():
    x = np.full(1_000_000, 0.1, F32)
    np.testing.assert_allclose(K.sum(x), 100_000, rtol=1e-5)
    np.testing.assert_allclose(K.cumsum(x, 0)[-1], 100_000, rtol=1e-6)
    np.testing.assert_allclose(K.sum(np.full(5000, 1, np.float16)), 5000)


@pytest.mark.parametrize(
    "call, error, phrase",
    [
        (lambda: K.mean(np.ones(2, int)), RuntimeError, "could not infer output dtype"),
        (lambda: K.var(np.ones(2, int)), RuntimeError, "only support floating point and complex"),
        (lambda: K.amax(np.ones(0)), RuntimeError, "Expected reduction dim to be specified"),
        (lambda: K.max_dim(np.ones((0, 3)), 0), IndexError, "Expected reduction dim 0 to have non-zero size"),
        (lambda: K.argmax(np.ones(0)), IndexError, "Expected reduction dim to be specified"),
        (lambda: K.norm(np.ones(2, int)), RuntimeError, "Expected a floating point or complex tensor"),
        (lambda: K.cumsum(np.ones(2), 1), IndexError, "Dimension out of range"),
    ],
)
def test_errors(call, error, phrase):
    with pytest.raises(error, match=phrase):
        call()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("shape", [(), (0,), (50,), (7, 9), (300, 200)])
def test_sums_to_a_number(dtype, shape):
    x = array(shape, dtype)
    for a in (x, x.T):
        found = K.sum_to_size(a, ())
        expected = np.add.reduce(a, tuple(range(a.ndim)))
        assert type(found) is np.ndarray and found.shape == () and found.dtype == x.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-2 if dtype == "float16" else 1e-4)
