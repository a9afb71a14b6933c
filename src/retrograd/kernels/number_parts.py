"""What numbers are made of: sign bits, mantissas and exponents, neighbours, divisors, infinities; histograms."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray

from retrograd.kernels.promotion import apply_binary, as_array, is_half, result_dtype, scalar_name, unsupported


def signbit(a: ndarray) -> ndarray:
    """Whether the sign bit is set; that of -0.0 is."""
    if a.dtype.kind == "c":
        raise NotImplementedError("signbit is not implemented for complex tensors.")
    return as_array(np.signbit(a) if a.dtype.kind in "fV" else np.less(a, a.dtype.type(0)))


def isposinf(a: ndarray) -> ndarray:
    """Whether an element is +inf."""
    if a.dtype.kind == "c":
        raise RuntimeError("isposinf does not support complex inputs.")
    return as_array(a == np.inf if a.dtype.kind in "fV" else np.zeros_like(a, bool))


def isneginf(a: ndarray) -> ndarray:
    """Whether an element is -inf."""
    if a.dtype.kind == "c":
        raise RuntimeError("isneginf does not support complex inputs.")
    return as_array(a == -np.inf if a.dtype.kind in "fV" else np.zeros_like(a, bool))


def isreal(a: ndarray) -> ndarray:
    """Whether the imaginary part of an element is 0."""
    return as_array(a.imag == 0 if a.dtype.kind == "c" else np.ones_like(a, bool))


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
    return apply_binary(np.nextafter, a, b, out)


def gcd(a: ndarray, b: ndarray, out: ndarray | None = None) -> ndarray:
    """The greatest common divisor."""
    return _divisors(np.gcd, "gcd_cpu", a, b, out)


def lcm(a: ndarray, b: ndarray, out: ndarray | None = None) -> ndarray:
    """The least common multiple."""
    return _divisors(np.lcm, "lcm_cpu", a, b, out)


def _divisors(ufunc: Any, name: str, a: ndarray, b: ndarray, out: ndarray | None) -> ndarray:
    d = result_dtype(a, b)
    if d.kind not in "iu":
        unsupported(name, d, out)
    return apply_binary(ufunc, a, b, out)


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
    if a.dtype.kind not in "fV":
        unsupported("histogram_cpu", a.dtype)
    if bins <= 0:
        raise RuntimeError("torch.histc(): bins must be > 0")
    low, high = _histogram_range(a, min, max)
    counts, _ = np.histogram(a[np.isfinite(a)] if a.ndim else a, bins, (low, high))
    return counts.astype(a.dtype)


def _histogram_range(a: ndarray, low: float, high: float) -> tuple[float, float]:
    if low == high and a.size:
        low, high = float(a.min()), float(a.max())
    if not (np.isfinite(low) and np.isfinite(high)):
        raise RuntimeError(f"range of [{low}, {high}] is not finite")
    if low > high:
        raise RuntimeError("max must be larger than min")
    return (low - 1, high + 1) if low == high else (low, high)


def _weighed(a: ndarray, edges: ndarray, weights: ndarray, density: bool) -> ndarray:
    """The weight between neighbouring edges, each added to one bin: NumPy's differences of sums spread a NaN."""
    place = np.where(a == edges[-1], len(edges) - 2, np.searchsorted(edges, a, "right") - 1)
    inside = (place >= 0) & (place < len(edges) - 1)
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
    if isinstance(bins, ndarray):
        if bins.dtype != a.dtype:
            raise RuntimeError(
                "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype "
                f"{scalar_name(a.dtype)} and bins for dimension 0 with dtype {scalar_name(bins.dtype)}"
            )
        edges = bins.copy()
    else:
        if bins <= 0:
            raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
        low, high = range if range is not None else (a.min(), a.max()) if a.size else (0.0, 1.0)
        if low == high:
            low, high = low - 0.5, high + 0.5
        low, high = _histogram_range(a, float(low), float(high))
        edges = np.linspace(low, high, bins + 1).astype(a.dtype)
    weights = None if weight is None else weight.reshape(-1)
    counts, _ = np.histogram(a.reshape(-1), edges, weights=weights, density=density and weights is None)
    if weights is not None:
        counts = _weighed(a.reshape(-1), edges, weights, density)
    return counts.astype(a.dtype), edges


# Every public function of this module is a kernel.
__all__ = [n for n, f in list(globals().items()) if getattr(f, "__module__", None) == __name__ and n[0] != "_"]
