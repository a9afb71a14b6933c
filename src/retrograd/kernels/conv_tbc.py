"""The convolution of signals that lie time first: a matrix product for each tap of the kernel.

Taps that lie beyond an end of the signal are left out, where `convolution` multiplies zeros: a NaN or infinity of the
weight does not meet them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .products import matmul
from .promotion import scalar_name, unsupported


def tbc_taps(time: int, width: int, pad: int) -> Iterator[tuple[int, int, int, int]]:
    """For each tap that meets the signal: its number, the first result and the first element that meet, and how many
    do."""
    length = time + 2 * pad - width + 1
    for tap in range(width):
        first, last = max(0, pad - tap), min(length, time + pad - tap)
        if first < last:
            yield tap, first, first + tap - pad, last - first


def conv_tbc(input: np.ndarray, weight: np.ndarray, bias: np.ndarray, pad: int = 0) -> np.ndarray:
    """The convolution of (time, batch, channels) with (width, channels, outputs), plus a bias an output."""
    _check(input, weight, bias, pad)
    width, _, outputs = weight.shape
    length = input.shape[0] + 2 * pad - width + 1
    result = np.empty_like(input, shape=(length, input.shape[1], outputs), order="C")
    result[...] = bias.astype(input.dtype)
    for tap, first, source, count in tbc_taps(input.shape[0], width, pad):
        result[first : first + count] += matmul(input[source : source + count], weight[tap])
    return result


def _check(input: np.ndarray, weight: np.ndarray, bias: np.ndarray, pad: int) -> None:
    for name, array, what in (
        ("Input", input, "time, batch, in_channels"),
        ("Weight tensor", weight, "kernel_width, in_channels, out_channels"),
    ):
        if array.ndim != 3:
            raise RuntimeError(f"{name} must have 3 dims: {what}.")
    if input.shape[2] != weight.shape[1]:
        raise RuntimeError("Input dim 2 (input channels) is not == dim 1 in the weight tensor")
    if input.dtype != weight.dtype:
        names = scalar_name(input.dtype), scalar_name(weight.dtype)
        raise RuntimeError("self and mat2 must have the same dtype, but got {} and {}".format(*names))
    if input.dtype.kind == "b":
        unsupported("addmm_impl_cpu_", input.dtype)
    if bias.ndim != 1:
        raise RuntimeError("Bias must be 1-D")
    if bias.shape[0] != weight.shape[2]:
        raise RuntimeError("Bias size must equal dim 2 in the weight tensor (output channels).")
    if bias.dtype.kind == "c" and input.dtype.kind != "c":
        names = scalar_name(bias.dtype), scalar_name(input.dtype)
        raise RuntimeError("result type {} can't be cast to the desired output type {}".format(*names))
    length = input.shape[0] + 2 * pad - weight.shape[0] + 1
    if length < 0:
        raise RuntimeError(
            f"Trying to create tensor with negative dimension {length}: a kernel of width {weight.shape[0]} does not "
            f"fit into a signal of length {input.shape[0]} with {pad} zeros at both ends"
        )


__all__ = ["conv_tbc", "tbc_taps"]
