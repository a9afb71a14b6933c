"""Powers, roots, exponentials and logarithms, element by element; see `pointwise.py`."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import ndarray

from . import blocks
from .arithmetic import mul
from .compiled import on_threads
from .pointwise import _BOOL, _binary, _float_unary, _scalar_result
from .promotion import (
    Kernel,
    Operand,
    apply_binary,
    apply_unary,
    as_array,
    broadcast_shape,
    check_number,
    float_dtype,
    operand,
    result_dtype,
    scalar_name,
    store,
    unsupported,
    work_dtype,
)


def pow(a: Operand, b: Operand, out: ndarray | None = None) -> ndarray:
    """a to the power of b; either may be a number."""
    if b.__class__ is int and out is None and a.__class__ is ndarray and a.dtype.char in "fdFD":
        if b == 2 and a.dtype.char == "d" and not a.shape:
            number = a.item()
            return np.asarray(number * number)  # in a third of the time
        shortcut = _POWERS.get(b)
        if shortcut is not None:
            r = shortcut(a)
            return r if r.__class__ is ndarray else as_array(r)
    d = result_dtype(a, b)
    if not hasattr(b, "dtype"):
        shortcut = _POWERS.get(b) if d.kind in "fcVW" else None
        if shortcut is not None and d == a.dtype and not (d.char == "e" and b in _ROOTS):
            if out is None:
                r = shortcut(a)
                return r if r.__class__ is ndarray else as_array(r)
            return store(shortcut(a), out)
        if d == _BOOL:
            return store(a.copy() if b else np.ones_like(a), out)
        if d.kind in "iu":
            if b < 0:
                raise RuntimeError("Integers to negative integer powers are not allowed.")
            check_number(b, d)
    if d == _BOOL:
        unsupported("pow", d, out)
    if d.kind == "i" and builtins.bool(np.any(np.less(b, 0))):
        return store(_negative_integer_power(operand(a, d, b), operand(b, d, a)), out)
    return apply_binary(np.power if d.kind not in "cW" else _complex_power, a, b, out, d)


def _complex_power(a: Any, b: Any, **kwargs: Any) -> Any:
    infinite = np.isinf(a) & np.isfinite(b)  # before the result, which may be written over `a`
    if not infinite.any():
        return np.power(a, b, **kwargs)
    base, exponent = np.copy(a), np.copy(b)
    r = np.power(a, b, **kwargs)
    # NumPy multiplies infinities, where the logarithm keeps its angle; and the size of a power of infinity hangs on
    # no angle where the exponent is real: it is 0 for a negative one.
    lost = np.isnan(r) & infinite
    np.copyto(r, np.exp(np.multiply(exponent, np.log(base))), where=lost)
    np.copyto(r, 0, where=lost & (exponent.real < 0) & (exponent.imag == 0))
    return r


def ldexp(a: ndarray, b: ndarray, out: ndarray | None = None) -> ndarray:
    """a * 2 ** b; integers do not widen a float `a`."""
    if b.dtype.kind == "b":
        unsupported("ldexp_cpu_exp", b.dtype)
    if a.dtype.kind in "fV" and b.dtype.kind in "iu":
        # Not by a product: the power alone may be out of range. Beyond these bounds nothing changes any more.
        shift = np.clip(b, 0 if b.dtype.kind == "u" else -5000, 5000).astype(np.int32)
        return store(operand(np.ldexp(operand(a, work_dtype(a.dtype)), shift), a.dtype), out)
    return mul(a, pow(2.0, b), out)


_square, _multiply, _reciprocal = map(on_threads, (np.square, np.multiply, np.reciprocal))


def _cube(a: ndarray) -> Any:
    return _multiply(_multiply(a, a), a)


def _reciprocal_square(a: ndarray) -> Any:
    return _reciprocal(_multiply(a, a))


def _rsqrt(a: ndarray, **kwargs: Any) -> Any:
    return np.reciprocal(np.sqrt(a), **kwargs)


# np.power is twenty times slower than these and no more exact.
_POWERS: dict[float, Callable[..., Any]] = {
    1: np.copy, 2: _square, 3: _cube, 0.5: on_threads(np.sqrt), -0.5: _rsqrt, -1: _reciprocal, -2: _reciprocal_square,
}  # fmt: skip


#: Powers that are not those of C for -inf and -0: torch takes the short cut for all floats but half.
_ROOTS = (0.5, -0.5)


def _negative_integer_power(a: ndarray, b: ndarray) -> ndarray:
    """Integer powers, where a negative one is 1 / a ** -b rounded to zero."""
    try:
        regular = np.power(a, np.maximum(b, 0))
    except ValueError:
        broadcast_shape(a, b)
        raise
    sign = np.where(np.bitwise_and(b, 1), a, np.ones_like(a))
    return np.where(b >= 0, regular, np.where(np.abs(a) == 1, sign, np.zeros_like(a))).astype(a.dtype, copy=False)


def float_power(a: Operand, b: Operand, out: ndarray | None = None) -> ndarray:
    """a to the power of b in double precision."""
    d = np.dtype(np.complex128 if result_dtype(a, b).kind in "cW" else np.float64)
    if out is not None and out.dtype != d:
        raise RuntimeError(
            f"the base given to float_power_ has dtype {scalar_name(out.dtype)} but the operation's result "
            f"requires dtype {scalar_name(d)}"
        )
    if not hasattr(a, "dtype") and not hasattr(b, "dtype"):
        return apply_binary(np.float_power, a, b)
    return pow(operand(a, d, b), operand(b, d, a) if hasattr(b, "dtype") else b, out)


def _blockwise(fill: Callable[..., None], ufunc: np.ufunc) -> Callable[..., Any]:
    """`ufunc`, computed for large arrays of float32 by `fill`; a block in which there is a NaN or an infinity then, by
    the ufunc itself."""

    def checked(x: ndarray, y: ndarray, out: ndarray) -> None:
        fill(x, y, out)
        if not np.isfinite(np.add.reduce(out)):
            ufunc(x, y, out=out)

    def apply(a: Any, b: Any, out: ndarray | None = None, **kwargs: Any) -> Any:
        if out is None and (r := blocks.pairs(checked, a, b)) is not None:
            return r
        return ufunc(a, b, out=out, **kwargs)

    return apply


#: Squares of float32 that have neither lost digits nor come close to the largest number; and their roots.
_USUAL = np.float32(2.0**-90), np.float32(2.0**126)
_LENGTHS = np.float32(2.0**-45), np.float32(2.0**63)


def _fill_hypot(x: ndarray, y: ndarray, out: ndarray) -> None:
    other = np.multiply(y, y)
    np.multiply(x, x, out=out)
    np.add(out, other, out=out)
    usual = _USUAL[0] < out.min() and out.max() < _USUAL[1]  # (of a NaN neither)
    np.sqrt(out, out=out)
    if not usual:
        odd = ~(np.greater(out, _LENGTHS[0]) & np.less(out, _LENGTHS[1]))
        out[odd] = np.hypot(x[odd], y[odd] if y.size > 1 else y)


def _fill_logaddexp(x: ndarray, y: ndarray, out: ndarray) -> None:
    less = np.subtract(x, y)
    np.absolute(less, out=less)
    np.negative(less, out=less)
    np.exp(less, out=less)
    np.log1p(less, out=less)
    np.maximum(x, y, out=out)
    out += less


def _fill_logaddexp2(x: ndarray, y: ndarray, out: ndarray) -> None:
    less = np.subtract(x, y)
    np.absolute(less, out=less)
    np.negative(less, out=less)
    np.exp2(less, out=less)
    np.log1p(less, out=less)
    less *= np.float32(1 / math.log(2))
    np.maximum(x, y, out=out)
    out += less


_logaddexp = _blockwise(_fill_logaddexp, np.logaddexp)

hypot: Kernel = _binary(
    "hypot", _blockwise(_fill_hypot, np.hypot), "biucW", "hypot_cpu", "The length of the hypotenuse over a and b."
)
logaddexp2: Kernel = _binary(
    "logaddexp2", _blockwise(_fill_logaddexp2, np.logaddexp2), "biuc", "logaddexp2_cpu",
    "log2(2 ** a + 2 ** b), without overflow.",
)  # fmt: skip


def logaddexp(a: Operand, b: Operand, out: ndarray | None = None) -> ndarray:
    """log(exp(a) + exp(b)), without overflow."""
    d = result_dtype(a, b)
    if d.kind in "biu":
        unsupported("logaddexp_cpu", d, out)
    return apply_binary(_logaddexp if d.kind in "fV" else _complex_logaddexp, a, b, out, d)


def _complex_logaddexp(a: Any, b: Any, **kwargs: Any) -> Any:
    swap = np.real(a) < np.real(b)
    large, small = np.where(swap, b, a), np.where(swap, a, b)
    return np.add(large, np.log1p(np.exp(small - large)), **kwargs)


def square(a: Operand, out: ndarray | None = None) -> ndarray:
    """a * a."""
    if out is None:
        r = _square(a)
        if r.dtype is not _INT8 or a.dtype is _INT8:
            return r if r.__class__ is ndarray else _scalar_result(r, a)
    return pow(a, 2, out)


_INT8 = np.dtype(np.int8)  # NumPy's dtype for the square of bools, where torch has int64


sqrt: Kernel = _float_unary("sqrt", np.sqrt, "The square root.")
exp: Kernel = _float_unary("exp", np.exp, "e to the power of a.")
exp2: Kernel = _float_unary("exp2", np.exp2, "2 to the power of a.")
expm1: Kernel = _float_unary("expm1", np.expm1, "exp(a) - 1, exact for small a.")
log: Kernel = _float_unary("log", np.log, "The natural logarithm.")
log2: Kernel = _float_unary("log2", np.log2, "The logarithm to base 2.")
log10: Kernel = _float_unary("log10", np.log10, "The logarithm to base 10.")
log1p: Kernel = _float_unary("log1p", np.log1p, "log(1 + a), exact for small a.")


def rsqrt(a: Operand, out: ndarray | None = None) -> ndarray:
    """1 / sqrt(a)."""
    return apply_unary(_rsqrt, a, out, float_dtype(a))
