"""Kernels of `im2col` and `col2im`: the windows of images as columns, and the sum of columns back in their place."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .conv import Windows
from .storage import shape_text

Ints = Sequence[int]


def _windows(size: Ints, kernel: Ints, dilation: Ints, padding: Ints, stride: Ints) -> Windows:
    for name, values, least in (("kernel", kernel, 1), ("dilation", dilation, 1), ("stride", stride, 1)):
        if any(v < least for v in values):
            what = "kernel size" if name == "kernel" else name
            raise RuntimeError(f"{what} should be greater than zero, but got {shape_text(values)}")
    if any(p < 0 for p in padding):
        raise RuntimeError(f"padding should be non-negative, but got {shape_text(padding)}")
    windows = Windows(size, kernel, stride, padding, dilation)
    windows.flat = False
    windows.width = windows.count
    return windows


def im2col(a: np.ndarray, kernel: Ints, dilation: Ints, padding: Ints, stride: Ints) -> np.ndarray:
    """(batch, channels, height, width) as (batch, channels * taps, windows)."""
    if a.ndim != 4 or 0 in a.shape[1:]:
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, "
            f"but got: {shape_text(a.shape)}"
        )
    windows = _windows(a.shape[2:], kernel, dilation, padding, stride)
    if any(o < 1 for o in windows.out):
        raise RuntimeError(
            f"Given input with spatial size {_pair(a.shape[2:])}, kernel_size={_pair(kernel)}, "
            f"dilation={_pair(dilation)}, padding={_pair(padding)}, calculated shape of the array of sliding blocks as "
            f"{_pair(windows.out)}, but its components must be at least one."
        )
    buffer = np.empty_like(a, shape=(*a.shape[:2], windows.taps, windows.width), order="C")
    columns = windows.columns(windows.pad(a), buffer)
    return columns.reshape(a.shape[0], a.shape[1] * windows.taps, windows.width)


def col2im(
    a: np.ndarray, output_size: Ints, kernel: Ints, dilation: Ints, padding: Ints, stride: Ints
) -> np.ndarray:
    """(batch, channels * taps, windows) added up in (batch, channels, height, width)."""
    windows = _windows(output_size, kernel, dilation, padding, stride)
    if a.ndim != 3 or 0 in a.shape[1:]:
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for "
            f"input, but got: {shape_text(a.shape)}"
        )
    taps = math.prod(kernel)
    if a.shape[1] % taps:
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
            f"input.size(1)={a.shape[1]} and kernel_size={_pair(kernel)}."
        )
    if a.shape[2] != windows.count:
        raise RuntimeError(
            f"Given output_size={_pair(output_size)}, kernel_size={_pair(kernel)}, dilation={_pair(dilation)}, "
            f"padding={_pair(padding)}, stride={_pair(stride)}, expected size of input's dimension 2 to match the "
            f"calculated number of sliding blocks {windows.out[0]} * {windows.out[1]} = {windows.count}, but got "
            f"input.size(2)={a.shape[2]}."
        )
    channels = a.shape[1] // taps
    columns = a.reshape(a.shape[0], channels, taps, *windows.out)
    padded = np.zeros_like(a, shape=(a.shape[0], channels, *windows.padded), order="C")
    for tap, part in enumerate(windows.tap_slices()):
        padded[part] += columns[:, :, tap]
    inner = tuple([slice(p, p + s) for p, s in zip(padding, output_size, strict=True)])
    return np.ascontiguousarray(padded[(slice(None), slice(None), *inner)])


def _pair(values: Ints) -> str:
    return f"({', '.join(str(v) for v in values)})"


__all__ = ["col2im", "im2col"]
