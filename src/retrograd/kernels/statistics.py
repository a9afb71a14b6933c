"""Medians, modes, and counts: histograms."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np
from numpy import ndarray

from .dims import normalize_dim
from .promotion import is_half, real_number, scalar_name, sortable, unsupported
from .reduce import _check_not_empty, _take

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
    if a.dtype.kind in "bcW":
        unsupported("median_cpu", a.dtype)
    if not a.ndim:
        return a.copy(), np.zeros((), _INT64)
    if a.dtype.kind not in "fV":
        return median(a, dim, keepdim)
    rows = _along_last(a, dim, "nanmedian")
    order = np.argsort(sortable(rows), -1, kind="stable")
    count = np.sum(~np.isnan(rows), -1)
    middle = np.maximum(count - 1, 0) // 2
    return _chosen(a, np.take_along_axis(order, middle[..., None], -1)[..., 0], dim, keepdim)


def nanmedian_all(a: ndarray) -> ndarray:
    """The lower median of all elements that are not NaN."""
    if a.dtype.kind in "bcW":
        unsupported("median_cpu", a.dtype)
    if not a.size:
        return np.array(math.nan if a.dtype.kind in "fV" else np.iinfo(a.dtype).min, a.dtype)
    return nanmedian_dim(a.reshape(-1), 0)[0]


def mode(a: ndarray, dim: int = -1, keepdim: bool = False) -> tuple[ndarray, ndarray]:
    """The commonest element along `dim`, the smallest of several, and where it last is."""
    dim = normalize_dim(dim, a.ndim)
    if a.dtype.kind in "cW":
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


def median(a: ndarray, dim: int = -1, keepdim: bool = False) -> tuple[ndarray, ndarray]:
    """The lower median along `dim` and where it is (the first NaN, if there is one)."""
    dim = normalize_dim(dim, a.ndim)
    if a.ndim and not a.shape[dim]:
        _check_not_empty("median", a, dim)
    if a.dtype.kind in "bcW":
        unsupported("median_cpu", a.dtype)
    if not a.ndim:
        return a.copy(), np.zeros_like(a, dtype=_INT64)
    k = (a.shape[dim] - 1) // 2
    indices = np.take(np.argpartition(a, k, axis=dim), [k], axis=dim)
    if a.dtype.kind in "fV":
        missing = np.isnan(a)
        first = np.argmax(missing, axis=dim, keepdims=True)
        indices = np.where(np.take_along_axis(missing, first, dim), first, indices)
    return _take(a, indices, dim, keepdim)


def median_all(a: ndarray) -> ndarray:
    """The lower median of all elements; NaN if there is one, or if there are no elements."""
    if not a.size:
        if a.dtype.kind in "bcW":
            unsupported("median_cpu", a.dtype)
        return np.array(math.nan if a.dtype.kind in "fV" else np.iinfo(a.dtype).min, a.dtype)
    return median(a.reshape(-1), 0)[0]


def bincount(a: ndarray, weights: ndarray | None = None, minlength: int = 0) -> ndarray:
    """How often each of 0, 1, 2 … occurs in `a`, or the sum of the weights where it does."""
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if a.ndim != 1 or (a.size and a.dtype.kind == "i" and a.min() < 0):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if a.dtype.kind not in "iu":
        unsupported("bincount_cpu", a.dtype)
    if weights is None:
        return np.bincount(a, minlength=minlength).astype(np.int64)
    if weights.shape != a.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    result = np.bincount(a, weights, minlength)
    return result.astype(np.float32 if weights.dtype == np.float32 else np.float64)


def histc(a: ndarray, bins: int = 100, min: float = 0, max: float = 0) -> ndarray:
    """How many elements lie in each of `bins` equal parts of [min, max]; of the range of `a` if both are 0."""
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    low, high = real_number(min), real_number(max)
    if low == high and a.size:
        low, high = float(a.min()), float(a.max())
    if not (np.isfinite(low) and np.isfinite(high)):
        raise RuntimeError(f"torch.histc: range of [{low:g}, {high:g}] is not finite")
    if low > high:
        raise RuntimeError(f"torch.histc: max must be larger than min, but got min {low:g} and max {high:g}")
    if a.dtype.kind not in "fV":
        unsupported("histogram_cpu", a.dtype)
    if low == high:
        low, high = _around(low, a.dtype)
    counts, _ = np.histogram(a[np.isfinite(a)] if a.ndim else a, bins, (low, high))
    return counts.astype(a.dtype)


def _around(value: float, dtype: np.dtype) -> tuple[float, float]:
    """A range with `value` in its middle, wide enough to be divided, as far as the dtype goes."""
    width = builtins.max(1.0, abs(value) * 2.0**-10)
    largest = float(np.finfo(dtype).max) if dtype.kind == "f" else np.inf
    return builtins.max(value - width, -largest), builtins.min(value + width, largest)


def _above(edges: ndarray, a: ndarray) -> ndarray:
    """Which edge each element of `a` is below, found by halving: of edges that are not sorted, the one torch finds."""
    first, length = np.zeros(a.shape, np.int64), np.full(a.shape, len(edges))
    while length.any():
        half = length // 2
        middle = np.minimum(first + half, len(edges) - 1)
        beyond = (length > 0) & ~(a < edges[middle])
        first = np.where(beyond, middle + 1, first)
        length = np.where(beyond, length - half - 1, half)
    return first


def _weighed(a: ndarray, edges: ndarray, weights: ndarray, density: bool) -> ndarray:
    """The weight between neighbouring edges, each added to one bin: NumPy's differences of sums spread a NaN."""
    place = np.where(a == edges[-1], len(edges) - 2, _above(edges, a) - 1)
    inside = (place >= 0) & (place < len(edges) - 1) & (a >= edges[0]) & (a <= edges[-1])
    counts = np.bincount(place[inside], weights[inside], len(edges) - 1)
    return counts / counts.sum() / np.diff(edges) if density else counts


def histogram(
    a: ndarray, bins: Any, range: Any = None, weight: ndarray | None = None, density: bool = False
) -> tuple[ndarray, ndarray]:
    """(counts, edges): how many elements, or how much weight, lies between neighbouring edges."""
    if a.dtype.kind != "f" or is_half(a.dtype):
        unsupported("histogram_cpu", a.dtype)
    if weight is not None and weight.dtype != a.dtype:
        raise RuntimeError(
            "torch.histogramdd(): if weight tensor is provided, input tensor and weight tensor should have the same "
            f"dtype, but got input {scalar_name(a.dtype)}, and weight {scalar_name(weight.dtype)}"
        )
    if weight is not None and weight.shape != a.shape:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor "
            f"excluding its innermost dimension, but got input with shape {[a.size, 1]} and weight with shape "
            f"{[weight.size]}"
        )
    if isinstance(bins, ndarray):
        if bins.dtype != a.dtype:
            raise RuntimeError(
                "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype "
                f"{scalar_name(a.dtype)} and bins for dimension 0 with dtype {scalar_name(bins.dtype)}"
            )
        if bins.ndim != 1 or not bins.size:
            wrong = "at least 1 element, but got 0 elements"
            if bins.ndim != 1:
                wrong = f"one dimension, but got {bins.ndim} dimensions"
            raise RuntimeError(f"torch.histogramdd: bins tensor should have {wrong} in the bins tensor for dimension 0")
        edges = bins.copy()
    else:
        if bins <= 0:
            raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
        low, high = map(float, range) if range is not None else (a.min(), a.max()) if a.size else (0.0, 1.0)
        if not (np.isfinite(low) and np.isfinite(high)):
            raise RuntimeError(f"torch.histogramdd: dimension 0's range [{low:g}, {high:g}] is not finite")
        if low > high:
            raise RuntimeError(
                f"torch.histogramdd: min should not exceed max, but got min {low:g} max {high:g} for dimension 0"
            )
        if low == high:
            low, high = low - 0.5, high + 0.5
        edges = np.linspace(low, high, bins + 1).astype(a.dtype)
    weights = None if weight is None else weight.reshape(-1)
    if weights is None and (edges[1:] >= edges[:-1]).all():
        counts, _ = np.histogram(a.reshape(-1), edges, density=density)
    else:
        weights = np.ones(a.size, a.dtype) if weights is None else weights
        counts = _weighed(a.reshape(-1), edges, weights, density)
    return counts.astype(a.dtype), edges


# Every public function of this module is a kernel.
__all__ = [n for n, f in list(globals().items()) if getattr(f, "__module__", None) == __name__ and n[0] != "_"]
