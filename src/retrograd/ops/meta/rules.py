"""What probes cannot find out (Note [Probes] in inference.py): sizes that follow from numbers, not from sizes.

`SIZES` has the sizes of results whose dtype a probe tells; `RULES` has sizes and dtypes of those that no probe can run.
`VALUES` are the operators that are refused: the sizes of what they give depend on values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.records import OperatorRecord
from ...tensor.meta import MetaArray, order_of

SIZES: dict[str, Callable[..., Any]] = {}
RULES: dict[str, Callable[..., Any]] = {}
#: Operators whose results have sizes that depend on values.
VALUES = frozenset((
    "nonzero", "argwhere", "masked_select", "_unique2", "unique_dim", "_unique_consecutive", "bincount",
))  # fmt: skip
_INT = np.dtype(np.int64)


def refuse(record: OperatorRecord) -> None:
    """Raise if what an operator gives depends on values."""
    if record.name in VALUES:
        raise NotImplementedError(
            f"aten::{record.base}: attempted to run this operator with Meta tensors, but the size of its result "
            "depends on values, which they have not: run it on another device"
        )


def _rule(*names: str) -> Callable[[Any], Any]:
    def declare(rule: Any) -> Any:
        RULES.update(dict.fromkeys(names, rule))
        return rule

    return declare


def _sizes(*names: str) -> Callable[[Any], Any]:
    def declare(rule: Any) -> Any:
        SIZES.update(dict.fromkeys(names, rule))
        return rule

    return declare


def _dim(dim: int, ndim: int) -> int:
    return dim + ndim if dim < 0 else dim


def _with(shape: Sequence[int], dim: int, size: int) -> tuple[int, ...]:
    dim = _dim(dim, len(shape))
    return (*shape[:dim], size, *shape[dim + 1 :])


# ------------------------------------------------------------------------------------------------------- rearranging


@_sizes("cat")
def cat(tensors: Sequence[Any], dim: int = 0) -> tuple[int, ...]:
    counted = [t for t in tensors if t.shape != (0,)] or list(tensors)
    return _with(counted[0].shape, dim, sum(t.shape[dim] for t in counted))


@_rule("repeat")
def repeat(a: Any, repeats: Sequence[int]) -> Any:
    shape = (1,) * (len(repeats) - a.ndim) + a.shape
    if len(repeats) < a.ndim:
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor"
        )
    return [n * r for n, r in zip(shape, repeats, strict=True)], a.dtype


@_rule("constant_pad_nd")
def constant_pad_nd(a: Any, pad: Sequence[int], value: Any = 0) -> Any:
    shape = list(a.shape)
    if len(pad) % 2 or len(pad) // 2 > a.ndim:
        raise RuntimeError(f"Length of pad must be even and at most twice the number of dimensions, but pad is {pad}")
    for i in range(len(pad) // 2):
        shape[-1 - i] += pad[2 * i] + pad[2 * i + 1]
    if min(shape, default=0) < 0:
        raise RuntimeError(f"The input size {list(a.shape)}, plus negative padding {list(pad)}, is negative: {shape}")
    return MetaArray.fresh(tuple(shape), a.dtype, order_of(a.shape, a.strides))


@_rule("select_backward", "slice_backward", "diagonal_backward", "unfold_backward")
def padded_backward(a: Any, input_sizes: Sequence[int], *args: Any) -> Any:
    return input_sizes, a.dtype


@_rule("gather_backward", "index_select_backward", "index_backward")
def written_backward(grad: Any, sizes: Sequence[int], *args: Any) -> Any:
    return sizes, grad.dtype


@_rule("value_selecting_reduction_backward")
def value_selecting_reduction_backward(grad: Any, dim: int, indices: Any, sizes: Sequence[int], keepdim: bool) -> Any:
    return sizes, grad.dtype


@_rule("diag_embed")
def diag_embed(a: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    first, second = sorted((_dim(dim1, a.ndim + 1), _dim(dim2, a.ndim + 1)))
    shape = list(a.shape[:-1])
    size = a.shape[-1] + abs(offset)
    shape.insert(first, size)
    shape.insert(second, size)
    return shape, a.dtype


@_sizes("_block_diag")
def block_diag(tensors: Sequence[Any]) -> tuple[int, ...]:
    shapes = [(1,) * (2 - t.ndim) + t.shape for t in tensors]
    return sum(s[0] for s in shapes), sum(s[1] for s in shapes)


@_rule("_narrow_copy")
def narrow_copy(a: Any, dim: int, start: int, length: int) -> Any:
    return _with(a.shape, dim, length), a.dtype


@_rule("unsafe_split_with_sizes")
def split_with_sizes(a: Any, split_sizes: Sequence[int], dim: int = 0) -> Any:
    if sum(split_sizes) != a.shape[dim]:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {a.shape[dim]} (input tensor's size at dimension "
            f"{dim}), but got split_sizes={list(split_sizes)}"
        )
    return [(_with(a.shape, dim, n), a.dtype) for n in split_sizes]


@_rule("unsafe_split_Tensor")
def split(a: Any, split_size: int, dim: int = 0) -> Any:
    whole = a.shape[dim]
    return split_with_sizes(a, [min(split_size, whole - i) for i in range(0, whole, split_size)] or [0], dim)


@_rule("_slice_scatter", "_select_scatter", "_diagonal_scatter")
def scattered(a: Any, *args: Any, **kwargs: Any) -> Any:
    return MetaArray.like(a)


@_rule("linalg_cross")
def linalg_cross(a: Any, b: Any, dim: int = -1) -> Any:
    if a.shape[dim] != 3 or b.shape[dim] != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {a.shape[dim]} and {b.shape[dim]}"
        )
    return np.broadcast_shapes(a.shape, b.shape), a.dtype


@_sizes("_pdist")
def pdist(a: Any, *args: Any) -> tuple[int, ...]:
    return (a.shape[0] * (a.shape[0] - 1) // 2,)


@_rule("through_storage")
def through_storage(a: Any, source: Any, target: Any, shared: Any) -> Any:
    return target[0], a.dtype


@_rule("_unsafe_view")
def unsafe_view(a: Any, size: Sequence[int]) -> Any:
    known = math.prod(n for n in size if n != -1)
    return [a.size // (known or 1) if n == -1 else n for n in size], a.dtype


@_rule("index")
def index(a: Any, indices: Sequence[Any]) -> Any:
    """Dimensions with an index become those of all indices together: where the first stands, or in front."""
    shapes: list[Any] = []
    at: list[int] = []
    dim = 0
    for one in indices:
        if one is None:
            dim += 1
        elif one.dtype.kind == "b":  # a mask with values: its places are as many indices
            shapes.append((int(np.count_nonzero(one)),))
            at += range(dim, dim + one.ndim)
            dim += one.ndim
        else:
            shapes.append(one.shape)
            at.append(dim)
            dim += 1
    together = np.broadcast_shapes(*shapes)
    rest = [n for d, n in enumerate(a.shape) if d not in at]
    first = at[0] if at and at == list(range(at[0], at[-1] + 1)) else 0
    return (*rest[:first], *together, *rest[first:]), a.dtype


@_rule("index_put", "masked_scatter", "put")
def written(a: Any, *args: Any, **kwargs: Any) -> Any:
    return MetaArray.like(a)


# ----------------------------------------------------------------------------------------------- sorting, embedding


@_rule("topk")
def topk(a: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    if not 0 <= k <= (a.shape[dim] if a.ndim else 1):
        raise RuntimeError("selected index k out of range")
    shape = _with(a.shape, dim, k) if a.ndim else ()
    return [(shape, a.dtype), (shape, _INT)]


@_rule("kthvalue")
def kthvalue(a: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    if not 1 <= k <= (a.shape[dim] if a.ndim else 1):
        raise RuntimeError("kthvalue(): selected number k out of range for dimension")
    at = _dim(dim, a.ndim)
    shape = () if not a.ndim else (*a.shape[:at], *(1,) * keepdim, *a.shape[at + 1 :])
    return [(shape, a.dtype), (shape, _INT)]


@_rule("one_hot")
def one_hot(a: Any, num_classes: int = -1) -> Any:
    if num_classes < 0:
        raise NotImplementedError(
            "one_hot: the number of classes is the largest value, which a meta tensor has not: say num_classes"
        )
    return (*a.shape, num_classes), _INT


@_rule("embedding_dense_backward")
def embedding_dense_backward(grad: Any, indices: Any, num_weights: int, *args: Any) -> Any:
    return (num_weights, grad.shape[-1]), grad.dtype


# ------------------------------------------------------------------------------------------ convolutions and pooling


def _window(size: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool = False) -> int:
    span = size + 2 * padding - dilation * (kernel - 1) - 1
    count = (span + (stride - 1 if ceil_mode else 0)) // stride + 1
    if ceil_mode and (count - 1) * stride >= size + padding:
        count -= 1
    return count


def _channels_last(shape: Sequence[int], *arrays: Any) -> tuple[int, ...] | None:
    """The order of dimensions of a result with channels innermost, if one of the arrays has them so."""
    ndim = len(shape)
    last = (0, *range(2, ndim), 1)
    for array in arrays:
        if array.ndim == ndim > 3 and array.shape[1] > 1 and order_of(array.shape, array.strides) == last:
            return last
    return None


@_rule("convolution")
def convolution(a: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
                output_padding: Any, groups: int) -> Any:  # fmt: skip
    dims = weight.ndim - 2
    channels = weight.shape[0] if not transposed else weight.shape[1] * groups
    expected = weight.shape[1] * groups if not transposed else weight.shape[0]
    if a.shape[1] != expected:
        raise RuntimeError(
            f"Given groups={groups}, weight of size {list(weight.shape)}, expected input{list(a.shape)} to have "
            f"{expected} channels, but got {a.shape[1]} channels instead"
        )
    outer = []
    for d in range(dims):
        n, k = a.shape[2 + d], weight.shape[2 + d]
        if transposed:
            outer.append((n - 1) * stride[d] - 2 * padding[d] + dilation[d] * (k - 1) + output_padding[d] + 1)
        else:
            outer.append(_window(n, k, stride[d], padding[d], dilation[d]))
    if min(outer, default=1) < 0 or (not transposed and min(outer, default=1) < 1):
        raise RuntimeError(
            f"Calculated padded input size per channel: {list(a.shape[2:])} with padding {list(padding)}. Kernel size: "
            f"{list(weight.shape[2:])}. Kernel size can't be greater than actual input size"
        )
    shape = (a.shape[0], channels, *outer)
    return MetaArray.fresh(shape, a.dtype, _channels_last(shape, a, weight))


@_rule("convolution_backward_input")
def convolution_backward_input(grad: Any, weight: Any, input_size: Sequence[int], *args: Any) -> Any:
    return MetaArray.fresh(tuple(input_size), grad.dtype, _channels_last(input_size, grad, weight))


@_rule("convolution_backward_weight")
def convolution_backward_weight(grad: Any, a: Any, weight_size: Sequence[int], *args: Any) -> Any:
    return MetaArray.fresh(tuple(weight_size), grad.dtype, _channels_last(weight_size, grad, a))


@_rule("conv_tbc")
def conv_tbc(a: Any, weight: Any, bias: Any, pad: int = 0) -> Any:
    return (a.shape[0] + 2 * pad - weight.shape[0] + 1, a.shape[1], weight.shape[2]), a.dtype


@_rule("im2col")
def im2col(a: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    counts = [_window(*numbers) for numbers in zip(a.shape[-2:], kernel_size, stride, padding, dilation, strict=True)]
    return (*a.shape[:-3], a.shape[-3] * math.prod(kernel_size), math.prod(counts)), a.dtype


@_rule("col2im")
def col2im(a: Any, output_size: Any, kernel_size: Any, *args: Any) -> Any:
    return (*a.shape[:-2], a.shape[-2] // math.prod(kernel_size), *output_size), a.dtype


def _pooled(a: Any, sizes: Sequence[int], dtype: Any = None) -> MetaArray:
    shape = (*a.shape[: a.ndim - len(sizes)], *sizes)
    return MetaArray.fresh(shape, dtype or a.dtype, _channels_last(shape, a))


def _counts(a: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> list[int]:
    sizes = a.shape[a.ndim - len(kernel) :]
    stride = stride or kernel
    found = [_window(*n, ceil_mode) for n in zip(sizes, kernel, stride, padding, dilation, strict=True)]
    if min(found) < 1:
        raise RuntimeError(
            f"Given input size: {tuple(a.shape)}. Calculated output size: {found}. Output size is too small"
        )
    return found


@_rule("_max_pool2d", "_max_pool3d")
def max_pool(a: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> Any:
    counts = _counts(a, kernel, stride, padding, dilation, ceil_mode)
    taps = np.dtype(np.uint8 if math.prod(kernel) <= 256 else np.int64)
    return [_pooled(a, counts), _pooled(a, counts, taps)]


@_rule("_avg_pool2d", "_avg_pool3d")
def avg_pool(a: Any, kernel: Any, stride: Any, padding: Any, ceil_mode: bool, *args: Any) -> Any:
    return _pooled(a, _counts(a, kernel, stride, padding, (1,) * len(kernel), ceil_mode))


@_rule("max_pool_backward")
def max_pool_backward(grad: Any, taps: Any, input_size: Any, *args: Any) -> Any:
    return MetaArray.fresh(tuple(input_size), grad.dtype, _channels_last(input_size, grad))


@_rule("avg_pool_backward", "adaptive_avg_pool_backward")
def avg_pool_backward(grad: Any, input_size: Any, *args: Any) -> Any:
    return MetaArray.fresh(tuple(input_size), grad.dtype, _channels_last(input_size, grad))


@_rule("resample_backward")
def resample_backward(grad: Any, input_size: Any, *args: Any) -> Any:
    shape = tuple(input_size) if len(input_size) == grad.ndim else (*grad.shape[:2], *input_size)
    return MetaArray.fresh(shape, grad.dtype, _channels_last(shape, grad))


@_rule("max_pool_gather")
def max_pool_gather(a: Any, taps: Any, *args: Any) -> Any:
    return MetaArray.fresh(taps.shape, a.dtype, order_of(taps.shape, taps.strides))


@_rule("max_pool_indices")
def max_pool_indices(taps: Any, *args: Any) -> Any:
    return MetaArray.fresh(taps.shape, _INT, order_of(taps.shape, taps.strides))


@_rule("_adaptive_max_pool2d", "_adaptive_max_pool3d")
def adaptive_max_pool(a: Any, output_size: Any) -> Any:
    return [_pooled(a, output_size), _pooled(a, output_size, _INT)]


@_rule("_adaptive_avg_pool2d", "_adaptive_avg_pool3d")
def adaptive_avg_pool(a: Any, output_size: Any) -> Any:
    return _pooled(a, output_size)


@_rule("_fractional_max_pool2d", "_fractional_max_pool3d")
def fractional_max_pool(a: Any, kernel_size: Any, output_size: Any, random_samples: Any) -> Any:
    return [_pooled(a, output_size), _pooled(a, output_size, _INT)]


@_rule("_max_unpool2d", "_max_unpool3d")
def max_unpool(a: Any, indices: Any, output_size: Any) -> Any:
    return _pooled(a, output_size)


_RESAMPLED = (
    "nearest1d", "nearest2d", "nearest3d", "nearest_exact1d", "nearest_exact2d", "nearest_exact3d", "linear1d",
    "bilinear2d", "bicubic2d", "trilinear3d", "bilinear2d_aa", "bicubic2d_aa",
)  # fmt: skip
_PADDED = [f"_{kind}_pad{n}d_map" for kind in ("reflection", "replication") for n in (1, 2, 3)]


@_rule("resample", *[f"_upsample_{name}" for name in _RESAMPLED], *_PADDED)
def resample(a: Any, output_size: Any, *args: Any) -> Any:
    return _pooled(a, output_size)


@_rule("pixel_shuffle")
def pixel_shuffle(a: Any, factor: int) -> Any:
    *rest, c, h, w = a.shape
    if c % factor**2:
        raise RuntimeError(
            f"pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, "
            f"but input.size(-3)={c} is not divisible by {factor**2}"
        )
    return (*rest, c // factor**2, h * factor, w * factor), a.dtype


@_rule("pixel_unshuffle")
def pixel_unshuffle(a: Any, factor: int) -> Any:
    *rest, c, h, w = a.shape
    if h % factor or w % factor:
        raise RuntimeError(f"pixel_unshuffle expects height and width to be divisible by downscale_factor={factor}")
    return (*rest, c * factor**2, h // factor, w // factor), a.dtype


@_rule("channel_shuffle")
def channel_shuffle(a: Any, groups: int) -> Any:
    return a.shape, a.dtype


@_rule("_affine_grid_generator")
def affine_grid_generator(theta: Any, size: Sequence[int], align_corners: bool) -> Any:
    return (size[0], *size[2:], len(size) - 2), theta.dtype


# --------------------------------------------------------------------------- matrices with pivots, which are no numbers


@_rule("linalg_lu_solve", "linalg_ldl_solve")
def solve_by_factors(factors: Any, pivots: Any, b: Any, *args: Any, **kwargs: Any) -> Any:
    batch = np.broadcast_shapes(factors.shape[:-2], b.shape[:-2])
    return (*batch, *b.shape[-2:]), b.dtype


@_rule("lu_unpack")
def lu_unpack(lu: Any, pivots: Any, unpack_data: bool = True, unpack_pivots: bool = True) -> Any:
    *batch, m, n = lu.shape
    k = min(m, n)
    nothing = (0,), lu.dtype
    rows = MetaArray.fresh((*batch, m, m), lu.dtype, (*range(len(batch)), len(batch) + 1, len(batch)))
    return [
        rows if unpack_pivots else nothing,
        ((*batch, m, k), lu.dtype) if unpack_data else nothing,
        ((*batch, k, n), lu.dtype) if unpack_data else nothing,
    ]


# ------------------------------------------------------------------------------------------------ networks, transforms


@_rule("native_layer_norm")
def native_layer_norm(a: Any, normalized_shape: Sequence[int], weight: Any, bias: Any, eps: float) -> Any:
    shape = tuple(normalized_shape)
    outer = a.ndim - len(shape)
    if a.shape[outer:] != shape or any(p is not None and p.shape != shape for p in (weight, bias)):
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape [*, {', '.join(map(str, shape))}], and "
            f"weight and bias of that shape, but got input of size {list(a.shape)}"
        )
    kept = (*a.shape[:outer], *(1,) * len(shape))
    return [(a.shape, a.dtype), (kept, a.dtype), (kept, a.dtype)]


@_rule("native_group_norm")
def native_group_norm(a: Any, weight: Any, bias: Any, n: int, c: int, hxw: int, group: int, eps: float) -> Any:
    return [(a.shape, a.dtype), ((n, group), a.dtype), ((n, group), a.dtype)]


@_rule("glu")
def glu(a: Any, dim: int = -1) -> Any:
    if a.shape[dim] % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim} is size {a.shape[dim]}")
    return _with(a.shape, dim, a.shape[dim] // 2), a.dtype


@_sizes("fft_r2c")
def fft_r2c(a: Any, dim: Sequence[int], normalization: int, onesided: bool) -> tuple[int, ...]:
    return _with(a.shape, dim[-1], a.shape[dim[-1]] // 2 + 1) if onesided else a.shape


@_rule("fft_c2r")
def fft_c2r(a: Any, dim: Sequence[int], normalization: int, last_dim_size: int) -> Any:
    return _with(a.shape, dim[-1], last_dim_size), np.dtype(f"f{a.dtype.itemsize // 2}")
