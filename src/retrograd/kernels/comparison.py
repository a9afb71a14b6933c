"""Comparisons and logic: kernels with a bool result, whatever they compare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import ndarray

from retrograd.core import dtypes
from retrograd.kernels.promotion import (
    Operand,
    apply_binary,
    as_array,
    broadcast_shape,
    check_out,
    named,
    operand,
    result_dtype,
    scalar_name,
    unsupported,
)

_BOOL = np.dtype(bool)


def _comparison(name: str, ufunc: np.ufunc, ordered: bool, doc: str) -> Callable[..., Any]:
    """A kernel with a bool result, computed in the common dtype."""

    def kernel(a: Operand, b: Operand, out: ndarray | None = None) -> ndarray:
        if type(b) is ndarray and out is None:
            try:
                d = a.dtype
                if d is b.dtype and (not ordered or d.kind != "c"):
                    r = ufunc(a, b)
                    return r if type(r) is ndarray else as_array(r)
            except (AttributeError, ValueError):
                pass
        d = result_dtype(a, b)
        if ordered and d.kind == "c":
            unsupported(f"{name}_cpu", d)
        return apply_binary(ufunc, a, b, out, d, _BOOL)

    return named(kernel, name, doc)


eq = _comparison("eq", np.equal, False, "a == b.")
ne = _comparison("ne", np.not_equal, False, "a != b.")
lt = _comparison("lt", np.less, True, "a < b.")
le = _comparison("le", np.less_equal, True, "a <= b.")
gt = _comparison("gt", np.greater, True, "a > b.")
ge = _comparison("ge", np.greater_equal, True, "a >= b.")
logical_and = _comparison("logical_and", np.logical_and, False, "Whether both are not zero.")
logical_or = _comparison("logical_or", np.logical_or, False, "Whether any is not zero.")
logical_xor = _comparison("logical_xor", np.logical_xor, False, "Whether exactly one is not zero.")


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
        x, y = (a, b) if a.dtype.kind in "fcV" else (operand(a, dtypes.default[0]), operand(b, dtypes.default[0]))
        error = np.abs(np.subtract(x, y))
        close = close | (np.isfinite(error) & (error <= atol + np.abs(rtol * y)))
    return as_array(close)


# Every public function of this module is a kernel.
__all__ = [n for n, f in list(globals().items()) if getattr(f, "__module__", None) == __name__ and n[0] != "_"]
