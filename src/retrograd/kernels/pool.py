"""Kernels of pooling: the maximum or mean of windows.

A window is taken tap by tap: one strided slice of the input for each position in the kernel, combined over all windows
at once.  A maximum remembers the tap that it came from, in one byte a window; its gradient is sent to that tap.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from . import compiled
from .compiled import LARGE
from .promotion import unsupported, work_dtype
from .storage import keeps_channels_last, keeps_channels_last_of_images, shape_text, with_channels_last

Ints = Sequence[int]
_LETTERS = ("kT", "kH", "kW")
_BLOCK = 1 << 18  # elements of the input at a time, to stay in the cache
_SCATTERED = 1 << 23  # the same, for gradients that go to computed places


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
    for p, k, d in zip(padding, kernel, dilation, strict=True):
        if p < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
        if p > ((k - 1) * d + 1) // 2:
            raise RuntimeError(
                f"pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} and "
                f"dilation={d}"
            )
    if a.ndim not in (dims + 1, dims + 2) or 0 in a.shape[a.ndim - dims - 1 :]:
        if a.ndim in (dims + 1, dims + 2) and dims == 2:
            raise RuntimeError(
                "Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but got:"
                f"{shape_text(a.shape)}"
            )
        raise RuntimeError(f"non-empty {dims + 1}D or {dims + 2}D (batch mode) tensor expected for input")
    size = a.shape[a.ndim - dims :]
    out = pooled_size(size, kernel, stride, padding, dilation, ceil_mode)
    if any(o < 1 for o in out):
        channels = a.shape[a.ndim - dims - 1]
        sizes = ("x".join(str(n) for n in (channels, *part)) for part in (size, out))
        raise RuntimeError(
            "Given input size: ({}). Calculated output size: ({}). Output size is too small".format(*sizes)
        )
    whole = name.startswith("max_pool") or a.dtype == np.int64
    if a.dtype.kind not in ("fiuV" if whole else "fV"):
        unsupported(name, a.dtype)
    return out


def _named(name: str, values: Ints) -> str:
    return " ".join(f"{name}{letter[1]}: {v}" for letter, v in zip(_LETTERS[3 - len(values) :], values, strict=True))


Tap = tuple[tuple[Any, ...], tuple[Any, ...]]


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
        yield (..., *[p[0] for p in parts]), (..., *[p[1] for p in parts])


def _planes(a: np.ndarray, dims: int) -> np.ndarray:
    return a.reshape(-1, *a.shape[a.ndim - dims :])


def _blocks(planes: int, size: int) -> Iterator[slice]:
    step = max(1, _BLOCK // max(1, size))
    for first in range(0, planes, step):
        yield slice(first, first + step)


# ---------------------------------------------------------------------------------------------------------- maximum


@keeps_channels_last
def max_pool(
    a: np.ndarray, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The maximum of each window, and the tap of the kernel where it is."""
    dims = len(kernel)
    out = _check_pool(f"max_pool{dims}d", a, kernel, stride, padding, dilation, ceil_mode)
    if dims == 3 and a.ndim == 4 and not a.flags.c_contiguous and np.moveaxis(a, 0, -1).flags.c_contiguous:
        found = max_pool(np.ascontiguousarray(a), kernel, stride, padding, dilation, ceil_mode)
        return tuple([with_channels_last(part[None])[0] for part in found])  # type: ignore[return-value]
    lead, size = a.shape[: a.ndim - dims], a.shape[a.ndim - dims :]
    x = _planes(a, dims)
    if x.size > LARGE and (fast := compiled.max_pool2d(x, out, kernel, stride, padding, dilation)) is not None:
        return fast[0].reshape(*lead, *out), fast[1].reshape(*lead, *out)
    small = np.uint8 if math.prod(kernel) <= 256 else np.int32
    result = np.empty_like(x, shape=(x.shape[0], *out), order="C")
    taps = np.zeros_like(x, dtype=small, shape=result.shape, order="C")
    places = list(_taps(size, kernel, stride, padding, dilation, out))
    for block in _blocks(x.shape[0], math.prod(size)):
        _max_taps(x[block], result[block], taps[block], places)
    return result.reshape(*lead, *out), taps.reshape(*lead, *out)


def _max_taps(x: np.ndarray, best: np.ndarray, taps: np.ndarray, places: list[Tap]) -> None:
    """Fill the maxima and their taps."""
    begun = all(part == slice(0, n) for part, n in zip(places[0][1][1:], best.shape[1:], strict=True))
    if not begun:  # some windows begin in the padding
        best[...] = -np.inf if x.dtype.kind in "fV" else np.iinfo(x.dtype).min
        for tap in range(len(places) - 1, -1, -1):
            taps[places[tap][1]] = tap
    mask = np.empty_like(best, dtype=bool)
    for tap, (cells, windows) in enumerate(places):
        values, target = x[cells], best[windows]
        if tap == 0 and begun:
            target[...] = values
            continue
        better = mask[windows]
        np.greater(values, target, out=better)
        np.maximum(target, values, out=target)
        if taps.dtype == np.uint8:  # taps only grow: a product and a maximum of bytes are faster than a masked copy
            chosen = better.view(np.uint8)
            np.multiply(chosen, np.uint8(tap), out=chosen)
            np.maximum(taps[windows], chosen, out=taps[windows])
        else:
            np.copyto(taps[windows], tap, where=better)
    if x.dtype.kind in "fV" and np.isnan(np.add.reduce(best, None)) and np.isnan(best).any():
        for tap, (cells, windows) in enumerate(places):  # the last NaN of a window is its maximum
            np.copyto(taps[windows], tap, where=np.isnan(x[cells]))


def max_pool_backward(
    grad: np.ndarray,
    taps: np.ndarray,
    input_size: Ints,
    kernel: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
) -> np.ndarray:
    """The gradient of `max_pool`: that of each window, at the tap where its maximum is."""
    dims = len(kernel)
    size = tuple(input_size)[len(input_size) - dims :]
    g, which = _planes(grad, dims), _planes(taps, dims)
    if g.size > LARGE:
        fast = compiled.max_pool2d_backward(g, which, size, kernel, stride, padding, dilation)
        if fast is None and type(g) is np.ndarray and g.dtype.char in "fd" and math.prod(size) < 1 << 31:
            fast = _add_at_taps(g, which, size, kernel, stride, padding, dilation)
        if fast is not None:
            return fast.reshape(input_size)
    apart = all(s >= d * (k - 1) + 1 for s, k, d in zip(stride, kernel, dilation, strict=True))
    result = np.zeros_like(g, shape=(g.shape[0], *size), order="C")
    finite = bool(np.isfinite(np.add.reduce(g, None))) if g.dtype.kind in "fV" else True
    places = list(_taps(size, kernel, stride, padding, dilation, g.shape[1:]))
    for block in _blocks(g.shape[0], math.prod(size)):
        part, here, target = g[block], which[block], result[block]
        for tap, (cells, windows) in enumerate(places):
            chosen = here[windows] == tap
            if not finite:  # zero times infinity is not zero
                np.add(target[cells], part[windows], out=target[cells], where=chosen)
            elif apart:
                np.multiply(part[windows], chosen, out=target[cells])
            else:
                target[cells] += part[windows] * chosen
    return result.reshape(input_size)


def _add_at_taps(
    g: np.ndarray, which: np.ndarray, size: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints
) -> np.ndarray:
    """The gradients of windows, each added to the cell where its maximum is: they are a matrix of one column, each in
    the row of its cell, and SciPy adds up what is in one row."""
    from scipy.sparse import csc_array

    begin, offsets = _flat_places(size, kernel, stride, padding, dilation, g.shape[1:])
    begin, offsets = begin.astype(np.int32), offsets.astype(np.int32)
    cells = math.prod(size)
    planes = max(1, _SCATTERED // cells)
    parts = []
    for first in range(0, len(g), planes):
        some = np.ascontiguousarray(g[first : first + planes])
        places = offsets.take(which[first : first + planes])
        places += begin
        places += (np.arange(len(some), dtype=np.int32) * cells).reshape(-1, *[1] * len(size))
        ends = np.array([0, some.size], np.int32)
        column = csc_array((some.reshape(-1), places.reshape(-1), ends), shape=(len(some) * cells, 1))
        parts.append(column @ np.ones(1, g.dtype))
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _flat_places(
    size: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, out: Ints
) -> tuple[np.ndarray, np.ndarray]:
    """Where in a plane each window begins (in the padding, perhaps), and how far from there each tap is."""
    begin, offsets = np.zeros((1,) * len(out), np.int64), np.zeros((1,) * len(out), np.int64)
    step = 1
    for d in range(len(out) - 1, -1, -1):
        along = [-1 if i == d else 1 for i in range(len(out))]
        begin = begin + ((np.arange(out[d]) * stride[d] - padding[d]) * step).reshape(along)
        offsets = offsets + (np.arange(kernel[d]) * (dilation[d] * step)).reshape(along)
        step *= size[d]
    return begin, offsets.reshape(-1)


def max_pool_gather(
    a: np.ndarray, taps: np.ndarray, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints
) -> np.ndarray:
    """The elements of `a` at the taps that `max_pool` found."""
    dims = len(kernel)
    x, which = _planes(a, dims), _planes(taps, dims)
    result = np.zeros_like(x, shape=which.shape, order="C")
    for tap, (cells, windows) in enumerate(_taps(x.shape[1:], kernel, stride, padding, dilation, which.shape[1:])):
        np.copyto(result[windows], x[cells], where=which[windows] == tap)
    return result.reshape(taps.shape)


def max_pool_indices(
    taps: np.ndarray, input_size: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints
) -> np.ndarray:
    """The taps as flat indices into the input's planes."""
    dims = len(kernel)
    size = tuple(input_size)[len(input_size) - dims :]
    begin, offsets = _flat_places(size, kernel, stride, padding, dilation, taps.shape[taps.ndim - dims :])
    result = offsets[taps]  # in the layout of the taps
    result += begin
    return result


@keeps_channels_last_of_images
def adaptive_max_pool(a: np.ndarray, output_size: Ints) -> tuple[np.ndarray, np.ndarray]:
    """The maxima of the windows that divide the input into `output_size` parts, and their flat indices."""
    dims = len(output_size)
    size = a.shape[a.ndim - dims :]
    if a.dtype.kind not in "fV":
        unsupported(f"adaptive_max_pool{dims}d", a.dtype)
    if dims == 3:  # torch has no other layout for these
        a = np.ascontiguousarray(a)
    kernel = [s // o if o and s % o == 0 else 0 for s, o in zip(size, output_size, strict=True)]
    if 0 < math.prod(kernel) <= 256:
        rest = [0] * dims, [1] * dims
        values, taps = max_pool(a, kernel, kernel, *rest, False)
        return values, max_pool_indices(taps, a.shape, kernel, kernel, *rest)
    np.empty_like(a, shape=(*a.shape[: a.ndim - dims], *output_size))  # which is refused where it is too large
    # One dimension after the other, the innermost first: of equal elements the first in memory stays the first.
    values, indices = a, np.zeros((), np.int64)
    step = 1
    for d in range(a.ndim - 1, a.ndim - dims - 1, -1):
        values, indices = _adaptive_max(values, indices, d, output_size[d - a.ndim], step)
        step *= a.shape[d]
    return values, indices


def _adaptive_max(a: np.ndarray, indices: np.ndarray, d: int, parts: int, step: int) -> tuple[np.ndarray, np.ndarray]:
    """The maxima of `parts` windows along dimension `d`, and their indices: those of the elements, as far as dimensions
    inside this one decide them, and `step` for each place along this one."""
    bounds = np.array(adaptive_bounds(a.shape[d], parts), np.int64).reshape(-1, 2)
    begin, end = bounds[:, 0], bounds[:, 1]
    taps = int((end - begin).max()) if parts else 0
    if parts < taps:  # few windows: each at once
        found = [_argmax(a[(slice(None),) * d + (slice(*window),)], d) + window[0] for window in bounds.tolist()]
        where = np.concatenate(found, d)
    else:  # many: all of them at once, tap by tap
        where = np.broadcast_to(begin.reshape(-1, *[1] * (a.ndim - d - 1)), (*a.shape[:d], parts, *a.shape[d + 1 :]))
        best = a.take(begin, d)
        for tap in range(1, taps):
            cells = np.minimum(begin + tap, end - 1)  # (the last cell of a short window once more)
            values = a.take(cells, d)
            better = values > best
            better |= np.isnan(values)
            where = np.where(better, cells.reshape(-1, *[1] * (a.ndim - d - 1)), where)
            np.copyto(best, values, where=better)
    inside = np.take_along_axis(indices, where, d) if indices.ndim else indices
    return np.take_along_axis(a, where, d), inside + where * step


def _argmax(a: np.ndarray, d: int) -> np.ndarray:
    """The place of the first maximum along dimension `d`, or of the last NaN if there is one."""
    where = a.argmax(d, keepdims=True)
    lost = np.isnan(np.take_along_axis(a, where, d))
    if lost.any():
        where = np.where(lost, a.shape[d] - 1 - np.flip(np.isnan(a), d).argmax(d, keepdims=True), where)
    return where


def adaptive_bounds(size: int, parts: int) -> list[tuple[int, int]]:
    """Where each of `parts` windows begins and ends."""
    return [(i * size // parts, -(-(i + 1) * size // parts)) for i in range(parts)]


def check_adaptive_grad(name: str, shape: Ints) -> None:
    """There is a gradient: windows of no size have none."""
    if 0 in shape[1:]:
        raise RuntimeError(
            f"{name}(): Expected grad_output to have non-zero size for non-batch dimensions, but grad_output has sizes "
            f"{shape_text(shape)} with dimension {tuple(shape).index(0, 1)} being empty"
        )


# ------------------------------------------------------------------------------------------------------------- mean


@keeps_channels_last_of_images
def avg_pool(
    a: np.ndarray,
    kernel: Ints,
    stride: Ints,
    padding: Ints,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> np.ndarray:
    """The mean of each window."""
    dims = len(kernel)
    ones = [1] * dims
    out = _check_pool(f"avg_pool{dims}d", a, kernel, stride, padding, ones, ceil_mode)
    lead, size = a.shape[: a.ndim - dims], a.shape[a.ndim - dims :]
    x = _planes(a, dims)
    divisor = _divisor(tuple(size), *map(tuple, (kernel, stride, padding, out)), count_include_pad, divisor_override)
    if x.size > LARGE and (fast := compiled.avg_pool2d(x, divisor, out, kernel, stride, padding)) is not None:
        return fast.reshape(*lead, *out)
    result = np.zeros_like(x, dtype=work_dtype(x.dtype), shape=(x.shape[0], *out), order="C")
    places = list(_taps(size, kernel, stride, padding, ones, out))
    for block in _blocks(x.shape[0], math.prod(size)):
        part, target = x[block], result[block]
        for cells, windows in places:
            target[windows] += part[cells]
        if x.dtype.kind in "fV":
            target /= divisor.astype(result.dtype)
        else:
            target[...] = np.trunc(target / divisor)
    return result.astype(a.dtype, copy=False).reshape(*lead, *out)


def avg_pool_backward(
    grad: np.ndarray,
    input_size: Ints,
    kernel: Ints,
    stride: Ints,
    padding: Ints,
    count_include_pad: bool,
    divisor_override: int | None,
) -> np.ndarray:
    """The gradient of `avg_pool`: that of each window, shared among its cells."""
    dims = len(kernel)
    size = tuple(input_size)[len(input_size) - dims :]
    out = grad.shape[grad.ndim - dims :]
    g = _planes(grad, dims)
    divisor = _divisor(tuple(size), *map(tuple, (kernel, stride, padding, out)), count_include_pad, divisor_override)
    if g.size > LARGE and (fast := compiled.avg_pool2d_backward(g, divisor, size, kernel, stride, padding)) is not None:
        return fast.reshape(input_size)
    result = np.zeros_like(g, dtype=work_dtype(g.dtype), shape=(g.shape[0], *size), order="C")
    places = list(_taps(size, kernel, stride, padding, [1] * dims, out))
    for block in _blocks(g.shape[0], math.prod(size)):
        share = g[block] / divisor.astype(result.dtype)
        target = result[block]
        for cells, windows in places:
            target[cells] += share[windows]
    return result.astype(grad.dtype, copy=False).reshape(input_size)


@functools.lru_cache(maxsize=64)
def _divisor(
    size: Ints, kernel: Ints, stride: Ints, padding: Ints, out: Ints, include: bool, override: int | None
) -> np.ndarray:
    """What the sum of each window is divided by."""
    if override is not None:
        return np.asarray(float(override))
    result = np.ones((1,) * len(out))
    for d, n in enumerate(out):
        start = np.arange(n) * stride[d] - padding[d]
        stop = np.minimum(start + kernel[d], size[d] + padding[d])
        if not include:
            start, stop = np.maximum(start, 0), np.minimum(stop, size[d])
        result = result * (stop - start).reshape([-1 if i == d else 1 for i in range(len(out))])
    return result


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
    if samples.dtype != a.dtype:
        raise RuntimeError("Expect _random_samples to have the same dtype as input")
    if a.dtype.kind not in "fV":
        unsupported(f"fractional_max_pool{dims}d_out_frame", a.dtype)
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


@keeps_channels_last_of_images
def max_unpool(a: np.ndarray, indices: np.ndarray, output_size: Sequence[int]) -> np.ndarray:
    """The elements of `a` at their indices in images of zeros."""
    lead = a.shape[: a.ndim - len(output_size)]
    cells = math.prod(a.shape[len(lead) :])
    result = np.zeros_like(a, shape=(*lead, math.prod(output_size)), order="C")
    np.put_along_axis(result, indices.reshape(*lead, cells), a.reshape(*lead, cells), -1)
    return result.reshape(*lead, *output_size)


__all__ = [
    "adaptive_bounds",
    "adaptive_max_pool",
    "avg_pool",
    "avg_pool_backward",
    "check_adaptive_grad",
    "fractional_max_pool",
    "max_pool",
    "max_pool_backward",
    "max_pool_gather",
    "max_pool_indices",
    "max_unpool",
    "pooled_size",
]
