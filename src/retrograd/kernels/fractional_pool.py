"""Kernel of fractional max pooling: the maximum of windows whose steps are drawn at random, one draw a plane."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .promotion import unsupported
from .storage import shape_text

Ints = Sequence[int]
_SIDES = {2: ("height", "width"), 3: ("time", "height", "width")}


def _starts(samples: np.ndarray, size: int, kernel: int, parts: int) -> np.ndarray:
    """Where the windows of each plane begin: about evenly, shifted by the plane's sample in [0, 1)."""
    starts = np.full((len(samples), parts), size - kernel, np.int64)
    if parts > 1:
        step = (size - kernel) / (parts - 1)
        shifted = (np.arange(parts - 1) + samples[:, None].astype(np.float64)) * step
        starts[:, :-1] = shifted.astype(np.int64) - (samples[:, None].astype(np.float64) * step).astype(np.int64)
    return starts


def _check(a: np.ndarray, kernel: Ints, output_size: Ints, samples: np.ndarray) -> None:
    dims = len(kernel)
    name = f"fractional_max_pool{dims}d()"
    if a.ndim not in (dims + 1, dims + 2):
        raise RuntimeError(f"{name}: Expected {dims + 1}D or {dims + 2}D tensor, but got: {shape_text(a.shape)}")
    if a.dtype.kind not in "fV":
        unsupported(f"fractional_max_pool{dims}d_out_frame", a.dtype)
    if samples.dtype != a.dtype:
        raise RuntimeError("Expect _random_samples to have the same dtype as input")
    if samples.ndim != 3:
        raise RuntimeError(f"Expect _random_samples to have 3 dimensions, got {samples.ndim}")
    batch = a.shape[0] if a.ndim == dims + 2 else 1
    if samples.shape[0] < batch:
        raise RuntimeError("Expect _random_samples.size(0) no less then input batch size.")
    if samples.shape[1] != a.shape[-dims - 1]:
        raise RuntimeError("Expect _random_samples.size(1) equals to input channel size.")
    if samples.shape[2] != dims:
        raise RuntimeError(f"Expect _random_samples.size(2) equals to {dims} got {samples.shape[2]}.")
    for side, k, n, o in zip(_SIDES[dims], kernel, a.shape[-dims:], output_size, strict=True):
        if o + k - 1 > n - (dims == 3):  # in three dimensions torch wants one to spare
            raise RuntimeError(f"{name}: pool {side} {k} too large relative to input {side} {n}")


def fractional_max_pool(
    a: np.ndarray, kernel: Ints, output_size: Ints, random_samples: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The maximum of each window, and its flat index in the plane."""
    dims = len(kernel)
    _check(a, kernel, output_size, random_samples)
    size, lead = a.shape[-dims:], a.shape[:-dims]
    planes = a.reshape(-1, math.prod(size))
    samples = random_samples.reshape(-1, dims)[: len(planes)]
    if dims == 2:
        samples = samples[:, ::-1]  # torch draws the width first here, and the depth first in three dimensions
    cells = np.zeros((len(planes),) + (1,) * (2 * dims), np.int64)
    for d in range(dims):
        along = _starts(samples[:, d], size[d], kernel[d], output_size[d])[:, :, None] + np.arange(kernel[d])
        shape = [len(planes)] + [1] * (2 * dims)
        shape[1 + d], shape[1 + dims + d] = output_size[d], kernel[d]
        cells = cells * size[d] + along.reshape(shape)
    flat = cells.reshape(len(planes), math.prod(output_size), math.prod(kernel))
    windows = np.take_along_axis(planes[:, None, :], flat, -1)
    best = windows.astype(np.float64).argmax(-1)[..., None]
    if (lost := np.isnan(np.take_along_axis(windows, best, -1))).any():  # of several NaN, the last, as in other pools
        backwards = np.isnan(windows)[..., ::-1].argmax(-1)[..., None]
        best = np.where(lost, windows.shape[-1] - 1 - backwards, best)
    shape_out = (*lead, *output_size)
    values = np.take_along_axis(windows, best, -1).reshape(shape_out)
    return values, np.take_along_axis(flat, best, -1).reshape(shape_out)


__all__ = ["fractional_max_pool"]
