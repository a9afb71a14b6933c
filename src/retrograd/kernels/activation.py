"""Activation functions of neural networks, from relu to softsign, and the gradients of some.

Most are several steps of NumPy; the steps after the first write to the array that the first one made.  Large arrays
are taken in blocks that stay in the cache, or by a compiled kernel where there is one.  float16 is computed in float32,
as torch does it: the exponentials would overflow.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy import ndarray

from retrograd.kernels import blocks, compiled
from retrograd.kernels.compiled import LARGE
from retrograd.kernels.promotion import (
    as_array,
    check_number,
    check_out,
    float_dtype,
    is_half,
    operand,
    real_number,
    store,
    unsupported,
    work_dtype,
)
from retrograd.kernels.special import erf

# 0-d arrays: as operands of a ufunc they cost half of what a Python number does.
_ZERO = {np.dtype(t): np.zeros((), t) for t in ("u1", "i1", "i2", "i4", "i8", "f4", "f8")}
_INFINITY = {np.dtype(t): np.array(np.inf, t) for t in ("f2", "f4", "f8")}
_subtract: Any = np.subtract
_ONE = {np.dtype(t): np.ones((), t) for t in ("f4", "f8", "c8", "c16")}


def _begin(a: Any, name: str, kinds: str = "fV") -> ndarray:
    """`a` in the dtype to compute in."""
    d = a.dtype
    if d.kind not in kinds:
        unsupported(name, d)
    return operand(a, work_dtype(d))


def _end(r: Any, a: ndarray, out: ndarray | None) -> ndarray:
    """The result in a's dtype again, written to `out` where there is one."""
    if r.dtype is not a.dtype:
        r = r.astype(a.dtype)
    return store(r, out)


# -------------------------------------------------------------------------------------------- piecewise linear


def relu(a: ndarray, out: ndarray | None = None) -> ndarray:
    """max(a, 0)."""
    if out is None and a.__class__ is ndarray:
        zero = _ZERO.get(a.dtype)
        if zero is not None:
            if a.size > LARGE and (fast := compiled.pointwise("relu", a)) is not None:
                return fast
            if a.size > LARGE and a.dtype.kind == "f":
                return np.clip(a, zero, _INFINITY[a.dtype])  # with two limits it is quicker than the maximum
            r = np.maximum(zero, a)  # of equal numbers the second: -0. stays, as in torch
            return r if r.__class__ is ndarray else as_array(r)
    kind = a.dtype.kind
    if kind == "b":
        raise RuntimeError("Boolean inputs not supported for relu")
    if kind in "cW":
        raise NotImplementedError("clamp is not supported for complex types")
    zero = np.zeros((), a.dtype)
    # Of equal numbers NumPy's maximum gives the first in float16, and else the second.
    first, second = (a, zero) if a.dtype == np.float16 else (zero, a)
    if out is None:
        return as_array(np.maximum(first, second))
    check_out(out, a.dtype, a.shape)
    return np.maximum(first, second, out=out)


def leaky_relu(a: ndarray, negative_slope: float = 0.01, out: ndarray | None = None) -> ndarray:
    """a where a > 0, else negative_slope * a."""
    x = _begin(a, "leaky_relu_cpu")
    return _end(blocks.where(x > 0, x, np.multiply(x, real_number(negative_slope))), a, out)


def threshold(a: ndarray, threshold: float, value: float, out: ndarray | None = None) -> ndarray:
    """a where a > threshold (or NaN), else value."""
    d = a.dtype
    if d.kind in "bcW":
        unsupported("threshold_cpu", d)
    check_number(threshold, d)
    check_number(value, d)
    low = np.less_equal(a, operand(threshold, d, a)) if not is_half(d) else a.astype(np.float32) <= threshold
    return store(np.where(low, operand(value, d, a), a), out)


def hardtanh(a: ndarray, min_val: float = -1.0, max_val: float = 1.0, out: ndarray | None = None) -> ndarray:
    """a, at least min_val and at most max_val."""
    d = a.dtype
    if d.kind == "b":
        raise RuntimeError("Bool inputs not supported for hardtanh")
    if d.kind in "cW":
        raise NotImplementedError("clamp is not supported for complex types")
    if d.kind == "u" and (min_val < 0 or max_val < 0):
        raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
    check_number(min_val, d)
    check_number(max_val, d)
    if out is None and a.size > LARGE and d.kind == "f" and type(a) is ndarray:
        return np.clip(a, operand(min_val, d), operand(max_val, d))
    r = as_array(np.maximum(a, operand(min_val, d, a)))
    return store(np.minimum(r, operand(max_val, d, a), out=r), out)


def relu6(a: ndarray, out: ndarray | None = None) -> ndarray:
    """a, at least 0 and at most 6."""
    return hardtanh(a, 0, 6, out)


def hardsigmoid(a: ndarray, out: ndarray | None = None) -> ndarray:
    """relu6(a + 3) / 6."""
    return _end(_gate(_begin(a, "hardsigmoid_cpu")), a, out)


def hardswish(a: ndarray, out: ndarray | None = None) -> ndarray:
    """a * relu6(a + 3) / 6."""
    x = _begin(a, "hardswish_cpu")
    return _end(np.multiply(_gate(x), x), a, out)


def _gate(x: ndarray) -> ndarray:
    r = as_array(np.add(x, 3))
    np.maximum(r, 0, out=r)
    np.minimum(r, 6, out=r)
    return np.divide(r, 6, out=r)


# -------------------------------------------------------------------------------------------- sigmoid and kin


def sigmoid(a: ndarray, out: ndarray | None = None) -> ndarray:
    """1 / (1 + exp(-a))."""
    # For large negative a the exponential is infinite and its reciprocal 0: no case distinction is needed.
    if out is None and a.__class__ is ndarray:
        one = _ONE.get(a.dtype)
        if one is not None:
            if a.size > LARGE and (r := blocks.pointwise("sigmoid", sigmoid, (a,))) is not None:
                return r
            r = np.negative(a)
            if type(r) is not ndarray:
                r = as_array(r)
            np.exp(r, out=r)
            np.add(r, one, out=r)
            return np.reciprocal(r, out=r)
    d = float_dtype(a)
    return store(operand(_logistic(operand(a, work_dtype(d))), d), out)


def _logistic(x: Any) -> ndarray:
    r = as_array(np.negative(x))
    np.exp(r, out=r)
    np.add(r, 1, out=r)
    return np.reciprocal(r, out=r)


def silu(a: ndarray, out: ndarray | None = None) -> ndarray:
    """a * sigmoid(a)."""
    if out is None and a.size > LARGE and (fast := blocks.pointwise("silu", silu, (a,))) is not None:
        return fast
    x = _begin(a, "silu_cpu", "fcVW")
    r = _logistic(x)
    return _end(np.multiply(r, x, out=r), a, out)


def log_sigmoid(a: ndarray) -> ndarray:
    """log(sigmoid(a)) as min(a, 0) - log1p(exp(-|a|))."""
    x = _begin(a, "log_sigmoid_cpu")
    r = as_array(np.absolute(x))
    np.negative(r, out=r)
    np.exp(r, out=r)
    np.log1p(r, out=r)
    return _end(np.subtract(np.minimum(x, 0), r, out=r), a, None)


def softplus(a: ndarray, beta: float = 1, threshold: float = 20, out: ndarray | None = None) -> ndarray:
    """log(1 + exp(beta * a)) / beta; a itself where beta * a > threshold."""
    x = _begin(a, "softplus_cpu")
    return _end(_softplus(x, real_number(beta), real_number(threshold)), a, out)


def _softplus(x: ndarray, beta: float, threshold: float) -> ndarray:
    scaled = as_array(np.multiply(x, beta))
    linear = scaled > threshold
    r = np.exp(scaled, out=scaled)
    np.log1p(r, out=r)
    np.divide(r, beta, out=r)
    return as_array(blocks.where(linear, x, r))


def mish(a: ndarray, out: ndarray | None = None) -> ndarray:
    """a * tanh(softplus(a))."""
    x = _begin(a, "mish_cpu")
    r = _softplus(x, 1, 20)
    np.tanh(r, out=r)
    return _end(np.multiply(r, x, out=r), a, out)


def hardshrink(a: ndarray, lambd: float = 0.5) -> ndarray:
    """a, but 0 from -lambd to lambd."""
    x = _begin(a, "hardshrink_cpu")
    lambd = real_number(lambd)
    if x.dtype != a.dtype:  # compared as a number of the small dtype
        lambd = float(np.asarray(lambd).astype(a.dtype))
    return _end(np.where((x >= -lambd) & (x <= lambd), x.dtype.type(0), x), a, None)


def softshrink(a: ndarray, lambd: float = 0.5, out: ndarray | None = None) -> ndarray:
    """a moved towards 0 by lambd, and 0 from -lambd to lambd."""
    x = _begin(a, "softshrink_cpu")
    lambd = real_number(lambd)
    return _end(np.subtract(x, np.minimum(np.maximum(x, -lambd), lambd)), a, out)


def prelu(a: ndarray, weight: ndarray) -> ndarray:
    """a where a > 0, else weight * a."""
    x = _begin(a, "prelu_cpu")
    # The weight meets what is below 0 only: an infinite number above it is not its factor.
    return _end(np.where(x > 0, x, np.multiply(np.minimum(x, 0), operand(weight, x.dtype))), a, None)


def flat_in(a: ndarray, other: ndarray) -> ndarray:
    """a itself; the operator knows a derivative of it."""
    return a


def softsign(a: ndarray) -> ndarray:
    """a / (1 + |a|)."""
    if a.dtype.kind == "b":
        unsupported("abs_cpu", a.dtype)
    x = operand(a, float_dtype(a))
    return store(np.divide(x, np.add(np.absolute(x), np.ones((), x.dtype))), None)


# --------------------------------------------------------------------------------------------- elu and kin


def elu(
    a: ndarray, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0, out: ndarray | None = None
) -> ndarray:
    """scale * a where a > 0, else scale * alpha * (exp(input_scale * a) - 1)."""
    x = _begin(a, "elu_cpu")
    alpha, scale, input_scale = [real_number(n) for n in (alpha, scale, input_scale)]
    r = as_array(np.multiply(x, input_scale))
    np.expm1(r, out=r)
    np.multiply(r, alpha * scale, out=r)
    return _end(blocks.where(x > 0, x if scale == 1 else np.multiply(x, scale), r), a, out)


_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


def selu(a: ndarray, out: ndarray | None = None) -> ndarray:
    """`elu` with the constants that keep mean 0 and variance 1 through layers."""
    return elu(a, _SELU_ALPHA, _SELU_SCALE, 1.0, out)


def celu(a: ndarray, alpha: float = 1.0, out: ndarray | None = None) -> ndarray:
    """a where a > 0, else alpha * (exp(a / alpha) - 1)."""
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return elu(a, alpha, 1.0, 1.0 / alpha, out)


def gelu(a: ndarray, approximate: str = "none", out: ndarray | None = None) -> ndarray:
    """a times the normal distribution's mass below a, by erf or ("tanh") by its common approximation."""
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    name = "gelu" if approximate == "none" else "gelu_tanh"
    if out is None and a.size > LARGE:
        fast = compiled.pointwise(name, a) if approximate == "none" else blocks.pointwise(name, gelu, (a,), approximate)
        if fast is not None:
            return fast
        if approximate == "none" and blocks.are_large((a,)) and a.dtype.char == "f":
            return _by_tanh(_gelu_block, a)
    x = _begin(a, "GeluKernelImpl")
    if approximate == "none":
        r = erf(as_array(np.multiply(x, math.sqrt(0.5))))
    else:
        r = as_array(np.multiply(x, x))
        np.multiply(r, 0.044715, out=r)
        np.add(r, 1, out=r)
        np.multiply(r, x, out=r)
        np.multiply(r, math.sqrt(2 / math.pi), out=r)
        np.tanh(r, out=r)
    np.add(r, 1, out=r)
    np.multiply(r, 0.5, out=r)
    return _end(np.multiply(r, x, out=r), a, out)


# The normal distribution's mass below 2h is (1 + tanh(h P(h^2))) / 2, highest power of P first.  The polynomial is
# fitted to the least error of the mass, 3e-8, half of what float32 can tell from 1; it is positive everywhere, so that
# large and infinite numbers end at 0 and 1.
_MASS = [np.array(c, np.float32) for c in (
    1.4387440071176109e-05, -2.7088146641426105e-04, 2.0299642214680704e-03, -7.079209002426938e-03,
    -1.0430315819177193e-03, 2.90664675220747e-01, 1.5957698829821692,
)]  # fmt: skip
_HALF = np.array(0.5, np.float32)


def _by_tanh(block: Any, *arrays: ndarray) -> ndarray:
    """``block(*parts, result, scratch, scratch)`` of contiguous float32 arrays of one shape, part by part."""
    result = np.empty(arrays[0].shape, np.float32)
    flat = [a.reshape(-1) for a in (*arrays, result)]
    size = 2 * blocks.BLOCK
    scratch = np.empty((2, min(size, result.size)), np.float32)
    for first in range(0, result.size, size):
        parts = [a[first : first + size] for a in flat]
        block(*parts, *scratch[:, : parts[-1].size])
    return result


def _twice_mass(x: ndarray, r: ndarray, half: ndarray, square: ndarray) -> None:
    """r = twice the normal distribution's mass below x, half = x / 2, square = x^2 / 4."""
    np.multiply(x, _HALF, out=half)
    np.multiply(half, half, out=square)
    np.multiply(square, _MASS[0], out=r)
    for c in _MASS[1:-1]:
        np.add(r, c, out=r)
        np.multiply(r, square, out=r)
    np.add(r, _MASS[-1], out=r)
    np.multiply(r, half, out=r)
    np.tanh(r, out=r)
    np.add(r, _ONE[r.dtype], out=r)


def _gelu_block(x: ndarray, r: ndarray, half: ndarray, square: ndarray) -> None:
    _twice_mass(x, r, half, square)
    np.multiply(r, half, out=r)


_MINUS_TWO = np.array(-2, np.float32)
_DENSITY = np.array(4 / math.sqrt(2 * math.pi), np.float32)


def _gelu_backward_block(grad: ndarray, x: ndarray, r: ndarray, half: ndarray, square: ndarray) -> None:
    _twice_mass(x, r, half, square)
    np.multiply(square, _MINUS_TWO, out=square)
    np.exp(square, out=square)
    np.multiply(half, _DENSITY, out=half)
    np.multiply(square, half, out=square)  # twice x times the density
    np.add(r, square, out=r)
    np.multiply(r, _HALF, out=r)
    np.multiply(r, grad, out=r)


# ------------------------------------------------------------------------------------------------------------ backward
# Steps of derivative formulas that are worth one pass each.


def _rounded_once(step: Any, grad: ndarray, a: ndarray, *settings: Any) -> ndarray:
    """A step in half precision, computed in float32."""
    return step(grad.astype(np.float32), a.astype(np.float32), *settings).astype(a.dtype)


def tanh_backward(grad_output: ndarray, output: ndarray) -> ndarray:
    """grad * (1 - output^2), conjugated."""
    if output.size > LARGE and (fast := compiled.pointwise("tanh_backward", grad_output, output)) is not None:
        return fast
    if output.itemsize == 2:
        return _rounded_once(tanh_backward, grad_output, output)
    r = output * output
    one = _ONE.get(r.dtype) if r.__class__ is ndarray else None
    if one is None:
        return as_array(grad_output * (1 - r).conjugate())
    r = grad_output * _subtract(one, r, r).conjugate()  # (a number of Python's would take longer than all the rest)
    return r if r.__class__ is ndarray else as_array(r)


def sigmoid_backward(grad_output: ndarray, output: ndarray) -> ndarray:
    """grad * output * (1 - output), conjugated."""
    pair = grad_output, output
    if output.size > LARGE and (fast := blocks.pointwise("sigmoid_backward", sigmoid_backward, pair)) is not None:
        return fast
    if output.itemsize == 2:
        if output.dtype.kind == "f":  # torch rounds these at each step
            return as_array(grad_output * (1 - output) * output)
        return _rounded_once(sigmoid_backward, grad_output, output)
    return as_array(grad_output * ((1 - output) * output).conjugate())


def silu_backward(grad_output: ndarray, a: ndarray) -> ndarray:
    """grad * s * (1 + a * (1 - s)) with s = sigmoid(a), conjugated."""
    if a.size > LARGE and (fast := blocks.pointwise("silu_backward", silu_backward, (grad_output, a))) is not None:
        return fast
    if a.itemsize == 2:
        return _rounded_once(silu_backward, grad_output, a)
    s = sigmoid(a)
    r = as_array(1 - s)
    r *= a
    r += 1
    r *= s
    if r.dtype.kind == "f" and grad_output.dtype is r.dtype and grad_output.shape == r.shape:
        return np.multiply(grad_output, r, out=r)
    return as_array(grad_output * r.conjugate())


def gelu_backward(grad_output: ndarray, a: ndarray, approximate: str = "none") -> ndarray:
    """grad times the slope of `gelu`: the normal distribution's mass below a, plus a times its density."""
    name = "gelu_backward" if approximate == "none" else "gelu_tanh_backward"
    if a.size > LARGE:
        pair = grad_output, a
        if approximate != "none":
            fast = blocks.pointwise(name, gelu_backward, pair, approximate)
        else:
            fast = compiled.pointwise(name, *pair)
            if fast is None and blocks.are_large(pair) and grad_output.dtype is a.dtype and a.dtype.char == "f":
                fast = _by_tanh(_gelu_backward_block, *pair)
        if fast is not None:
            return fast
    if a.itemsize == 2:
        return _rounded_once(gelu_backward, grad_output, a, approximate)
    square = a * a
    if approximate == "none":
        density = as_array(np.exp(square * -0.5))
        density *= a
        density *= 1 / math.sqrt(2 * math.pi)
        mass = as_array(erf(as_array(a * math.sqrt(0.5))) + 1)
        mass *= 0.5
        density += mass
        return as_array(grad_output * density)
    scale, cubic = math.sqrt(2 / math.pi), 0.044715
    t = as_array(np.tanh(a * (square * cubic + 1) * scale))
    slope = a * (1 - t * t) * (square * (3 * cubic) + 1) * (0.5 * scale)
    return as_array(grad_output * ((t + 1) * 0.5 + slope))


def threshold_backward(grad_output: ndarray, a: ndarray, threshold: Any) -> ndarray:
    """grad, but 0 where `a` is at or below the threshold (a NaN is not)."""
    if threshold and is_half(a.dtype):
        a = a.astype(np.float32)
    if a.size > LARGE:
        pair = grad_output, a
        fast = blocks.pointwise("threshold_backward", _zero_below, pair, threshold, number=threshold)
        return _zero_below(grad_output, a, threshold) if fast is None else fast
    return np.where(a <= threshold, grad_output.dtype.type(0), grad_output)


def _zero_below(grad: ndarray, a: ndarray, threshold: Any) -> ndarray:
    if blocks.are_large((grad, a)) and grad.dtype.itemsize in blocks.BITS:
        kept = np.less_equal(a, threshold).view(np.int8)
        np.subtract(kept, 1, out=kept)  # all bits of what is above, none of what is below
        bits = kept.astype(blocks.BITS[grad.dtype.itemsize])
        np.bitwise_and(bits, grad.view(bits.dtype), out=bits)
        return bits.view(grad.dtype)
    return np.where(a <= threshold, grad.dtype.type(0), grad)


# Every public function of this module is a kernel.


def glu(a: ndarray, dim: int = -1) -> ndarray:
    """One half of `a` times the sigmoid of the other, halved along `dim`."""
    first, second = np.split(a.astype(work_dtype(a.dtype), copy=False), 2, dim)
    return store(operand(np.multiply(first, sigmoid(second)), a.dtype), None)


__all__ = [n for n, f in list(globals().items()) if getattr(f, "__module__", None) == __name__ and n[0] != "_"]
