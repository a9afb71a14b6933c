"""Tensor data: dtype inference, shapes and errors of ``torch.tensor(data)``, spelled out and compared with torch."""

from __future__ import annotations

import collections
import fractions
import math
import warnings

import numpy as np
import pytest

from retrograd.tensor.data import infer_array


class FakeTensor:
    def __init__(self, data, dtype=None):
        self._numbers_ = np.array(data, dtype=dtype)


def infer(data, dtype=None, default="float32"):
    return infer_array(data, None if dtype is None else np.dtype(dtype), np.dtype(default))


def check(data, expected, dtype_name, dtype=None):
    array = infer(data, dtype)
    assert isinstance(array, np.ndarray)
    assert array.dtype.name == dtype_name
    np.testing.assert_array_equal(array, np.array(expected, dtype=dtype_name))
    assert array.shape == np.shape(expected)


@pytest.mark.parametrize(
    "data, expected, dtype_name",
    [
        (True, True, "bool"),
        (3, 3, "int64"),
        (1.5, 1.5, "float32"),
        (1e300, math.inf, "float32"),
        (1j, 1j, "complex64"),
        ([True, False], [True, False], "bool"),
        ([True, 2], [1, 2], "int64"),
        ([True, 2, 2.5], [1, 2, 2.5], "float32"),
        ([1, 1j], [1, 1j], "complex64"),
        ([[1, 2], (3, 4)], [[1, 2], [3, 4]], "int64"),
        ([2**64, 1.0], [2.0**64, 1], "float32"),
        (range(3), [0, 1, 2], "int64"),
        ([range(2), [5, 6]], [[0, 1], [5, 6]], "int64"),
        ([], np.empty(0), "float32"),
        ([[], []], np.empty((2, 0)), "float32"),
        ([[], [1]], np.empty((2, 0)), "float32"),
        (np.float64(1), 1, "float64"),
        ([np.float16(1), 2], [1, 2], "float16"),
        ([np.int8(1), np.int32(2)], [1, 2], "int32"),
        (np.array([1, 2], np.int16), [1, 2], "int16"),
        ([np.array([1, 2]), np.array([3, 4], np.float16)], [[1, 2], [3, 4]], "float16"),
        (FakeTensor([1.5]), [1.5], "float64"),
        ([FakeTensor(1.5), 2], [1.5, 2], "float64"),
        ([FakeTensor([2]), 3], [2, 3], "int64"),
        ([[1, 2], FakeTensor([3, 4])], [[1, 2], [3, 4]], "int64"),
        ([FakeTensor(1, np.uint8), FakeTensor(1, np.int8)], [1, 1], "int16"),
        ([1j, FakeTensor(1.0)], [1j, 1], "complex128"),
    ],
)
def test_inferred(data, expected, dtype_name):
    check(data, expected, dtype_name)


@pytest.mark.parametrize(
    "data, dtype, expected",
    [
        (1.7, "int64", 1),
        ([1.7, -1.7], "int32", [1, -1]),
        (-1, "uint8", 255),
        ([-255, 3], "uint8", [1, 3]),
        ([0.5, 0, math.nan], "bool", [True, False, True]),
        (10**400, "bool", True),
        ([1, 2], "complex128", [1, 2]),
        (70000, "float16", math.inf),
        ([1e300], "float32", [math.inf]),
        (np.array([1e300]), "float32", [math.inf]),
        (np.array([300]), "uint8", [44]),
        (np.array([1], np.uint16), "float32", [1]),
        ([FakeTensor(2)], "float64", [2]),
        (fractions.Fraction(1, 2), "float32", 0.5),
        ([], "int32", np.empty(0)),
    ],
)
def test_dtype_given(data, dtype, expected):
    check(data, expected, dtype, dtype)


@pytest.mark.parametrize(
    "data, dtype, error, text",
    [
        ([[1, 2], [1, 2, 3]], None, ValueError, r"expected sequence of length 2 at dim 1 \(got 3\)"),
        ([[[1], [2]], [[3]]], None, ValueError, r"expected sequence of length 2 at dim 1 \(got 1\)"),
        ([[1, 2], 3], None, TypeError, "not a sequence"),
        ([1, [2, 3]], None, TypeError, "'list' object cannot be interpreted as an integer"),
        ([1.0, [2, 3]], None, TypeError, "must be real number, not list"),
        ("a", None, TypeError, r"new\(\): invalid data type 'str'"),
        ([1, "a"], None, TypeError, r"new\(\): invalid data type 'str'"),
        (["a"], None, ValueError, "too many dimensions 'str'"),
        (None, None, RuntimeError, "Could not infer dtype of NoneType"),
        ([[1, 2], [1, None, 3]], None, RuntimeError, "Could not infer dtype of NoneType"),
        ({}, None, RuntimeError, "Could not infer dtype of dict"),
        ([None], "float32", TypeError, "must be real number, not NoneType"),
        (1j, "float32", TypeError, "must be real number, not complex"),
        (2**63, None, ValueError, "Overflow when unpacking long long"),
        ([1, -(2**63) - 1], None, ValueError, "Overflow when unpacking long long"),
        ([300], "uint8", RuntimeError, "value cannot be converted to type uint8 without overflow"),
        (255.9, "uint8", RuntimeError, "value cannot be converted to type uint8 without overflow"),
        (math.nan, "int64", RuntimeError, "value cannot be converted to type int64 without overflow"),
        ([FakeTensor(1j), None], None, TypeError, "must be real number, not NoneType"),
        ([10**400, 1.0], None, OverflowError, "int too large to convert to float"),
        ([FakeTensor([1.0, 2.0])], None, ValueError, "only one element tensors can be converted to Python scalars"),
        ([FakeTensor([1, 2])], None, TypeError, "only integer tensors of a single element"),
        (np.array(["a"]), "float32", TypeError, "can't convert np.ndarray of type"),
    ],
)
def test_errors(data, dtype, error, text):
    with pytest.raises(error, match=text):
        infer(data, dtype)


def test_default_float():
    assert infer(1.5, default="float64").dtype == np.float64
    assert infer([1, 1.5], default="float16").dtype == np.float16
    assert infer([1.5, 1j], default="float64").dtype == np.complex128
    assert infer([], default="float64").dtype == np.float64


def test_always_a_copy():
    source = np.ones(3, np.float32)
    for data in (source, FakeTensor(source), [source]):
        array = infer(data)
        assert not np.shares_memory(array, getattr(data, "_numbers_", source))
        assert array.flags.owndata or array.base is not source
        assert array.flags.writeable


def test_no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        infer(1e300)
        infer([1e300, 1.0])
        infer([[1e300], np.float64([1e300])], "float32")
        infer(np.array([1e300]), "float16")


def test_list_inside_itself():
    data = []
    data.append(data)
    with pytest.raises(ValueError, match="too many dimensions 'list'"):
        infer(data)


# ---------------------------------------------------------------------------------------------------- against torch

NAMES = ["bool", "uint8", "int8", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128"]
STRANGE = [None, "a", "", b"ab", {}, {1, 2}, math.nan, math.inf, 1e300, -1e300, 2**31, 2**63, -(2**63), 2**64, 255,
           -255, -256, 127.9, -0.5, 1e19, 9.2e18, 1e300j, [], (), [[]], [1, 2], {1: 2}, object,
           fractions.Fraction(1, 3), collections.deque([1, 2]), bytearray(b"ab"), range(2)]  # fmt: skip


def random_leaf(rng, make_tensor, strange):
    kind = int(rng.integers(9))
    if rng.random() < strange:
        return STRANGE[int(rng.integers(len(STRANGE)))]
    if kind < 5:
        return [True, 3, -4.5, 7.25, 2 - 1j][kind]
    name = NAMES[int(rng.integers(len(NAMES)))]
    if kind == 5:
        return np.dtype(name).type(rng.integers(0, 9))
    if kind == 6:
        return make_tensor(np.array(rng.integers(0, 9)).astype(name))
    return [5, 2.5][kind - 7]


def random_nest(rng, make_tensor, shape, strange, tame):
    if not shape:
        return tame if rng.random() < 0.7 else random_leaf(rng, make_tensor, strange)
    length = shape[0] + (int(rng.integers(-1, 2)) if rng.random() < strange else 0)
    items = [random_nest(rng, make_tensor, shape[1:], strange, tame) for _ in range(length)]
    return items if rng.random() < 0.8 else tuple(items)


# Texts that name C types, or that only say which dtypes torch has and we have not.
LOOSE = ("can't convert np.ndarray", "an integer is required", "Could not infer dtype")


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(300))
def test_as_torch(seed):
    """The same nest, with torch's tensors and with ours: the same array or the same error."""
    torch = pytest.importorskip("torch")

    def outcome(make_tensor, call):
        rng = np.random.default_rng(seed)
        shape = [int(n) for n in rng.integers(1, 4, int(rng.integers(0, 4)))]
        strange = [0.0, 0.1][int(rng.integers(2))]
        tame = [True, 3, 2.5, 1j][int(rng.integers(4))]
        name = None if rng.random() < 0.6 else NAMES[int(rng.integers(len(NAMES)))]
        data = random_nest(rng, make_tensor, shape, strange, tame)
        try:
            array = call(data, name)
        except Exception as error:
            text = str(error)
            return type(error).__name__, next((loose for loose in LOOSE if text.startswith(loose)), text)
        return array.dtype.name, array.shape, array.tobytes()

    theirs = outcome(
        lambda a: torch.from_numpy(a),
        lambda data, name: torch.tensor(data, dtype=None if name is None else getattr(torch, name)).numpy(),
    )
    assert outcome(FakeTensor, infer) == theirs
