"""Formula helpers of Fourier transforms."""

from __future__ import annotations

from typing import Any


def fft_r2c_backward(ops: Any, grad: Any, dim: Any, normalization: int, onesided: bool, shape: tuple[int, ...]) -> Any:
    """The real part of the inverse transform of `grad`, with zeros for the half that was left out."""
    last = dim[-1] % len(shape)
    missing = shape[last] - grad.shape[last]
    if onesided and missing:
        zeros = list(grad.shape)
        zeros[last] = missing
        grad = ops.cat([grad, ops.new_zeros(grad, tuple(zeros))], last)
    return ops.real(ops.fft_c2c(grad, dim, normalization, False))


def fft_c2r_backward(ops: Any, grad: Any, dim: Any, normalization: int) -> Any:
    """Half the transform of `grad`, twice where the half stands for both."""
    last, size = dim[-1] % grad.ndim, grad.shape[dim[-1]]
    half = ops.fft_r2c(grad, dim, normalization, True)
    doubled = size - half.shape[last]
    if not doubled:
        return half
    parts = [ops.narrow(half, last, 0, 1), ops.narrow(half, last, 1, doubled) * 2]
    rest = half.shape[last] - 1 - doubled
    if rest:
        parts.append(ops.narrow(half, last, 1 + doubled, rest))
    return ops.cat(parts, last)
