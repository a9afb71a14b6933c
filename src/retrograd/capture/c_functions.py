"""Kernels of single elements that C has as functions of its own, in loops that the compiler makes vector code of.

The numbers are those of the kernels (kernels/activation.py): gelu is x times the normal distribution's mass below x,
(1 + tanh(h P(h^2))) / 2 with h = x / 2.  The tanh is 1 - 2 / (exp(2 u) + 1), which is as exact where 1 is added to it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import kernels


def gelu(x: np.ndarray, out: np.ndarray) -> None:
    """As a ufunc would be called, where it is not written in C."""
    np.copyto(out, kernels.gelu(x))


def gelu_backward(grad: np.ndarray, x: np.ndarray, out: np.ndarray) -> None:
    np.copyto(out, kernels.gelu_backward(grad, x))


#: What they are in C, of float32.
IN_C: dict[Any, str] = {gelu: "gelu_({x})", gelu_backward: "{x} * gelu_slope_({y})"}

TEXT = """
/* e to the power of x: x = n ln 2 + r, a polynomial of r, and 2^n in two factors, so that it may be denormal. */
static inline float exp_(float x)
{
    union { int i; float f; } low, high;
    float c = x < -104.0f ? -104.0f : x;
    c = c > 89.0f ? 89.0f : c;
    float n = rintf(c * 1.44269504088896341f);
    float r = (c - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 1.0f / 5040;
    p = p * r + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    int whole = (int)n, half = whole >> 1;
    low.i = (half + 127) << 23;
    high.i = (whole - half + 127) << 23;
    return p * low.f * high.f;
}
static inline float twice_mass_(float h)
{
    float s = h * h;
    float u = 1.4387440071176109e-05f;
    u = u * s + -2.7088146641426105e-04f;
    u = u * s + 2.0299642214680704e-03f;
    u = u * s + -7.079209002426938e-03f;
    u = u * s + -1.0430315819177193e-03f;
    u = u * s + 2.90664675220747e-01f;
    u = u * s + 1.5957698829821692f;
    return 2.0f - 2.0f / (exp_(2.0f * (u * h)) + 1.0f);
}
static inline float gelu_(float x)
{
    float h = x * 0.5f;
    return twice_mass_(h) * h;
}
static inline float gelu_slope_(float x)
{
    float h = x * 0.5f;
    return (twice_mass_(h) + exp_(-2.0f * (h * h)) * (h * 1.5957691216057308f)) * 0.5f;
}
"""
