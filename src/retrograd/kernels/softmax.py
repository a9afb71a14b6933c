"""Softmax and its logarithm, with their derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray

from . import blocks, compiled
from .dims import normalize_dim
from .promotion import is_half, unsupported, work_dtype

# Names of their own: looked up in np they cost a small softmax a tenth.
_max: Any = np.maximum.reduce
_sum: Any = np.add.reduce
_exp, _log, _subtract = np.exp, np.log, np.subtract


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
    if dtype is None and _is_tiny(a, dim) and a.size <= compiled.rows_from:
        down, across = blocks.ones_across(a.shape[1], a.dtype)
        x = _max(a, 1, None, None, True).dot(across)
        _subtract(a, x, x)
        total = _exp(x).dot(down)
        _log(total, total)
        x -= total.dot(across)
        return x
    a, dim, target = _softmax_input("log_softmax", a, dim, dtype)
    if not a.ndim:  # as a row, so that there are buffers to write to
        return log_softmax(a.reshape(1), 0).astype(target).reshape(())
    if not a.size:
        return np.empty(a.shape, target)
    if a.size > compiled.rows_from and (fast := blocks.rows("log_softmax", _log_softmax_rows, (a,), dim)) is not None:
        return fast.astype(target, copy=False)
    x = np.subtract(a, _max(a, dim, None, None, True), order="C")
    total = _sum(np.exp(x), dim, None, None, True)
    np.log(total, total)
    x -= total
    return x if x.dtype == target else x.astype(target)


def _is_tiny(a: np.ndarray, dim: int) -> bool:
    """Is it a matrix of few elements, whose rows are summed, and sums spread over them, by products? See `TINY`."""
    return (
        (dim == 1 or dim == -1)
        and type(a) is ndarray
        and a.ndim == 2
        and 0 < a.size <= blocks.TINY
        and a.dtype.char in "fd"
    )


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
    if is_half(grad.dtype):  # rounded once, at the end
        return softmax_backward(grad.astype(np.float32), result.astype(np.float32), dim).astype(grad.dtype)
    if _is_tiny(grad, dim):
        down, across = blocks.ones_across(grad.shape[1], grad.dtype)
        x = grad * result
        _subtract(grad, x.dot(down).dot(across), x)
        x *= result
        return x
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
    if is_half(grad.dtype):
        return log_softmax_backward(grad.astype(np.float32), result.astype(np.float32), dim).astype(grad.dtype)
    if _is_tiny(grad, dim):
        down, across = blocks.ones_across(grad.shape[1], grad.dtype)
        x = _exp(result)
        x *= grad.dot(down).dot(across)
        return _subtract(grad, x, x)
    if not grad.ndim:
        return np.asarray(grad - np.exp(result) * grad)
    dim = normalize_dim(dim, grad.ndim)
    if grad.size > compiled.LARGE:
        fast = blocks.rows("log_softmax_backward", _log_softmax_rows_backward, (grad, result), dim)
        if fast is not None:
            return fast
    x = np.exp(result)
    x *= _sum(grad, dim, None, None, True)
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
