"""Medians of what is not NaN, modes, and scans that are no ufunc of NumPy's."""

from __future__ import annotations

import math

import numpy as np
from numpy import ndarray

from retrograd.kernels.dims import normalize_dim
from retrograd.kernels.pointwise import logaddexp
from retrograd.kernels.promotion import sortable, unsupported, work_dtype

_INT64 = np.dtype(np.int64)


def _along_last(a: ndarray, dim: int, name: str) -> ndarray:
    """`a` with the dimension that is reduced last, and not empty."""
    if not a.shape[dim]:
        raise IndexError(f"{name}(): Expected reduction dim {dim} to have non-zero size.")
    return np.moveaxis(a, dim, -1)


def _chosen(a: ndarray, indices: ndarray, dim: int, keepdim: bool) -> tuple[ndarray, ndarray]:
    """The elements of `a` at `indices`, one along `dim`, and the indices."""
    indices = np.expand_dims(indices.astype(_INT64), dim)
    values = np.take_along_axis(a, indices, dim)
    return (values, indices) if keepdim else (values.squeeze(dim), indices.squeeze(dim))


def nanmedian_dim(a: ndarray, dim: int = -1, keepdim: bool = False) -> tuple[ndarray, ndarray]:
    """The lower median along `dim` of what is not NaN, and where it is; NaN where nothing else is there."""
    dim = normalize_dim(dim, a.ndim)
    if a.dtype.kind in "bc":
        unsupported("median_cpu", a.dtype)
    if not a.ndim:
        return a.copy(), np.zeros((), _INT64)
    rows = _along_last(a, dim, "nanmedian")
    order = np.argsort(sortable(rows), -1, kind="stable")
    count = np.sum(~np.isnan(rows), -1) if a.dtype.kind in "fV" else np.full(rows.shape[:-1], rows.shape[-1])
    middle = np.maximum(count - 1, 0) // 2
    return _chosen(a, np.take_along_axis(order, middle[..., None], -1)[..., 0], dim, keepdim)


def nanmedian_all(a: ndarray) -> ndarray:
    """The lower median of all elements that are not NaN."""
    if a.dtype.kind in "bc":
        unsupported("median_cpu", a.dtype)
    if not a.size:
        return np.array(math.nan if a.dtype.kind in "fV" else np.iinfo(a.dtype).min, a.dtype)
    return nanmedian_dim(a.reshape(-1), 0)[0]


def mode(a: ndarray, dim: int = -1, keepdim: bool = False) -> tuple[ndarray, ndarray]:
    """The commonest element along `dim`, the smallest of several, and where it last is."""
    dim = normalize_dim(dim, a.ndim)
    if a.dtype.kind == "c":
        unsupported("mode", a.dtype)
    if not a.ndim:
        return a.copy(), np.zeros((), _INT64)
    rows = _along_last(a, dim, "mode")
    n = rows.shape[-1]
    order = np.argsort(sortable(rows), -1, kind="stable")
    ranked = np.take_along_axis(rows, order, -1)
    # The length of the run of equal elements that ends at each place.
    places = np.broadcast_to(np.arange(n), ranked.shape)
    starts = np.concatenate([np.ones_like(ranked[..., :1], bool), ranked[..., 1:] != ranked[..., :-1]], -1)
    length = places - np.maximum.accumulate(np.where(starts, places, 0), -1)
    # The first run of the greatest length, at its end.
    end = np.argmax(length, -1)
    return _chosen(a, np.take_along_axis(order, end[..., None], -1)[..., 0], dim, keepdim)


def logcumsumexp(a: ndarray, dim: int) -> ndarray:
    """The logarithm of the sums of the exponentials up to each element along `dim`."""
    dim = normalize_dim(dim, a.ndim)
    if a.dtype.kind not in "fcV":
        unsupported("logcumsumexp_out_cpu", a.dtype)
    if not a.ndim or not a.size:
        return a.copy()
    if a.dtype.kind in "fV":
        work = a.astype(work_dtype(a.dtype), copy=False)
        return np.logaddexp.accumulate(work, axis=dim).astype(a.dtype, copy=False)
    result = np.moveaxis(a.copy(), dim, 0)
    for i in range(1, len(result)):
        result[i] = logaddexp(result[i - 1], result[i])
    return np.moveaxis(result, 0, dim)


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


# Every public function of this module is a kernel.
__all__ = [n for n, f in list(globals().items()) if getattr(f, "__module__", None) == __name__ and n[0] != "_"]
