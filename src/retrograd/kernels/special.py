"""Special functions: error, gamma and Bessel functions and their relatives, orthogonal polynomials.

They come from `scipy.special`, imported when first needed.  Only erf in float32 has a version of its own for
large arrays, since gelu spends most of its time there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import ndarray

from . import reduce
from .arithmetic import add
from .compiled import LARGE
from .dims import check_long
from .promotion import (
    Kernel,
    apply_unary,
    broadcast_shape,
    cast_number,
    check_out,
    float_dtype,
    named,
    operand,
    result_dtype,
    store,
    unsupported,
    work_dtype,
)

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
_ONE = np.array(1, np.float32)
_ERF_P = [np.array(c, np.float32) for c in (
    -1.296703148260837e-08, 4.640426903012106e-06, 3.7793669180085607e-04, 3.843375915822796e-03,
    5.4274782719881245e-02, 1.8516920963687986e-01, 1.1283791692365284e00,
)]  # fmt: skip
_ERF_Q = [np.array(c, np.float32) for c in (
    6.26924327873033e-05, 1.304063437527573e-03, 1.5443728571169844e-02, 1.13911059040417e-01,
    4.9743534858856553e-01, 1.0,
)]  # fmt: skip
_ERF_BLOCK = 16384  # elements: the scratch arrays stay in the cache
ERF_SMALL = 512  # elements: below, one call of SciPy is faster than thirty of NumPy


def erf(a: ndarray, out: ndarray | None = None) -> ndarray:
    """The error function."""
    if type(a) is ndarray and a.dtype is _FLOAT32 and a.size > ERF_SMALL:
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
        np.clip(source[start : start + n], -_ERF_EDGE, _ERF_EDGE, out=x)
        np.multiply(x, x, out=square)
        _horner(_ERF_P, square, p)
        np.multiply(p, x, out=p)
        _horner(_ERF_Q, square, r)
        np.divide(p, r, out=r)
        np.clip(r, -_ONE, _ONE, out=r)
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


def _cast(result: Any, dtype: np.dtype) -> Any:
    return result if result.dtype is dtype else result.astype(dtype)


def _unary(name: str, function: str | Callable[..., Any], doc: str, kernel: str = "") -> Callable[..., Any]:
    """A kernel of one operand from a function of scipy.special, or from one of such a library and the operand."""

    def call(a: Any, out: ndarray | None = None) -> ndarray:
        d = float_dtype(a)
        if d.kind == "c":
            unsupported(kernel or name, d, out)
        library, x = _library(a), operand(a, work_dtype(d))
        result = getattr(library, function)(x) if isinstance(function, str) else function(library, x)
        return store(_cast(result, d), out)

    return named(call, name, doc)


def _binary(
    name: str, function: str | Callable[..., Any], doc: str, kernel: str = "", integers: bool = True
) -> Callable[..., Any]:
    """A kernel of two operands, which are broadcast and promoted; at least one is an array."""

    def call(a: Any, b: Any, out: ndarray | None = None) -> ndarray:
        d = float_dtype(a, b) if integers else result_dtype(a, b)
        if d.kind not in "fV":
            unsupported(kernel or name, d, out)
        broadcast_shape(a, b)
        library, work = _library(a if hasattr(a, "dtype") else b), work_dtype(d)
        x, y = operand(a, work, b), operand(b, work, a)
        result = getattr(library, function)(x, y) if isinstance(function, str) else function(library, x, y)
        return store(_cast(result, d), out)

    return named(call, name, doc)


special_entr: Kernel = _unary("special_entr", "entr", "-a * log(a), 0 at 0 and -inf below.")
special_erfcx: Kernel = _unary("special_erfcx", "erfcx", "exp(a**2) * erfc(a), without overflow.")
special_ndtr: Kernel = _unary("special_ndtr", "ndtr", "The distribution function of the normal distribution.")
special_ndtri: Kernel = _unary("special_ndtri", "ndtri", "The quantile function of the normal distribution.")
special_log_ndtr: Kernel = _unary("special_log_ndtr", "log_ndtr", "log(ndtr(a)), exact far below 0.")


def xlogy(a: Any, b: Any, out: ndarray | None = None) -> ndarray:
    """a * log(b), 0 where a is 0 and b is not NaN."""
    return _xlogy(a, b, out)


_xlogy = _binary("xlogy", "xlogy", "", "xlogy_cpu")
special_xlog1py: Kernel = _binary("special_xlog1py", "xlog1py", "a * log(1 + b), 0 where a is 0 and b is not NaN.")


def logit(a: ndarray, eps: float | None = None, out: ndarray | None = None) -> ndarray:
    """log(a / (1 - a)), of `a` clamped to [eps, 1 - eps] if eps is given."""
    d = float_dtype(a)
    if d.kind == "c":
        unsupported("logit", d, out)
    x = operand(a, work_dtype(d))
    if eps is not None:
        x = np.clip(x, cast_number(eps, x.dtype), cast_number(1.0 - eps, x.dtype))
    if x.size > LARGE and type(x) is ndarray:  # as torch has it, and a tenth of SciPy's time
        r = np.subtract(1, x)
        np.divide(x, r, out=r)
        return store(_cast(np.log(r, out=r), d), out)
    return store(_cast(_library(a).logit(x), d), out)


i0: Kernel = _unary("i0", "i0", "The modified Bessel function of order 0.")
special_i0e: Kernel = _unary("special_i0e", "i0e", "exp(-|a|) * i0(a).")
special_i1: Kernel = _unary("special_i1", "i1", "The modified Bessel function of order 1.")
special_i1e: Kernel = _unary("special_i1e", "i1e", "exp(-|a|) * i1(a).")
special_bessel_j0: Kernel = _unary("special_bessel_j0", "j0", "The Bessel function of the first kind, order 0.")
special_bessel_j1: Kernel = _unary("special_bessel_j1", "j1", "The Bessel function of the first kind, order 1.")
special_bessel_y0: Kernel = _unary("special_bessel_y0", "y0", "The Bessel function of the second kind, order 0.")
special_bessel_y1: Kernel = _unary("special_bessel_y1", "y1", "The Bessel function of the second kind, order 1.")
special_modified_bessel_k0: Kernel = _unary("special_modified_bessel_k0", "k0", "The second modified one, order 0.")
special_modified_bessel_k1: Kernel = _unary("special_modified_bessel_k1", "k1", "The second modified one, order 1.")
special_scaled_modified_bessel_k0: Kernel = _unary("special_scaled_modified_bessel_k0", "k0e", "exp(a) * k0(a).")
special_scaled_modified_bessel_k1: Kernel = _unary("special_scaled_modified_bessel_k1", "k1e", "exp(a) * k1(a).")


def _airy(library: Any, x: ndarray) -> ndarray:
    r = library.airy(x)[0]
    far = np.isnan(r) & (np.abs(x) > 1e6)  # where SciPy gives up: the first term of the series is all that counts
    if far.any():
        # The angle is large: it has to be known to more digits than its cosine.
        size = np.where(x < 0, -x, np.inf).astype(np.longdouble)
        wave = np.cos(2 * size * np.sqrt(size) / 3 - np.arctan(np.longdouble(1)))
        r = np.where(far, np.where(np.isnan(wave), 0, wave) / (math.sqrt(math.pi) * np.sqrt(np.sqrt(size))), r)
    return r.astype(x.dtype)


special_airy_ai: Kernel = _unary("special_airy_ai", lambda library, x: _airy(library, x), "The Airy function Ai.")
special_spherical_bessel_j0: Kernel = _unary(
    "special_spherical_bessel_j0",
    lambda library, x: np.where(np.isinf(x), 0, np.sinc(x / np.pi)).astype(x.dtype),
    "sin(a) / a.",
)


igamma: Kernel = _binary("igamma", "gammainc", "The regularised lower incomplete gamma function.", integers=False)
igammac: Kernel = _binary("igammac", "gammaincc", "The regularised upper incomplete gamma function.", integers=False)
special_zeta: Kernel = _binary("special_zeta", "zeta", "The Hurwitz zeta function.", "zeta_cpu")


#: The highest degree of a polynomial: its recurrence takes about a second.
_HIGHEST = 100_000


def _polynomial(
    name: str, first: Callable[..., Any], following: Callable[..., Any], doc: str, shift: bool = False
) -> Callable[..., Any]:
    """A kernel of (a, n): p(0) = 1, p(1) = first(x), p(k + 1) = following(k, x, p(k), p(k - 1)); 0 for n < 0."""

    def polynomial(library: Any, x: ndarray, n: ndarray) -> ndarray:
        if shift:
            x = 2 * x - 1
        degree = np.where(np.isnan(n), -1, np.trunc(n))
        if degree.max(initial=0) > _HIGHEST:
            raise RuntimeError(
                f"{name}: polynomials of degree {int(degree.max())} are computed one by one, which would not end. The "
                f"highest degree is {_HIGHEST}"
            )
        before, now = np.ones_like(x), first(x)
        result = np.where(degree == 0, before, np.where(degree == 1, now, x.dtype.type(0)))
        for k in range(1, int(degree.max(initial=0))):
            before, now = now, following(k, x, now, before)
            result = np.where(degree == k + 1, now, result)
        return np.where(np.isnan(n), x.dtype.type(np.nan), result)

    return _binary(name, polynomial, doc)


def _chebyshev(k: int, x: Any, p: Any, q: Any) -> Any:
    return 2 * x * p - q


special_chebyshev_polynomial_t: Kernel = _polynomial(
    "special_chebyshev_polynomial_t", lambda x: x, _chebyshev, "Chebyshev polynomials of the first kind."
)
special_chebyshev_polynomial_u: Kernel = _polynomial(
    "special_chebyshev_polynomial_u", lambda x: 2 * x, _chebyshev, "Chebyshev polynomials of the second kind."
)
special_chebyshev_polynomial_v: Kernel = _polynomial(
    "special_chebyshev_polynomial_v", lambda x: 2 * x - 1, _chebyshev, "Chebyshev polynomials of the third kind."
)
special_chebyshev_polynomial_w: Kernel = _polynomial(
    "special_chebyshev_polynomial_w", lambda x: 2 * x + 1, _chebyshev, "Chebyshev polynomials of the fourth kind."
)
special_shifted_chebyshev_polynomial_t: Kernel = _polynomial(
    "special_shifted_chebyshev_polynomial_t", lambda x: x, _chebyshev, "The first kind at 2 * a - 1.", shift=True
)
special_shifted_chebyshev_polynomial_u: Kernel = _polynomial(
    "special_shifted_chebyshev_polynomial_u", lambda x: 2 * x, _chebyshev, "The second kind at 2 * a - 1.", shift=True
)
special_shifted_chebyshev_polynomial_v: Kernel = _polynomial(
    "special_shifted_chebyshev_polynomial_v", lambda x: 2 * x - 1, _chebyshev, "The third at 2 * a - 1.", shift=True
)
special_shifted_chebyshev_polynomial_w: Kernel = _polynomial(
    "special_shifted_chebyshev_polynomial_w", lambda x: 2 * x + 1, _chebyshev, "The fourth at 2 * a - 1.", shift=True
)
special_hermite_polynomial_h: Kernel = _polynomial(
    "special_hermite_polynomial_h",
    lambda x: 2 * x,
    lambda k, x, p, q: 2 * x * p - 2 * k * q,
    "Hermite polynomials as physicists have them.",
)
special_hermite_polynomial_he: Kernel = _polynomial(
    "special_hermite_polynomial_he",
    lambda x: x,
    lambda k, x, p, q: x * p - k * q,
    "Hermite polynomials as probabilists have them.",
)
special_laguerre_polynomial_l: Kernel = _polynomial(
    "special_laguerre_polynomial_l",
    lambda x: 1 - x,
    lambda k, x, p, q: ((2 * k + 1 - x) * p - k * q) / (k + 1),
    "Laguerre polynomials.",
)
special_legendre_polynomial_p: Kernel = _polynomial(
    "special_legendre_polynomial_p",
    lambda x: x,
    lambda k, x, p, q: ((2 * k + 1) * x * p - k * q) / (k + 1),
    "Legendre polynomials.",
)


# Every public function of this module is a kernel.


def mvlgamma(a: ndarray, p: int, out: ndarray | None = None) -> ndarray:
    """The logarithm of the multivariate gamma function of dimension `p`."""
    # All at once: of a dimension without end there is not the memory, and that is known before the first one.
    steps = np.arange(1 - p, 1) / 2
    terms = lgamma(add(np.expand_dims(a, -1), steps.astype(a.dtype if a.dtype.kind in "fV" else np.float32)))
    return add(reduce.sum(terms, -1), p * (p - 1) / 4 * math.log(math.pi), out=out)


__all__ = [n for n, f in list(globals().items()) if getattr(f, "__module__", None) == __name__ and n[0] != "_"]
