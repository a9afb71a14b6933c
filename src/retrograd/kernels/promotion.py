"""Torch's type promotion on bare arrays, and the checks that every kernel shares.

Operands have three ranks: arrays with dimensions, 0-d arrays, Python numbers.  The highest rank decides the dtype;
a lower one changes it only when it is of a higher category (bool < integer < float < complex).  The pointwise kernels
do the common case (two arrays of one dtype) themselves and come to `apply_binary` and `apply_unary` with the rest.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from retrograd.core import dtypes

from .compiled import LARGE, on_threads
from .dtypes import convert

ndarray = np.ndarray
Operand = Any  # an array or a Python number
Kernel = Callable[..., Any]  # one that was made by another function

_BOOL, _INT64, _FLOAT64 = np.dtype(bool), np.dtype(np.int64), np.dtype(np.float64)
_FLOAT32 = np.dtype(np.float32)

_CATEGORY = {"b": 0, "u": 1, "i": 1, "f": 2, "V": 2, "c": 3, "W": 3}
_NUMBERS = frozenset((bool, int, float))  # the numbers that a float or complex array absorbs

_C_NAMES = {
    "bool": "bool", "uint8": "uint8_t", "int8": "int8_t", "int16": "int16_t", "int32": "int", "int64": "int64_t",
    "float16": "c10::Half", "bfloat16": "c10::BFloat16", "float32": "float", "float64": "double",
    "complex64": "c10::complex<float>", "complex128": "c10::complex<double>", "complex32": "c10::complex<c10::Half>",
    "uint16": "uint16_t", "uint32": "uint32_t", "uint64": "uint64_t",
    **{name: f"c10::{dtypes.SCALAR_NAMES[name]}" for name in dtypes.FLOAT8},
}  # fmt: skip
_LARGEST = {
    "complex32": 65504.0, "float8_e4m3fn": 448.0, "float8_e5m2": 57344.0, "float8_e4m3fnuz": 240.0,
    "float8_e5m2fnuz": 57344.0, "float8_e8m0fnu": 2.0**127,
    "float16": 65504.0, "bfloat16": (2 - 2**-7) * 2.0**127, "float32": (2 - 2**-23) * 2.0**127,
    "float64": (2 - 2**-52) * 2.0**1023, "complex64": (2 - 2**-23) * 2.0**127, "complex128": (2 - 2**-52) * 2.0**1023,
}  # fmt: skip


# ------------------------------------------------------------------------------------------------------- dtypes


def scalar_name(dtype: np.dtype) -> str:
    """Torch's name for a dtype in error texts: Float for float32, Long for int64."""
    known = dtypes.by_numpy.get(dtype)
    return dtype.name if known is None else dtypes.SCALAR_NAMES[known.name]


def c_name(dtype: np.dtype) -> str:
    """C's name for a dtype, where torch has that in error texts: float for float32, long int for int64."""
    known = dtypes.by_numpy.get(dtype)
    return dtype.name if known is None else dtypes.C_NAMES[known.name]


def category(dtype: np.dtype) -> int:
    """0, 1, 2, 3 for bool, integer, float, complex."""
    return _CATEGORY[dtype.kind]


def number_dtype(value: Operand) -> np.dtype:
    """The dtype that a Python number counts as."""
    if isinstance(value, bool):
        return _BOOL
    if isinstance(value, int):
        return _INT64
    if isinstance(value, float):
        return dtypes.default[0]
    if isinstance(value, builtins.complex):
        return dtypes.default[1]
    raise TypeError(f"expected a tensor or a number, but got {type(value).__name__}")


def complex_dtype(dtype: np.dtype) -> np.dtype:
    """The complex dtype whose parts have the precision of `dtype` (of float32 for bfloat16)."""
    if dtype.kind == "f" and dtype.itemsize == 2:
        return dtypes.complex32.np
    if is_stored(dtype):
        return dtypes.from_numpy_dtype(dtype).to_complex().np
    return np.promote_types(dtype, np.complex64)


def is_stored(dtype: np.dtype) -> bool:
    """Is it one of the dtypes that are for storing alone? See Note [Stored dtypes]."""
    return (dtype.num >= 256 and dtype.name != "bfloat16") or dtype.names is not None or dtype.char in "HILQ"


def refuse_stored(kernel: str, dtype: np.dtype, but: str = "") -> None:
    """Raise torch's error for a dtype that is for storing, unless it is of one of the kinds in `but`."""
    if is_stored(dtype) and dtype.kind not in but:
        unsupported(kernel, dtype)


def promote_dtypes(a: np.dtype, b: np.dtype) -> np.dtype:
    """The dtype of two dtypes of equal rank: integers never widen a float, unlike in NumPy."""
    if a == b:
        return a
    if is_stored(a) or is_stored(b):
        return _promote_stored(a, b)
    ca, cb = _CATEGORY[a.kind], _CATEGORY[b.kind]
    if ca != cb and min(ca, cb) < 2:
        return a if ca > cb else b
    if is_half(a) and is_half(b):
        return _FLOAT32  # neither of float16 and bfloat16 holds the other
    return np.promote_types(a, b)


def _promote_stored(a: np.dtype, b: np.dtype) -> np.dtype:
    """`promote_dtypes` of two dtypes one of which is for storing: few of them meet."""
    names = a.name, b.name
    if any(name in dtypes.FLOAT8 for name in names):
        raise RuntimeError(f"Promotion for Float8 Types is not supported, attempted to promote {_both(a, b)}")
    if any(d.kind == "u" and d.itemsize > 1 for d in (a, b)):
        other = b if a.kind == "u" and a.itemsize > 1 else a
        if other.kind in "fV":
            return other
        raise RuntimeError(
            f"Promotion for uint16, uint32, uint64 types is not supported, attempted to promote {_both(a, b)}"
        )
    if a.names or b.names:
        raise RuntimeError(f"Promotion for {dtypes.float4_e2m1fn_x2} is not supported, got {_both(a, b)}")
    other = b if a.kind in "W" else a
    if other.kind == "c":
        return other
    narrow = other.kind in "biu" or (other.kind == "f" and other.itemsize == 2)
    return dtypes.complex32.np if narrow else complex_dtype(other)


def _both(a: np.dtype, b: np.dtype) -> str:
    return f"{scalar_name(a)} and {scalar_name(b)}: convert one of them with .to()"


def _combine(higher: np.dtype | None, lower: np.dtype | None) -> np.dtype | None:
    """The dtype of two ranks."""
    if higher is None or lower is None:
        return higher or lower
    if higher.kind in "fV" and lower.kind in "cW":
        return complex_dtype(higher)
    if (higher.kind == "b" and is_stored(lower) and lower.kind == "u") or (
        higher.kind in "biu" and lower.name in dtypes.FLOAT8
    ):
        return promote_dtypes(higher, lower)
    return lower if _CATEGORY[lower.kind] > _CATEGORY[higher.kind] else higher


def result_dtype(*operands: Operand) -> np.dtype:
    """The dtype of an operation on arrays and Python numbers (None is skipped)."""
    if len(operands) == 2 and type(operands[1]) in _NUMBERS and getattr(operands[0], "dtype", _BOOL).kind in "fcVW":
        return operands[0].dtype
    ranks: list[np.dtype | None] = [None, None, None]
    for x in operands:
        if x is None:
            continue
        if hasattr(x, "dtype"):
            rank, d = (0 if x.ndim else 1), x.dtype
        else:
            rank, d = 2, number_dtype(x)
        seen = ranks[rank]
        ranks[rank] = d if seen is None or seen is d else promote_dtypes(seen, d)
    found = _combine(ranks[0], _combine(ranks[1], ranks[2]))
    if found is None:
        raise TypeError("expected at least one tensor or number")
    return found


def float_dtype(*operands: Operand) -> np.dtype:
    """As `result_dtype`, for functions whose result is never an integer: those give the default dtype."""
    d = result_dtype(*operands)
    return d if d.kind in "fcVW" else dtypes.default[0]


def work_dtype(dtype: np.dtype) -> np.dtype:
    """Where several steps on `dtype` are computed: float32 for half precision, which the steps would leave."""
    return _FLOAT32 if is_half(dtype) else dtype


def sortable(a: ndarray) -> ndarray:
    """`a`, or in place of bfloat16, which NumPy sorts with its NaNs anywhere, the same numbers in float32."""
    return a.astype(_FLOAT32) if a.dtype.kind == "V" else a


def is_half(dtype: np.dtype) -> bool:
    """Is it float16 or bfloat16?"""
    return dtype.itemsize == 2 and dtype.kind in "fV"


def real_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype of the parts of a complex dtype; any other is itself."""
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind in "cW" else dtype


def promote(*operands: Operand) -> tuple[ndarray, ...]:
    """The operands as arrays of their common dtype."""
    d = result_dtype(*operands)
    return tuple([operand(x, d) for x in operands])


def can_cast(source: np.dtype, target: np.dtype) -> bool:
    """Whether a result of dtype `source` may be written to an array of dtype `target`."""
    return source is target or category(source) <= category(target)


def unsupported(kernel: str, dtype: np.dtype, out: ndarray | None = None) -> NoReturn:
    """Raise torch's error for a dtype that a kernel has no meaning for, or first for an `out` that cannot hold it."""
    if out is not None:
        check_out(out, dtype, out.shape)
    raise NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_name(dtype)}'")


# ----------------------------------------------------------------------------------------------------- operands


def as_array(value: Any) -> ndarray:
    """A result as an array: NumPy hands out scalars where torch has 0-d tensors."""
    return value if value.__class__ is ndarray or not isinstance(value, _SCALARS) else _asarray(value)


_asarray, _SCALARS = np.asarray, (np.generic, int, float, builtins.complex)


def operand(x: Operand, dtype: np.dtype, like: Operand = None) -> ndarray:
    """`x` as an array of `dtype`; a number beside an array of another library becomes a NumPy scalar."""
    found = getattr(x, "dtype", None)
    if found is not None:
        return x if found is dtype else x.astype(dtype, copy=False) if dtype.num < 256 else convert(x, dtype)
    if x.__class__ not in _NUMBERS:
        r = np.asarray(cast_number(x, dtype))
    elif dtype.kind in "iub":  # out of range integers wrap, as torch's do
        r = np.asarray(x).astype(dtype)
    elif dtype.num >= 256:
        r = convert(np.array(x), dtype)
    else:
        r = np.array(x, dtype)
    return r if like is None or type(like) is ndarray or not hasattr(like, "dtype") else r[()]


def check_number(x: Operand, dtype: np.dtype) -> None:
    """Refuse what is no number (or 0-d array of one), and a number that `dtype` cannot hold."""
    x = _python_number(x)
    kind = dtype.kind
    if kind == "b":
        return  # anything is zero or not
    if isinstance(x, builtins.complex):
        fits = _fits(x.real, dtype) and (x.imag == 0 or (kind in "cW" and _fits(x.imag, dtype)))
    else:
        fits = _fits(x, dtype)
    if not fits:
        raise RuntimeError(f"value cannot be converted to type {_C_NAMES[dtype.name]} without overflow: {x!r}")


def _python_number(x: Operand) -> Any:
    """An int, float or complex, also from a scalar or 0-d array of NumPy's; anything else is refused."""
    number = x.item() if getattr(x, "ndim", None) == 0 else x
    if not isinstance(number, (int, float, builtins.complex)):
        raise TypeError(f"value must be Number, not {type(x).__name__}")
    return number


def _fits(x: float, dtype: np.dtype) -> bool:
    """Has `dtype` a place for a real number: integers for what is finite and in range, floats for the rest as well?"""
    kind = dtype.kind
    if kind in "iu":
        info = np.iinfo(dtype)  # type: ignore[arg-type]
        # Negative integers wrap in unsigned types, as long as their size fits; floats do not.
        return math.isfinite(x) and (info.min if info.min or isinstance(x, float) else -info.max) <= x <= info.max
    if dtype.name == "float8_e8m0fnu":
        return 2.0**-127 <= (builtins.abs(x) if isinstance(x, int) else x) <= 2.0**127 or x != x
    infinite = dtype.itemsize > 1 or dtype.name == "float8_e5m2"  # has it infinities?
    return builtins.abs(x) <= _LARGEST[dtype.name] or (not math.isfinite(x) if infinite else x != x)


def real_number(x: Operand) -> Any:
    """A Python number to compute with, refused where it has an imaginary part."""
    if x.__class__ in _NUMBERS:
        return x
    check_number(x, _FLOAT64)
    return _python_number(x).real


def element(x: Operand, dtype: np.dtype) -> ndarray:
    """A number for ``a[key] = x``: as `cast_number`, but what is too large for 16 bits becomes infinite there."""
    return operand(x, dtype) if dtype.itemsize <= 2 and dtype.kind in "fV" else np.asarray(cast_number(x, dtype))


def cast_number(x: Operand, dtype: np.dtype) -> Any:
    """A number as a scalar of `dtype`, refused if that cannot hold it.

    Whatever a caller wants written into an array goes through here: NumPy takes None for NaN, writes the smallest
    integer for a NaN, and ml_dtypes ends the interpreter when it is asked for the bfloat16 of a string.
    """
    if x.__class__ is float and dtype.char in "fd" and -_LARGEST["float32"] <= x <= _LARGEST["float32"]:
        return dtype.type(x)
    if x.__class__ is int and dtype is _INT64 and -(2**63) <= x < 2**63:
        return dtype.type(x)
    check_number(x, dtype)
    x = _python_number(x)
    if isinstance(x, builtins.complex) and dtype.kind not in "bcW":
        x = x.real
    if dtype.kind in "fcVW" and isinstance(x, int):
        x = float(x)  # integers of more than 64 bits are objects to NumPy
    elif dtype.kind == "b":
        x = builtins.bool(x)
    if dtype.num >= 256:
        return convert(np.asarray(x), dtype)[()]
    return np.asarray(x).astype(dtype)[()]


# ------------------------------------------------------------------------------------------- shapes and out=


def broadcast_shape(*operands: Operand) -> tuple[int, ...]:
    """The shape that the operands broadcast to; torch's RuntimeError where they do not."""
    shape: tuple[int, ...] = ()
    for x in operands:
        shape = _broadcast_two(shape, getattr(x, "shape", ()))
    return shape


def _broadcast_two(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    n = max(len(a), len(b))
    result = [1] * n
    for i in range(n - 1, -1, -1):
        x = a[i - n + len(a)] if i - n + len(a) >= 0 else 1
        y = b[i - n + len(b)] if i - n + len(b) >= 0 else 1
        if x != y and x != 1 and y != 1:
            raise RuntimeError(
                f"The size of tensor a ({x}) must match the size of tensor b ({y}) at non-singleton dimension {i}"
            )
        result[i] = x if y == 1 else y
    return tuple(result)


def check_out(out: ndarray, dtype: np.dtype, shape: tuple[int, ...]) -> None:
    """Refuse an `out` that a result of this dtype and shape cannot be written to."""
    if not can_cast(dtype, out.dtype):
        raise RuntimeError(
            f"result type {scalar_name(dtype)} can't be cast to the desired output type {scalar_name(out.dtype)}"
        )
    if out.shape != shape:
        raise RuntimeError(
            f"output with shape {list(out.shape)} doesn't match the broadcast shape {list(shape)}"
        )


def store(result: Any, out: ndarray | None) -> ndarray:
    """A finished result, written to `out` where there is one."""
    if out is None:
        return result if type(result) is ndarray else as_array(result)
    check_out(out, result.dtype, result.shape)
    np.copyto(out, result, casting="unsafe")
    return out


# --------------------------------------------------------------------------------------------- calling ufuncs


#: What is computed in float32 between numbers and half precision: a number need not be one of these.
_BY_WIDE_NUMBERS = (np.multiply, np.true_divide)


def apply_binary(
    ufunc: Callable[..., Any],
    a: Operand,
    b: Operand,
    out: ndarray | None = None,
    dtype: np.dtype | None = None,
    result: np.dtype | None = None,
) -> Any:
    """`ufunc` on operands of any rank and dtype, computed in `dtype` (their common one, if None).

    `result` is the dtype of the result where that is another (comparisons).  Two numbers give a number.
    """
    if type(a) is ndarray and out is None and type(b) in _NUMBERS:
        d = a.dtype
        if (dtype is None or dtype is d) and d.char in "fdFD":
            if a.size > LARGE:
                ufunc = on_threads(ufunc)
            r = ufunc(a, np.array(b, d))  # a 0-d array costs a ufunc less than a number does
            return r if type(r) is ndarray else as_array(r)
    if not hasattr(a, "dtype") and not hasattr(b, "dtype"):
        return ufunc(a, b).item()
    d = result_dtype(a, b) if dtype is None else dtype
    if d.itemsize == 2 and ufunc in _BY_WIDE_NUMBERS and is_half(d) and (type(a) in _NUMBERS or type(b) in _NUMBERS):
        return store(operand(ufunc(operand(a, _FLOAT32), operand(b, _FLOAT32)), d), out)
    x = operand(a, d, b)
    y = operand(b, d, a)
    if type(x) is ndarray and (x.size > LARGE or y.size > LARGE):
        ufunc = on_threads(ufunc)
    if out is None:
        try:
            r = ufunc(x, y)
        except ValueError:
            broadcast_shape(x, y)
            raise
        return r if type(r) is ndarray else as_array(r)
    if out.dtype is d and result is None and out.shape == x.shape:
        try:
            return ufunc(x, y, out=out)
        except ValueError:
            pass
    check_out(out, result or d, broadcast_shape(x, y))
    return ufunc(x, y, out=out, casting="unsafe")


def apply_unary(
    ufunc: Callable[..., Any], a: Operand, out: ndarray | None = None, dtype: np.dtype | None = None
) -> Any:
    """`ufunc` on `a` computed in `dtype` (its own, if None).  A number gives a number."""
    if not hasattr(a, "dtype"):
        return ufunc(a if dtype is None or isinstance(a, builtins.complex) else operator.mul(a, 1.0)).item()
    x = a if dtype is None else operand(a, dtype)
    if type(x) is ndarray and x.size > LARGE:
        ufunc = on_threads(ufunc)
    if out is None:
        r = ufunc(x)
        return r if type(r) is ndarray else as_array(r)
    check_out(out, x.dtype, x.shape)
    return ufunc(x, out=out, casting="unsafe")


def named(kernel: Callable[..., Any], name: str, doc: str) -> Callable[..., Any]:
    """A kernel that a factory made, with the name and docstring of one that was written out."""
    kernel.__name__ = kernel.__qualname__ = name
    kernel.__doc__ = doc
    return kernel
