"""Sums, products, quotients and signs, element by element, with torch's broadcasting and dtypes; see `pointwise.py`."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import ndarray

from . import blocks, compiled
from .compiled import LARGE, on_threads
from .pointwise import _BOOL, _scalar_result
from .promotion import (
    Operand,
    apply_binary,
    apply_unary,
    as_array,
    broadcast_shape,
    c_name,
    check_number,
    check_out,
    float_dtype,
    operand,
    result_dtype,
    store,
    unsupported,
    work_dtype,
)


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


# Names of their own, since a lookup in np costs the common case a tenth of its overhead.
_add, _subtract, _multiply, _true_divide = map(on_threads, (np.add, np.subtract, np.multiply, np.true_divide))
_absolute, _negative = on_threads(np.absolute), on_threads(np.negative)


def add(a: Operand, b: Operand, alpha: Operand = 1, out: ndarray | None = None) -> ndarray:
    """a + alpha * b."""
    if alpha.__class__ is int and alpha == 1:
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
    if b.__class__ is ndarray and (out is None or out is a) and alpha.__class__ is int and alpha == 1:
        try:
            if a.dtype is b.dtype:
                if out is not None:
                    return _subtract(a, b, out)
                r = _subtract(a, b)
                return r if r.__class__ is ndarray else as_array(r)
        except (AttributeError, ValueError, TypeError):
            pass
    _check_subtraction(a, b)
    if alpha.__class__ is int and alpha == 1:
        return apply_binary(np.subtract, a, b, out)
    return _scaled(np.subtract, a, b, alpha, out)


_PLAIN = (int, float)


def rsub(a: Operand, b: Operand, alpha: Operand = 1) -> ndarray:
    """b - alpha * a."""
    if a.__class__ is ndarray and b.__class__ in _PLAIN and alpha.__class__ is int and alpha == 1:
        d = a.dtype
        if d.kind in "fc":
            r = _subtract(np.array(b, d), a)
            return r if r.__class__ is ndarray else as_array(r)
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
    if d.kind not in "cW" and isinstance(alpha, builtins.complex):
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex number.")
    if alpha == 1:
        return apply_binary(ufunc, a, b, out)
    x, y = operand(a, d, b), operand(b, d, a)
    shape = broadcast_shape(x, y)
    if out is not None:
        check_out(out, d, shape)
    scaled = _multiply(y, operand(alpha, d, y))
    if d.kind in "fV" and not -1 <= alpha <= 1 and (np.isinf(scaled) & np.isfinite(y)).any():
        # alpha * b is too large, but the sum may not be: divided by alpha before, and multiplied after.
        factor = operand(alpha, d, y)
        r = np.where(np.isinf(scaled), np.multiply(ufunc(np.divide(x, factor), y), factor), ufunc(x, scaled))
        return store(r, out)
    ufunc = on_threads(ufunc)
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
        return floor_divide(a, b, out)
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
    return _integer_division(_floor_divide, "div_floor_cpu", a, b, out)


def remainder(a: Operand, b: Operand, out: ndarray | None = None) -> ndarray:
    """a modulo b, with the sign of b; a zero has that of a."""
    return _integer_division(_remainder, "remainder_cpu", a, b, out)


def fmod(a: Operand, b: Operand, out: ndarray | None = None) -> ndarray:
    """a modulo b, with the sign of a."""
    return _integer_division(_fmod, "fmod_cpu", a, b, out)


def _remainder(a: Any, b: Any, out: ndarray | None = None, **kwargs: Any) -> Any:
    if getattr(a, "dtype", _BOOL).kind not in "fV":
        return np.remainder(a, b, out=out, **kwargs)
    if out is None and (r := _by_quotients(np.floor, _plain_remainder, a, b, 1 << 28)) is not None:
        return r
    return _plain_remainder(a, b, out, **kwargs)


def _plain_remainder(a: Any, b: Any, out: ndarray | None = None, **kwargs: Any) -> Any:
    sign = a if out is None else np.copy(a)  # which may be written over
    r = as_array(np.remainder(a, b, out=out, **kwargs))
    return r if r.all() else np.copysign(r, sign, out=r, where=np.equal(r, 0))


def _fmod(a: Any, b: Any, out: ndarray | None = None, **kwargs: Any) -> Any:
    if out is None and (r := _by_quotients(np.trunc, np.fmod, a, b, 1 << 28)) is not None:
        return r
    return np.fmod(a, b, out=out, **kwargs)


def _floor_divide(a: Any, b: Any, out: ndarray | None = None, **kwargs: Any) -> Any:
    # Up to this quotient the rounding of torch's own steps in float32 does not show.
    if out is None and (r := _by_quotients(np.floor, np.floor_divide, a, b, 1 << 22, modulo=False)) is not None:
        return r
    return np.floor_divide(a, b, out=out, **kwargs)


def _by_quotients(
    rounding: np.ufunc, ufunc: Callable[..., Any], a: Any, b: Any, limit: int, modulo: bool = True
) -> ndarray | None:
    """Large float32 arrays modulo or divided by others, through the quotients in float64; None for other operands.

    Numbers of 24 bits have quotients that are no nearer to a whole number than float64 can tell, and that number times
    b is exact there, if it is below 2 ** 28: what is left is the remainder, at a fifth of the time of NumPy's own.
    Elements with larger quotients, infinities, NaN or zeros to divide by are left to the ufunc.
    """
    wide: list[ndarray] = []

    def fill(x: ndarray, y: ndarray, out: ndarray) -> None:
        if not wide:
            wide.extend(np.empty((2, blocks.BLOCK), np.float64))
        quotient, divisor = (w[: out.size] for w in wide)
        np.copyto(divisor, y)
        np.divide(x, divisor, out=quotient)
        if modulo:
            rounding(quotient, out=quotient)
            np.multiply(quotient, divisor, out=quotient)
            np.subtract(x, quotient, out=out, casting="same_kind")
            if not out.all():  # a zero has the sign of x; its bits are set without a branch for each
                signs = np.bitwise_and(x.view(np.int32), np.int32(-(1 << 31)))
                signs *= np.equal(out, 0)
                bits = out.view(np.int32)
                bits |= signs
        else:
            rounding(quotient, out=out, casting="same_kind")
        sizes, divisors = np.absolute(x), np.absolute(y)
        if not (sizes.max() < divisors.min() * np.float64(limit) and divisors.max() < np.inf):
            odd = np.less(sizes, divisors * np.float64(limit))
            odd &= np.less(divisors, np.inf)
            np.logical_not(odd, out=odd)
            out[odd] = ufunc(x[odd], y[odd] if y.size == x.size else y)

    return blocks.pairs(fill, a, b)


def _integer_division(
    ufunc: Callable[..., Any], name: str, a: Operand, b: Operand, out: ndarray | None
) -> ndarray:
    d = result_dtype(a, b)
    if d.kind in "bcW":
        unsupported(name, d, out)
    if d.kind in "iu" and not np.all(b) and np.size(a):
        raise RuntimeError("ZeroDivisionError")
    return apply_binary(ufunc, a, b, out, d)


def _truncated_quotient(a: Any, b: Any, **kwargs: Any) -> Any:
    if a.dtype.kind in "fV":
        return np.trunc(np.true_divide(a, b), **kwargs)
    return np.floor_divide(np.subtract(a, np.fmod(a, b)), b, **kwargs)


def heaviside(a: ndarray, values: ndarray, out: ndarray | None = None) -> ndarray:
    """0 where a < 0, 1 where a > 0, `values` where a is 0."""
    if result_dtype(a, values).kind in "cW":
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    if a.dtype != values.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    broadcast_shape(a, values)
    return store(np.where(a == 0, values, (a > 0).astype(a.dtype)), out)


def neg(a: Operand, out: ndarray | None = None) -> ndarray:
    """-a."""
    if out is None:
        try:
            r = _negative(a)
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


def abs(a: Operand, out: ndarray | None = None) -> ndarray:
    """The absolute value; of complex input, a real array."""
    if getattr(a, "dtype", None) is _BOOL:
        unsupported("abs_cpu", a.dtype)
    if out is None:
        r = _absolute(a)
        return r if r.__class__ is ndarray else _scalar_result(r, a)
    if a.dtype.kind in "cW":
        if out is a:
            raise RuntimeError("In-place abs is not supported for complex tensors.")
        return store(np.absolute(a), out)
    return apply_unary(np.absolute, a, out)


def sign(a: Operand, out: ndarray | None = None) -> ndarray:
    """-1, 0 or 1; 0 for NaN."""
    kind = a.dtype.kind if hasattr(a, "dtype") else "f"
    if kind in "cW":
        raise NotImplementedError(
            "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead."
        )
    if kind == "b":
        return store(a.copy(), out)
    if kind == "f" and out is None and type(a) is ndarray and a.ndim:  # in fewer steps, and NaN is neither
        if a.size > LARGE and (r := compiled.pointwise("sign", a)) is not None:
            return r
        return np.subtract(np.greater(a, 0).view(np.int8), np.less(a, 0).view(np.int8)).astype(a.dtype)
    r = apply_unary(np.sign, a)
    if kind in "fV" and hasattr(a, "dtype"):
        np.copyto(r, 0, where=np.isnan(r))
    return store(r, out) if out is not None else r


def sgn(a: Operand, out: ndarray | None = None) -> ndarray:
    """`sign`, and a / |a| (0 for 0) of complex input."""
    if getattr(a, "dtype", _BOOL).kind in "cW":
        lost = np.isnan(a)  # NumPy takes inf + NaN j to be on the real axis
        r = apply_unary(np.sign, a, out)
        if lost.any():
            np.copyto(r, np.nan, where=lost)
        return r
    return sign(a, out)


def reciprocal(a: Operand, out: ndarray | None = None) -> ndarray:
    """1 / a."""
    if getattr(a, "dtype", None) is None:
        return 1 / a
    return apply_unary(np.reciprocal, a, out, float_dtype(a))


def lerp(a: ndarray, end: ndarray, weight: Operand, out: ndarray | None = None) -> ndarray:
    """a + weight * (end - a), exact at both ends."""
    d = a.dtype
    if end.dtype != d:
        raise RuntimeError(f"expected dtype {c_name(d)} for `end` but got dtype {c_name(end.dtype)}")
    weighted = hasattr(weight, "dtype")
    if weighted and weight.ndim and weight.dtype != d:
        raise RuntimeError(f"expected dtype {c_name(d)} for `weight` but got dtype {c_name(weight.dtype)}")
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
        near = as_array(np.abs(w) < 0.5)
        if near.shape == x.shape == y.shape:
            difference *= blocks.where(near, w, as_array(np.subtract(w, 1)))
            r = np.add(blocks.where(near, x, y), difference, out=difference)
        else:
            r = np.where(near, x + w * difference, y - difference * (1 - w))
    return store(operand(r, d), out)


#: By this a float64 is split into halves, each of half as many bits.
_SPLIT = 2.0**27 + 1


def multiply_add(a: ndarray, factor: Any, addend: Any) -> ndarray:
    """``a * factor + addend``, rounded once as processors do it; both numbers have the dtype of `a`."""
    if a.dtype != np.float64:
        # The product of two float32 is a float64, which loses nothing.
        return (a.astype(np.float64) * np.float64(factor) + np.float64(addend)).astype(a.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        # What the product and the sum lose is added to the result: Dekker's product, and Knuth's sum.
        product = a * factor
        high, wide = a * _SPLIT, factor * _SPLIT
        high, wide = high - (high - a), wide - (wide - factor)
        low, narrow = a - high, factor - wide
        lost = low * narrow - (((product - high * wide) - low * wide) - high * narrow)
        result = product + addend
        added = result - product
        exact = result + ((product - (result - added)) + (addend - added) + lost)
        return np.where(np.isfinite(exact), exact, result)


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
