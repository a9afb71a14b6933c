"""Tensor data: the array behind ``torch.tensor(data)``.

`infer_array` turns Python numbers, nested sequences, NumPy arrays and tensors into a new array.  Regular nests of
plain numbers, nearly all there are, take `_regular`, where every loop over elements runs in C.  Everything else,
and every mistake, takes the general way in three steps, in torch's order, since the order decides which error a
malformed input gets:

1. `_shape` follows the first elements down,
2. `_infer_dtype` promotes over all elements,
3. `_fill` checks the lengths and converts each element as Python's own protocols (`__index__`, `__float__`) do.
"""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np

from ..core import dtypes
from ..core.where import users_level
from ..kernels.dtypes import convert
from ..kernels.promotion import promote_dtypes

_INT64 = np.dtype(np.int64)
_UINT64 = np.dtype(np.uint64)
_BOOL = np.dtype(bool)
_COMPLEX128 = np.dtype(np.complex128)
_MAX_DIMS = 64  # NumPy's limit; it also ends the descent into strings and into lists that hold themselves
_ALWAYS_FINITE = 6.0e4  # below this no float dtype overflows, so that a cast cannot warn

# A cast to a smaller float gives inf in torch without a word.
_silent: dict[str, Any] = {"over": "ignore", "invalid": "ignore"}


def infer_array(data: Any, dtype: np.dtype | None, default_float: np.dtype) -> np.ndarray:
    """A new array of what `data` holds, as `dtype` or as the dtype that torch infers.

    >>> infer_array([[1, 2], [3, 4.5]], None, np.dtype("float32"))
    array([[1. , 2. ],
           [3. , 4.5]], dtype=float32)
    >>> infer_array([[1, 2], [3]], None, np.dtype("float32"))
    Traceback (most recent call last):
    ValueError: expected sequence of length 2 at dim 1 (got 1)
    """
    kind = type(data)
    if kind is float or kind is int:
        if dtype is None:
            dtype = default_float if kind is float else _INT64
        if -_ALWAYS_FINITE < data < _ALWAYS_FINITE and (dtype.kind in "fV" or (kind is int and dtype == _INT64)):
            return _array(data, dtype)
    elif kind is list or kind is tuple:
        regular = _regular(data, dtype, default_float)
        if regular is not None:
            return regular

    array = _array_of(data)
    if array is not None:
        return _copied(array, dtype)
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{kind.__name__}'")
    if hasattr(data, "_elements_for"):  # a storage
        return data._elements_for(dtype, default_float)
    shape = _shape(data)
    if dtype is None:
        dtype = _infer_dtype(data, default_float)
    if 0 in shape:
        return np.empty(shape, dtype=dtype)
    leaves: list[Any] = []
    _fill(data, shape, 0, _converter(dtype), leaves)
    with np.errstate(**_silent):
        return _array(leaves, dtype).reshape(shape)


def _array(numbers: Any, dtype: np.dtype) -> np.ndarray:
    """``np.array``, for dtypes too that NumPy does not have itself."""
    if dtype.num < 256 and dtype.names is None:
        return np.array(numbers, dtype=dtype)
    if dtype.names is not None:
        raise RuntimeError("store_scalar: invalid type: numbers of torch.float4_e2m1fn_x2 share bytes; view() them")
    return convert(np.array(numbers, np.complex128 if dtype.kind in "W" else np.float64), dtype)


def _array_of(data: Any) -> np.ndarray | None:
    """The array that `data` is or, if it is a tensor, holds."""
    if isinstance(data, np.ndarray):
        return data
    held = getattr(data, "_numbers_", None)
    return held if hasattr(held, "dtype") else None


def _copied(array: np.ndarray, dtype: np.dtype | None) -> np.ndarray:
    native = dtypes.from_numpy_dtype(array.dtype).np
    dtype = native if dtype is None else dtype
    with np.errstate(**_silent):
        return np.array(array if max(native.num, dtype.num) < 256 else convert(array, dtype), dtype=dtype)


# ---------------------------------------------------------------------------------------------------- the fast way

_SEQUENCES = frozenset((list, tuple))
_NUMBERS = frozenset((bool, int, float, complex))


def _regular(data: Any, dtype: np.dtype | None, default_float: np.dtype) -> np.ndarray | None:
    """The array, if `data` is a regular nest of lists and tuples of Python numbers, or of arrays; None if not."""
    shape = [len(data)]
    level, kinds = data, set(map(type, data))
    while kinds and kinds <= _SEQUENCES:
        lengths = set(map(len, level))
        if len(lengths) != 1 or len(shape) == _MAX_DIMS:
            return None
        shape.append(lengths.pop())
        level = list(chain.from_iterable(level))
        kinds = set(map(type, level))
    if kinds == {np.ndarray}:
        warnings.warn(
            "Creating a tensor from a list of numpy.ndarrays is extremely slow. Please consider converting the list to "
            "a single numpy.ndarray with numpy.array() before converting to a tensor.",
            UserWarning,
            stacklevel=users_level(),
        )
        return _stacked(level, shape, dtype)
    if not kinds <= _NUMBERS:
        return None

    if dtype is None:
        if complex in kinds:
            dtype = _complex_of(default_float)
        elif float in kinds or not kinds:
            dtype = default_float
        else:
            dtype = _INT64 if int in kinds else _BOOL
    try:
        if dtype.kind in "iu":
            array = _integers(level, kinds, dtype)
        elif dtype.kind in "fV" and complex in kinds:
            return None
        else:
            with np.errstate(**_silent):
                array = _array(level, dtype)
    except OverflowError:
        return None
    return None if array is None else array.reshape(shape)


def _integers(numbers: Any, kinds: set[type], dtype: np.dtype) -> np.ndarray | None:
    if not kinds <= {bool, int} or (dtype == _UINT64 and min(numbers, default=0) < 0):
        return None
    array = np.array(numbers, dtype=_INT64)
    if dtype != _INT64:
        bounds = np.iinfo(dtype)
        if array.size and (array.min() < bounds.min or array.max() > bounds.max):
            return None
        array = array.astype(dtype)
    return array


def _stacked(arrays: list[np.ndarray], shape: list[int], dtype: np.dtype | None) -> np.ndarray | None:
    inner = arrays[0].shape
    if dtype is not None or not inner or any(a.shape != inner for a in arrays):
        return None
    for array in arrays:
        dtype = _promoted(dtype, dtypes.from_numpy_dtype(array.dtype).np)
    return np.stack(arrays).astype(dtype, copy=False).reshape((*shape, *inner))


# ---------------------------------------------------------------------------------------------------- the general way


def _is_sequence(data: Any) -> bool:
    # Python has no flag for "sequence"; like its C API, take what can be indexed and is neither a dict nor a scalar.
    return hasattr(type(data), "__getitem__") and not isinstance(data, (dict, np.generic)) and not _is_tensor(data)


def _is_tensor(data: Any) -> bool:
    return not isinstance(data, np.ndarray) and _array_of(data) is not None


def _shape(data: Any) -> list[int]:
    """The lengths met on the way down the first elements.  A tensor inside a sequence counts as one number."""
    shape: list[int] = []
    while isinstance(data, str) or _is_sequence(data):
        if len(shape) == _MAX_DIMS:
            raise ValueError(f"too many dimensions '{type(data).__name__}'")
        shape.append(len(data))
        if shape[-1] == 0:
            break
        try:
            data = data[0]
        except (TypeError, KeyError, IndexError):
            raise ValueError(f"could not determine the shape of object type '{type(data).__name__}'") from None
    return shape


def _complex_of(default_float: np.dtype) -> np.dtype:
    return dtypes.from_numpy_dtype(default_float).to_complex().np


def _promoted(a: np.dtype | None, b: np.dtype) -> np.dtype:
    """torch's promotion."""
    return b if a is None else promote_dtypes(a, b)


def _infer_dtype(data: Any, default_float: np.dtype) -> np.dtype:
    # NumPy's float64 is a Python float too, but keeps its own dtype: hence before the Python types.
    if isinstance(data, np.generic) and not isinstance(data, (str, bytes)):
        return dtypes.from_numpy_dtype(data.dtype).np
    if isinstance(data, float):
        return default_float
    if isinstance(data, bool):
        return _BOOL
    if isinstance(data, int):
        return _INT64
    if isinstance(data, complex):
        return _complex_of(default_float)
    array = _array_of(data)
    if array is not None:
        return dtypes.from_numpy_dtype(array.dtype).np
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    if not _is_sequence(data):
        raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")
    dtype = None if len(data) else default_float
    for item in data:
        if item is data:
            raise TypeError("new(): self-referential lists are incompatible")
        dtype = _promoted(dtype, _infer_dtype(item, default_float))
        if dtype == _COMPLEX128:  # nothing is wider, so torch looks no further
            break
    assert dtype is not None
    return dtype


def _fill(data: Any, shape: list[int], dim: int, convert: Callable[[Any], Any], leaves: list[Any]) -> None:
    if dim == len(shape):
        leaves.append(convert(data))
        return
    array = _array_of(data)
    try:
        items = list(data if array is None else array)
    except TypeError:
        raise TypeError("not a sequence") from None
    if len(items) != shape[dim]:
        raise ValueError(f"expected sequence of length {shape[dim]} at dim {dim} (got {len(items)})")
    for item in items:
        _fill(item, shape, dim + 1, convert, leaves)


# ---------------------------------------------------------------------------------------------------- one element


def _converter(dtype: np.dtype) -> Callable[[Any], Any]:
    if dtype.kind == "b":
        return _as_bool
    if dtype.kind in "fV":
        return _as_float
    if dtype.kind in "cW":
        return _as_complex
    if dtype == _UINT64:
        return _as_uint64
    bounds = np.iinfo(dtype)
    return lambda value: _as_int(value, int(bounds.min), int(bounds.max), dtype)


def _only_element(array: np.ndarray) -> Any:
    if array.size != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    return array.item()


def _as_index(value: Any) -> int:
    array = _array_of(value)
    if array is None:
        return operator.index(value)
    if array.size != 1 or array.dtype.kind not in "biu":
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return int(array.item())


def _as_int(value: Any, low: int, high: int, dtype: np.dtype) -> int:
    if isinstance(value, float):
        # Compared before it is truncated: 255.9 does not fit a byte.  The last comparison is for 2.0**63, which is
        # what the largest int64 rounds to, and also turns nan away.
        fits = low <= value <= high and value < 2.0**63
        number = int(value) if fits else 0
    else:
        number = _as_index(value)
        if not -(2**63) <= number < 2**63:
            raise ValueError("Overflow when unpacking long long")
        # A byte may be written as a negative number, as in C.
        fits = (-high if low == 0 else low) <= number <= high
    if not fits:
        raise RuntimeError(f"value cannot be converted to type {dtype.name} without overflow")
    return number % (high + 1) if low == 0 else number


def _as_uint64(value: Any) -> int:
    """The one dtype that torch takes ints alone for, up to its last."""
    if isinstance(value, float):
        raise TypeError("an integer is required")
    number = _as_index(value)
    if not 0 <= number < 2**64:
        raise OverflowError("can't convert negative int to unsigned" if number < 0 else "int too big to convert")
    return number


def _as_float(value: Any) -> float:
    array = _array_of(value)
    if array is not None:
        value = _only_element(array)
        if isinstance(value, complex):
            if value.imag != 0:
                raise RuntimeError("value cannot be converted to type double without overflow")
            value = value.real
    # float() would also read strings; the math functions take real numbers only, with the error text torch has.
    return math.ldexp(value, 0)


def _as_complex(value: Any) -> complex:
    array = _array_of(value)
    if array is not None:
        value = _only_element(array)
    return complex(value) if hasattr(value, "__complex__") else complex(_as_float(value))


def _as_bool(value: Any) -> bool:
    if isinstance(value, (float, complex, np.bool_)):
        return bool(value)
    return _as_index(value) != 0
