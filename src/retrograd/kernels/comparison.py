"""Comparisons and logic, the larger and the smaller of two, and bounds; see `pointwise.py`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import ndarray

from ..core import dtypes
from . import compiled
from .compiled import LARGE
from .pointwise import _NO_COMPLEX, _binary
from .promotion import (
    Kernel,
    Operand,
    apply_binary,
    as_array,
    broadcast_shape,
    check_number,
    check_out,
    named,
    operand,
    real_number,
    result_dtype,
    scalar_name,
    store,
    unsupported,
)

_BOOL = np.dtype(bool)


def _comparison(name: str, ufunc: np.ufunc, ordered: bool, doc: str) -> Callable[..., Any]:
    """A kernel with a bool result, computed in the common dtype."""

    def kernel(a: Operand, b: Operand, out: ndarray | None = None) -> ndarray:
        if type(b) is ndarray and out is None:
            try:
                d = a.dtype
                if d is b.dtype and (not ordered or d.kind not in "cW"):
                    r = ufunc(a, b)
                    return r if type(r) is ndarray else as_array(r)
            except (AttributeError, ValueError):
                pass
        d = result_dtype(a, b)
        if ordered and d.kind in "cW":
            unsupported(f"{name}_cpu", d)
        return apply_binary(ufunc, a, b, out, d, _BOOL)

    return named(kernel, name, doc)


eq: Kernel = _comparison("eq", np.equal, False, "a == b.")
ne: Kernel = _comparison("ne", np.not_equal, False, "a != b.")
lt: Kernel = _comparison("lt", np.less, True, "a < b.")
le: Kernel = _comparison("le", np.less_equal, True, "a <= b.")
gt: Kernel = _comparison("gt", np.greater, True, "a > b.")
ge: Kernel = _comparison("ge", np.greater_equal, True, "a >= b.")
logical_and: Kernel = _comparison("logical_and", np.logical_and, False, "Whether both are not zero.")
logical_or: Kernel = _comparison("logical_or", np.logical_or, False, "Whether any is not zero.")
logical_xor: Kernel = _comparison("logical_xor", np.logical_xor, False, "Whether exactly one is not zero.")


def logical_not(a: ndarray, out: ndarray | None = None) -> ndarray:
    """Whether a is zero."""
    if out is None:
        return as_array(np.logical_not(a))
    check_out(out, _BOOL, a.shape)
    return np.logical_not(a, out=out, casting="unsafe")


def isnan(a: ndarray) -> ndarray:
    """Whether a, or a part of it, is NaN."""
    return as_array(np.isnan(a))


def isinf(a: ndarray) -> ndarray:
    """Whether a, or a part of it, is infinite."""
    return as_array(np.isinf(a))


def isfinite(a: ndarray) -> ndarray:
    """Whether a is neither NaN nor infinite."""
    return as_array(np.isfinite(a))


def isclose(a: ndarray, b: ndarray, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> ndarray:
    """Whether |a - b| <= atol + rtol * |b|; equal infinities are close."""
    if a.dtype != b.dtype:
        raise RuntimeError(f"{scalar_name(a.dtype)} did not match {scalar_name(b.dtype)}")
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        if tolerance < 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {tolerance}")
    broadcast_shape(a, b)
    close = np.equal(a, b)
    if equal_nan:
        close = close | (np.isnan(a) & np.isnan(b))
    if rtol or atol:
        x, y = (a, b) if a.dtype.kind in "fcVW" else (operand(a, dtypes.default[0]), operand(b, dtypes.default[0]))
        error = np.abs(np.subtract(x, y))
        close = close | (np.isfinite(error) & (error <= atol + np.abs(rtol * y)))
    return as_array(close)


def isposinf(a: ndarray) -> ndarray:
    """Whether an element is +inf."""
    if a.dtype.kind in "cW":
        raise RuntimeError("isposinf does not support complex inputs.")
    return as_array(a == np.inf if a.dtype.kind in "fV" else np.zeros_like(a, bool))


def isneginf(a: ndarray) -> ndarray:
    """Whether an element is -inf."""
    if a.dtype.kind in "cW":
        raise RuntimeError("isneginf does not support complex inputs.")
    return as_array(a == -np.inf if a.dtype.kind in "fV" else np.zeros_like(a, bool))


def isreal(a: ndarray) -> ndarray:
    """Whether the imaginary part of an element is 0."""
    return as_array(a.imag == 0 if a.dtype.kind in "cW" else np.ones_like(a, bool))


maximum: Kernel = _binary("maximum", np.maximum, "cW", _NO_COMPLEX.format("maximum"), "The larger; NaN if either is.")
minimum: Kernel = _binary("minimum", np.minimum, "cW", _NO_COMPLEX.format("minimum"), "The smaller; NaN if either is.")
fmax: Kernel = _binary("fmax", np.fmax, "cW", _NO_COMPLEX.format("fmax"), "The larger; NaN only if both are.")
fmin: Kernel = _binary("fmin", np.fmin, "cW", _NO_COMPLEX.format("fmin"), "The smaller; NaN only if both are.")


def clamp(a: ndarray, min: Operand = None, max: Operand = None, out: ndarray | None = None) -> ndarray:
    """a, at least `min` and at most `max` (numbers or arrays); NaN stays."""
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if min is not None and max is not None and bool(getattr(min, "ndim", 0)) is not bool(getattr(max, "ndim", 0)) and (
        not hasattr(min, "ndim") or not hasattr(max, "ndim")
    ):  # fmt: skip
        raise TypeError("clamp() received an invalid combination of arguments: give two Tensors or two numbers")
    if a.dtype.kind not in "cW":  # a complex number is a limit where its imaginary part is 0
        min = real_number(min) if min.__class__ is complex else min
        max = real_number(max) if max.__class__ is complex else max
    return _clamp(a, min, max, out)


def _clamp(a: ndarray, min: Operand, max: Operand, out: ndarray | None) -> ndarray:
    d = result_dtype(a, min, max)
    if out is not None:
        check_out(out, d, broadcast_shape(a, min, max))
    if d.kind in "cW":
        raise NotImplementedError("clamp is not supported for complex types")
    if d == _BOOL and min is not None and max is not None:
        unsupported("clamp_cpu", d)
    for limit in (min, max):
        if limit is not None and not hasattr(limit, "dtype"):
            check_number(limit, d)
    if a.size > LARGE and out is None and (r := _clamp_large(a, min, max, d)) is not None:
        return r
    r = apply_binary(np.maximum, a, min, None, d) if min is not None else operand(a, d)
    if max is not None:
        r = apply_binary(np.minimum, r, max, None, d)
    return store(r, out) if out is not None else r


def _clamp_large(a: ndarray, min: Operand, max: Operand, d: np.dtype) -> ndarray | None:
    """A large array between two numbers; None for anything else.  NumPy's clip is quicker than its maximum is."""
    low, high = -math.inf if min is None else min, math.inf if max is None else max
    if type(a) is not ndarray or a.dtype != d or d.char not in "fd" or not a.flags.c_contiguous:
        return None
    if type(low) not in (int, float) or type(high) not in (int, float) or low != low or high != high:
        return None
    fast = compiled.clamp(a, low, high)
    return np.clip(a, d.type(low), d.type(high)) if fast is None else fast


def clamp_large_backward(grad: ndarray, a: ndarray, min: Operand, max: Operand) -> ndarray | None:
    """grad where a large array lies between two numbers, 0 elsewhere; None for anything else."""
    low, high = -math.inf if min is None else min, math.inf if max is None else max
    if a.size <= LARGE or type(low) not in (int, float) or type(high) not in (int, float):
        return None
    return compiled.clamp_backward(grad, a, low, high)


def clamp_min(a: ndarray, min: Operand, out: ndarray | None = None) -> ndarray:
    """a, at least `min`."""
    return _clamp(a, min, None, out)


def clamp_max(a: ndarray, max: Operand, out: ndarray | None = None) -> ndarray:
    """a, at most `max`."""
    return _clamp(a, None, max, out)
