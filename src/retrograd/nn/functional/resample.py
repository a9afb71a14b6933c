"""Padding, interpolation and sampling at places of a grid; part of ``functional``.

The sampling is made of other operators, so that all its derivatives follow.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._generated import functions as generated
from ...core.where import users_level
from ...kernels.promotion import is_half, scalar_name, unsupported
from ...ops import namespace as ops
from ...ops.registry import composite
from ...tensor import Tensor, wrap
from . import pool

# --------------------------------------------------------------------------------------------------------------- pad


@composite(space="nn.functional")
def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """`input` made larger: two numbers a dimension, the last dimension first; what is negative crops.

    The modes: "constant" (`value` around it), "reflect", "replicate" (the edge, repeated), "circular".

    >>> import retrograd as torch
    >>> torch.nn.functional.pad(torch.tensor([[1., 2., 3.]]), (1, 1), mode="reflect")
    tensor([[2., 1., 2., 3., 2.]])
    """
    sides = tuple([int(p) for p in pad])
    if len(sides) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    shape = input._memory_.shape
    if len(sides) > 2 * len(shape):
        raise RuntimeError(
            f"Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(sides)} and input of dimension {len(shape)}"
        )
    if mode == "constant":
        return generated.constant_pad_nd(input, sides, 0 if value is None else value)
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    dims = len(sides) // 2
    if dims not in (1, 2, 3) or len(shape) not in (dims + 1, dims + 2):
        raise NotImplementedError(
            "Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now"
            if mode in ("reflect", "replicate", "circular") and dims not in (1, 2, 3)
            else f"Padding size {len(sides)} is not supported for {len(shape)}D input tensor."
            if mode in ("reflect", "replicate", "circular")
            else f"Unrecognised padding mode {mode}"
        )
    if mode == "circular":
        return _circular(input, sides)
    if mode not in ("reflect", "replicate"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    batched = len(shape) == dims + 2
    if 0 in (shape[1:] if batched else shape):
        raise RuntimeError(
            f"Expected {dims + 1}D or {dims + 2}D (batch mode) tensor with possibly 0 batch size and other non-zero "
            f"dimensions for input, but got: {list(shape)}"
        )
    size = shape[len(shape) - dims :]
    before, after = sides[-2::-2], sides[-1::-2]
    for d, (s, b, a) in enumerate(zip(size, before, after, strict=True)):
        if mode == "reflect" and (b >= s or a >= s):
            raise RuntimeError(
                "Argument #4: Padding size should be less than the corresponding input dimension, but got: padding "
                f"({b}, {a}) at dimension {len(shape) - dims + d} of input {list(shape)}"
            )
        if s + b + a < 1:
            letter = "DHW"[3 - dims + d]
            raise RuntimeError(f"input ({letter}: {s}) is too small. Calculated output {letter}: {s + b + a}")
    out = tuple([s + b + a for s, b, a in zip(size, before, after, strict=True)])
    kind = "reflection" if mode == "reflect" else "replication"
    return getattr(generated, f"_{kind}_pad{dims}d_map")(input, out, mode, False, before)


def _circular(input: Tensor, sides: tuple[int, ...]) -> Tensor:
    """Around each dimension, what is at its other end."""
    ndim = input._memory_.ndim
    for d in range(len(sides) // 2):
        dim = ndim - 1 - d
        size, before, after = input._memory_.shape[dim], sides[2 * d], sides[2 * d + 1]
        if before > size or after > size:
            raise RuntimeError("Padding value causes wrapping around more than once.")
        if size + before + after < 0:
            raise RuntimeError("Negative padding value is resulting in an empty dimension.")
        start = max(-before, 0)
        size += min(before, 0) + min(after, 0)
        kept = input.narrow(dim, start, size)
        parts = [kept.narrow(dim, size - before, before)] if before > 0 else []
        parts += [kept, kept.narrow(dim, 0, after)] if after > 0 else [kept]
        input = ops.cat(parts, dim) if len(parts) > 1 else parts[0].clone()
    return input


# ------------------------------------------------------------------------------------------------------- interpolate

_RANK = {"linear": 3, "bilinear": 4, "bicubic": 4, "lanczos": 4, "trilinear": 5}
_MODES = "nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact"


@composite(space="nn.functional")
def interpolate(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """`input` (batch, channels, ...) brought to `size`, or scaled by `scale_factor`.

    >>> import retrograd as torch
    >>> torch.nn.functional.interpolate(torch.tensor([[[1., 2.]]]), scale_factor=2)
    tensor([[[1., 1., 2., 2.]]])
    """
    if input._memory_.dtype.kind in "bic":
        unsupported(f"upsample_{mode}", input._memory_.dtype)
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError(
                "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | "
                "trilinear"
            )
    shape = input._memory_.shape
    dims = len(shape) - 2
    out, scales = _output_size(shape, size, scale_factor, recompute_scale_factor)
    corners = bool(align_corners)
    if antialias and not (mode in ("bilinear", "bicubic", "lanczos") and len(shape) == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input"
        )
    if dims not in (1, 2, 3) or (mode not in _RANK and mode not in ("nearest", "nearest-exact", "area")):
        raise NotImplementedError(
            f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {len(shape)}D) for the modes: {_MODES} "
            f"(got {mode})"
        )
    rank = _RANK.get(mode, len(shape))
    if rank != len(shape):
        raise NotImplementedError(f"Got {len(shape)}D input, but {mode} mode needs {rank}D input")
    if mode == "area":
        functions: Any = (pool.adaptive_avg_pool1d, pool.adaptive_avg_pool2d, pool.adaptive_avg_pool3d)
        return functions[dims - 1](input, out)
    if any(s <= 0 for s in (*shape[2:], *out)):
        sizes = [", ".join(f"{'DHW'[3 - dims + d]}: {s}" for d, s in enumerate(part)) for part in (shape[2:], out)]
        raise RuntimeError(
            f"Input and output sizes should be greater than 0, but got input ({sizes[0]}) output ({sizes[1]})"
        )
    if mode in ("nearest", "nearest-exact"):
        function = getattr(generated, f"_upsample_{mode.replace('-', '_')}{dims}d")
        return function(input, out, mode, False, scales)
    if mode == "lanczos" and (corners or not antialias):
        raise ValueError(
            "Lanczos mode does not support align_corners=True" if corners else "Lanczos mode requires antialias=True"
        )
    kind = "cubic" if mode == "bicubic" else "lanczos" if mode == "lanczos" else "linear"
    if antialias:
        kind = f"antialias-{kind}"
    function = getattr(generated, f"_upsample_{mode}{dims}d{'_aa' if antialias else ''}")
    return function(input, out, kind, corners, scales)


def _is_size(value: Any) -> bool:
    """Is it an int, or a tensor that is one?"""
    if isinstance(value, Tensor):
        return value.ndim == 0 and value._memory_.dtype.kind in "iu"
    return hasattr(value, "__index__") and not isinstance(value, bool)


def _output_size(
    shape: Sequence[int], size: Any, scale_factor: Any, recompute: bool | None
) -> tuple[tuple[int, ...], tuple[float | None, ...]]:
    """The spatial sizes of the result, and the scales to compute with (None: by the sizes)."""
    dims = len(shape) - 2
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is not None:
        if recompute:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        if isinstance(size, (list, tuple)) and not all([_is_size(s) for s in size]):
            raise TypeError(
                "expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, int], but got size "
                f"with types {[type(s) for s in size]}"
            )
        if not isinstance(size, (list, tuple)) and not _is_size(size):
            raise TypeError(
                f"interpolate(): argument 'size' (position 2) must be tuple of ints, not {type(size).__name__}"
            )
        out = tuple(int(s) for s in size) if isinstance(size, (list, tuple)) else (int(size),) * dims
        if len(out) != dims:
            raise ValueError(
                f"Input and output must have the same number of spatial dimensions, but got input with spatial "
                f"dimensions of {list(shape[2:])} and output size of {size}. Please provide input tensor in (N, C, d1, "
                "d2, ...,dK) format and output size in (o1, o2, ...,oK) format."
            )
        return out, (None,) * dims
    if scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    scales = tuple(scale_factor) if isinstance(scale_factor, (list, tuple)) else (scale_factor,) * dims
    if len(scales) != dims:
        raise ValueError(
            f"Input and scale_factor must have the same number of spatial dimensions, but got input with spatial "
            f"dimensions of {list(shape[2:])} and scale_factor of shape {scale_factor}. Please provide input tensor in "
            "(N, C, d1, d2, ...,dK) format and scale_factor in (s1, s2, ...,sK) format."
        )
    out = tuple([math.floor(float(s) * float(f)) for s, f in zip(shape[2:], scales, strict=True)])
    return out, (None,) * dims if recompute else tuple([float(f) for f in scales])


@composite(space="nn.functional")
def upsample(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Tensor:
    """`interpolate`, by its old name."""
    warnings.warn(
        "`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=users_level()
    )
    return interpolate(input, size, scale_factor, mode, align_corners)


@composite(space="nn.functional")
def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` in mode "nearest", by an old name."""
    warnings.warn(
        "`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=users_level(),
    )
    return interpolate(input, size, scale_factor, "nearest")


@composite(space="nn.functional")
def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` in mode "bilinear", corners aligned, by an old name."""
    warnings.warn(
        "`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=users_level(),
    )
    return interpolate(input, size, scale_factor, "bilinear", align_corners=True)


# ------------------------------------------------------------------------------------------------------ pixel_shuffle


@composite("torch.pixel_shuffle", space="nn.functional")
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Channels made into pixels: (..., C * r * r, H, W) to (..., C, H * r, W * r).

    >>> import retrograd as torch
    >>> torch.nn.functional.pixel_shuffle(torch.arange(4.).reshape(4, 1, 1), 2)
    tensor([[[0., 1.],
             [2., 3.]]])
    """
    return generated.pixel_shuffle(input, upscale_factor)


@composite("torch.pixel_unshuffle", space="nn.functional")
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Pixels made into channels: (..., C, H * r, W * r) to (..., C * r * r, H, W)."""
    return generated.pixel_unshuffle(input, downscale_factor)


@composite("native_channel_shuffle", "torch.channel_shuffle", "torch.native_channel_shuffle", space="nn.functional")
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """The channels of `groups` groups, interleaved."""
    shape = input._memory_.shape
    if len(shape) < 3:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(shape)}")
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    if shape[1] % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {shape[1]} channels and {groups} groups."
        )
    return generated.channel_shuffle(input, groups)


@composite(space="nn.functional")
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
    if theta._memory_.dtype.kind not in "fV":
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    dims = len(size) - 2
    if dims not in (2, 3):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size "
            f"{tuple(size)}."
        )
    if theta._memory_.shape[1:] != (dims, dims + 1) or theta._memory_.ndim != 3:
        raise ValueError(
            f"Expected a batch of {dims}D affine matrices of shape Nx{dims}x{dims + 1} for size {tuple(size)}. Got "
            f"{theta.shape}."
        )
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {tuple(size)}")
    if align_corners and 1 in size[2:]:
        warnings.warn(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when align_corners=True: their "
            "only place is the middle, 0, not the edge, -1. See the documentation of affine_grid for details.",
            stacklevel=users_level(),
        )
    if theta._memory_.shape[0] != size[0]:
        raise RuntimeError(
            f"Expected a batch of {size[0]} affine matrices for size {tuple(size)}, but got {theta._memory_.shape[0]}"
        )
    return generated._affine_grid_generator(theta, tuple(size), bool(align_corners))


@composite(space="nn.functional")
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
    if input._memory_.dtype.kind not in "fV":
        kernel = "grid_sampler_2d_cpu_kernel_impl" if input.ndim == 4 else "grid_sampler3d_cpu"
        unsupported(kernel, input._memory_.dtype)
    if input._memory_.dtype != grid._memory_.dtype:
        names = scalar_name(input._memory_.dtype), scalar_name(grid._memory_.dtype)
        raise RuntimeError("expected scalar type {} but found {}".format(*names))
    if is_half(input._memory_.dtype):  # places need more precision than such elements have
        return grid_sample(input.float(), grid.float(), mode, padding_mode, align_corners).to(input.dtype)
    sizes = input._memory_.shape[2:]
    dims = len(sizes)
    places = []
    for d in range(dims):
        place, n = grid.select(-1, dims - 1 - d), sizes[d]
        place = (place + 1) * ((n - 1) / 2) if align_corners else ((place + 1) * n - 1) / 2
        if mode != "bicubic":
            place = _inside(place, n, padding_mode, align_corners)
        places.append(place)
    if mode == "nearest":
        rounded = [np.rint(place._numbers_) for place in places]
        # The gradients for the places, and of that for the image, are zero, not absent.
        return ops.flat_in(_at(ops.straight(input), rounded, sizes, "zeros", align_corners), ops.straight(grid))
    low = [np.floor(place._numbers_) for place in places]
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
        turns = np.floor(moved._numbers_ / span)
        odd = wrap(turns % 2 == 1)
        rest = moved - wrap(turns * span)
        place = ops.where(odd, span - rest, rest) + low
    if padding == "zeros":
        return place
    lost = np.isnan(place._numbers_)
    return (place.masked_fill(wrap(lost), 0.0) if lost.any() else place).clamp(0, n - 1)


def _at(input: Tensor, cells: list[Any], sizes: Sequence[int], padding: str, align_corners: bool) -> Tensor:
    """The elements at whole-numbered places; zero outside."""
    shape = input._memory_.shape
    flat = np.zeros_like(cells[0], np.int64)
    known = np.ones_like(cells[0], bool)
    for cell, n in zip(cells, sizes, strict=True):
        if padding != "zeros":
            cell = np.rint(_inside(wrap(cell), n, padding, align_corners)._numbers_)
        known &= (cell >= 0) & (cell < n)
        flat = flat * n + np.clip(np.nan_to_num(cell), 0, n - 1).astype(np.int64)
    count = math.prod(flat.shape[1:])
    index = np.broadcast_to(flat.reshape(shape[0], 1, count), (*shape[:2], count))
    found = input.reshape((*shape[:2], math.prod(shape[2:]))).gather(2, wrap(index.copy()))
    if not known.all():
        found = found.masked_fill(wrap(~known.reshape(shape[0], 1, count)), 0)
    return found.reshape((*shape[:2], *flat.shape[1:]))


def _check(input: Tensor, grid: Tensor, mode: str) -> None:
    shape, places = input._memory_.shape, grid._memory_.shape
    if shape[:1] == places[:1] and places and places[-1] != len(shape) - 2:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {len(shape) - 2} in last dimension, but got grid with sizes "
            f"{list(places)}"
        )
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
    for d, n in enumerate(shape[2:], 2):
        if not n:
            raise RuntimeError(
                f"grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes "
                f"{list(shape)} with dimension {d} being empty"
            )
    if mode == "bicubic" and len(shape) != 4:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
