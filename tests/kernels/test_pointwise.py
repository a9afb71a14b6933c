"""The pointwise kernels (arithmetic, powers, trigonometry, comparison, activation, special ...) against torch."""

import itertools
import math

import numpy as np
import pytest

from retrograd import kernels as K
from retrograd.core import dtypes
from retrograd.kernels import promotion

F32 = np.dtype(np.float32)
DTYPES = ["bool", "uint8", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128"]


@pytest.fixture(autouse=True)
def _silent():
    with np.errstate(all="ignore"):
        yield


def array(shape, dtype, seed=0):
    """Numbers around zero, zeros included."""
    rng = np.random.default_rng(seed)
    x = rng.integers(-4, 5, shape) if np.dtype(dtype).kind in "biu" else rng.normal(size=shape) * 2
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.normal(size=shape)
    return np.asarray(np.abs(x) if np.dtype(dtype).kind == "u" else x).astype(dtype)


def positive_array(shape, dtype, seed=1):
    return np.asarray(np.abs(array(shape, dtype, seed)) + 1).astype(dtype)


# --------------------------------------------------------------------------------------------- against torch


def as_torch(torch, x):
    if isinstance(x, np.ndarray):
        return torch.from_numpy(x.copy())
    return x


def check(torch, kernel, reference, *args, rtol=None, **kwargs):
    """Same dtype, shape and values as torch; or an error of the same type with torch's first words."""
    copies = [x.copy() if isinstance(x, np.ndarray) else x for x in args]
    try:
        expected = reference(*[as_torch(torch, x) for x in args], **kwargs)
    except (RuntimeError, NotImplementedError) as error:
        if "ComplexHalf" in str(error):  # operators refuse it (test_stored_dtypes.py), kernels do not
            return
        with pytest.raises(type(error)) as raised:
            kernel(*args, **kwargs)
        assert str(raised.value)[:40] == str(error)[:40]
        return
    result = kernel(*args, **kwargs)
    if expected.dtype == torch.complex32:  # NumPy has none itself
        assert result.dtype.name == "complex32"
        expected, result, rtol = expected.to(torch.complex64), result.astype(np.complex64), 5e-3
    compare(result, expected, rtol)
    for x, copy in zip(args, copies):
        if isinstance(x, np.ndarray):
            np.testing.assert_array_equal(x, copy)


def compare(result, expected, rtol=None):
    assert type(result) is np.ndarray
    expected = expected.resolve_conj().numpy()
    assert result.dtype == expected.dtype
    assert result.shape == expected.shape
    if rtol is None:
        rtol = {"float16": 2e-3, "float32": 2e-6, "complex64": 1e-5, "complex128": 1e-10}.get(result.dtype.name, 1e-12)
    np.testing.assert_allclose(result, expected, rtol=rtol, atol=rtol if result.dtype.kind in "fc" else 0)


def torch_function(torch, name):
    for space in (torch, torch.nn.functional, torch.special):
        if hasattr(space, name):
            return getattr(space, name)
    return {"log_sigmoid": torch.nn.functional.logsigmoid}[name]


ARITHMETIC = ["add", "sub", "rsub", "mul", "div", "true_divide", "maximum", "minimum", "fmax", "fmin"]
DIVISION = ["floor_divide", "remainder", "fmod"]
FLOATING = ["atan2", "copysign", "hypot", "logaddexp", "logaddexp2", "float_power"]
COMPARISON = ["eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor"]
BITWISE = ["bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift"]


@pytest.mark.parametrize("name", [*ARITHMETIC, *FLOATING, *COMPARISON, *BITWISE])
def test_binary_dtypes(name):
    torch = pytest.importorskip("torch")
    reference = torch_function(torch, name)
    for a, b in itertools.product(DTYPES, DTYPES):
        mixed = 5e-3 if "float16" in (a, b) else None
        make = positive_array if name in ("float_power", "bitwise_left_shift", "bitwise_right_shift") else array
        x, y = make((2, 3), a), make((2, 3), b, 1)
        check(torch, getattr(K, name), reference, x, y, rtol=mixed)
        check(torch, getattr(K, name), reference, x, make((), b, 2), rtol=mixed)
        check(torch, getattr(K, name), reference, make((), a, 3), make((2, 1), b, 2), rtol=mixed)
        check(torch, getattr(K, name), reference, make((), a, 3), make((), b, 4), rtol=mixed)


@pytest.mark.parametrize("name", DIVISION)
def test_division_dtypes(name):
    torch = pytest.importorskip("torch")
    reference = torch_function(torch, name)
    for a, b in itertools.product(DTYPES, DTYPES):
        if "float16" not in (a, b):
            check(torch, getattr(K, name), reference, array((2, 3), a), positive_array((1, 3), b))
    for number in (3, -2, 1.5, True):
        for a in DTYPES:
            if a != "float16":
                check(torch, getattr(K, name), reference, array((2, 3), a), number)


@pytest.mark.parametrize("mode", ["floor", "trunc"])
def test_rounded_division(mode):
    torch = pytest.importorskip("torch")
    for a, b in itertools.product(DTYPES, DTYPES):
        if "float16" not in (a, b):
            check(torch, K.div, torch.div, array((2, 3), a), positive_array((3,), b), rounding_mode=mode)
    x = np.array([7, -7, 8, -8, 0])
    check(torch, K.div, torch.div, x, -3, rounding_mode=mode)
    check(torch, K.div, torch.div, x / 2, 0.0, rounding_mode=mode)


@pytest.mark.parametrize("name", [*ARITHMETIC[:6], *COMPARISON[:6], *BITWISE[:3], "copysign", "pow"])
@pytest.mark.parametrize("number", [2, 3.5, True, -3, 1 - 2j])
def test_number_operand(name, number):
    torch = pytest.importorskip("torch")
    if name == "copysign" and isinstance(number, complex):
        return
    for a, shape in itertools.product(DTYPES, [(2, 3), (), (0,)]):
        check(torch, getattr(K, name), torch_function(torch, name), array(shape, a), number)


@pytest.mark.parametrize("number", [2, 0, 1, 3, 0.5, -0.5, -1.0, -2.0, 1.7, 2.0, 1j])
def test_pow_number(number):
    torch = pytest.importorskip("torch")
    for a in DTYPES:
        check(torch, K.pow, torch.pow, positive_array((2, 3), a), number, rtol=5e-3 if a == "float16" else None)
        if a != "float16":
            check(torch, K.pow, torch.pow, number, positive_array((2, 3), a))


def test_pow_arrays():
    torch = pytest.importorskip("torch")
    for a, b in itertools.product(DTYPES, DTYPES):
        rtol = 5e-3 if "float16" in (a, b) else 1e-5
        check(torch, K.pow, torch.pow, positive_array((2, 3), a), array((3,), b), rtol=rtol)
        check(torch, K.pow, torch.pow, positive_array((2, 3), a), positive_array((), b), rtol=rtol)
    x = np.array([1, -1, 2, 0, -1])
    check(torch, K.pow, torch.pow, x, np.array([-1, -1, -3, 1, -2]))


FLOAT_UNARY = (
    "sqrt rsqrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sinc "
    "reciprocal sigmoid erf erfc erfinv lgamma digamma deg2rad rad2deg softsign angle"
).split()
SAME_UNARY = (
    "neg square abs sign sgn ceil floor round trunc frac bitwise_not logical_not isnan isinf isfinite relu "
    "softplus gelu silu leaky_relu elu mish selu hardswish hardsigmoid relu6 celu log_sigmoid hardtanh nan_to_num "
    "conj conj_physical real imag"
).split()


@pytest.mark.parametrize("name", FLOAT_UNARY + SAME_UNARY)
def test_unary(name):
    torch = pytest.importorskip("torch")
    reference, kernel = torch_function(torch, name), getattr(K, name)
    for a, shape in itertools.product(DTYPES, [(2, 3), (), (0, 2)]):
        x = array(shape, a)
        if name in ("asin", "acos", "atanh", "erfinv") and x.dtype.kind == "f":
            x = np.asarray(np.tanh(x))
        rtol = 3e-3 if a == "float16" else 2e-5 if name in ("lgamma", "digamma", "tan") and a == "float32" else None
        if a.startswith("complex"):
            rtol = 2e-5
        check(torch, kernel, reference, x, rtol=rtol)
    special_values = np.array([math.nan, math.inf, -math.inf, 0.0, -0.0, 100.0, -100.0, 1.0, -1.0], F32)
    if name not in ("digamma", "gelu", "bitwise_not", "imag"):
        check(torch, kernel, reference, special_values, rtol=1e-5)


def test_gelu_tanh_and_polygamma_and_softplus():
    torch = pytest.importorskip("torch")
    functional = torch.nn.functional
    for a in ("float32", "float64"):
        x = array((4, 5), a)
        check(torch, K.gelu, functional.gelu, x, approximate="tanh", rtol=1e-5)
        check(torch, K.softplus, functional.softplus, x * 20, 1.5, 10.0)
        check(torch, K.leaky_relu, functional.leaky_relu, x, 0.3)
        check(torch, K.elu, functional.elu, x, 1.7)
        check(torch, K.celu, functional.celu, x, 1.7)
        check(torch, K.hardtanh, functional.hardtanh, x, -0.5, 0.7)
        check(torch, K.threshold, torch.threshold, x, 0.5, 7.0)
        for n in range(4):
            expected = torch.polygamma(n, torch.from_numpy(np.abs(x) + 0.5))
            compare(K.polygamma(n, np.abs(x) + x.dtype.type(0.5)), expected, 1e-5)
    check(torch, K.threshold, torch.threshold, np.array([1, 2, 3]), 1.5, 2.5)


def test_large_float32_erf_is_exact_to_a_few_units():
    from scipy import special as reference

    x = np.concatenate([np.linspace(-6, 6, 100_001), np.logspace(-30, 0, 1000), [math.inf, -math.inf]]).astype(F32)
    expected = reference.erf(x.astype(float))
    units = np.abs(K.erf(x) - expected) / np.spacing(np.abs(expected).astype(F32) + np.float32(1e-38))
    assert units.max() < 8
    assert np.abs(K.erf(x)).max() == 1
    assert np.isnan(K.erf(np.full(1000, np.nan, F32))).all()
    strided = x[: 2 * (x.size // 2)].reshape(-1, 2).T
    np.testing.assert_array_equal(K.erf(strided), K.erf(np.ascontiguousarray(strided)))


@pytest.mark.parametrize("limits", [(0, 1), (None, 1), (0.5, None), (1, 0), (-1.5, 2), (math.nan, None)])
def test_clamp(limits):
    torch = pytest.importorskip("torch")
    for a in DTYPES:
        if a == "uint8" and limits[0] == -1.5:
            continue
        check(torch, K.clamp, torch.clamp, array((2, 3), a), *limits)
    for a, b in itertools.product(DTYPES[:7], DTYPES[:7]):
        check(torch, K.clamp, torch.clamp, array((2, 3), a), array((3,), b), array((), b, 5))
        check(torch, K.clamp_min, torch.clamp_min, array((2, 3), a), array((3,), b))
        check(torch, K.clamp_max, torch.clamp_max, array((2, 3), a), array((), b))


def test_where_and_masked_fill():
    torch = pytest.importorskip("torch")
    condition = array((2, 3), "bool")
    for a, b in itertools.product(DTYPES, DTYPES):
        check(torch, K.where, torch.where, condition, array((2, 3), a), array((3,), b))
        check(torch, K.where, torch.where, condition, array((), a), array((2, 1), b))
    for a, number in itertools.product(DTYPES, [1, 2.5, True, 1j]):
        check(torch, K.where, torch.where, condition, array((2, 3), a), number)
        check(torch, K.masked_fill, torch.masked_fill, array((3,), a), condition, number)
        if number != 1j:
            check(torch, K.masked_fill, torch.masked_fill, array((2, 3), a), condition, np.array(number))
    check(torch, K.where, torch.where, condition, 1, 2.5)
    check(torch, K.where, torch.where, condition, 1, 2)
    check(torch, K.where, torch.where, np.array([1, 2]), 1, 2)


def test_lerp_addcmul_addcdiv():
    torch = pytest.importorskip("torch")
    for a in DTYPES:
        x, y, z = array((2, 3), a), array((3,), a, 1), positive_array((2, 1), a, 2)
        rtol = {"float16": 3e-3, "float32": 1e-5}.get(a)
        for weight in (0.3, 0.5, 0.8, 1, y):
            check(torch, K.lerp, torch.lerp, x, y, weight, rtol=rtol)
        for value in (1, 2, 2.5):
            if not (isinstance(value, float) and x.dtype.kind in "iu"):
                check(torch, K.addcmul, torch.addcmul, x, y, z, value=value, rtol=rtol)
                check(torch, K.addcdiv, torch.addcdiv, x, y, z, value=value, rtol=rtol)
    mixed = array((2, 3), "int64"), array((3,), "float32"), array((2, 1), "int32")
    check(torch, K.addcmul, torch.addcmul, *mixed)
    check(torch, K.addcdiv, torch.addcdiv, *mixed)
    check(torch, K.lerp, torch.lerp, array((2,), "float32"), array((2,), "float64"), 0.5)
    check(torch, K.lerp, torch.lerp, array((2,), "float32"), array((2,), "float32"), np.array(0.25))


@pytest.mark.parametrize("alpha", [1, 2, 2.5, True, 1j])
@pytest.mark.parametrize("name", ["add", "sub", "rsub"])
def test_alpha(name, alpha):
    torch = pytest.importorskip("torch")
    for a, b in itertools.product(DTYPES, DTYPES):
        rtol = 5e-3 if "float16" in (a, b) else None
        x, y = array((2, 3), a), array((3,), b, 1)
        check(torch, getattr(K, name), torch_function(torch, name), x, y, alpha=alpha, rtol=rtol)


def test_complex_parts():
    torch = pytest.importorskip("torch")
    for a, b in itertools.product(DTYPES, ["int64", "float32", "float64"]):
        if not a.startswith("complex"):
            check(torch, K.complex, torch.complex, array((2, 3), a), array((3,), b, 1))
            check(torch, K.polar, torch.polar, array((2, 3), a), array((3,), b, 1), rtol=1e-5)


def test_isclose_heaviside_round():
    torch = pytest.importorskip("torch")
    x = np.array([1.0, math.inf, -math.inf, math.nan, 1.0])
    y = np.array([1 + 1e-9, math.inf, math.inf, math.nan, 1.1])
    for equal_nan in (False, True):
        check(torch, K.isclose, torch.isclose, x, y, equal_nan=equal_nan)
    for a, b in itertools.product(DTYPES, DTYPES):
        check(torch, K.isclose, torch.isclose, array((2, 3), a), array((2, 3), b))
        check(torch, K.heaviside, torch.heaviside, array((2, 3), a), array((), b))
    check(torch, K.isclose, torch.isclose, x, y, rtol=-1.0)
    numbers = np.array([1234.5678, -0.5, 2.5, 0.15])
    for decimals in (0, 1, 2, -2):
        check(torch, K.round, torch.round, numbers, decimals=decimals)
    check(torch, K.round, torch.round, np.array([1, 2]), decimals=1)


def test_result_dtype():
    torch = pytest.importorskip("torch")
    operands = [array(shape, d) for d in DTYPES for shape in [(2,), ()]] + [True, 2, 2.5]
    for a, b in itertools.product(operands, operands):
        expected = torch.result_type(as_torch(torch, a), as_torch(torch, b))
        assert dtypes.from_numpy_dtype(promotion.result_dtype(a, b)).name == str(expected).split(".")[1]


SHAPES = [((2,), (3,)), ((2, 2), (2, 3)), ((2, 2), (3,)), ((4, 1, 2), (3, 3))]


@pytest.mark.parametrize("shapes", SHAPES)
def test_shape_errors(shapes):
    torch = pytest.importorskip("torch")
    x, y = (np.ones(s, F32) for s in shapes)
    for name in ("add", "sub", "mul", "div", "pow", "maximum", "lt", "atan2", "fmod", "clamp", "logaddexp"):
        check(torch, getattr(K, name), torch_function(torch, name), x, y)
    check(torch, K.add, torch.add, x, y, alpha=2)
    check(torch, K.addcmul, torch.addcmul, x, y, x)
    check(torch, K.lerp, torch.lerp, x, y, 0.5)
    check(torch, K.where, torch.where, x > 0, y, 1.0)


IN_PLACE = ["add", "sub", "mul", "div", "pow", "atan2", "lt", "logical_and", "remainder", "maximum", "clamp_min"]


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place(name):
    torch = pytest.importorskip("torch")
    if name == "maximum":
        method = lambda t, other: t.copy_(torch.maximum(t, other))
    else:
        method = lambda t, other: getattr(t, name + "_")(other)
    for a, b in itertools.product(DTYPES, DTYPES):
        if (name == "maximum" and a != b) or (name == "clamp_min" and "complex" in a):
            continue
        rtol = 5e-3 if "float16" in (a, b) else 1e-5
        x = positive_array((2, 3), a)
        kernel = lambda s, other: getattr(K, name)(s, other, out=s)
        check_in_place(torch, kernel, method, x, positive_array((3,), b), rtol)
        check_in_place(torch, kernel, method, x, positive_array((), b), rtol)
    if name != "maximum":
        check_in_place(torch, kernel, method, np.ones(2, F32), np.ones((3, 2), F32), None)
        check_in_place(torch, kernel, method, np.ones(2, F32), np.ones(3, F32), None)


@pytest.mark.parametrize("name", "exp sqrt tanh neg abs sigmoid relu round sgn erf reciprocal rsqrt ceil".split())
def test_in_place_unary(name):
    torch = pytest.importorskip("torch")
    for a in DTYPES:
        x = positive_array((2, 3), a)
        method = lambda t: getattr(t, name + "_")()
        check_in_place(torch, lambda s: getattr(K, name)(s, out=s), method, x, rtol=5e-3 if a == "float16" else 1e-5)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *itertools.product("neg abs relu sgn".split(), ["float32", "float64", "int32", "int64"]),
        *itertools.product("exp sqrt tanh sigmoid round reciprocal conj_physical".split(), ["float32", "float64"]),
    ],
)
def test_in_place_whatever_the_stride(name, dtype):
    """NumPy 2.4's np.negative errs where elements lie 16 or 64 bytes apart."""
    for step in range(1, 20):
        memory = positive_array((100,), dtype)
        part = memory[::step][:5]
        expected = memory.copy()
        expected[::step][:5] = [getattr(K, name)(np.array([x])).item() for x in part]
        getattr(K, name)(part, out=part)
        np.testing.assert_allclose(memory, expected, rtol=1e-6)


def check_in_place(torch, kernel, method, x, *others, rtol=None):
    others, rtol = (others[:1], others[1]) if len(others) == 2 else (others, rtol)
    target = x.copy()
    try:
        expected = method(torch.from_numpy(x.copy()), *[torch.from_numpy(o) for o in others])
    except (RuntimeError, NotImplementedError) as error:
        if "ComplexHalf" in str(error):  # operators refuse it (test_stored_dtypes.py), kernels do not
            return
        with pytest.raises(type(error)) as raised:
            kernel(target, *others)
        assert str(raised.value)[:50] == str(error)[:50]
        np.testing.assert_array_equal(target, x)
        return
    result = kernel(target, *others)
    assert result is target
    compare(target, expected, rtol)


# ------------------------------------------------------------------------------------------------ without torch


def test_values():
    a = np.array([1.0, -2.0, 3.0], F32)
    np.testing.assert_array_equal(K.add(a, a, alpha=2), [3, -6, 9])
    np.testing.assert_array_equal(K.div(np.array([7, -7]), 2, rounding_mode="trunc"), [3, -3])
    np.testing.assert_array_equal(K.div(np.array([7, -7]), 2, rounding_mode="floor"), [3, -4])
    np.testing.assert_array_equal(K.relu(a), [1, 0, 3])
    np.testing.assert_allclose(K.sigmoid(np.array([0.0, 1000.0, -1000.0])), [0.5, 1, 0])
    assert K.div(np.array([1]), np.array([2])).dtype == np.float32
    assert K.exp(np.array([0])).dtype == np.float32


def test_default_dtype_is_respected():
    dtypes.set_default_dtype(dtypes.float64)
    try:
        assert K.div(np.array([1]), 2).dtype == np.float64
        assert K.add(np.array([1]), 1.5).dtype == np.float64
        assert K.sin(np.array([True])).dtype == np.float64
    finally:
        dtypes.set_default_dtype(dtypes.float32)


def test_zero_dimensional_results_are_arrays():
    a = np.array(2.0, F32)
    names = ["add", "sub", "mul", "div", "pow", "maximum", "lt", "atan2", "remainder", "floor_divide", "hypot"]
    unary = FLOAT_UNARY + SAME_UNARY[:3]
    for r in [getattr(K, n)(a, a) for n in names] + [getattr(K, n)(a) for n in unary]:
        assert type(r) is np.ndarray and r.shape == ()


def test_numbers_alone_give_numbers():
    assert K.mul(2, 3.5) == 7.0
    assert K.log(2) == math.log(2)
    assert K.neg(2) == -2
    assert type(K.log(2)) is float
    assert type(K.mul(2, 3.5)) is float


def test_views():
    z = np.array([1 + 2j, 3j])
    assert np.shares_memory(K.real(z), z)
    assert np.shares_memory(K.imag(z), z)
    x = np.ones(2)
    assert K.real(x) is x and K.conj(x) is x
    for name in ("ceil", "round", "nan_to_num", "relu", "clamp_min"):
        i = np.ones(2, np.int64)
        args = (0,) if name == "clamp_min" else ()
        assert not np.shares_memory(getattr(K, name)(i, *args), i)


@pytest.mark.parametrize(
    "call, error, phrase",
    [
        (lambda: K.add(np.ones(2), np.ones(3)), RuntimeError, r"The size of tensor a \(2\) must match"),
        (lambda: K.sub(np.ones(2, bool), np.ones(2, bool)), RuntimeError, "with two bool tensors"),
        (lambda: K.neg(np.ones(2, bool)), RuntimeError, "on a bool tensor is not supported"),
        (lambda: K.remainder(np.ones(2, int), 0), RuntimeError, "ZeroDivisionError"),
        (lambda: K.pow(np.ones(2, int), -1), RuntimeError, "negative integer powers"),
        (lambda: K.lt(np.ones(2, complex), 1), NotImplementedError, "lt_cpu"),
        (lambda: K.clamp(np.ones(2)), RuntimeError, "At least one of"),
        (
            lambda: K.add(np.ones(2, int), 1.5, out=np.ones(2, int)),
            RuntimeError,
            "result type Float can't be cast to the desired output type Long",
        ),
        (
            lambda: K.add(np.ones(2), np.ones((3, 2)), out=np.ones(2)),
            RuntimeError,
            r"output with shape \[2\] doesn't match the broadcast shape \[3, 2\]",
        ),
        (lambda: K.masked_fill(np.ones(2), np.ones(2, int), 1), RuntimeError, "only supports boolean masks"),
        (lambda: K.gelu(np.ones(2), "foo"), RuntimeError, "approximate argument must be"),
        (lambda: K.polygamma(-1, np.ones(2)), RuntimeError, "does not support negative n"),
    ],
)
def test_errors(call, error, phrase):
    with pytest.raises(error, match=phrase):
        call()
