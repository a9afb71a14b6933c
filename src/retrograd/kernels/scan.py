"""Running sums, products and extremes along a dimension, and linear recurrences.

Sums of floats are kept in float64, as torch does it.
"""

from __future__ import annotations

import math

import numpy as np
from numpy import ndarray

from . import compiled
from .blocks import row_blocks
from .compiled import LARGE
from .dims import normalize_dim
from .promotion import complex_dtype, operand, scalar_name, unsupported, work_dtype
from .rearrange import flip
from .reduce import _BOOL, _INT64, _as_dtype


def cumsum(a: ndarray, dim: int, dtype: np.dtype | None = None, out: ndarray | None = None) -> ndarray:
    """The sums of the elements up to each one along `dim`."""
    return _cumulate(np.add, "cumsum_out_cpu", a, dim, dtype, out)


def cumprod(a: ndarray, dim: int, dtype: np.dtype | None = None, out: ndarray | None = None) -> ndarray:
    """The products of the elements up to each one along `dim`."""
    return _cumulate(np.multiply, "cumprod_out_cpu", a, dim, dtype, out)


def cumsum_from_end(a: ndarray, dim: int) -> ndarray:
    """The sums of the elements from each one on along `dim`."""
    if type(a) is ndarray and a.size > LARGE:
        fast = compiled.scan(a, normalize_dim(dim, a.ndim), multiply=False, back=True)
        if fast is not None:
            return fast
    return flip(cumsum(flip(a, (dim,)), dim), (dim,))


def _cumulate(
    ufunc: np.ufunc, name: str, a: ndarray, dim: int, dtype: np.dtype | None, out: ndarray | None
) -> ndarray:
    dim = normalize_dim(dim, a.ndim)
    if out is not None and dtype is not None and out.dtype != dtype:
        raise RuntimeError(
            f"Bad in-place call: input tensor dtype {scalar_name(out.dtype)} and output tensor dtype "
            f"{scalar_name(dtype)} should match"
        )
    d = dtype or (out.dtype if out is not None else a.dtype if a.dtype.kind in "fcVW" else _INT64)
    if d == _BOOL:
        unsupported(name, d)
    x = operand(a, d)
    if not a.ndim:
        r = x.copy() if x is a else x
    else:
        # Rounding errors add up along the dimension: floats are added in double precision.
        wide = np.dtype(np.float64) if d.kind in "fV" else complex_dtype(np.dtype(np.float64)) if d.kind == "c" else d
        if type(x) is ndarray and x.size > LARGE and d.kind in "fciu" and x.flags.c_contiguous:
            fast = compiled.scan(x, dim, ufunc is np.multiply)
            r = _scan_large(ufunc, x, dim, wide) if fast is None else fast
        else:
            r = _as_dtype((x.cumsum if ufunc is np.add else x.cumprod)(axis=dim, dtype=wide), d)
    if out is None:
        return r if r.flags.c_contiguous else r.copy()  # row-major, whatever the order of `a`
    out[...] = r
    return out


def _scan_large(ufunc: np.ufunc, x: ndarray, dim: int, wide: np.dtype) -> ndarray:
    """Running sums or products of a contiguous array along `dim`, computed in the dtype `wide`.

    NumPy's own go along one row after another and wait for each element's result before the next.  Here many rows go
    together: those beside each other where `dim` is not the last, else the eighths of eight neighbours of all rows.
    """
    lead, n, inner = math.prod(x.shape[:dim]), x.shape[dim], math.prod(x.shape[dim + 1 :])
    result = np.empty(x.shape, x.dtype)
    if inner >= 64:
        for matrix, target in zip(x.reshape(lead, n, inner), result.reshape(lead, n, inner), strict=True):
            so_far = matrix[0].astype(wide)
            target[0] = so_far
            for i in range(1, n):
                ufunc(so_far, matrix[i], out=so_far)
                target[i] = so_far
        return result
    if inner > 1 or n < 64:
        np.copyto(result, ufunc.accumulate(x, axis=dim, dtype=wide), casting="same_kind")
        return result
    a, into = x.reshape(lead, n), result.reshape(lead, n)
    groups, rest = divmod(n, _GROUP)
    whole = groups * _GROUP
    for block in row_blocks(a):
        part, target = a[block], into[block]
        rows = len(part)
        # parts[i] has the elements i of all groups, so that one step adds them to those before.
        parts = np.empty((_GROUP, rows, groups), wide)
        parts[0] = part[:, :whole:_GROUP]
        for i in range(1, _GROUP):
            parts[i] = part[:, i:whole:_GROUP]
            ufunc(parts[i], parts[i - 1], out=parts[i])
        # What comes before each group, and before the first what changes nothing: whole arrays, not rows of them.
        before = np.empty((rows, groups + 1), wide)
        before[:, 0] = 1 if ufunc is np.multiply else -0.0
        ufunc.accumulate(parts[-1], axis=1, out=before[:, 1:])
        earlier = before[:, :-1].copy()
        for i in range(_GROUP):
            ufunc(parts[i], earlier, out=parts[i])
            np.copyto(target[:, i:whole:_GROUP], parts[i], casting="same_kind")
        if rest:
            last = np.concatenate([before[:, -1:], part[:, whole:]], 1, dtype=wide)
            np.copyto(target[:, whole:], ufunc.accumulate(last, axis=1)[:, 1:], casting="same_kind")
    return result


_GROUP = 8  # neighbours that are added before the groups are


def cummax(a: ndarray, dim: int) -> tuple[ndarray, ndarray]:
    """The largest element so far along `dim` and where it last was."""
    return _cumulate_extreme(np.maximum, "cummax_cpu", a, dim)


def cummin(a: ndarray, dim: int) -> tuple[ndarray, ndarray]:
    """The smallest element so far along `dim` and where it last was."""
    return _cumulate_extreme(np.minimum, "cummin_cpu", a, dim)


def _cumulate_extreme(ufunc: np.ufunc, name: str, a: ndarray, dim: int) -> tuple[ndarray, ndarray]:
    if not a.ndim and not -1 <= dim <= 0:
        raise IndexError(f"{name.removesuffix('_cpu')}(): Expected reduction dim -1 or 0 for scalar but got {dim}")
    dim = normalize_dim(dim, a.ndim)
    if not a.ndim or not a.size:
        return a.copy(), np.zeros_like(a, dtype=_INT64)
    if a.dtype.kind == "c":
        unsupported(name, a.dtype)
    values = ufunc.accumulate(a, axis=dim)
    reached = np.equal(a, values)
    if a.dtype.kind in "fV":
        reached |= np.isnan(a)
    position = np.arange(a.shape[dim], dtype=_INT64).reshape([-1 if d == dim else 1 for d in range(a.ndim)])
    indices = np.maximum.accumulate(np.where(reached, position, 0), axis=dim)
    return np.ascontiguousarray(values), np.ascontiguousarray(indices)


def logcumsumexp(a: ndarray, dim: int) -> ndarray:
    """The logarithm of the sums of the exponentials up to each element along `dim`."""
    dim = normalize_dim(dim, a.ndim)
    if a.dtype.kind not in "fcVW":
        unsupported("logcumsumexp_out_cpu", a.dtype)
    if not a.ndim or not a.size:
        return a.copy()
    if a.dtype.kind in "fV":
        work = a.astype(work_dtype(a.dtype), copy=False)
        return np.logaddexp.accumulate(work, axis=dim).astype(a.dtype, order="C", copy=False)
    result = np.moveaxis(a.copy(order="C"), dim, 0)
    total = np.full_like(result[0], -math.inf)
    for i in range(len(result)):
        result[i] = total = _log_of_sum(total, result[i])
    return np.moveaxis(result, 0, dim)


def _log_of_sum(a: ndarray, b: ndarray) -> ndarray:
    """``log(exp(a) + exp(b))`` of complex numbers; of two that are -inf the first, and NaN where a part is NaN."""
    swap = a.real > b.real
    low, high = np.where(swap, b, a), np.where(swap, a, b)
    result = np.log1p(np.exp(low - high)) + high
    endless = np.isinf(low.real) & (low.real == high.real)
    if endless.any():
        result = np.where(endless, np.where(low.real < 0, low, np.log(np.exp(low) + np.exp(high))), result)
    missing = np.isnan(a) | np.isnan(b)
    return np.where(missing, complex(math.nan, math.nan), result) if missing.any() else result


def linear_recurrence(a: ndarray, decay: ndarray, dim: int) -> ndarray:
    """y[i] = a[i] + decay[i] * y[i - 1] along `dim`, with y[-1] = 0."""
    dim = normalize_dim(dim, a.ndim)
    result = np.array(a, copy=True)
    if not a.ndim:
        return result
    y, d = np.moveaxis(result, dim, 0), np.moveaxis(decay, dim, 0)
    for i in range(1, len(y)):
        y[i] += d[i] * y[i - 1]
    return result
