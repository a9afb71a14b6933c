"""Arithmetic and elementary functions, element by element, with torch's broadcasting and dtypes.

Every kernel begins with its common case, arrays that the ufunc takes as they are, and hands the rest to `apply_unary`
and `apply_binary` of `promotion.py`.  A failing ufunc is simply tried again there, where the checks are.  Numbers
alone give numbers, so that a derivative formula may apply a kernel to what the user passed as a number.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import ndarray

from retrograd.core import dtypes
from retrograd.kernels import blocks, compiled
from retrograd.kernels.compiled import LARGE
from retrograd.kernels.promotion import (
    Operand,
    apply_binary,
    apply_unary,
    as_array,
    broadcast_shape,
    cast_number,
    check_number,
    check_out,
    element,
    float_dtype,
    named,
    operand,
    result_dtype,
    scalar_name,
    store,
    unsupported,
    work_dtype,
)

_BOOL = np.dtype(bool)

# Names of their own, since a lookup in np costs the common case a tenth of its overhead.
_add, _subtract, _multiply, _true_divide = np.add, np.subtract, np.multiply, np.true_divide


# ---------------------------------------------------------------------------------------------------- arithmetic


def add(a: Operand, b: Operand, alpha: Operand = 1, out: ndarray | None = None) -> ndarray:
    """a + alpha * b."""
    if alpha == 1 and alpha is not True:
        if b.__class__ is ndarray and (out is None or out is a):
            try:
                if a.dtype is b.dtype:
                    if out is not None:
                        return _add(a, b, out)
                    r = _add(a, b)
                    return r if r.__class__ is ndarray else as_array(r)
            except (AttributeError, ValueError):
                pass
        return apply_binary(np.add, a, b, out)
    return _scaled(np.add, a, b, alpha, out)


def sub(a: Operand, b: Operand, alpha: Operand = 1, out: ndarray | None = None) -> ndarray:
    """a - alpha * b."""
    if b.__class__ is ndarray and (out is None or out is a) and alpha == 1 and alpha is not True:
        try:
            if a.dtype is b.dtype:
                if out is not None:
                    return _subtract(a, b, out)
                r = _subtract(a, b)
                return r if r.__class__ is ndarray else as_array(r)
        except (AttributeError, ValueError, TypeError):
            pass
    _check_subtraction(a, b)
    if alpha == 1 and alpha is not True:
        return apply_binary(np.subtract, a, b, out)
    return _scaled(np.subtract, a, b, alpha, out)


def rsub(a: Operand, b: Operand, alpha: Operand = 1) -> ndarray:
    """b - alpha * a."""
    return sub(b, a, alpha)


def _check_subtraction(a: Operand, b: Operand) -> None:
    booleans = [isinstance(x, bool) or getattr(x, "dtype", None) == _BOOL for x in (a, b)]
    if builtins.all(booleans):
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. "
            "Use the `^` or `logical_xor()` operator instead."
        )
    if builtins.any(booleans):
        raise RuntimeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. "
            "If you are trying to invert a mask, use the `~` or `logical_not()` operator instead."
        )


def _scaled(ufunc: Callable[..., Any], a: Operand, b: Operand, alpha: Operand, out: ndarray | None) -> ndarray:
    """`ufunc` of a and alpha * b, in the common dtype of a and b."""
    d = result_dtype(a, b)
    if isinstance(alpha, bool) and d != _BOOL:
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if d.kind in "iub" and isinstance(alpha, (float, builtins.complex)):
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    if d.kind != "c" and isinstance(alpha, builtins.complex):
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex number.")
    x, y = operand(a, d, b), operand(b, d, a)
    shape = broadcast_shape(x, y)
    if out is not None:
        check_out(out, d, shape)
    scaled = np.multiply(y, operand(alpha, d, y))
    if d.kind in "fV" and not -1 <= alpha <= 1 and (np.isinf(scaled) & np.isfinite(y)).any():
        # alpha * b is too large, but the sum may not be: divided by alpha before, and multiplied after.
        factor = operand(alpha, d, y)
        r = np.where(np.isinf(scaled), np.multiply(ufunc(np.divide(x, factor), y), factor), ufunc(x, scaled))
        return store(r, out)
    if out is not None:
        return ufunc(x, scaled, out=out, casting="unsafe")
    # The scaled operand is ours: the result goes there where it fits.
    r = ufunc(x, scaled, out=scaled) if type(scaled) is ndarray and scaled.shape == shape else ufunc(x, scaled)
    return r if r.__class__ is ndarray else as_array(r)


def mul(a: Operand, b: Operand, out: ndarray | None = None) -> ndarray:
    """a * b."""
    if b.__class__ is ndarray and (out is None or out is a):
        try:
            if a.dtype is b.dtype:
                if out is not None:
                    return _multiply(a, b, out)
                r = _multiply(a, b)
                return r if r.__class__ is ndarray else as_array(r)
        except (AttributeError, ValueError):
            pass
    return apply_binary(np.multiply, a, b, out)


def div(a: Operand, b: Operand, rounding_mode: str | None = None, out: ndarray | None = None) -> ndarray:
    """a / b; of integers in the default dtype, or rounded by "floor" or "trunc" in their own."""
    if rounding_mode is None:
        if b.__class__ is ndarray and out is None:
            try:
                if a.dtype is b.dtype:
                    r = _true_divide(a, b)
                    if r.dtype is a.dtype:
                        return r if r.__class__ is ndarray else as_array(r)
            except (AttributeError, ValueError):
                pass
        return apply_binary(np.true_divide, a, b, out, float_dtype(a, b))
    if rounding_mode == "floor":
        return _integer_division(np.floor_divide, "div_floor_cpu", a, b, out)
    if rounding_mode == "trunc":
        return _integer_division(_truncated_quotient, "div_trunc_cpu", a, b, out)
    raise RuntimeError(
        f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found {rounding_mode!r}"
    )


def true_divide(a: Operand, b: Operand, out: ndarray | None = None) -> ndarray:
    """a / b."""
    return div(a, b, None, out)


def floor_divide(a: Operand, b: Operand, out: ndarray | None = None) -> ndarray:
    """a / b, rounded down."""
    return _integer_division(np.floor_divide, "div_floor_cpu", a, b, out)


def remainder(a: Operand, b: Operand, out: ndarray | None = None) -> ndarray:
    """a modulo b, with the sign of b; a zero has that of a."""
    return _integer_division(_remainder, "remainder_cpu", a, b, out)


def fmod(a: Operand, b: Operand, out: ndarray | None = None) -> ndarray:
    """a modulo b, with the sign of a."""
    return _integer_division(np.fmod, "fmod_cpu", a, b, out)


def _remainder(a: Any, b: Any, out: ndarray | None = None, **kwargs: Any) -> Any:
    if getattr(a, "dtype", _BOOL).kind not in "fV":
        return np.remainder(a, b, out=out, **kwargs)
    sign = a if out is None else np.copy(a)  # which may be written over
    r = as_array(np.remainder(a, b, out=out, **kwargs))
    return r if r.all() else np.copysign(r, sign, out=r, where=np.equal(r, 0))


def _integer_division(
    ufunc: Callable[..., Any], name: str, a: Operand, b: Operand, out: ndarray | None
) -> ndarray:
    d = result_dtype(a, b)
    if d.kind in "bc":
        unsupported(name, d, out)
    if d.kind in "iu" and not np.all(b) and np.size(a):
        raise RuntimeError("ZeroDivisionError")
    return apply_binary(ufunc, a, b, out, d)


def _truncated_quotient(a: Any, b: Any, **kwargs: Any) -> Any:
    if a.dtype.kind in "fV":
        return np.trunc(np.true_divide(a, b), **kwargs)
    return np.floor_divide(np.subtract(a, np.fmod(a, b)), b, **kwargs)


def pow(a: Operand, b: Operand, out: ndarray | None = None) -> ndarray:
    """a to the power of b; either may be a number."""
    d = result_dtype(a, b)
    if not hasattr(b, "dtype"):
        shortcut = _POWERS.get(b) if d.kind in "fcV" else None
        if shortcut is not None and d == a.dtype and not (d.char == "e" and b in _ROOTS):
            if out is None:
                r = shortcut(a)
                return r if r.__class__ is ndarray else as_array(r)
            return store(shortcut(a), out)
        if d == _BOOL:
            return store(a.copy() if b else np.ones_like(a), out)
        if d.kind in "iu":
            if b < 0:
                raise RuntimeError("Integers to negative integer powers are not allowed.")
            check_number(b, d)
    if d == _BOOL:
        unsupported("pow", d, out)
    if d.kind == "i" and builtins.bool(np.any(np.less(b, 0))):
        return store(_negative_integer_power(operand(a, d, b), operand(b, d, a)), out)
    return apply_binary(np.power if d.kind != "c" else _complex_power, a, b, out, d)


def _complex_power(a: Any, b: Any, **kwargs: Any) -> Any:
    infinite = np.isinf(a) & np.isfinite(b)  # before the result, which may be written over `a`
    if not infinite.any():
        return np.power(a, b, **kwargs)
    base, exponent = np.copy(a), np.copy(b)
    r = np.power(a, b, **kwargs)
    # NumPy multiplies infinities, where the logarithm keeps its angle; and the size of a power of infinity hangs on
    # no angle where the exponent is real: it is 0 for a negative one.
    lost = np.isnan(r) & infinite
    np.copyto(r, np.exp(np.multiply(exponent, np.log(base))), where=lost)
    np.copyto(r, 0, where=lost & (exponent.real < 0) & (exponent.imag == 0))
    return r


def ldexp(a: ndarray, b: ndarray, out: ndarray | None = None) -> ndarray:
    """a * 2 ** b; integers do not widen a float `a`."""
    if b.dtype.kind == "b":
        unsupported("ldexp_cpu_exp", b.dtype)
    power = pow(2.0, b)
    if a.dtype.kind in "fV" and b.dtype.kind in "iub":
        power = power.astype(a.dtype)
    return mul(a, power, out)


def _cube(a: ndarray) -> Any:
    return np.multiply(np.multiply(a, a), a)


def _reciprocal_square(a: ndarray) -> Any:
    return np.reciprocal(np.multiply(a, a))


def _rsqrt(a: ndarray, **kwargs: Any) -> Any:
    return np.reciprocal(np.sqrt(a), **kwargs)


# np.power is twenty times slower than these and no more exact.
_POWERS: dict[float, Callable[..., Any]] = {
    1: np.copy, 2: np.square, 3: _cube, 0.5: np.sqrt, -0.5: _rsqrt, -1: np.reciprocal, -2: _reciprocal_square,
}  # fmt: skip


#: Powers that are not those of C for -inf and -0: torch takes the short cut for all floats but half.
_ROOTS = (0.5, -0.5)


def _negative_integer_power(a: ndarray, b: ndarray) -> ndarray:
    """Integer powers, where a negative one is 1 / a ** -b rounded to zero."""
    try:
        regular = np.power(a, np.maximum(b, 0))
    except ValueError:
        broadcast_shape(a, b)
        raise
    sign = np.where(np.bitwise_and(b, 1), a, np.ones_like(a))
    return np.where(b >= 0, regular, np.where(np.abs(a) == 1, sign, np.zeros_like(a))).astype(a.dtype, copy=False)


def float_power(a: Operand, b: Operand, out: ndarray | None = None) -> ndarray:
    """a to the power of b in double precision."""
    d = np.dtype(np.complex128 if result_dtype(a, b).kind == "c" else np.float64)
    if out is not None and out.dtype != d:
        raise RuntimeError(
            f"the base given to float_power_ has dtype {scalar_name(out.dtype)} but the operation's result "
            f"requires dtype {scalar_name(d)}"
        )
    if not hasattr(a, "dtype") and not hasattr(b, "dtype"):
        return apply_binary(np.float_power, a, b)
    return pow(operand(a, d, b), operand(b, d, a) if hasattr(b, "dtype") else b, out)


def _binary(name: str, ufunc: np.ufunc, refused: str, message: str, doc: str) -> Callable[..., Any]:
    """A kernel whose result has the common dtype, which must not be of the kinds in `refused`."""

    def kernel(a: Operand, b: Operand, out: ndarray | None = None) -> ndarray:
        if b.__class__ is ndarray and out is None:
            try:
                d = a.dtype
                if d is b.dtype and d.kind not in refused:
                    r = ufunc(a, b)
                    return r if r.__class__ is ndarray else as_array(r)
            except (AttributeError, ValueError):
                pass
        d = result_dtype(a, b)
        if d.kind in refused:
            if " " in message:
                raise RuntimeError(message)
            unsupported(message, d, out)
        return apply_binary(ufunc, a, b, out, d)

    return named(kernel, name, doc)


_NO_COMPLEX = "{} not implemented for complex tensors."

maximum = _binary("maximum", np.maximum, "c", _NO_COMPLEX.format("maximum"), "The larger; NaN if either is.")
minimum = _binary("minimum", np.minimum, "c", _NO_COMPLEX.format("minimum"), "The smaller; NaN if either is.")
fmax = _binary("fmax", np.fmax, "c", _NO_COMPLEX.format("fmax"), "The larger; NaN only if both are.")
fmin = _binary("fmin", np.fmin, "c", _NO_COMPLEX.format("fmin"), "The smaller; NaN only if both are.")
hypot = _binary("hypot", np.hypot, "biuc", "hypot_cpu", "The length of the hypotenuse over a and b.")
logaddexp2 = _binary("logaddexp2", np.logaddexp2, "biuc", "logaddexp2_cpu", "log2(2 ** a + 2 ** b), without overflow.")
bitwise_and = _binary("bitwise_and", np.bitwise_and, "fcV", "bitwise_and_cpu", "a & b.")
bitwise_or = _binary("bitwise_or", np.bitwise_or, "fcV", "bitwise_or_cpu", "a | b.")
bitwise_xor = _binary("bitwise_xor", np.bitwise_xor, "fcV", "bitwise_xor_cpu", "a ^ b.")
bitwise_left_shift = _binary("bitwise_left_shift", np.left_shift, "bfcV", "lshift_cpu", "a << b.")
bitwise_right_shift = _binary("bitwise_right_shift", np.right_shift, "bfcV", "rshift_cpu", "a >> b, with a's sign.")


def logaddexp(a: Operand, b: Operand, out: ndarray | None = None) -> ndarray:
    """log(exp(a) + exp(b)), without overflow."""
    d = result_dtype(a, b)
    if d.kind in "biu":
        unsupported("logaddexp_cpu", d, out)
    return apply_binary(np.logaddexp if d.kind in "fV" else _complex_logaddexp, a, b, out, d)


def _complex_logaddexp(a: Any, b: Any, **kwargs: Any) -> Any:
    swap = np.real(a) < np.real(b)
    large, small = np.where(swap, b, a), np.where(swap, a, b)
    return np.add(large, np.log1p(np.exp(small - large)), **kwargs)


def atan2(a: Operand, b: Operand, out: ndarray | None = None) -> ndarray:
    """The angle of the point (b, a)."""
    d = float_dtype(a, b)
    if d.kind == "c":
        unsupported("atan2_cpu", d, out)
    return apply_binary(np.arctan2, a, b, out, d)


def copysign(a: Operand, b: Operand, out: ndarray | None = None) -> ndarray:
    """The size of a with the sign of b, the sign of zero included."""
    d = float_dtype(a, b)
    if d.kind == "c":
        unsupported("copysign_cpu", d, out)
    return apply_binary(np.copysign, a, b, out, d)


def heaviside(a: ndarray, values: ndarray, out: ndarray | None = None) -> ndarray:
    """0 where a < 0, 1 where a > 0, `values` where a is 0."""
    if result_dtype(a, values).kind == "c":
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    if a.dtype != values.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    broadcast_shape(a, values)
    return store(np.where(a == 0, values, (a > 0).astype(a.dtype)), out)


# ------------------------------------------------------------------------------------- one operand, same dtype


def neg(a: Operand, out: ndarray | None = None) -> ndarray:
    """-a."""
    if out is None:
        try:
            r = np.negative(a)
            return r if r.__class__ is ndarray else _scalar_result(r, a)
        except TypeError:
            pass
    if getattr(a, "dtype", None) == _BOOL:
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, "
            "use the `~` or `logical_not()` operator instead."
        )
    if out is not None and not out.flags.c_contiguous:
        # NumPy 2.4's np.negative reads and writes neighbours where both arrays have certain strides (64 bytes for
        # float64): x[::8] of a vector, the imaginary parts on a diagonal.
        return store(np.negative(a), out)
    return apply_unary(np.negative, a, out)


def _scalar_result(r: Any, a: Operand) -> Any:
    """What NumPy gave as a scalar: an array if `a` is one, else a number."""
    return as_array(r) if hasattr(a, "dtype") else r.item()


def square(a: Operand, out: ndarray | None = None) -> ndarray:
    """a * a."""
    if out is None:
        r = np.square(a)
        if r.dtype is not _INT8 or a.dtype is _INT8:
            return r if r.__class__ is ndarray else _scalar_result(r, a)
    return pow(a, 2, out)


_INT8 = np.dtype(np.int8)  # NumPy's dtype for the square of bools, where torch has int64


def abs(a: Operand, out: ndarray | None = None) -> ndarray:
    """The absolute value; of complex input, a real array."""
    if getattr(a, "dtype", None) is _BOOL:
        unsupported("abs_cpu", a.dtype)
    if out is None:
        r = np.absolute(a)
        return r if r.__class__ is ndarray else _scalar_result(r, a)
    if a.dtype.kind == "c":
        if out is a:
            raise RuntimeError("In-place abs is not supported for complex tensors.")
        return store(np.absolute(a), out)
    return apply_unary(np.absolute, a, out)


def sign(a: Operand, out: ndarray | None = None) -> ndarray:
    """-1, 0 or 1; 0 for NaN."""
    kind = a.dtype.kind if hasattr(a, "dtype") else "f"
    if kind == "c":
        raise NotImplementedError(
            "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead."
        )
    if kind == "b":
        return store(a.copy(), out)
    r = apply_unary(np.sign, a)
    if kind in "fV" and hasattr(a, "dtype"):
        np.copyto(r, 0, where=np.isnan(r))
    return store(r, out) if out is not None else r


def sgn(a: Operand, out: ndarray | None = None) -> ndarray:
    """`sign`, and a / |a| (0 for 0) of complex input."""
    if getattr(a, "dtype", _BOOL).kind == "c":
        lost = np.isnan(a)  # NumPy takes inf + NaN j to be on the real axis
        r = apply_unary(np.sign, a, out)
        if lost.any():
            np.copyto(r, np.nan, where=lost)
        return r
    return sign(a, out)


def _rounding(name: str, ufunc: np.ufunc, complex_message: str | None, doc: str) -> Callable[..., Any]:
    """A kernel that rounds floats and copies integers."""

    def kernel(a: Operand, out: ndarray | None = None) -> ndarray:
        kind = a.dtype.kind if hasattr(a, "dtype") else "f"
        if kind in "fV":
            return apply_unary(ufunc, a, out)
        if kind == "c" and complex_message is not None:
            raise NotImplementedError(complex_message)
        if kind in "bc":
            unsupported(f"{name}_vml_cpu", a.dtype)
        return store(a.copy(), out)

    return named(kernel, name, doc)


ceil = _rounding("ceil", np.ceil, "ceil is not supported for complex inputs", "Rounded up.")
floor = _rounding("floor", np.floor, "floor is not supported for complex inputs", "Rounded down.")
trunc = _rounding("trunc", np.trunc, "trunc is not supported for complex inputs", "Rounded towards zero.")
_round = _rounding("round", np.rint, None, "Rounded to the nearest integer, halves to even.")


def round(a: Operand, decimals: int = 0, out: ndarray | None = None) -> ndarray:
    """Rounded to `decimals` places, halves to even."""
    if decimals == 0:
        return _round(a, out)
    if a.dtype.kind not in "fV":
        unsupported("round_cpu", a.dtype)
    return store(np.round(a, decimals), out)


def frac(a: Operand, out: ndarray | None = None) -> ndarray:
    """a - trunc(a)."""
    if getattr(a, "dtype", dtypes.default[0]).kind not in "fV":
        unsupported("frac_cpu", a.dtype)
    return apply_binary(np.subtract, a, np.trunc(a), out)


def bitwise_not(a: ndarray, out: ndarray | None = None) -> ndarray:
    """~a; of bools, logical not."""
    if a.dtype.kind in "fcV":
        unsupported("bitwise_not_cpu", a.dtype)
    return apply_unary(np.invert, a, out)


def nan_to_num(
    a: ndarray,
    nan: float | None = None,
    posinf: float | None = None,
    neginf: float | None = None,
    out: ndarray | None = None,
) -> ndarray:
    """NaN replaced by 0 and infinities by the largest finite numbers, or by what is given."""
    if a.dtype.kind not in "fcV":
        return store(a.copy(), out)
    r = a.copy()
    for part in (r.real, r.imag) if a.dtype.kind == "c" else (r,):
        d = part.dtype
        limits = dtypes.float_limits(d)
        for where, given, usual in (
            (np.isnan(part), nan, 0.0), (part == np.inf, posinf, limits.max), (part == -np.inf, neginf, limits.min)
        ):  # fmt: skip
            np.copyto(part, usual if given is None else element(given, d), where=where)
    return store(r, out)


# --------------------------------------------------------------------------- one operand, floating result


def _float_unary(name: str, ufunc: Callable[..., Any], doc: str) -> Callable[..., Any]:
    """A kernel of one operand; integers are computed in the default dtype."""

    def kernel(a: Operand, out: ndarray | None = None) -> ndarray:
        if out is None:
            try:
                r = ufunc(a)
                if r.dtype is a.dtype:
                    return r if r.__class__ is ndarray else as_array(r)
            except AttributeError:
                pass
        return apply_unary(ufunc, a, out, float_dtype(a))

    return named(kernel, name, doc)


sqrt = _float_unary("sqrt", np.sqrt, "The square root.")
exp = _float_unary("exp", np.exp, "e to the power of a.")
exp2 = _float_unary("exp2", np.exp2, "2 to the power of a.")
expm1 = _float_unary("expm1", np.expm1, "exp(a) - 1, exact for small a.")
log = _float_unary("log", np.log, "The natural logarithm.")
log2 = _float_unary("log2", np.log2, "The logarithm to base 2.")
log10 = _float_unary("log10", np.log10, "The logarithm to base 10.")
log1p = _float_unary("log1p", np.log1p, "log(1 + a), exact for small a.")
sin = _float_unary("sin", np.sin, "The sine.")
cos = _float_unary("cos", np.cos, "The cosine.")
tan = _float_unary("tan", np.tan, "The tangent.")
asin = _float_unary("asin", np.arcsin, "The inverse of the sine.")
acos = _float_unary("acos", np.arccos, "The inverse of the cosine.")
atan = _float_unary("atan", np.arctan, "The inverse of the tangent.")
sinh = _float_unary("sinh", np.sinh, "The hyperbolic sine.")
cosh = _float_unary("cosh", np.cosh, "The hyperbolic cosine.")
tanh = _float_unary("tanh", np.tanh, "The hyperbolic tangent.")
asinh = _float_unary("asinh", np.arcsinh, "The inverse of the hyperbolic sine.")
acosh = _float_unary("acosh", np.arccosh, "The inverse of the hyperbolic cosine.")
atanh = _float_unary("atanh", np.arctanh, "The inverse of the hyperbolic tangent.")


def reciprocal(a: Operand, out: ndarray | None = None) -> ndarray:
    """1 / a."""
    if getattr(a, "dtype", None) is None:
        return 1 / a
    return apply_unary(np.reciprocal, a, out, float_dtype(a))


def rsqrt(a: Operand, out: ndarray | None = None) -> ndarray:
    """1 / sqrt(a)."""
    return apply_unary(_rsqrt, a, out, float_dtype(a))


def sinc(a: Operand, out: ndarray | None = None) -> ndarray:
    """sin(pi a) / (pi a), and 1 at 0."""
    d = float_dtype(a)
    x = np.multiply(operand(a, work_dtype(d)), math.pi)
    r = np.where(x == 0, np.ones_like(x), np.sin(x) / x)
    return store(operand(r, d), out)


def deg2rad(a: Operand, out: ndarray | None = None) -> ndarray:
    """Degrees as radians."""
    return _convert_angle("deg2rad", math.pi / 180, a, out)


def rad2deg(a: Operand, out: ndarray | None = None) -> ndarray:
    """Radians as degrees."""
    return _convert_angle("rad2deg", 180 / math.pi, a, out)


def _convert_angle(name: str, factor: float, a: Operand, out: ndarray | None) -> ndarray:
    d = float_dtype(a)
    if d.kind == "c":
        raise RuntimeError(f"{name} is not supported for complex tensors.")
    return apply_binary(np.multiply, a, factor, out, d)


# ----------------------------------------------------------------------------------------- choosing and mixing


def clamp(a: ndarray, min: Operand = None, max: Operand = None, out: ndarray | None = None) -> ndarray:
    """a, at least `min` and at most `max` (numbers or arrays); NaN stays."""
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if min is not None and max is not None and bool(getattr(min, "ndim", 0)) is not bool(getattr(max, "ndim", 0)) and (
        not hasattr(min, "ndim") or not hasattr(max, "ndim")
    ):  # fmt: skip
        raise TypeError("clamp() received an invalid combination of arguments: give two Tensors or two numbers")
    d = result_dtype(a, min, max)
    if out is not None:
        check_out(out, d, broadcast_shape(a, min, max))
    if d.kind == "c":
        raise NotImplementedError("clamp is not supported for complex types")
    if d == _BOOL and min is not None and max is not None:
        unsupported("clamp_cpu", d)
    for limit in (min, max):
        if limit is not None and not hasattr(limit, "dtype"):
            check_number(limit, d)
    if a.size > LARGE and out is None and (r := _clamp_large(a, min, max, d)) is not None:
        return r
    r = apply_binary(np.maximum, a, min, None, d) if min is not None else operand(a, d)
    if max is not None:
        r = apply_binary(np.minimum, r, max, None, d)
    return store(r, out) if out is not None else r


def _clamp_large(a: ndarray, min: Operand, max: Operand, d: np.dtype) -> ndarray | None:
    """A large array between two numbers; None for anything else.  NumPy's clip is quicker than its maximum is."""
    low, high = -math.inf if min is None else min, math.inf if max is None else max
    if type(a) is not ndarray or a.dtype != d or d.char not in "fd" or not a.flags.c_contiguous:
        return None
    if type(low) not in (int, float) or type(high) not in (int, float) or low != low or high != high:
        return None
    fast = compiled.clamp(a, low, high)
    return np.clip(a, d.type(low), d.type(high)) if fast is None else fast


def clamp_min(a: ndarray, min: Operand, out: ndarray | None = None) -> ndarray:
    """a, at least `min`."""
    return clamp(a, min, None, out)


def clamp_max(a: ndarray, max: Operand, out: ndarray | None = None) -> ndarray:
    """a, at most `max`."""
    return clamp(a, None, max, out)


def where(condition: ndarray, a: Operand, b: Operand) -> ndarray:
    """a where `condition` holds, else b."""
    kind = condition.dtype.kind
    if kind != "b":
        if condition.dtype != np.uint8:
            raise RuntimeError(
                "where expected condition to be a boolean tensor, but got a tensor with dtype "
                + scalar_name(condition.dtype)
            )
        condition = condition != 0
    d = result_dtype(a, b)
    x, y = operand(a, d, condition), operand(b, d, condition)
    try:
        return blocks.where(condition, x, y) if condition.size > LARGE else np.where(condition, x, y)
    except ValueError:
        broadcast_shape(condition, x, y)
        raise


def masked_fill(a: ndarray, mask: ndarray, value: Operand, out: ndarray | None = None) -> ndarray:
    """a with `value` (a number or a 0-d array) where `mask` holds."""
    if mask.dtype != _BOOL:
        raise RuntimeError(
            f"masked_fill_ only supports boolean masks, but got mask with dtype {mask.dtype.name}. "
            "Convert it with mask.bool()."
        )
    if getattr(value, "ndim", 0):
        raise RuntimeError(
            "masked_fill_ only supports a 0-dimensional value tensor, but got tensor "
            f"with {value.ndim} dimension(s)."
        )
    fill = value if getattr(value, "dtype", None) is a.dtype else np.asarray(cast_number(value, a.dtype))
    if out is None:
        try:
            return blocks.where(mask, fill, a) if mask.size > LARGE else np.where(mask, fill, a)
        except ValueError:
            broadcast_shape(mask, a)
            raise
    check_out(out, a.dtype, broadcast_shape(a, mask))
    if out is not a:
        np.copyto(out, a)
    np.copyto(out, fill, where=mask)
    return out


def lerp(a: ndarray, end: ndarray, weight: Operand, out: ndarray | None = None) -> ndarray:
    """a + weight * (end - a), exact at both ends."""
    d = a.dtype
    if end.dtype != d:
        raise RuntimeError(f"expected dtype {_c_name(d)} for `end` but got dtype {_c_name(end.dtype)}")
    weighted = hasattr(weight, "dtype")
    if weighted and weight.ndim and weight.dtype != d:
        raise RuntimeError(f"expected dtype {_c_name(d)} for `weight` but got dtype {_c_name(weight.dtype)}")
    if d.kind in "biu":
        unsupported("lerp_kernel_tensor" if weighted else "lerp_kernel_scalar", d)
    if not weighted:
        check_number(weight, work_dtype(d))
    shape = broadcast_shape(a, end, weight)
    if out is not None:
        check_out(out, d, shape)
    work = work_dtype(d)
    x, y, w = operand(a, work), operand(end, work), operand(weight, work, a)
    difference = np.subtract(y, x)
    if np.ndim(w) == 0:
        r = x + w * difference if np.abs(w) < 0.5 else y - difference * (1 - w)
    else:
        r = np.where(np.abs(w) < 0.5, x + w * difference, y - difference * (1 - w))
    return store(operand(r, d), out)


def _c_name(dtype: np.dtype) -> str:
    names = {
        "float32": "float", "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16",
        "int64": "long int",
    }  # fmt: skip
    return names.get(dtype.name, dtype.name)


def addcmul(a: ndarray, b: Operand, c: Operand, value: Operand = 1, out: ndarray | None = None) -> ndarray:
    """a + value * b * c."""
    d = result_dtype(a, b, c)
    if d == _BOOL:
        unsupported("addcmul_cpu_out", d)
    return _accumulate(np.multiply, d, a, b, c, value, out)


def addcdiv(a: ndarray, b: Operand, c: Operand, value: Operand = 1, out: ndarray | None = None) -> ndarray:
    """a + value * b / c."""
    if result_dtype(b, c).kind in "biu":
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a "
            "true division of tensor1 and tensor2. Write (input + value * torch.trunc(tensor1 / tensor2))"
            ".to(input.dtype) for the integer division."
        )
    return _accumulate(np.true_divide, result_dtype(a, b, c), a, b, c, value, out)


def _accumulate(
    ufunc: np.ufunc, d: np.dtype, a: Operand, b: Operand, c: Operand, value: Operand, out: ndarray | None
) -> ndarray:
    shape = broadcast_shape(a, b, c)
    if out is not None:
        check_out(out, d, shape)
    work = work_dtype(d)
    check_number(value, work)
    r = ufunc(operand(b, work, a), operand(c, work, a))
    own = r if r.__class__ is ndarray and r.shape == shape else None
    if value != 1:
        r = np.multiply(r, operand(value, work, a), out=own)
    r = np.add(operand(a, work), r, out=own)
    return store(operand(r, d), out)


# Every public function of this module is a kernel.
__all__ = [n for n, f in list(globals().items()) if getattr(f, "__module__", None) == __name__ and n[0] != "_"]
