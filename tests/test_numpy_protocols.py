"""NumPy's functions called with Tensors, and arrays beside them: torch's answers where it has one, else gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import special

import retrograd

pytestmark = pytest.mark.usefixtures("clean_state")

rng = np.random.default_rng(5)
A = rng.uniform(0.2, 0.9, (3, 4))
B = rng.uniform(0.2, 0.9, (3, 4))
S = rng.uniform(0.2, 0.9, (3, 3)) + 2 * np.eye(3)
P = S @ S.T
V = rng.uniform(0.2, 0.9, 4)

#: Universal functions of one and two arguments with a gradient, at which arguments.
UFUNCS: list[tuple[Any, ...]] = [
    *[(f, A) for f in (
        np.positive, np.negative, np.absolute, np.fabs, np.exp, np.exp2, np.expm1, np.log, np.log2, np.log10, np.log1p,
        np.sqrt, np.square, np.cbrt, np.reciprocal, np.sin, np.cos, np.tan, np.arcsin, np.arccos, np.arctan, np.sinh,
        np.cosh, np.tanh, np.arcsinh, np.arctanh, np.deg2rad, np.rad2deg, np.degrees, np.radians, np.conjugate,
        np.sign, np.floor, np.ceil, np.trunc, np.rint, np.isnan, np.isinf, np.isfinite, np.signbit, np.logical_not,
        special.erf, special.erfc, special.erfcx, special.erfinv, special.expit, special.gammaln, special.i0,
        special.i0e, special.i1, special.i1e, special.log_ndtr, special.logit, special.ndtr, special.ndtri, special.psi,
        special.entr,
    )],
    (np.arccosh, A + 1.5),
    *[(f, A, B) for f in (
        np.add, np.subtract, np.multiply, np.divide, np.floor_divide, np.remainder, np.fmod, np.power, np.float_power,
        np.arctan2, np.hypot, np.maximum, np.minimum, np.fmax, np.fmin, np.logaddexp, np.logaddexp2, np.copysign,
        np.heaviside, np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal, np.logical_and,
        np.logical_or, np.logical_xor, np.vecdot, special.xlogy, special.xlog1py,
    )],
    (np.matmul, A, B.T),
    (np.matvec, A, V),
    (np.vecmat, rng.normal(size=3), A),
]  # fmt: skip

#: Calls of NumPy's other functions; x stands for a tensor that requires grad, all else is an array or a number.
CALLS: dict[str, Any] = {
    text: eval(f"lambda np, x, b, v, s, p: {text}")
    for text in """
        np.sum(x) | np.sum(x, axis=0) | np.sum(x, axis=(0, 1), keepdims=True) | np.prod(x) | np.prod(x, axis=1) |
        np.mean(x, axis=0) | np.mean(x) | np.std(x) | np.std(x, axis=1, ddof=1) | np.var(x, axis=0, keepdims=True) |
        np.max(x) | np.max(x, axis=1) | np.amax(x, axis=0) | np.min(x, axis=0) | np.amin(x) | np.ptp(x, axis=1) |
        np.cumsum(x) | np.cumsum(x, axis=1) | np.cumprod(x, axis=0) | np.quantile(x, 0.3) | np.quantile(x, v, axis=1)
        | np.percentile(x, 40, axis=0) | np.median(x) | np.median(x, axis=1) | np.average(x) | np.diff(x) |
        np.average(x, axis=1, weights=v) | np.average(x, weights=b) | np.trapezoid(x) | np.trapezoid(x, v, axis=1) |
        np.diff(x, n=2, axis=1) | np.diff(x, prepend=b[:, :1]) | np.nansum(x, axis=1) | np.nanmean(x) | np.reshape(x,
        (2, 6)) | np.reshape(x, -1) | np.ravel(x) | np.transpose(x) | np.transpose(x, (1, 0)) | np.swapaxes(x, 0, 1) |
        np.moveaxis(x, 0, 1) | np.squeeze(x[None]) | np.squeeze(x[None], axis=0) | np.expand_dims(x, (0, 2)) |
        np.expand_dims(x, -1) | np.broadcast_to(x, (2, 3, 4)) | np.concatenate([x, b]) | np.concatenate((b, x),
        axis=1) | np.concatenate([x, b], axis=None) | np.stack([b, x], axis=1) | np.vstack([x, v]) | np.hstack([x, b])
        | np.dstack([x, b]) | np.column_stack([x, b]) | np.split(x, 2, axis=1)[1] | np.array_split(x, 2)[0] |
        np.split(x, [1], axis=1)[1] | np.hsplit(x, 2)[0] | np.vsplit(x, 3)[2] | np.repeat(x, 2) | np.repeat(x, [1, 2,
        0], axis=0) | np.tile(x, (2, 1)) | np.tile(x, 2) | np.flip(x) | np.flip(x, 1) | np.fliplr(x) | np.flipud(x) |
        np.rot90(x) | np.roll(x, 1) | np.roll(x, 2, axis=1) | np.take(x, [0, 5]) | np.take(x, [[0, 2]], axis=1) |
        np.where(b > 0.5, x, b) | np.where(b > 0.5, 0.0, x) | np.clip(x, 0.4, 0.6) | np.clip(x, None, b) | np.clip(x,
        0.4, b) | np.sort(x) | np.sort(x, axis=0) | np.sort(x, axis=None) | np.diagonal(x) | np.diag(x[0]) |
        np.tril(x) | np.triu(x, 1) | np.trace(x) | np.trace(x, 1) | np.nan_to_num(x) | np.round(x) | np.around(x, 1) |
        np.copy(x) | np.real(x) | np.sinc(x) | np.atleast_3d(x) | np.dot(x, v) | np.dot(b.T, x) | np.dot(x[0], v) |
        np.dot(2.0, x) | np.dot(x, np.ones((2, 4, 3))) | np.inner(x, b) | np.outer(x, v) | np.vdot(x, b) | np.kron(x,
        b) | np.tensordot(x, b, axes=([0, 1], [0, 1])) | np.tensordot(x, v, axes=1) | np.einsum('ij,kj->ik', x, b) |
        np.einsum('ij,j', x, v, optimize=True) | np.cross(x[:, :3], b[:, :3]) | np.linalg.norm(x) | np.linalg.norm(x,
        axis=1) | np.linalg.norm(x, 1, axis=0) | np.linalg.inv(x[:, :3] + s) | np.linalg.det(x[:, :3] + s) |
        np.linalg.solve(s, x) | np.linalg.pinv(x) | np.linalg.slogdet(x[:, :3] + s)[1] | np.linalg.solve(x[:, :3] + s,
        v[:3]) | np.linalg.matrix_power(x[:, :3], 3) | np.linalg.cholesky(p + x[:, :3] @ x[:, :3].T) |
        np.linalg.multi_dot([x, b.T, x]) | np.linalg.eigvalsh(p + x[:, :3] @ x[:, :3].T) | np.linalg.svd(x)[1] |
        np.abs(np.linalg.qr(x)[1]) | np.abs(np.fft.fft(x)) | np.real(np.fft.ifft(x, axis=0)) | np.imag(np.fft.rfft(x,
        norm='ortho')) | np.fft.irfft(x) | np.fft.fftshift(x) | np.fft.ifftshift(x) | np.angle(np.fft.fft(x)) |
        np.add.reduce(x) | np.add.reduce(x, axis=None) | np.multiply.reduce(x, axis=(0, 1)) | np.maximum.reduce(x,
        axis=1, keepdims=True) | np.minimum.reduce(x) | np.logaddexp.reduce(x, axis=1) | np.add.accumulate(x) |
        np.multiply.accumulate(x, axis=1) | np.maximum.accumulate(x) | np.subtract.outer(x[0], v) |
        np.multiply.outer(v, x) | np.modf(3 * x)[0] | np.divmod(3 * x, b)[1] | np.frexp(x)[0] | np.ldexp(x, 2) |
        np.zeros_like(x) | np.ones_like(x) | np.full_like(x, 2) | np.argmax(x) | np.argmin(x, axis=1) | np.argsort(x)
        | np.any(x > 0.5) | np.all(x, axis=0) | np.isclose(x, b) | np.allclose(x, b) | np.array_equal(x, b) |
        np.shape(x) | np.ndim(x) | np.size(x) | np.size(x, 1) | b + x | x + b | b - x | x - b | b * x | x * b | b / x
        | x / b | b ** x | x ** b | b // x | x // b | b % x | x % b | b.T @ x | x @ b.T | b < x | x < b | b == x | x
        == b | b >= x | divmod(b, x)[0] | np.float64(2.5) * x | x * np.float64(2.5) | np.float64(2.5) - x |
        np.float64(2.5) ** x | np.float64(0.5) < x | np.int64(3) / x | v * x | x * v | b[0] @ x.T
    """.split("|")
    for text in [" ".join(text.split())]
}


#: Torch's operators for these have none, and say so in a backward pass.
NO_DERIVATIVE = ("floor_divide", "heaviside", "//", "divmod(b, x)[0]")


def test_every_operator_is_compared() -> None:
    from retrograd.utils._numpy_protocols.functions import FUNCTIONS
    from retrograd.utils._numpy_protocols.ufuncs import OPERATORS

    elsewhere = set("gcd lcm bitwise_and bitwise_or bitwise_xor invert left_shift right_shift nextafter".split())
    elsewhere |= {"gammainc", "gammaincc", "zeta", "sinc", "ldexp", "frexp", "divmod", "modf"}
    assert {f.__name__ for f, *_ in UFUNCS} | elsewhere == set(OPERATORS)
    called = " ".join(CALLS)
    not_called = [f.__name__ for f in FUNCTIONS if f".{f.__name__}(" not in called]
    assert sorted(not_called) == ["atleast_1d", "atleast_2d", "dsplit", "eig", "eigh", "eigvals", "empty_like"]


def values(result: Any) -> np.ndarray:
    return np.asarray(result.detach() if isinstance(result, retrograd.Tensor) else result)


@pytest.mark.parametrize("case", UFUNCS, ids=lambda case: case[0].__name__)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_universal_functions(case: tuple[Any, ...], dtype: Any) -> None:
    """Of tensors that require grad: NumPy's values and dtypes, and gradients."""
    ufunc, *arrays = case
    if dtype is np.int64:
        # The first is an array of integers, which decides with what NumPy computes; only two arguments have a gradient.
        if len(arrays) == 1 or ufunc.__name__ in ("float_power", "xlogy", "xlog1py", "copysign", "heaviside"):
            return
        integers = np.ceil(arrays[1]).astype(np.int64)
        args = [retrograd.tensor(arrays[0].astype(np.float32), requires_grad=True), integers]
        expected = ufunc(arrays[0].astype(np.float32), integers)
    else:
        args = [retrograd.tensor(array.astype(dtype), requires_grad=True) for array in arrays]
        expected = ufunc(*[array.astype(dtype) for array in arrays])
    result = ufunc(*args)
    assert isinstance(result, retrograd.Tensor)
    kind = np.uint8 if expected.dtype == bool else expected.dtype
    assert result.detach().numpy().dtype == kind
    np.testing.assert_allclose(values(result), expected, rtol=1e-5 if kind == np.float32 else 1e-12, atol=1e-6)
    if result.requires_grad and dtype is np.float64 and ufunc.__name__ not in NO_DERIVATIVE:
        assert retrograd.autograd.gradcheck(ufunc, args)


@pytest.mark.parametrize("text", CALLS)
def test_functions(text: str) -> None:
    call = CALLS[text]
    expected = call(np, A, B, V, S, P)
    x = retrograd.tensor(A, requires_grad=True)
    result = call(np, x, B, V, S, P)
    np.testing.assert_allclose(values(result), expected, rtol=1e-9, atol=1e-12)
    if isinstance(result, retrograd.Tensor):
        assert result.shape == np.shape(expected)
        if result.requires_grad and result.dtype.is_floating_point and not any(o in text for o in NO_DERIVATIVE):
            assert retrograd.autograd.gradcheck(lambda x: call(np, x, B, V, S, P), [x])
    else:
        assert isinstance(result, (bool, int, tuple))


@pytest.mark.parity
@pytest.mark.parametrize("text", CALLS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
def test_what_torch_answers_is_answered(text: str, dtype: str) -> None:
    """Of plain tensors: the same types, dtypes (bytes for bools) and values. Where torch refuses, we need not."""
    torch = pytest.importorskip("torch")

    def outcome(library: Any) -> Any:
        x = library.tensor((A * (10 if dtype == "int64" else 1)).astype(dtype))
        result = CALLS[text](np, x, B, V, S, P)
        if isinstance(result, library.Tensor):
            return "Tensor", str(result.dtype), result.numpy()
        return type(result).__name__, str(getattr(result, "dtype", "")), result

    try:
        theirs = outcome(torch)
    except (TypeError, RuntimeError, ValueError, np.linalg.LinAlgError):
        return
    if theirs[0] == "builtin_function_or_method":  # np.size(x), which torch's tensors have a method of that name for
        return
    ours = outcome(retrograd)
    assert ours[:2] == theirs[:2]
    np.testing.assert_allclose(ours[2], theirs[2], rtol=1e-5 if "float32" in theirs[1] else 1e-12, atol=1e-6)


def test_arrays_beside_tensors_follow_torch_in_their_dtypes() -> None:
    f = retrograd.ones(2)
    assert (np.float64(2) * f).dtype is retrograd.float32 and (np.sqrt(2.0) * f).dtype is retrograd.float32
    assert (np.ones(2) * f).dtype is retrograd.float64 and (np.ones(2, np.int64) * f).dtype is retrograd.float32
    assert (np.ones(2) < f).dtype is retrograd.bool
    with pytest.raises(RuntimeError, match=r"must match the size of tensor|broadcast"):
        np.ones(3) * f.requires_grad_()


def test_arrays_of_any_kind_beside_tensors(recwarn: Any) -> None:
    x = retrograd.arange(3.0, requires_grad=True)
    array = np.arange(3.0)
    array.flags.writeable = False  # nothing is written to it
    assert (array[::-1] * x).tolist() == [0, 1, 0] and (np.array(3) * x).tolist() == [0, 3, 6]
    assert np.concatenate([x, array[::-1]]).tolist() == [0, 1, 2, 2, 1, 0]
    packed = np.zeros(3, np.dtype([("a", "i1"), ("b", "f8")]))["b"]
    assert (packed + x).tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="strides not a multiple of the element byte size"):
        retrograd.from_numpy(packed)
    with pytest.raises(TypeError, match="can't convert"):
        np.array(["a", "b", "c"]) * x
    assert not recwarn.list


def test_gradients_are_not_lost() -> None:
    x = retrograd.tensor([1.0, 2.0], requires_grad=True)
    lost = r"Can't call numpy\(\) on Tensor that requires grad"
    for call in (
        lambda: np.spacing(x), lambda: np.unique(x), lambda: np.polyfit(x, x, 1), lambda: np.add(x, 1, out=np.ones(2)),
        lambda: np.add(x, 1, where=np.array([True, False])), lambda: np.asarray(x), lambda: np.array([x, x]),
        lambda: np.logical_and.reduce(x), lambda: np.add.at(x, [0], 1), lambda: np.add.reduceat(x, [0]),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=lost):
            call()
    with pytest.raises(RuntimeError, match=r"numpy\.spacing"):
        np.spacing(x)
    with pytest.raises(TypeError, match="the argument where is not supported"):
        np.sum(x, where=np.array([True, False]))
    array = np.ones(2)
    with pytest.raises(RuntimeError, match=lost):
        array += x
    assert array.tolist() == [1, 1]
    with retrograd.no_grad():
        array += x
    assert array.tolist() == [2, 3]
    array += x.detach()
    assert array.tolist() == [3, 5]
    with pytest.raises(TypeError, match="return arrays must be of ArrayType"):
        np.add(array, array, out=x.detach())


def test_memory_is_shared_and_gradients_reach_other_operators() -> None:
    x = retrograd.tensor([1.0, 2.0], requires_grad=True)
    array = np.array([3.0, 4.0])
    y = np.sum(array * np.square(x))
    array[:] = 5  # what was saved is the array's memory, as of any tensor made with from_numpy
    y.backward()
    assert x.grad.tolist() == [10, 20]


def test_arrays_of_tensors_are_copied_as_numpy_is_told() -> None:
    x = retrograd.ones(2)
    assert np.asarray(x, copy=False).ctypes.data == x.data_ptr() != np.array(x, copy=True).ctypes.data
    assert np.asarray(x, dtype=np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="avoid copy"):
        np.asarray(x, dtype=np.float64, copy=False)


def test_forward_mode_sees_numpy() -> None:
    fwAD = retrograd.autograd.forward_ad
    with fwAD.dual_level():
        dual = fwAD.make_dual(retrograd.tensor([0.5]), retrograd.tensor([2.0]))
        tangent = fwAD.unpack_dual(np.sin(dual) * np.float64(3)).tangent
    assert tangent.item() == pytest.approx(6 * np.cos(0.5))


def test_other_arrays_are_asked_too() -> None:
    class Third:
        def __array_ufunc__(self, *args: Any, **kwargs: Any) -> str:
            return "third"

        def __array_function__(self, *args: Any, **kwargs: Any) -> str:
            return "third"

    assert np.add(retrograd.ones(2), Third()) == "third"
    assert np.concatenate([retrograd.ones(2), Third()]) == "third"
