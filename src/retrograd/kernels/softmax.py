"""Softmax and its logarithm, with their derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import blocks, compiled
from .dims import normalize_dim
from .promotion import unsupported, work_dtype

# Names of their own: looked up in np they cost a small softmax a tenth.
_max: Any = np.maximum.reduce
_sum: Any = np.add.reduce


def softmax(a: np.ndarray, dim: int, dtype: np.dtype | None = None) -> np.ndarray:
    """``exp(a)`` divided by its sum along `dim`."""
    a, dim, target = _softmax_input("softmax", a, dim, dtype)
    if not a.ndim:  # as a row, so that there are buffers to write to
        return softmax(a.reshape(1), 0).astype(target).reshape(())
    if not a.size:
        return np.empty(a.shape, target)
    if a.size > compiled.rows_from and (fast := blocks.rows("softmax", _softmax_rows, (a,), dim)) is not None:
        return fast.astype(target, copy=False)
    x = np.subtract(a, _max(a, dim, None, None, True), order="C")  # however `a` lies, as torch has it
    np.exp(x, x)
    x /= _sum(x, dim, None, None, True)
    return x if x.dtype == target else x.astype(target)


def log_softmax(a: np.ndarray, dim: int, dtype: np.dtype | None = None) -> np.ndarray:
    """The logarithm of `softmax`, without its loss of precision."""
    a, dim, target = _softmax_input("log_softmax", a, dim, dtype)
    if not a.ndim:  # as a row, so that there are buffers to write to
        return log_softmax(a.reshape(1), 0).astype(target).reshape(())
    if not a.size:
        return np.empty(a.shape, target)
    if a.size > compiled.rows_from and (fast := blocks.rows("log_softmax", _log_softmax_rows, (a,), dim)) is not None:
        return fast.astype(target, copy=False)
    x = np.subtract(a, _max(a, dim, None, None, True), order="C")
    total = _sums(np.exp(x), dim)
    np.log(total, total)
    x -= total
    return x if x.dtype == target else x.astype(target)


def _sums(x: np.ndarray, dim: int) -> np.ndarray:
    """The sums along `dim`, which stays: those of rows of few elements by a product, see `blocks.TINY`."""
    if dim == 1 and x.ndim == 2 and x.size <= blocks.TINY and type(x) is np.ndarray and x.dtype.char in "fd":
        return x.dot(blocks.ones_down(x.shape[1], x.dtype))
    return _sum(x, dim, None, None, True)


def _softmax_input(name: str, a: np.ndarray, dim: int, dtype: np.dtype | None) -> tuple[np.ndarray, int, np.dtype]:
    # The input in the dtype to compute in, the dimension from the front and the dtype of the result.
    dim = normalize_dim(dim, a.ndim)
    if dtype is None and a.dtype.char in "fd":
        return a, dim, a.dtype
    if dtype is not None and a.dtype != dtype:
        a = a.astype(dtype)
    if a.dtype.kind not in "fV":
        last = "_lastdim" if dim == a.ndim - 1 else ""
        unsupported(f"{name}{last}_kernel_impl", a.dtype)
    target = a.dtype
    return a.astype(work_dtype(target), copy=False), dim, target


def softmax_backward(grad: np.ndarray, result: np.ndarray, dim: int) -> np.ndarray:
    """The gradient of `softmax` from its `result`: ``result * (grad - sum(grad * result))``."""
    axis = normalize_dim(dim, grad.ndim) if grad.ndim else ()
    if grad.size > compiled.LARGE:
        pair = grad, result
        fast = blocks.rows("softmax_backward", _softmax_rows_backward, pair, normalize_dim(dim, grad.ndim))
        if fast is not None:
            return fast
    x = np.multiply(grad, result)
    total = np.add.reduce(x, axis, keepdims=True)
    if not grad.ndim:
        return np.asarray((grad - total) * result)
    np.subtract(grad, total, out=x)
    x *= result
    return x


def log_softmax_backward(grad: np.ndarray, result: np.ndarray, dim: int) -> np.ndarray:
    """The gradient of `log_softmax` from its `result`: ``grad - exp(result) * sum(grad)``."""
    if not grad.ndim:
        return np.asarray(grad - np.exp(result) * grad)
    dim = normalize_dim(dim, grad.ndim)
    if grad.size > compiled.LARGE:
        fast = blocks.rows("log_softmax_backward", _log_softmax_rows_backward, (grad, result), dim)
        if fast is not None:
            return fast
    x = np.exp(result)
    x *= _sums(grad, dim)
    return np.subtract(grad, x, out=x)


# ------------------------------------------------------------------------------------ some rows of large matrices


def _softmax_rows(a: np.ndarray, out: np.ndarray) -> None:
    np.subtract(a, np.maximum.reduce(a, 1, keepdims=True), out=out)
    np.exp(out, out=out)
    out /= blocks.row_sums(out)


def _log_softmax_rows(a: np.ndarray, out: np.ndarray) -> None:
    np.subtract(a, np.maximum.reduce(a, 1, keepdims=True), out=out)
    total = blocks.row_sums(np.exp(out))
    np.log(total, out=total)
    out -= total


def _softmax_rows_backward(grad: np.ndarray, result: np.ndarray, out: np.ndarray) -> None:
    np.subtract(grad, blocks.dots(grad, result)[:, None], out=out)
    out *= result


def _log_softmax_rows_backward(grad: np.ndarray, result: np.ndarray, out: np.ndarray) -> None:
    np.exp(result, out=out)
    out *= blocks.row_sums(grad)
    np.subtract(grad, out, out=out)
