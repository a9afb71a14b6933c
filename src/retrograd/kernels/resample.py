"""Kernels that change the size of an image: interpolation, adaptive means, padding by the image itself.

All are linear and separable: along each dimension the new row is a matrix times the old one.  Where every row of the
matrix has a single one (nearest, padding) the elements are taken by index; else BLAS multiplies.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import compiled
from .pool import adaptive_bounds, avg_pool, avg_pool_backward, check_adaptive_grad
from .products import matmul
from .promotion import unsupported, work_dtype
from .storage import has_channels_last, keeps_channels_last, with_channels_last

Ints = Sequence[int]

# ------------------------------------------------------------------------------------------------ one dimension


def _scale(size: int, out: int, align_corners: bool, scale: float | None) -> float:
    """How far the source moves for one step of the result."""
    if align_corners:
        return (size - 1) / (out - 1) if out > 1 else 0.0
    return 1.0 / scale if scale is not None and scale > 0 else size / out


def _nearest(size: int, out: int, scale: float | None, exact: bool) -> np.ndarray:
    """The index of the source of each element; in single precision, as torch has it."""
    factor = np.float32(_scale(size, out, False, scale))
    places = np.arange(out, dtype=np.float32)
    if exact:
        places = places + np.float32(0.5)
    return np.minimum((places * factor).astype(np.int64), size - 1)


def _linear(size: int, out: int, align_corners: bool, scale: float | None) -> np.ndarray:
    factor = _scale(size, out, align_corners, scale)
    places = np.arange(out) * factor if align_corners else np.maximum((np.arange(out) + 0.5) * factor - 0.5, 0)
    low = np.minimum(places.astype(np.int64), size - 1)
    high = np.minimum(low + 1, size - 1)
    part = np.clip(places - low, 0, 1)
    matrix = np.zeros((out, size))
    rows = np.arange(out)
    np.add.at(matrix, (rows, low), 1 - part)
    np.add.at(matrix, (rows, high), part)
    return matrix


def _cubic(size: int, out: int, align_corners: bool, scale: float | None) -> np.ndarray:
    factor = _scale(size, out, align_corners, scale)
    places = np.arange(out) * factor if align_corners else (np.arange(out) + 0.5) * factor - 0.5
    low = np.floor(places).astype(np.int64)
    part = places - low
    matrix = np.zeros((out, size))
    rows = np.arange(out)
    for tap in range(-1, 3):
        weight = cubic_weight(np.abs(part - tap))
        np.add.at(matrix, (rows, np.clip(low + tap, 0, size - 1)), weight)
    return matrix


def cubic_weight(distance: np.ndarray, a: float = -0.75) -> np.ndarray:
    """Keys' cubic convolution kernel."""
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0.0))


#: By the kind of filter: how far it reaches, and its weights.
_FILTERS: dict[str, tuple[float, Callable[[np.ndarray], np.ndarray]]] = {
    "linear": (1.0, lambda distance: np.maximum(1 - distance, 0)),
    "cubic": (2.0, lambda distance: cubic_weight(distance, -0.5)),
    "lanczos": (3.0, lambda distance: np.where(distance < 3, np.sinc(distance) * np.sinc(distance / 3), 0.0)),
}


def _antialiased(size: int, out: int, align_corners: bool, scale: float | None, kind: str) -> np.ndarray:
    factor = _scale(size, out, align_corners, scale)
    stretch = max(factor, 1.0)
    reach, weights = _FILTERS[kind]
    support = reach * stretch
    matrix = np.zeros((out, size))
    for i in range(out):
        center = factor * (i + 0.5)
        first = max(int(center - support + 0.5), 0)
        last = min(int(center + support + 0.5), size)
        distance = np.abs((np.arange(first, last) - center + 0.5) / stretch)
        weight = weights(distance)
        total = weight.sum()
        matrix[i, first:last] = weight / total if total else weight
    return matrix


def _means(size: int, out: int) -> np.ndarray:
    matrix = np.zeros((out, size))
    for i, (first, last) in enumerate(adaptive_bounds(size, out)):
        matrix[i, first:last] = 1 / (last - first)
    return matrix


def _reflected(size: int, before: int, after: int) -> np.ndarray:
    places = np.abs(np.arange(-before, size + after))
    return np.where(places >= size, 2 * (size - 1) - places, places)


def _replicated(size: int, before: int, after: int) -> np.ndarray:
    return np.clip(np.arange(-before, size + after), 0, size - 1)


@functools.lru_cache(64)
def _map(mode: str, size: int, out: int, align_corners: bool, scale: float | None, dtype: np.dtype) -> np.ndarray:
    """The matrix of one dimension, or the indices of its elements' sources."""
    if mode in ("nearest", "nearest-exact"):
        return _nearest(size, out, scale, mode == "nearest-exact")
    if mode in ("reflect", "replicate"):
        before = int(scale or 0)  # the padding in front stands where the scale does
        make: Callable[..., Any] = _reflected if mode == "reflect" else _replicated
        return make(size, before, out - size - before)
    if mode == "area":
        return _means(size, out).astype(dtype)
    if mode.startswith("antialias"):
        return _antialiased(size, out, align_corners, scale, mode.removeprefix("antialias-")).astype(dtype)
    make = _cubic if mode == "cubic" else _linear
    return make(size, out, align_corners, scale).astype(dtype)


# ------------------------------------------------------------------------------------------------ all dimensions


@keeps_channels_last
def resample(
    a: np.ndarray, output_size: Ints, mode: str, align_corners: bool, scales: Sequence[float | None]
) -> np.ndarray:
    """`a` with its last dimensions brought to `output_size`, each by the map that `mode` names."""
    dims = len(output_size)
    size = a.shape[a.ndim - dims :]
    byte = a.dtype == np.uint8
    if a.dtype.kind not in "fcVW" and mode not in ("nearest", "nearest-exact", "reflect", "replicate"):
        if not (byte and len(output_size) == 2 and mode.removeprefix("antialias-") in _FILTERS):
            unsupported(f"upsample_{mode}", a.dtype)
    if 0 in output_size or not a.size:
        return np.zeros_like(a, shape=(*a.shape[: a.ndim - dims], *output_size), order="C")
    wide = np.dtype(np.float32) if byte else work_dtype(a.dtype)
    x = a
    for d in reversed(range(dims)) if byte else range(dims):
        source = _map(mode, size[d], output_size[d], align_corners, scales[d], wide)
        axis = a.ndim - dims + d
        if source.ndim == 1:
            if not _is_identity(source, size[d]):
                x = x.take(source, axis)
        elif not _is_identity_matrix(source):
            x = _multiply(x.astype(wide, copy=False), source, axis)
            if byte:  # as torch's, one dimension after the other is rounded
                x = np.clip(np.floor(x + np.float32(0.5)), 0, 255)
    return x.astype(a.dtype, order="C", copy=x is a)


#: Where gradients, too, keep the channels innermost: torch's other kernels of this kind know one layout of them.
_KEEPING_GRADIENTS = {
    ("nearest", 2), ("nearest-exact", 2), ("linear", 2), ("linear", 3), ("antialias-linear", 2), ("area", 2),
}  # fmt: skip


def resample_backward(
    grad: np.ndarray, input_size: Ints, mode: str, align_corners: bool, scales: Sequence[float | None]
) -> np.ndarray:
    """The gradient of `resample`: the transposed matrices."""
    dims = len(scales)
    size = tuple(input_size)[len(input_size) - dims :]
    if not grad.size or 0 in input_size:
        return np.zeros_like(grad, shape=tuple(input_size), order="C")
    wide = work_dtype(grad.dtype)
    x = grad
    out = grad.shape[grad.ndim - dims :]
    for d in range(dims - 1, -1, -1):
        source = _map(mode, size[d], out[d], align_corners, scales[d], wide)
        axis = grad.ndim - dims + d
        if source.ndim == 1:
            if _is_identity(source, size[d]):
                continue
            matrix = np.zeros((len(source), size[d]), wide)
            matrix[np.arange(len(source)), source] = 1
            source = matrix
        elif _is_identity_matrix(source):
            continue
        x = _multiply(x.astype(wide, copy=False), source.T, axis)
    x = x.astype(grad.dtype, order="C", copy=x is grad)
    if (mode, dims) in _KEEPING_GRADIENTS and not grad.flags.c_contiguous and has_channels_last(grad):
        return with_channels_last(x)
    return x


def _multiply(x: np.ndarray, matrix: np.ndarray, axis: int) -> np.ndarray:
    """`matrix` times every row of `x` along `axis`."""
    out, size = matrix.shape
    after = math.prod(x.shape[axis + 1 :])
    shape = (*x.shape[:axis], out, *x.shape[axis + 1 :])
    if not np.isfinite(np.add.reduce(x, None)):
        return _multiply_sparsely(x.reshape(-1, size, after), matrix).reshape(shape)
    if after == 1:
        return np.matmul(x.reshape(-1, size), matrix.T).reshape(shape)
    return np.matmul(matrix, x.reshape(-1, size, after)).reshape(shape)


def _multiply_sparsely(x: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """The same, where a NaN or infinity must not meet the zeros of the matrix."""
    result = np.empty_like(x, shape=(x.shape[0], len(matrix), x.shape[2]))
    for row, weights in enumerate(matrix):
        (used,) = np.nonzero(weights)
        result[:, row] = np.add.reduce(x[:, used] * weights[used, None], 1)
    return result


def _is_identity(source: np.ndarray, size: int) -> bool:
    return len(source) == size and bool((source == np.arange(size)).all())


def _is_identity_matrix(matrix: np.ndarray) -> bool:
    return matrix.shape[0] == matrix.shape[1] and bool((matrix == np.eye(matrix.shape[0])).all())


def adaptive_avg_pool(a: np.ndarray, output_size: Ints) -> np.ndarray:
    """The means of the windows that divide the last dimensions into `output_size` parts."""
    if a.dtype.kind not in "fV":
        unsupported(f"adaptive_avg_pool{len(output_size)}d", a.dtype)
    if a.ndim == 5:  # torch has no other layout for these
        a = np.ascontiguousarray(a)
    if (kernel := _whole_windows(a, a.shape[-2:], output_size)) is not None:
        return avg_pool(a, kernel, kernel, (0, 0), False, True, None)
    return resample(a, output_size, "area", False, (None,) * len(output_size))


def _whole_windows(a: np.ndarray, size: Ints, output_size: Ints) -> list[int] | None:
    """The size of windows of planes that are all alike, where compiled kernels take their means; else None."""
    if len(output_size) != 2 or a.size <= compiled.LARGE or not compiled.takes(a):
        return None
    if any(m == 0 or n % m for n, m in zip(size, output_size)):
        return None
    return [n // m for n, m in zip(size, output_size)]


def adaptive_avg_pool_backward(grad: np.ndarray, input_size: Ints, dims: int) -> np.ndarray:
    """The gradient of `adaptive_avg_pool`."""
    check_adaptive_grad(f"adaptive_avg_pool{dims}d_backward", grad.shape)
    if (kernel := _whole_windows(grad, input_size[-2:], grad.shape[-dims:])) is not None:
        return avg_pool_backward(grad, input_size, kernel, kernel, (0, 0), True, None)
    return resample_backward(grad, input_size, "area", False, (None,) * dims)


# ------------------------------------------------------------------------------------------------ pixels and channels


@keeps_channels_last
def pixel_shuffle(a: np.ndarray, upscale_factor: int) -> np.ndarray:
    """(..., C * r * r, H, W) as (..., C, H * r, W * r)."""
    r = upscale_factor
    if a.ndim < 3:
        raise RuntimeError(
            f"pixel_shuffle expects input to have at least 3 dimensions, but got input with {a.ndim} dimension(s)"
        )
    if r <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {r}")
    if r * r >= 1 << 63:
        raise ValueError(f"upscale factor is too large, (upscale_factor)^2 overflowed: upscale_factor={r}")
    *lead, c, h, w = a.shape
    if c % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, "
            f"but input.size(-3)={c} is not divisible by {r * r}"
        )
    split = a.reshape(*lead, c // (r * r), r, r, h, w)
    n = len(lead)
    moved = split.transpose(*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return np.array(moved, order="C").reshape(*lead, c // (r * r), h * r, w * r)


@keeps_channels_last
def pixel_unshuffle(a: np.ndarray, downscale_factor: int) -> np.ndarray:
    """(..., C, H * r, W * r) as (..., C * r * r, H, W)."""
    r = downscale_factor
    if a.ndim < 3:
        raise RuntimeError(
            f"pixel_unshuffle expects input to have at least 3 dimensions, but got input with {a.ndim} dimension(s)"
        )
    if r <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {r}")
    *lead, c, h, w = a.shape
    for name, value, dim in (("height", h, -2), ("width", w, -1)):
        if value % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but input.size({dim})={value} is "
                f"not divisible by {r}"
            )
    split = a.reshape(*lead, c, h // r, r, w // r, r)
    n = len(lead)
    moved = split.transpose(*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return np.array(moved, order="C").reshape(*lead, c * r * r, h // r, w // r)


def cubic(x: np.ndarray, a: float, b: float, c: float, d: float) -> np.ndarray:
    """The polynomial ``a x^3 + b x^2 + c x + d``."""
    return np.asarray(((x * a + b) * x + c) * x + d)


def affine_base(size: Sequence[int], align_corners: bool, dtype: Any) -> np.ndarray:
    """The places of a regular grid with a 1 after each, one in a row."""
    axes = []
    for n in size[2:]:
        steps = np.linspace(-1, 1, n) if n > 1 else np.zeros(1)
        axes.append(steps if align_corners else steps * ((n - 1) / n))
    places = np.meshgrid(*axes, indexing="ij")
    base = np.stack([*places[::-1], np.ones(tuple(size[2:]))], -1)
    return base.astype(dtype).reshape(1, -1, len(size) - 1)


def affine_grid_generator(theta: np.ndarray, size: Sequence[int], align_corners: bool) -> np.ndarray:
    """The places that affine maps make of a regular grid."""
    places = matmul(affine_base(size, align_corners, theta.dtype), theta.swapaxes(1, 2))
    return places.reshape(size[0], *size[2:], len(size) - 2)


def channel_shuffle(a: np.ndarray, groups: int) -> np.ndarray:
    """The channels of `groups` groups, interleaved."""
    split = a.reshape(a.shape[0], groups, a.shape[1] // groups, *a.shape[2:])
    return np.ascontiguousarray(split.swapaxes(1, 2)).reshape(a.shape)


__all__ = [
    "affine_base",
    "affine_grid_generator",
    "channel_shuffle",
    "adaptive_avg_pool",
    "adaptive_avg_pool_backward",
    "cubic",
    "pixel_shuffle",
    "pixel_unshuffle",
    "resample",
    "resample_backward",
]
