"""Special functions: the error function and its relatives, the gamma function's logarithm and its derivatives.

They come from `scipy.special`, imported when first needed.  Only erf in float32 has a version of its own for
large arrays, since gelu spends most of its time there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import ndarray

from retrograd.kernels.dims import check_long
from retrograd.kernels.promotion import apply_unary, check_out, float_dtype, operand, store, unsupported, work_dtype

_FLOAT32 = np.dtype(np.float32)


def _library(a: Any) -> Any:
    """The module of special functions for arrays such as `a`."""
    if type(a).__module__.partition(".")[0] == "cupy":
        from cupyx.scipy import special
    else:
        from scipy import special
    return special


def _special(function: Callable[..., Any], name: str, a: Any, out: ndarray | None = None) -> ndarray:
    """A function of scipy.special on `a`, in torch's dtypes."""
    d = float_dtype(a)
    if d.kind == "c":
        unsupported(name, d)
    if not hasattr(a, "dtype"):
        return apply_unary(function, a, None, d)
    r = function(operand(a, work_dtype(d)))
    return store(r if r.dtype is d else r.astype(d), out)


# ------------------------------------------------------------------------------------------------ error function

# erf(x) = x P(x^2) / Q(x^2) for |x| <= _ERF_EDGE, beyond which erf is 1 in float32.  Highest power first.  A
# least-squares fit of the relative error, 2e-9 at most; with float32's own rounding about 6 units in the last place.
_ERF_EDGE = np.array(3.95, np.float32)
_ERF_P = [np.array(c, np.float32) for c in (
    -1.296703148260837e-08, 4.640426903012106e-06, 3.7793669180085607e-04, 3.843375915822796e-03,
    5.4274782719881245e-02, 1.8516920963687986e-01, 1.1283791692365284e00,
)]  # fmt: skip
_ERF_Q = [np.array(c, np.float32) for c in (
    6.26924327873033e-05, 1.304063437527573e-03, 1.5443728571169844e-02, 1.13911059040417e-01,
    4.9743534858856553e-01, 1.0,
)]  # fmt: skip
_ERF_BLOCK = 16384  # elements: the scratch arrays stay in the cache
_ERF_SMALL = 512  # elements: below, one call of SciPy is faster than thirty of NumPy


def erf(a: ndarray, out: ndarray | None = None) -> ndarray:
    """The error function."""
    if type(a) is ndarray and a.dtype is _FLOAT32 and a.size > _ERF_SMALL:
        if out is not None:
            check_out(out, _FLOAT32, a.shape)
        if out is None or out.dtype is not _FLOAT32 or not out.flags.c_contiguous:
            return _erf_float32(a, np.empty(a.shape, _FLOAT32)) if out is None else store(erf(a), out)
        return _erf_float32(a, out)
    special = _library(a)
    return _special(special.erf, "erf_vml_cpu", a, out)


def _erf_float32(a: ndarray, out: ndarray) -> ndarray:
    """erf of a float32 array into a contiguous one, block by block."""
    source, target = np.ascontiguousarray(a).reshape(-1), out.reshape(-1)
    n = min(_ERF_BLOCK, source.size)
    scratch = np.empty((3, n), _FLOAT32)
    for start in range(0, source.size, n):
        r = target[start : start + n]
        x, square, p = scratch[:, : r.size]
        np.minimum(source[start : start + n], _ERF_EDGE, out=x)
        np.maximum(x, -_ERF_EDGE, out=x)
        np.multiply(x, x, out=square)
        _horner(_ERF_P, square, p)
        np.multiply(p, x, out=p)
        _horner(_ERF_Q, square, r)
        np.divide(p, r, out=r)
        np.minimum(r, 1, out=r)
        np.maximum(r, -1, out=r)
    return out


def _horner(coefficients: list[ndarray], x: ndarray, out: ndarray) -> None:
    np.multiply(x, coefficients[0], out=out)
    for c in coefficients[1:-1]:
        np.add(out, c, out=out)
        np.multiply(out, x, out=out)
    np.add(out, coefficients[-1], out=out)


def erfc(a: ndarray, out: ndarray | None = None) -> ndarray:
    """1 - erf(a), exact where erf is near 1."""
    special = _library(a)
    return _special(special.erfc, "erfc_vml_cpu", a, out)


def erfinv(a: ndarray, out: ndarray | None = None) -> ndarray:
    """The inverse of erf."""
    special = _library(a)
    return _special(special.erfinv, "erfinv_vml_cpu", a, out)


# ------------------------------------------------------------------------------------------------ gamma function


def lgamma(a: ndarray, out: ndarray | None = None) -> ndarray:
    """log(|gamma(a)|)."""
    special = _library(a)
    def gammaln(x: Any) -> Any:
        return np.where(np.isinf(x), np.abs(x), special.gammaln(x))  # inf at -inf, too

    return _special(lambda x: _gammaln_of_tiny(gammaln(x), x), "lgamma_vml_cpu", a, out)


def _gammaln_of_tiny(r: Any, x: Any) -> Any:
    """SciPy has infinity for denormal numbers, where gamma is 1 / x."""
    lost = np.isinf(r) & (np.abs(x) < 1e-30) & (x != 0)
    return np.where(lost, -np.log(np.abs(x)), r).astype(r.dtype) if np.any(lost) else r


def digamma(a: ndarray, out: ndarray | None = None) -> ndarray:
    """The derivative of lgamma."""
    special = _library(a)
    return _special(special.digamma, "digamma", a, out)


def polygamma(n: int, a: ndarray, out: ndarray | None = None) -> ndarray:
    """The n-th derivative of digamma."""
    check_long(n)
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    if n == 0:
        return digamma(a, out)
    special = _library(a)
    def derivative(x: Any) -> Any:
        # The Hurwitz zeta function in double precision: in float32 the factorial soon overflows.
        wide = x.astype(np.float64) if hasattr(x, "dtype") else x
        factorial = math.factorial(n) if n <= 170 else math.inf
        r = (-1.0) ** ((n + 1) % 2) * factorial * special.zeta(n + 1.0, wide)
        return r.astype(x.dtype) if hasattr(x, "dtype") else r

    return _special(derivative, "polygamma", a, out)


# Every public function of this module is a kernel.
__all__ = [n for n, f in list(globals().items()) if getattr(f, "__module__", None) == __name__ and n[0] != "_"]
