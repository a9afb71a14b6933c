"""Products of matrices and convolutions by the compiled kernels; see compiled.py.

Work is divided here: into how many tasks, of what, on how many threads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy import ndarray

from retrograd.core.threads import threads

from .compiled import SUFFIXES, is_used, library, run_on, sizes_array, takes, worth

# --------------------------------------------------------------------------------------------------------- products


#: Multiply-adds that are worth a thread.
PRODUCT_GRAIN = 1 << 18


def product(a: ndarray, b: ndarray, bias: ndarray | None = None) -> ndarray | None:
    """``a @ b + bias`` of matrices, or of batches of them in one or two dimensions; any strides."""
    return library().product(a, b, bias, threads[0]) if is_used() else None


def packed(b: ndarray, many: int) -> ndarray:
    """A matrix of float32 or float64 as the panels that products read it in, made by `many` threads."""
    found, dtype = library(), b.dtype
    panel = found.PANEL_f32 if SUFFIXES[dtype] == "_f32" else found.PANEL_f64
    k, n = b.shape
    panels, depth = -(-n // panel), 1536 // dtype.itemsize
    out = np.empty(k * panels * panel, dtype)
    sizes = np.zeros(15, np.int64)
    sizes[[1, 2, 5, 6]] = n, k, b.strides[0] // dtype.itemsize, b.strides[1] // dtype.itemsize
    run_on(min(many, worth(b.size)), "gemm_pack", dtype, -(-k // depth) * panels, b, out, sizes)
    return out


# ------------------------------------------------------------------------------------------------------ convolution


def _conv(
    images: int, groups: int, channels: int, size: Sequence[int], outputs: int, kernel: Sequence[int],
    stride: Sequence[int], before: Sequence[int], dilation: Sequence[int], out: Sequence[int], parts: int,
) -> ndarray:  # fmt: skip
    """The sizes of a convolution as the kernels have them; one dimension is a plane of one row."""
    if len(size) == 1:
        size, kernel, stride, before = (1, *size), (1, *kernel), (1, *stride), (0, *before)
        dilation, out = (1, *dilation), (1, *out)
    return sizes_array([images, groups, channels, *size, outputs, *kernel, *stride, *before, *dilation, *out, parts])


def _parts(tasks: int, most: int) -> int:
    """Into how many parts, at most `most`, each of `tasks` is divided so that all threads have something to do."""
    parts = 1
    while parts * 2 <= most and tasks * parts < 4 * threads[0] and (tasks * parts) % threads[0]:
        parts *= 2
    return parts


def _is_plane(size: Sequence[int], *arrays: ndarray) -> bool:
    return len(size) <= 2 and all([0 not in a.shape for a in arrays]) and takes(*arrays)


def convolution(
    x: ndarray, weight: ndarray, bias: ndarray | None, stride: Sequence[int], before: Sequence[int],
    dilation: Sequence[int], groups: int, out: Sequence[int],
) -> ndarray | None:  # fmt: skip
    """The convolution of images, of which `before` cells are added (or, if negative, cut off) at the beginning of each
    dimension, and as many at the end as `out` windows need."""
    if not _is_plane(out, x, weight) or not (bias is None or takes(bias)) or 0 in out:
        return None
    found, dtype = library(), x.dtype
    images, outputs, each = len(x), len(weight) // groups, weight.shape[1]
    products, tile_rows = math.prod(weight.shape[1:]), found.TILE_ROWS
    tiles = -(-outputs // tile_rows)
    result = np.empty((images, len(weight), *out), dtype)
    many = min(threads[0], max(1, result.size * products // PRODUCT_GRAIN))
    sizes = _conv(
        images, groups, each, x.shape[2:], outputs, weight.shape[2:], stride, before, dilation, out,
        _parts(images * groups, tiles),
    )  # fmt: skip
    packed = np.empty(groups * tiles * products * tile_rows, dtype)
    run_on(worth(packed.size), "conv_pack", dtype, groups * tiles, weight, packed, sizes)
    run_on(many, "conv_forward", dtype, images * groups * int(sizes[-1]), x, packed, bias, result, sizes)
    return result


def convolution_weight(
    grad: ndarray, x: ndarray, weight_size: Sequence[int], stride: Sequence[int], before: Sequence[int],
    dilation: Sequence[int], groups: int,
) -> ndarray | None:  # fmt: skip
    """The gradient of `convolution` for its weight."""
    if not _is_plane(weight_size[2:], grad, x):
        return None
    found, dtype = library(), x.dtype
    suffix = SUFFIXES[dtype]
    images, outputs, each = len(x), weight_size[0] // groups, weight_size[1]
    products = math.prod(weight_size[1:])
    result = np.empty(weight_size, dtype)
    many = min(threads[0], max(1, grad.size * products // PRODUCT_GRAIN))

    def sizes(parts: int) -> ndarray:
        return _conv(
            images, groups, each, x.shape[2:], outputs, weight_size[2:], stride, before, dilation, grad.shape[2:], parts
        )

    if outputs == 1 == each:
        run_on(many, "conv_weight_depthwise", dtype, groups, grad, x, result, sizes(1))
        return result
    chunks = min(images, -(-2 * many // groups))
    parts = min(products, -(-many // (chunks * groups)))
    described = sizes(parts)
    lanes = found.LANES_f32 if suffix == "_f32" else found.LANES_f64
    sums = np.empty(chunks * groups * products * -(-outputs // lanes) * lanes, dtype)
    run_on(many, "conv_weight", dtype, chunks * groups * parts, grad, x, sums, described, chunks)
    run_on(worth(sums.size), "conv_weight_sum", dtype, groups * products, sums, result, described, chunks)
    return result
