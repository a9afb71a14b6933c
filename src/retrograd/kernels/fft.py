"""Fourier transforms over some dimensions: complex to complex, real to half a spectrum, and back.

`normalization` is 0 for none, 1 for a factor 1 / sqrt(n) and 2 for 1 / n, where n is the number of points.
`scipy.fft` computes them, in single precision for float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray

from retrograd.kernels.promotion import is_half, unsupported

# scipy says where the factor 1 / n is: in the forward or in the backward transform.
_FORWARD = ("backward", "ortho", "forward")
_BACKWARD = ("forward", "ortho", "backward")


def _library(a: Any) -> Any:
    """The module of Fourier transforms for arrays such as `a`."""
    if type(a).__module__.partition(".")[0] == "cupy":
        from cupyx.scipy import fft
    else:
        from scipy import fft
    return fft


def fft_c2c(a: ndarray, dim: tuple[int, ...], normalization: int, forward: bool) -> ndarray:
    """The transform of a complex array, or the inverse transform."""
    if not dim:
        return a.copy()
    if not a.size:
        return np.empty_like(a)
    library = _library(a)
    if forward:
        return library.fftn(a, axes=tuple(dim), norm=_FORWARD[normalization])
    return library.ifftn(a, axes=tuple(dim), norm=_BACKWARD[normalization])


def fft_r2c(a: ndarray, dim: tuple[int, ...], normalization: int, onesided: bool) -> ndarray:
    """The transform of a real array; with `onesided`, only the first half along the last of `dim`."""
    if is_half(a.dtype):
        unsupported("fft_r2c", a.dtype)
    if not onesided:
        return fft_c2c(a.astype(np.result_type(a.dtype, np.complex64)), dim, normalization, True)
    return _library(a).rfftn(a, axes=tuple(dim), norm=_FORWARD[normalization])


def fft_c2r(a: ndarray, dim: tuple[int, ...], normalization: int, last_dim_size: int) -> ndarray:
    """The inverse transform of half a spectrum, along the last of `dim`, to `last_dim_size` real points."""
    axes = tuple(dim)
    sizes = [a.shape[d] for d in axes[:-1]]
    return _library(a).irfftn(a, s=(*sizes, last_dim_size), axes=axes, norm=_BACKWARD[normalization])


# Every public function of this module is a kernel.
__all__ = [n for n, f in list(globals().items()) if getattr(f, "__module__", None) == __name__ and n[0] != "_"]
