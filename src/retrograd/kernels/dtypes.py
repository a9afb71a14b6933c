"""Conversions to and from the dtypes that NumPy does not have itself: see Note [Stored dtypes] in core/dtypes.py.

ml_dtypes converts too, and differs from torch where a number does not fit: torch's ``float8_e4m3fn`` ends at 448, which
is also what infinity becomes, and its ``float8_e8m0fnu`` has neither sign nor zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_FLOAT32, _COMPLEX64 = np.dtype(np.float32), np.dtype(np.complex64)


def convert(a: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """`a` with elements of `dtype`, in an array of its own unless it has them; an imaginary part is dropped silently.

    >>> import retrograd as torch
    >>> torch.tensor([1000.0, -0.3]).to(torch.float8_e4m3fn)
    tensor([ 4.4800e+02, -3.1250e-01], dtype=torch.float8_e4m3fn)
    """
    have = a.dtype
    if have == dtype:
        return a
    if have.names is not None or dtype.names is not None:
        raise NotImplementedError("\"copy_kernel\" not implemented for 'Float4_e2m1fn_x2'")
    if have.num >= 256:  # through a wider type that holds all its numbers
        a = a.astype(_COMPLEX64 if have.kind in "W" else _FLOAT32)
        if dtype.num < 256:
            return _to_plain(a, dtype)
    if a.dtype.kind == "c" and dtype.kind not in "W":
        a = a.real
    if dtype.name == "float8_e4m3fn":
        return np.asarray(np.clip(_to_plain(a, _FLOAT32), np.float32(-448), np.float32(448))).astype(dtype)
    if dtype.name == "float8_e8m0fnu":
        return _exponents(_to_plain(a, _FLOAT32)).view(dtype)
    # Twice rounded, as torch does it.
    return a.astype(_COMPLEX64 if a.dtype.kind == "c" else _FLOAT32, copy=False).astype(dtype)


def _to_plain(a: np.ndarray, dtype: np.dtype) -> np.ndarray:
    if a.dtype.kind == "c" and dtype.kind not in "cb":
        a = a.real
    return a.astype(dtype, copy=False)


def _exponents(a: np.ndarray) -> Any:
    """The bytes of ``float8_e8m0fnu``: exponents of float32, rounded; 255 where there is none."""
    bits = np.ascontiguousarray(a).view(np.uint32).reshape(a.shape)
    exponents, rest = (bits >> 23) & 0xFF, bits & 0x7FFFFF
    half = np.uint32(0x400000)
    up = (rest > half) | ((rest == half) & (exponents > 0))
    return np.where((exponents < 255) & up, exponents + 1, exponents).astype(np.uint8)


__all__ = ["convert"]
