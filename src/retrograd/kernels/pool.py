"""Kernels of pooling: the maximum or mean of windows.

A window is taken tap by tap: one strided slice of the input for each position in the kernel, combined over all windows
at once.  A maximum remembers the tap that it came from, in one byte a window; its gradient is sent to that tap.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from .promotion import unsupported, work_dtype
from .storage import shape_text

Ints = Sequence[int]
_LETTERS = ("kT", "kH", "kW")
_BLOCK = 1 << 18  # elements of the input at a time, to stay in the cache


def pooled_size(size: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool) -> list[int]:
    """How many windows there are along each dimension."""
    result = []
    for s, k, step, p, d in zip(size, kernel, stride, padding, dilation, strict=True):
        span = s + 2 * p - d * (k - 1) - 1
        n = (-(-span // step) if ceil_mode else span // step) + 1
        if ceil_mode and (n - 1) * step >= s + p:  # a window must start in the input or in the padding before it
            n -= 1
        result.append(n)
    return result


def _check_pool(
    name: str, a: np.ndarray, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool
) -> list[int]:
    dims = len(kernel)
    if any(s == 0 for s in stride):
        raise RuntimeError("stride should not be zero")
    if any(k <= 0 for k in kernel):
        raise RuntimeError("kernel size should be greater than zero, but got " + _named("k", kernel))
    if any(s < 0 for s in stride):
        raise RuntimeError("stride should be greater than zero, but got " + _named("d", stride))
    if any(d <= 0 for d in dilation):
        raise RuntimeError("dilation should be greater than zero, but got " + _named("dilation", dilation))
    if a.ndim not in (dims + 1, dims + 2) or 0 in a.shape[a.ndim - dims - 1 :]:
        if a.ndim in (dims + 1, dims + 2) and dims == 2:
            raise RuntimeError(
                "Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but got:"
                f"{shape_text(a.shape)}"
            )
        raise RuntimeError(f"non-empty {dims + 1}D or {dims + 2}D (batch mode) tensor expected for input")
    for p, k, d in zip(padding, kernel, dilation, strict=True):
        if p < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
        if p > ((k - 1) * d + 1) // 2:
            raise RuntimeError(
                f"pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} and "
                f"dilation={d}"
            )
    size = a.shape[a.ndim - dims :]
    out = pooled_size(size, kernel, stride, padding, dilation, ceil_mode)
    if any(o < 1 for o in out):
        channels = a.shape[a.ndim - dims - 1]
        sizes = ("x".join(str(n) for n in (channels, *part)) for part in (size, out))
        raise RuntimeError(
            "Given input size: ({}). Calculated output size: ({}). Output size is too small".format(*sizes)
        )
    if a.dtype.kind not in "fiu" or (name != "max_pool2d" and a.dtype.kind != "f" and a.dtype != np.int64):
        unsupported(name, a.dtype)
    return out


def _named(name: str, values: Ints) -> str:
    return " ".join(f"{name}{letter[1]}: {v}" for letter, v in zip(_LETTERS[3 - len(values) :], values, strict=True))


Tap = tuple[tuple[slice, ...], tuple[slice, ...]]


def _taps(size: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, out: Ints) -> Iterator[Tap]:
    """For each tap, the cells of the input that it meets, and the windows for which it meets one."""
    each = []
    for s, k, step, p, d, n in zip(size, kernel, stride, padding, dilation, out, strict=True):
        along = []
        for tap in range(k):
            offset = tap * d - p
            first = max(0, -(offset // step)) if offset < 0 else 0
            last = min(n, (s - 1 - offset) // step + 1)
            last = max(last, first)
            start = first * step + offset
            along.append((slice(start, start + (last - first) * step, step), slice(first, last)))
        each.append(along)
    for parts in itertools.product(*each):
        yield (..., *[p[0] for p in parts]), (..., *[p[1] for p in parts])  # type: ignore[misc]


def _planes(a: np.ndarray, dims: int) -> np.ndarray:
    return a.reshape(-1, *a.shape[a.ndim - dims :])


def _blocks(planes: int, size: int) -> Iterator[slice]:
    step = max(1, _BLOCK // max(1, size))
    for first in range(0, planes, step):
        yield slice(first, first + step)


# ---------------------------------------------------------------------------------------------------------- maximum


def max_pool(
    a: np.ndarray, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The maximum of each window, and the tap of the kernel where it is."""
    dims = len(kernel)
    out = _check_pool(f"max_pool{dims}d", a, kernel, stride, padding, dilation, ceil_mode)
    lead, size = a.shape[: a.ndim - dims], a.shape[a.ndim - dims :]
    x = _planes(a, dims)
    small = np.uint8 if math.prod(kernel) <= 256 else np.int32
    result = np.empty_like(x, shape=(x.shape[0], *out), order="C")
    taps = np.zeros_like(x, dtype=small, shape=result.shape, order="C")
    places = list(_taps(size, kernel, stride, padding, dilation, out))
    for block in _blocks(x.shape[0], math.prod(size)):
        _max_taps(x[block], result[block], taps[block], places)
    return result.reshape(*lead, *out), taps.reshape(*lead, *out)


def _max_taps(x: np.ndarray, best: np.ndarray, taps: np.ndarray, places: list[Tap]) -> None:
    begun = np.zeros_like(best, dtype=bool, shape=best.shape[1:])
    whole = (slice(None), *[slice(0, n) for n in best.shape[1:]])
    lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    begin = places[0][1][1:] == whole[1:]
    if not begin:
        best[...] = lowest
    mask = np.empty_like(best, dtype=bool)
    for tap, (cells, windows) in enumerate(places):
        values, target, which = x[cells], best[windows], taps[windows]
        if tap == 0 and begin:
            target[...] = values
            begun[...] = True
            continue
        better = mask[windows]
        np.less_equal(values, target, out=better)
        np.logical_not(better, out=better)  # also where the value is NaN
        if not begin:
            fresh = ~begun[windows[1:]]
            if fresh.any():  # the first tap of a window counts whatever its value
                better |= fresh
                begun[windows[1:]] = True
        # A tap is chosen by a maximum of numbers rather than by a mask: one pass and no branches.
        if x.dtype.kind == "f" and np.isnan(np.add.reduce(target, None)):
            better &= ~(np.isnan(target) & ~np.isnan(values))
        np.maximum(target, values, out=target)
        np.multiply(better, which.dtype.type(tap), out=mask_as(which, better))
    return None
