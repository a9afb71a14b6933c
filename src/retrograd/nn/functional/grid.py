"""Sampling at places of a grid; part of ``functional``.  Made of other operators, so that all derivatives follow."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.where import users_level
from ...kernels.promotion import is_half, scalar_name, unsupported
from ...ops import namespace as ops
from ...tensor import Tensor, wrap


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The places of `grid_sample` that an affine map of (batch, 2, 3) or (batch, 3, 4) makes of a regular grid.

    >>> import retrograd as torch
    >>> theta = torch.tensor([[[1., 0., 0.], [0., 1., 0.]]])
    >>> torch.nn.functional.affine_grid(theta, (1, 1, 1, 2), align_corners=True)
    tensor([[[[-1.,  0.],
              [ 1.,  0.]]]])
    """
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please "
            "specify align_corners=True if the old behavior is desired. See the documentation of grid_sample for "
            "details.",
            stacklevel=users_level(),
        )
        align_corners = False
    if theta._data.dtype.kind not in "fV":
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    dims = len(size) - 2
    if dims not in (2, 3):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size "
            f"{tuple(size)}."
        )
    if theta._data.shape[1:] != (dims, dims + 1) or theta._data.ndim != 3:
        raise ValueError(
            f"Expected a batch of {dims}D affine matrices of shape Nx{dims}x{dims + 1} for size {tuple(size)}. Got "
            f"{theta.shape}."
        )
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {tuple(size)}")
    axes = []
    for n in size[2:]:
        steps = np.linspace(-1, 1, n) if n > 1 else np.zeros(1)
        axes.append(steps if align_corners else steps * ((n - 1) / n))
    places = np.meshgrid(*axes, indexing="ij")
    base = np.stack([*places[::-1], np.ones(tuple(size[2:]))], -1).astype(theta._data.dtype)
    flat = wrap(base.reshape(1, -1, dims + 1))
    return flat.matmul(theta.transpose(1, 2)).reshape((size[0], *size[2:], dims))


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """`input` (batch, channels, ...) at the places of `grid` (batch, ..., 2 or 3), which go from -1 to 1.

    >>> import retrograd as torch
    >>> image = torch.tensor([[[[1., 3.]]]])
    >>> torch.nn.functional.grid_sample(image, torch.zeros(1, 1, 1, 2), align_corners=True)
    tensor([[[[2.]]]])
    """
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ValueError(
            "nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: "
            f"'{mode}'"
        )
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
            f"'{padding_mode}'"
        )
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please "
            "specify align_corners=True if the old behavior is desired. See the documentation of grid_sample for "
            "details.",
            stacklevel=users_level(),
        )
        align_corners = False
    _check(input, grid, mode)
    if input._data.dtype.kind not in "fV":
        unsupported("grid_sampler_2d_cpu_kernel_impl" if input.ndim == 4 else "grid_sampler3d_cpu", input._data.dtype)
    if input._data.dtype != grid._data.dtype:
        names = scalar_name(input._data.dtype), scalar_name(grid._data.dtype)
        raise RuntimeError("expected scalar type {} but found {}".format(*names))
    if is_half(input._data.dtype):  # places need more precision than such elements have
        return grid_sample(input.float(), grid.float(), mode, padding_mode, align_corners).to(input.dtype)
    sizes = input._data.shape[2:]
    dims = len(sizes)
    places = []
    for d in range(dims):
        place, n = grid.select(-1, dims - 1 - d), sizes[d]
        place = (place + 1) * ((n - 1) / 2) if align_corners else ((place + 1) * n - 1) / 2
        if mode != "bicubic":
            place = _inside(place, n, padding_mode, align_corners)
        places.append(place)
    if mode == "nearest":
        rounded = [np.rint(place._data) for place in places]
        found = _at(input, rounded, sizes, "zeros", align_corners)
        # The gradient for the places is zero, not absent.
        return found + (places[0] * 0).unsqueeze(1) if grid.requires_grad else found
    low = [np.floor(place._data) for place in places]
    parts = [place - wrap(first) for place, first in zip(places, low, strict=True)]
    taps = (-1, 0, 1, 2) if mode == "bicubic" else (0, 1)
    weights = [{tap: _weight(part, tap, mode) for tap in taps} for part in parts]
    padding = padding_mode if mode == "bicubic" else "zeros"
    result: Any = None
    for corner in itertools.product(taps, repeat=dims):
        weight: Any = 1
        for d, tap in enumerate(corner):
            weight = weights[d][tap] * weight
        cells = _at(input, [low[d] + tap for d, tap in enumerate(corner)], sizes, padding, align_corners)
        term = cells * weight.unsqueeze(1)
        result = term if result is None else result + term
    return result


def _weight(part: Tensor, tap: int, mode: str) -> Tensor:
    """The weight of the cell `tap` steps from the one before the place."""
    if mode == "bilinear":
        return part if tap else 1 - part
    a = -0.75
    distance = part - tap if tap <= 0 else tap - part
    if tap in (0, 1):
        return ops._cubic(distance, a + 2, -(a + 3), 0, 1)
    return ops._cubic(distance, a, -5 * a, 8 * a, -4 * a)


def _inside(place: Tensor, n: int, padding: str, align_corners: bool) -> Tensor:
    """Places outside the image brought into it, as the padding says."""
    if padding == "reflection":
        low, span = (0.0, n - 1.0) if align_corners else (-0.5, float(n))
        if span <= 0:
            return place * 0
        moved = (place - low).abs()
        turns = np.floor(moved._data / span)
        odd = wrap(turns % 2 == 1)
        rest = moved - wrap(turns * span)
        place = ops.where(odd, span - rest, rest) + low
    if padding == "zeros":
        return place
    lost = np.isnan(place._data)
    return (place.masked_fill(wrap(lost), 0.0) if lost.any() else place).clamp(0, n - 1)


def _at(input: Tensor, cells: list[Any], sizes: Sequence[int], padding: str, align_corners: bool) -> Tensor:
    """The elements at whole-numbered places; zero outside."""
    shape = input._data.shape
    flat = np.zeros(cells[0].shape, np.int64)
    known = np.ones(cells[0].shape, bool)
    for cell, n in zip(cells, sizes, strict=True):
        if padding != "zeros":
            cell = np.rint(_inside(wrap(np.asarray(cell)), n, padding, align_corners)._data)
        known &= (cell >= 0) & (cell < n)
        flat = flat * n + np.clip(np.nan_to_num(cell), 0, n - 1).astype(np.int64)
    out = (shape[0], shape[1], flat[0].size)
    index = np.broadcast_to(flat.reshape(shape[0], 1, -1), out)
    found = input.reshape((*shape[:2], -1)).gather(2, wrap(index.copy()))
    if not known.all():
        found = found.masked_fill(wrap(~known.reshape(shape[0], 1, -1)), 0)
    return found.reshape((*shape[:2], *flat.shape[1:]))


def _check(input: Tensor, grid: Tensor, mode: str) -> None:
    shape, places = input._data.shape, grid._data.shape
    if len(shape) not in (4, 5) or len(places) != len(shape):
        raise RuntimeError(
            "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but got input with "
            f"sizes {list(shape)} and grid with sizes {list(places)}"
        )
    if shape[0] != places[0]:
        raise RuntimeError(
            f"grid_sampler(): expected grid and input to have same batch size, but got input with sizes {list(shape)} "
            f"and grid with sizes {list(places)}"
        )
    if places[-1] != len(shape) - 2:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {len(shape) - 2} in last dimension, but got grid with sizes "
            f"{list(places)}"
        )
    if mode == "bicubic" and len(shape) != 4:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
