"""Trigonometric and hyperbolic functions and their inverses, element by element; see `pointwise.py`."""

from __future__ import annotations

import math

import numpy as np
from numpy import ndarray

from .pointwise import _float_unary
from .promotion import Kernel, Operand, apply_binary, float_dtype, operand, store, unsupported, work_dtype


def atan2(a: Operand, b: Operand, out: ndarray | None = None) -> ndarray:
    """The angle of the point (b, a)."""
    d = float_dtype(a, b)
    if d.kind in "cW":
        unsupported("atan2_cpu", d, out)
    return apply_binary(np.arctan2, a, b, out, d)


sin: Kernel = _float_unary("sin", np.sin, "The sine.")
cos: Kernel = _float_unary("cos", np.cos, "The cosine.")
tan: Kernel = _float_unary("tan", np.tan, "The tangent.")
asin: Kernel = _float_unary("asin", np.arcsin, "The inverse of the sine.")
acos: Kernel = _float_unary("acos", np.arccos, "The inverse of the cosine.")
atan: Kernel = _float_unary("atan", np.arctan, "The inverse of the tangent.")
sinh: Kernel = _float_unary("sinh", np.sinh, "The hyperbolic sine.")
cosh: Kernel = _float_unary("cosh", np.cosh, "The hyperbolic cosine.")
tanh: Kernel = _float_unary("tanh", np.tanh, "The hyperbolic tangent.")
asinh: Kernel = _float_unary("asinh", np.arcsinh, "The inverse of the hyperbolic sine.")
acosh: Kernel = _float_unary("acosh", np.arccosh, "The inverse of the hyperbolic cosine.")
atanh: Kernel = _float_unary("atanh", np.arctanh, "The inverse of the hyperbolic tangent.")


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
    if d.kind in "cW":
        raise RuntimeError(f"{name} is not supported for complex tensors.")
    return apply_binary(np.multiply, a, factor, out, d)
