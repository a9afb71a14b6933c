"""What the update rules of optimizers compute with, on bare arrays: see Note [Update rules] in optim/update.py.

Arrays are of one shape and dtype, float32 or float64; numbers are 0-d arrays of that dtype, or None for what does
nothing.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from .compiled import SHARED, is_used, on_threads, reduced, sum_rows, update

# The ufuncs that rules use, which share what is large among threads.
_absolute, _add, _divide, _maximum, _minimum, _multiply, _negative, _sqrt, _subtract = map(
    on_threads,
    (np.absolute, np.add, np.divide, np.maximum, np.minimum, np.multiply, np.negative, np.sqrt, np.subtract),
)

#: So many elements are worth a call of BLAS, and so few that it stays on this thread: SciPy's BLAS is another library
#: than NumPy's, and after a call on several threads they wait for the next one on the processors that NumPy's want.
_PIECE = 1 << 13


@functools.cache
def _axpy(dtype: np.dtype) -> Any:
    """``x += a * y`` of BLAS, which is in place where both are contiguous and of this dtype."""
    from scipy.linalg import blas

    return blas.saxpy if dtype == np.float32 else blas.daxpy


class ARRAYS:
    """The names that rules use; ``x``, where the name ends with an underscore, is written to."""

    absolute = _absolute
    add = _add
    divide = _divide
    maximum = _maximum
    multiply = _multiply
    negative = _negative
    sqrt = _sqrt
    subtract = _subtract

    @staticmethod
    def plus(x: Any, y: Any, scale: Any) -> Any:
        scaled = _multiply(y, scale)
        return _add(x, scaled, scaled)

    @staticmethod
    def add_(x: Any, y: Any, scale: Any) -> None:
        in_line = x.size >= _PIECE and x.ndim == 1 and x.strides[0] == y.strides[0] == x.itemsize
        if in_line and scale != 0 and not is_used():
            axpy = _axpy(x.dtype)  # one pass; and as torch does it, with one rounding
            for first in range(0, x.size, _PIECE):
                axpy(y, x, min(_PIECE, x.size - first), scale, first, 1, first, 1)
        else:
            _add(x, _multiply(y, scale), x)

    @staticmethod
    def mul_(x: Any, y: Any) -> None:
        _multiply(x, y, x)

    @staticmethod
    def lerp_(x: Any, y: Any, weight: Any, rest: Any) -> None:
        step = _subtract(y, x)
        if rest is None:
            _add(x, _multiply(step, weight, step), x)
        else:
            _subtract(y, _multiply(step, rest, step), x)

    @staticmethod
    def addcmul_(x: Any, a: Any, b: Any, scale: Any) -> None:
        product = _multiply(a, b)
        _add(x, product if scale is None else _multiply(product, scale, product), x)

    @staticmethod
    def addcdiv_(x: Any, a: Any, b: Any, scale: Any) -> None:
        quotient = _divide(a, b)
        _add(x, quotient if scale is None else _multiply(quotient, scale, quotient), x)

    @staticmethod
    def maximum_(x: Any, y: Any) -> None:
        _maximum(x, y, out=x)

    @staticmethod
    def clamp_(x: Any, low: Any, high: Any) -> None:
        _minimum(_maximum(x, low, out=x), high, out=x)

    @staticmethod
    def copy_(x: Any, y: Any) -> None:
        np.copyto(x, y)

    @staticmethod
    def mul_where_(x: Any, mask: Any, factor: Any) -> None:
        _multiply(x, factor, x, where=mask)

    @staticmethod
    def add_where_(x: Any, mask: Any, y: Any) -> None:
        _add(x, y, x, where=mask)

    @staticmethod
    def sub_where_(x: Any, mask: Any, y: Any) -> None:
        _subtract(x, y, x, where=mask)

    @staticmethod
    def zero_where_(x: Any, mask: Any) -> None:
        np.copyto(x, 0, where=mask)

    @staticmethod
    def mean(x: Any, axis: int) -> Any:
        total = reduced(np.add, x, axis % x.ndim, True) if x.size > SHARED else None
        return np.mean(x, axis, keepdims=True) if total is None else _divide(total, x.dtype.type(x.shape[axis]), total)

    @staticmethod
    def rms(x: Any) -> float:
        flat = x.reshape(-1)
        return math.sqrt(_dot(flat, flat) / flat.size) if flat.size else math.nan


def _dot(x: Any, y: Any) -> float:
    """The product of two vectors."""
    found = sum_rows(x, 1, y) if x.size > SHARED else None
    return (np.dot(x, y) if found is None else found[0]).item()


def _add_scaled(x: Any, y: Any, scale: float) -> None:
    """``x += scale * y``."""
    if x.size <= SHARED or not update("sgd_plain", [[x, y]], (scale,)):
        _add(x, _multiply(y, x.dtype.type(scale)), x)


def two_loops(
    grad: Any, changes: list[Any], steps: list[Any], ro: list[float], diagonal: float
) -> tuple[Any, list[Any]]:
    """Of LBFGS: minus the gradient times the inverse Hessian that steps and the changes of the gradient along them
    tell (`ro`: one over their products), beginning with a diagonal; and the coefficients of the first loop."""
    dtype = grad.dtype
    if dtype.itemsize < 4:
        grad, changes, steps = grad.astype(np.float32), _as_float32(changes), _as_float32(steps)
    d = _negative(grad)
    coefficients = [0.0] * len(steps)
    for i in reversed(range(len(steps))):
        coefficients[i] = _dot(steps[i], d) * ro[i]
        _add_scaled(d, changes[i], -coefficients[i])
    _multiply(d, d.dtype.type(diagonal), d)
    for i, step in enumerate(steps):
        rest = coefficients[i] - _dot(changes[i], d) * ro[i]
        _add_scaled(d, step, rest)
    return d.astype(dtype, copy=False), [np.array(c, d.dtype).astype(dtype) for c in coefficients]


def _as_float32(arrays: list[Any]) -> list[Any]:
    return [array.astype(np.float32) for array in arrays]
