"""What numbers are made of: rounding, fractions, signs, mantissas and exponents, neighbours; see `pointwise.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import ndarray

from ..core import dtypes
from . import blocks
from .promotion import (
    Kernel,
    Operand,
    apply_binary,
    apply_unary,
    as_array,
    float_dtype,
    named,
    operand,
    result_dtype,
    store,
    unsupported,
)


def signbit(a: ndarray) -> ndarray:
    """Whether the sign bit is set; that of -0.0 is."""
    if a.dtype.kind in "cW":
        raise NotImplementedError("signbit is not implemented for complex tensors.")
    return as_array(np.signbit(a) if a.dtype.kind in "fV" else np.less(a, a.dtype.type(0)))


def frexp(a: ndarray) -> tuple[ndarray, ndarray]:
    """(mantissa, exponent): a = mantissa * 2**exponent, with the mantissa in [0.5, 1)."""
    if a.dtype.kind not in "fV":
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    mantissa, exponent = np.frexp(a)
    return as_array(mantissa), as_array(exponent)


def nextafter(a: ndarray, b: ndarray, out: ndarray | None = None) -> ndarray:
    """The next number after `a` on the way to `b`."""
    d = result_dtype(a, b)
    if d.kind not in "fV":
        unsupported("nextafter_cpu", d, out)
    return apply_binary(_nextafter, a, b, out)


def _nextafter(a: Any, b: Any, out: ndarray | None = None, **kwargs: Any) -> Any:
    if out is None and (r := blocks.pairs(_fill_nextafter, a, b)) is not None:
        return r
    return np.nextafter(a, b, out=out, **kwargs)


_SIGN, _LEAST = np.int32(-(2**31)), np.int32(1)  # bits of float32: that of the sign, and those of the least number
_ZERO = np.array(0, np.float32)


def _fill_nextafter(x: ndarray, y: ndarray, out: ndarray) -> None:
    # The bits of numbers of one sign are in their order: the next one's are one more, or less towards zero.
    into = out.view(np.int32)
    step = np.equal(np.greater(y, x), np.greater(x, _ZERO)).view(np.int8)  # (of a byte each, which cost little)
    step += step
    step -= 1
    np.add(x.view(np.int32), step.astype(np.int32), out=into)
    zero = np.equal(x, _ZERO)
    if zero.any():  # the least number with the sign of y
        np.copyto(into, (y.view(np.int32) & _SIGN) | _LEAST, where=zero)
    same = np.equal(x, y)
    if same.any():
        np.copyto(out, y, where=same)
    if np.isnan(x.max()) or np.isnan(y.max()):
        np.copyto(out, np.float32(np.nan), where=np.isnan(x) | np.isnan(y))


def copysign(a: Operand, b: Operand, out: ndarray | None = None) -> ndarray:
    """The size of a with the sign of b, the sign of zero included."""
    d = float_dtype(a, b)
    if d.kind in "cW":
        unsupported("copysign_cpu", d, out)
    return apply_binary(np.copysign, a, b, out, d)


def _rounding(name: str, ufunc: np.ufunc, complex_message: str | None, doc: str) -> Callable[..., Any]:
    """A kernel that rounds floats and copies integers."""

    def kernel(a: Operand, out: ndarray | None = None) -> ndarray:
        kind = a.dtype.kind if hasattr(a, "dtype") else "f"
        if kind in "fV":
            return apply_unary(ufunc, a, out)
        if kind in "cW" and complex_message is not None:
            raise NotImplementedError(complex_message)
        if kind in "bcW":
            unsupported(f"{name}_vml_cpu", a.dtype)
        return store(a.copy(), out)

    return named(kernel, name, doc)


ceil: Kernel = _rounding("ceil", np.ceil, "ceil is not supported for complex inputs", "Rounded up.")
floor: Kernel = _rounding("floor", np.floor, "floor is not supported for complex inputs", "Rounded down.")
trunc: Kernel = _rounding("trunc", np.trunc, "trunc is not supported for complex inputs", "Rounded towards zero.")
_round = _rounding("round", np.rint, None, "Rounded to the nearest integer, halves to even.")


def round(a: Operand, decimals: int | None = None, out: ndarray | None = None) -> ndarray:
    """Rounded to `decimals` places, halves to even."""
    if not decimals:
        return _round(a, out)
    if a.dtype.kind not in "fV":
        unsupported("round_cpu", a.dtype)
    return store(np.round(a, decimals), out)


def frac(a: Operand, out: ndarray | None = None) -> ndarray:
    """a - trunc(a)."""
    if getattr(a, "dtype", dtypes.default[0]).kind not in "fV":
        unsupported("frac_cpu", a.dtype)
    return apply_binary(np.subtract, a, np.trunc(a), out)


def nan_to_num(
    a: ndarray,
    nan: float | None = None,
    posinf: float | None = None,
    neginf: float | None = None,
    out: ndarray | None = None,
) -> ndarray:
    """NaN replaced by 0 and infinities by the largest finite numbers, or by what is given."""
    if a.dtype.kind not in "fcVW":
        return store(a.copy(), out)
    r = a.copy()
    for part in (r.real, r.imag) if a.dtype.kind in "cW" else (r,):
        d = part.dtype
        limits = dtypes.float_limits(d)
        for where, given, usual in (
            (np.isnan(part), nan, 0.0), (part == np.inf, posinf, limits.max), (part == -np.inf, neginf, limits.min)
        ):  # fmt: skip
            np.copyto(part, usual if given is None else operand(given, d), where=where)
    return store(r, out)
