"""Complex numbers: their parts (views), their construction from parts, conjugates and angles."""

from __future__ import annotations

import math

import numpy as np
from numpy import ndarray

from retrograd.kernels.promotion import (
    apply_unary,
    as_array,
    broadcast_shape,
    complex_dtype,
    float_dtype,
    scalar_name,
)


def conj(a: ndarray) -> ndarray:
    """The conjugate; a real array is returned as it is."""
    return as_array(np.conjugate(a)) if a.dtype.kind in "cW" else a


def conj_physical(a: ndarray, out: ndarray | None = None) -> ndarray:
    """The conjugate; a real array is returned as it is."""
    return conj(a) if out is None else apply_unary(np.conjugate, a, out)


def real(a: ndarray) -> ndarray:
    """The real part, a view; a real array is returned as it is."""
    return a.real if a.dtype.kind == "c" else a if a.dtype.kind not in "W" else _parts(a)[..., 0]


def imag(a: ndarray) -> ndarray:
    """The imaginary part, a view."""
    if a.dtype.kind not in "cW":
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return a.imag if a.dtype.kind == "c" else _parts(a)[..., 1]


def _parts(a: ndarray) -> ndarray:
    """Real and imaginary parts beside each other, a view: complex32, of which NumPy takes no parts."""
    return a[..., None].view(np.float16)


def angle(a: ndarray) -> ndarray:
    """The angle of complex numbers; of real ones 0 or pi (NaN stays)."""
    if a.dtype.kind == "c":
        return as_array(np.arctan2(a.imag, a.real))
    d = float_dtype(a)
    r = as_array(np.multiply(a < 0, math.pi, dtype=d))
    if d is a.dtype:
        np.copyto(r, a, where=np.isnan(a))
    return r


def complex(real: ndarray, imag: ndarray) -> ndarray:
    """real + imag j."""
    _check_parts(real, imag, "second argument")
    r = np.empty_like(real, shape=broadcast_shape(real, imag), dtype=complex_dtype(real.dtype))
    parts = r[..., None].view(real.dtype)
    parts[..., 0], parts[..., 1] = real, imag
    return r


def polar(abs: ndarray, angle: ndarray) -> ndarray:
    """abs * exp(angle j)."""
    _check_parts(abs, angle, "second argument")
    r = np.empty_like(abs, shape=broadcast_shape(abs, angle), dtype=complex_dtype(abs.dtype))
    np.multiply(abs, np.cos(angle), out=r.real)
    np.multiply(abs, np.sin(angle), out=r.imag)
    return r


def _check_parts(a: ndarray, b: ndarray, where: str) -> None:
    names = scalar_name(a.dtype), scalar_name(b.dtype)
    if a.dtype.kind != "f" or a.itemsize == 1 or b.dtype.kind != "f" or b.itemsize == 1:
        raise RuntimeError(
            f"Expected both inputs to be Half, Float or Double tensors but got {names[0]} and {names[1]}"
        )
    if a.dtype != b.dtype:
        raise RuntimeError(f"Expected object of scalar type {names[0]} but got scalar type {names[1]} for {where}")


# Every public function of this module is a kernel.
__all__ = [n for n, f in list(globals().items()) if getattr(f, "__module__", None) == __name__ and n[0] != "_"]
