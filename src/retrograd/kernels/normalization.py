"""Kernels of batch, group and layer normalisation.

The first two go over the batch in blocks that stay in the cache, so that subtracting, squaring, scaling and shifting
cost one pass over memory; or leave large arrays to a compiled kernel, where there is one.  Sums are taken along the
rows first, where neighbours are adjacent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from . import compiled
from .blocks import TINY, as_0d, dots, long_rows, ones, ones_along, row_blocks, row_sums, shares_across
from .compiled import LARGE
from .promotion import cast_number, is_half, scalar_name, unsupported
from .storage import keeps_channels_last, keeps_channels_last_of_dense, shape_text

Array = np.ndarray
# Names of their own: looked up in np they cost a small layer_norm two hundredths.
_subtract, _sqrt, _reciprocal = np.subtract, np.sqrt, np.reciprocal


def _by_channel(x: Array) -> Array:
    """(batch, channels, ...) as three dimensions; or two, where there are no more."""
    return x.reshape(*x.shape[:2], -1) if x.ndim > 2 and x.size else x.reshape(*x.shape[:2])


def _sum(x: Array) -> Array:
    return np.add.reduce(np.add.reduce(x, 2), 0) if x.ndim == 3 else np.add.reduce(x, 0)


def _dot(x: Array, y: Array) -> Array:
    """The sum of the products, for each channel."""
    if x.ndim == 2:
        return np.einsum("nc,nc->c", x, y)
    return np.add.reduce(dots(x, y), 0)


def _column(values: Array, x: Array) -> Array:
    """One value a channel, to be broadcast against `x`."""
    return values.astype(x.dtype, copy=False).reshape(-1, *(1,) * (x.ndim - 2))


def _check_dtypes(input: Array, *parameters: Array | None) -> None:
    """Parameters have the dtype of the input, or are all float32 beside an input in half precision."""
    given = [p for p in parameters if p is not None]
    if all([p.dtype == input.dtype for p in given]):
        return
    if given[0].dtype == input.dtype:
        other = next(p.dtype for p in given if p.dtype != input.dtype)
        raise RuntimeError(f"expected scalar type {scalar_name(input.dtype)} but found {scalar_name(other)}")
    if any([p.dtype != np.float32 for p in given]):
        raise RuntimeError("mixed dtype (CPU): expect parameter to have scalar type of Float")
    if not is_half(input.dtype):
        raise RuntimeError("mixed dtype (CPU): all inputs must share same datatype.")


def _statistics_dtype(input: Array, *parameters: Array | None) -> np.dtype:
    """That of the means and deviations that are kept: the parameters', where they have more precision."""
    return next((p.dtype for p in parameters if p is not None), input.dtype)


# -------------------------------------------------------------------------------------------------- passes by channel


def _moments(x: Array) -> tuple[Array, Array]:
    """The mean of each channel, and the mean of the squared distance from it."""
    if x.size > LARGE and (fast := compiled.channel_moments(x)) is not None:
        return fast
    count = x.dtype.type(x.size // max(x.shape[1], 1) or 1)
    mean = _sum(x) / count
    var = np.zeros_like(mean)
    center = _column(mean, x)
    with long_rows(x.shape[-1]):
        for block in row_blocks(x):
            centered = np.subtract(x[block], center)
            var += _dot(centered, centered)
    var /= count
    return mean, var


def _affine(x: Array, scale: Array, shift: Array | None) -> Array:
    """x * scale + shift."""
    if x.size > LARGE and (fast := compiled.channel_affine(x, scale, shift)) is not None:
        return fast
    a, b = _column(scale, x), None if shift is None else _column(shift, x)
    result = np.empty_like(x, order="C")
    with long_rows(x.shape[-1]):
        for block in row_blocks(x):
            target = result[block]
            np.multiply(x[block], a, out=target)
            if b is not None:
                target += b
    return result


def _sums(grad: Array, x: Array, mean: Array) -> tuple[Array, Array]:
    """The sum of grad and that of grad * (x - mean)."""
    if x.size > LARGE and (fast := compiled.channel_sums(grad, x, mean)) is not None:
        return fast
    center = _column(mean, x)
    along = np.zeros_like(mean)
    with long_rows(x.shape[-1]):
        for block in row_blocks(x):
            along += _dot(grad[block], np.subtract(x[block], center))
    return _sum(grad), along


def _combine(grad: Array, x: Array, mean: Array, a: Array, b: Array, c: Array) -> Array:
    """grad * a + (x - mean) * b + c."""
    if x.size > LARGE and (fast := compiled.channel_combine(grad, x, mean, a, b, c)) is not None:
        return fast
    center, a, b, c = (_column(values, x) for values in (mean, a, b, c))
    result = np.empty_like(x, order="C")
    with long_rows(x.shape[-1]):
        for block in row_blocks(x):
            target = result[block]
            np.subtract(x[block], center, out=target)
            target *= b
            target += c
            target += grad[block] * a
    return result


# ------------------------------------------------------------------------------------------------------ batch norm


@keeps_channels_last_of_dense
def native_batch_norm(
    input: Array,
    weight: Array | None,
    bias: Array | None,
    running_mean: Array | None,
    running_var: Array | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Array, Array, Array]:
    """Each channel with mean 0 and variance 1, scaled and shifted; with the mean and 1/deviation that were used.

    If `training`, the running statistics move towards those of this batch, in place.
    """
    _check_batch_norm(input, weight, bias, running_mean, running_var, training)
    dtype = input.dtype
    x = _by_channel(input.astype(np.float32) if is_half(dtype) else input)
    if training:
        count = x.size // max(input.shape[1], 1)
        mean, var = _moments(x)
        if running_mean is not None:
            running_mean *= 1 - momentum
            running_mean += momentum * mean
        if running_var is not None:
            running_var *= 1 - momentum
            running_var += (momentum * count / max(count - 1, 1)) * var
    else:
        assert running_mean is not None and running_var is not None
        mean, var = running_mean.astype(x.dtype), running_var.astype(x.dtype)
    rstd = (1 / np.sqrt(var + cast_number(eps, x.dtype))).astype(x.dtype, copy=False)
    scale = rstd if weight is None else (rstd * weight).astype(x.dtype, copy=False)
    shift = -mean * scale
    if bias is not None:
        shift += bias.astype(x.dtype, copy=False)
    return _affine(x, scale, shift).astype(dtype, copy=False).reshape(input.shape), mean, rstd


def native_batch_norm_backward(
    grad: Array,
    input: Array,
    weight: Array | None,
    mean: Array,
    rstd: Array,
    training: bool,
    eps: float,
    edges: Sequence[Any],
) -> tuple[Array | None, Array | None, Array | None]:
    """The gradients for input, weight and bias, those whose edge is not None."""
    dtype = input.dtype
    if is_half(dtype):
        grad, input = grad.astype(np.float32), input.astype(np.float32)
    x, g = _by_channel(input), _by_channel(grad)
    total = along = None
    if edges[1] is not None or (training and edges[0] is not None):
        total, along = _sums(g, x, mean)
        along *= rstd
    elif edges[2] is not None:
        total = _sum(g)
    grad_input = None
    if edges[0] is not None:
        # An infinite weight comes last, for it makes NaN of a sum that it is multiplied into.
        last = weight is not None and not np.isfinite(weight).all()
        scale = rstd if weight is None or last else (rstd * weight).astype(x.dtype, copy=False)
        if training:
            assert total is not None and along is not None
            count = x.dtype.type(x.size // max(x.shape[1], 1) or 1)
            grad_input = _combine(g, x, mean, scale, -scale * rstd * along / count, -scale * total / count)
        else:
            grad_input = _affine(g, scale, None)
        if weight is not None and last:
            grad_input = grad_input * weight.reshape(1, -1, *[1] * (grad_input.ndim - 2))
        grad_input = grad_input.astype(dtype, copy=False).reshape(input.shape)
    grad_weight = along if edges[1] is not None else None
    grad_bias = total if edges[2] is not None else None
    return grad_input, grad_weight, grad_bias


def _check_batch_norm(
    input: Array,
    weight: Array | None,
    bias: Array | None,
    running_mean: Array | None,
    running_var: Array | None,
    training: bool,
) -> None:
    if input.ndim < 2:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-max(input.ndim, 1)}, {max(input.ndim, 1) - 1}], "
            "but got 1)"
        )
    channels = input.shape[1]
    parts = {"running_mean": running_mean, "running_var": running_var, "weight": weight, "bias": bias}
    for name, part in parts.items():
        if part is not None and part.size != channels:
            raise RuntimeError(f"{name} should contain {channels} elements not {part.size}")
        if part is None and not training and name.startswith("running"):
            raise RuntimeError(f"{name} must be defined in evaluation mode")
    if input.dtype.kind not in "fV":
        unsupported("batch_norm", input.dtype)
    _check_dtypes(input, weight, bias, running_mean, running_var)


# ------------------------------------------------------------------------------------------------------ group norm


@keeps_channels_last
def native_group_norm(
    input: Array, weight: Array | None, bias: Array | None, N: int, C: int, HxW: int, group: int, eps: float
) -> tuple[Array, Array, Array]:
    """Each group of channels of each image with mean 0 and variance 1, scaled and shifted; the means, 1/deviations."""
    _check_group_norm(input, weight, bias, C, group)
    batch, channels, num_groups = N, C, group
    dtype = input.dtype
    x = (input.astype(np.float32) if is_half(dtype) else input).reshape(N, group, C // group * HxW)
    w = None if weight is None else weight.astype(x.dtype, copy=False).reshape(channels, 1)
    b = None if bias is None else bias.astype(x.dtype, copy=False).reshape(channels, 1)
    kept = _statistics_dtype(input, weight, bias)
    if x.size > LARGE and (fast := compiled.group_norm(x, w, b, channels, eps)) is not None:
        means, scales = (part.reshape(batch, num_groups).astype(kept, copy=False) for part in fast[1:])
        return fast[0].astype(dtype, copy=False).reshape(input.shape), means, scales
    width = x.dtype.type(x.shape[2] or 1)
    result = np.empty_like(x, order="C")
    mean = np.empty_like(x, shape=(batch, num_groups, 1), order="C")
    rstd = np.empty_like(mean)
    for block in row_blocks(x):
        target = result[block]
        middle = np.add.reduce(x[block], 2, keepdims=True)
        middle /= width
        np.subtract(x[block], middle, out=target)
        scale = dots(target, target)[:, :, None]
        scale /= width
        scale += cast_number(eps, x.dtype)
        np.sqrt(scale, out=scale)
        np.reciprocal(scale, out=scale)
        channelwise = target.reshape(target.shape[0], channels, HxW)
        if w is None:
            target *= scale
        else:
            channelwise *= np.repeat(scale, channels // num_groups, 1) * w
        if b is not None:
            channelwise += b
        mean[block], rstd[block] = middle, scale
    means, scales = (part[:, :, 0].astype(kept, copy=False) for part in (mean, rstd))
    return result.astype(dtype, copy=False).reshape(input.shape), means, scales


def native_group_norm_backward(
    grads: Sequence[Array | None],
    input: Array,
    weight: Array | None,
    mean: Array,
    rstd: Array,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: float,
    edges: Sequence[Any],
) -> tuple[Array | None, Array | None, Array | None]:
    """The gradients for input, weight and bias, those whose edge is not None."""
    dtype = input.dtype
    if is_half(dtype):
        grads = [None if g is None else g.astype(np.float32) for g in grads]
        input, mean, rstd = input.astype(np.float32), mean.astype(np.float32), rstd.astype(np.float32)
    mean, rstd = mean[:, :, None], rstd[:, :, None]
    grad, *of_moments = grads
    x = input.reshape(N, group, C // group * HxW)
    gradients: tuple[Array | None, ...] = (None, None, None)
    if grad is not None:
        gradients = _group_norm_backward(grad, input, x, weight, mean, rstd, C, edges)
    if edges[0] is None or all(g is None for g in of_moments):
        return gradients  # type: ignore[return-value]
    # The mean's derivative is 1 / n for each element, and that of 1 / deviation is -normal / deviation**2 / n.
    n = x.dtype.type(x.shape[2] or 1)
    part = np.zeros_like(x, order="C")
    if of_moments[1] is not None:
        np.subtract(x, mean, out=part)
        part *= of_moments[1][:, :, None] * (rstd * rstd * rstd / -n)
    if of_moments[0] is not None:
        part += of_moments[0][:, :, None] / n
    grad_input = part.reshape(input.shape).astype(dtype, copy=False)
    return grad_input if gradients[0] is None else gradients[0] + grad_input, *gradients[1:]  # type: ignore[return-value]


def _group_norm_backward(
    grad: Array,
    input: Array,
    x: Array,
    weight: Array | None,
    mean: Array,
    rstd: Array,
    channels: int,
    edges: Sequence[Any],
) -> tuple[Array | None, Array | None, Array | None]:
    """The same, for the gradient of what was normalised; `x` is the input by groups."""
    batch, dtype = x.shape[0], input.dtype
    g = grad.reshape(batch, channels, x.size // max(batch * channels, 1))
    w = None if weight is None else weight.astype(x.dtype, copy=False).reshape(channels, 1)
    if x.size > LARGE:
        fast = compiled.group_norm_backward(g, x, mean, rstd, w, channels, edges[0] is not None)
        if fast is not None:
            sums = [np.add.reduce(part, 0) for part in fast[1:]]
            grad_input = None if fast[0] is None else fast[0].astype(dtype, copy=False).reshape(input.shape)
            return grad_input, sums[1] if edges[1] is not None else None, sums[0] if edges[2] is not None else None
    width = x.dtype.type(x.shape[2] or 1)
    result = np.empty_like(x, order="C")
    grad_weight = np.zeros_like(x, shape=(channels,)) if edges[1] is not None else None
    grad_bias = _sum(g) if edges[2] is not None else None
    for block in row_blocks(x):
        target = result[block]
        np.subtract(x[block], mean[block], out=target)
        target *= rstd[block]
        part = g[block]
        if grad_weight is not None:
            grad_weight += _dot(part, target.reshape(part.shape))
        if edges[0] is None:
            continue
        scaled = (part if w is None else part * w).reshape(target.shape)
        along = dots(scaled, target)[:, :, None]
        along /= width
        middle = np.add.reduce(scaled, 2, keepdims=True)
        middle /= width
        target *= along
        target += middle
        np.subtract(scaled, target, out=target)
        target *= rstd[block]
    grad_input = None if edges[0] is None else result.astype(dtype, copy=False).reshape(input.shape)
    return grad_input, grad_weight, grad_bias


def _check_group_norm(
    input: Array, weight: Array | None, bias: Array | None, channels: int, num_groups: int
) -> None:
    if num_groups <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {num_groups}")
    if channels % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{shape_text(input.shape)} and num_groups={num_groups}"
        )
    for name, part in (("weight", weight), ("bias", bias)):
        if part is not None and part.shape != (channels,):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of "
                f"shape {shape_text(part.shape)} and input of shape {shape_text(input.shape)}"
            )
    _check_dtypes(input, weight, bias)
    if input.dtype.kind not in "fV":
        unsupported("GroupNormKernelImpl", input.dtype)


def layer_norm(
    a: np.ndarray,
    normalized_shape: Sequence[int],
    weight: np.ndarray | None = None,
    bias: np.ndarray | None = None,
    eps: float = 1e-5,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`a` with mean 0 and variance 1 over its last dimensions, scaled and shifted; with the mean and 1/deviation."""
    shape = tuple(normalized_shape)
    dtype = a.dtype
    if weight is not None and (weight.shape != shape or weight.dtype is not dtype):
        _check_layer_norm(a, shape, weight, bias)
    if bias is not None and (bias.shape != shape or bias.dtype is not dtype):
        _check_layer_norm(a, shape, weight, bias)
    before = a.ndim - len(shape)
    if not shape or before < 0 or a.shape[before:] != shape or dtype.kind not in "fV":
        _check_layer_norm(a, shape, weight, bias)
    if before == 1 and a.ndim == 2 and a.size <= TINY and type(a) is ndarray and dtype.char in "fd":
        fast = compiled.layer_norm(a, weight, bias, eps) if a.size > compiled.rows_from else None
        return _normalize_tiny(a, weight, bias, eps) if fast is None else fast
    width = math.prod(shape)
    rows = math.prod(a.shape[:before])
    x = a.reshape(rows, width)
    statistics = dtype
    if is_half(dtype):
        statistics = _statistics_dtype(a, weight, bias)
        x = x.astype(np.float32)
        weight, bias = (None if part is None else part.astype(np.float32) for part in (weight, bias))
    scale = weight if weight is None or weight.ndim == 1 else weight.reshape(width)
    shift = bias if bias is None or bias.ndim == 1 else bias.reshape(width)
    parts: tuple[np.ndarray, ...] | None = None
    if x.size > compiled.rows_from:
        parts = compiled.layer_norm(x, scale, shift, eps)
        if parts is None:
            parts = np.empty_like(x, order="C"), np.empty_like(x, shape=(rows, 1)), np.empty_like(x, shape=(rows, 1))
            with long_rows(width):
                for block in row_blocks(x):
                    _, parts[1][block], parts[2][block] = _normalize_rows(x[block], scale, shift, eps, parts[0][block])
    else:
        parts = _normalize_rows(x, scale, shift, eps, None)
        if a.ndim == 2 and x.dtype is dtype and before:
            return parts
    kept = a.shape[:before] + (1,) * len(shape)
    result, mean, rstd = parts[0].reshape(a.shape), parts[1].reshape(kept), parts[2].reshape(kept)
    if is_half(dtype):
        return result.astype(dtype), mean.astype(statistics, copy=False), rstd.astype(statistics, copy=False)
    return result, mean, rstd


def _normalize_rows(
    x: np.ndarray, scale: np.ndarray | None, shift: np.ndarray | None, eps: float, out: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The result, in `out` if that is given, the means and 1/deviations of the rows."""
    n = np.array(x.shape[1], x.dtype)  # a 0-d array costs a ufunc less than a number does
    mean = row_sums(x)
    mean /= n
    out = np.subtract(x, mean, out=out, order="C")
    rstd = dots(out, out)  # the variance, without an array of squares
    rstd /= n
    rstd += np.array(eps, x.dtype)
    np.sqrt(rstd, out=rstd)
    np.reciprocal(rstd, out=rstd)
    rstd = rstd.reshape(-1, 1)
    out *= rstd
    if scale is not None:
        out *= scale
    if shift is not None:
        out += shift
    return out, mean, rstd


def _normalize_tiny(
    x: np.ndarray, scale: np.ndarray | None, shift: np.ndarray | None, eps: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same for a matrix of few elements, by products where that is quicker: see `TINY`."""
    width, dtype = x.shape[1], x.dtype
    share, spread, _ = shares_across(width, dtype)
    mean = x.dot(share)
    out = mean.dot(spread)
    _subtract(x, out, out)
    rstd = (out * out).dot(share)
    rstd += as_0d(eps, dtype)
    _sqrt(rstd, rstd)
    _reciprocal(rstd, rstd)
    out *= rstd.dot(spread if scale is None else scale.reshape(1, width))
    if shift is not None:
        out += shift
    return out, mean, rstd


native_layer_norm = layer_norm


def _check_layer_norm(
    a: np.ndarray, shape: tuple[int, ...], weight: np.ndarray | None, bias: np.ndarray | None
) -> None:
    if not shape:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
            "normalized_shape = []"
        )
    for name, p in (("weight", weight), ("bias", bias)):
        if p is not None and p.shape != shape:
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape "
                f"{shape_text(p.shape)} and normalized_shape = {shape_text(shape)}"
            )
    if a.shape[max(a.ndim - len(shape), 0) :] != shape:
        raise RuntimeError(
            f"Given normalized_shape={shape_text(shape)}, expected input with shape "
            f"[*, {shape_text(shape)[1:]}, but got input of size{shape_text(a.shape)}"
        )
    _check_dtypes(a, weight, bias)
    if a.dtype.kind not in "fV":
        unsupported("LayerNormKernelImpl", a.dtype)


def layer_norm_backward(
    grad: np.ndarray,
    input: np.ndarray,
    normalized_shape: Sequence[int],
    mean: np.ndarray,
    rstd: np.ndarray,
    weight: np.ndarray | None,
    bias: np.ndarray | None,
    output_mask: Sequence[bool],
) -> tuple[np.ndarray | None, np.ndarray | None, np.ndarray | None]:
    """The gradients of `layer_norm` for its input, weight and bias, those that `output_mask` asks for."""
    shape = tuple(normalized_shape)
    dtype = input.dtype
    if dtype.char not in "fd" and is_half(dtype):
        wide = [None if p is None else p.astype(np.float32) for p in (grad, input, mean, rstd, weight, bias)]
        single = layer_norm_backward(wide[0], wide[1], shape, *wide[2:], output_mask)  # type: ignore[arg-type,call-arg]
        narrow = (dtype, mean.dtype, mean.dtype)
        return tuple([None if p is None else p.astype(d) for p, d in zip(single, narrow)])  # type: ignore[return-value]
    if input.ndim == 2 and len(shape) == 1 and input.size <= LARGE and mean.ndim == rstd.ndim == 2:
        if input.size > compiled.rows_from and type(grad) is ndarray:
            fast = compiled.layer_norm_backward(grad, input, mean, rstd, weight, output_mask)
            if fast is not None:
                return tuple(fast)  # type: ignore[return-value]
        if input.size <= TINY and type(grad) is ndarray and grad.dtype is dtype and dtype.char in "fd":
            return _layer_norm_tiny_backward(grad, input, mean, rstd, weight, output_mask)
        found = _layer_norm_rows_backward(grad, input, mean, rstd, weight, output_mask, (None, None, None))
        return tuple(found)  # type: ignore[return-value]
    width = math.prod(shape)
    rows = math.prod(input.shape[: input.ndim - len(shape)])
    matrices = grad.reshape(rows, width), input.reshape(rows, width), mean.reshape(rows, 1), rstd.reshape(rows, 1)
    factor = weight if weight is None or weight.ndim == 1 else weight.reshape(width)
    parts: list[np.ndarray | None] | None = None
    if input.size > LARGE:
        parts = compiled.layer_norm_backward(*matrices, factor, output_mask)
        if parts is None:
            like = np.empty_like(input, shape=(rows, width)), *[np.zeros_like(input, shape=(width,)) for _ in "wb"]
            parts = [part if want else None for part, want in zip(like, output_mask)]
            scratch: Any = None
            with long_rows(width):
                for block in row_blocks(matrices[1]):
                    g, x, center, scale = [m[block] for m in matrices]
                    if scratch is None:  # the first block is the largest
                        scratch = np.empty_like(x, shape=(2, *x.shape))
                    memory = (None if parts[0] is None else parts[0][block], *scratch[:, : len(x)])
                    found = _layer_norm_rows_backward(g, x, center, scale, factor, output_mask, memory)
                    for total, one in zip(parts[1:], found[1:], strict=True):
                        if total is not None:
                            total += one
    else:
        parts = _layer_norm_rows_backward(*matrices, factor, output_mask, (None, None, None))
    shapes = input.shape, shape, shape
    return tuple([None if p is None else p.reshape(s) for p, s in zip(parts, shapes)])  # type: ignore[return-value]


def _layer_norm_rows_backward(
    g: np.ndarray,
    x: np.ndarray,
    center: np.ndarray,
    scale: np.ndarray,
    factor: np.ndarray | None,
    output_mask: Sequence[bool],
    memory: tuple[Any, Any, Any],
) -> list[np.ndarray | None]:
    """The gradients for input, weight and bias from these rows; `memory` has arrays for the first and for the way
    there, or None."""
    out, centered, products = memory
    grad_weight = grad_bias = None
    if output_mask[2]:
        grad_bias = np.dot(ones(len(g), g.dtype), g)
    if not (output_mask[0] or output_mask[1]):
        return [None, None, grad_bias]
    centered = np.subtract(x, center, out=centered)
    products = np.multiply(g, centered, out=products)
    if output_mask[1]:
        grad_weight = np.dot(scale.reshape(-1), products)
    if not output_mask[0]:
        return [None, grad_weight, grad_bias]
    # scale * (g * factor - middle) - centered * along, in the memory of the two arrays above
    if factor is None:
        along, middle = row_sums(products), row_sums(g)
    else:
        along, middle = np.dot(products, factor).reshape(-1, 1), np.dot(g, factor).reshape(-1, 1)
    share = np.divide(scale, np.array(x.shape[1], x.dtype))
    middle *= share
    share *= scale
    share *= scale
    along *= share
    centered *= along
    centered += middle
    np.multiply(g, scale, out=products)
    if factor is not None:
        products *= factor
    return [np.subtract(products, centered, out=products if out is None else out), grad_weight, grad_bias]


def _layer_norm_tiny_backward(
    g: np.ndarray, x: np.ndarray, mean: np.ndarray, rstd: np.ndarray, weight: np.ndarray | None, mask: Sequence[bool]
) -> tuple[np.ndarray | None, np.ndarray | None, np.ndarray | None]:
    """The same for matrices of few elements, by products where that is quicker: see `TINY`."""
    (rows, width), dtype = x.shape, x.dtype
    share, spread, shares = shares_across(width, dtype)
    down = ones_along(rows, dtype)
    grad_bias = down.dot(g) if mask[2] else None
    scale = rstd.dot(spread)
    normal = x - mean.dot(spread)
    normal *= scale
    products = g * normal
    grad_weight = down.dot(products) if mask[1] else None
    if not mask[0]:
        return None, grad_weight, grad_bias
    # scale * (g * weight - mean(g * weight) - normal * mean(products * weight))
    if weight is None:
        normal *= products.dot(share).dot(spread)
        normal += g.dot(share).dot(spread)
    else:  # the weighted means, spread over their rows, by one product
        weights = weight.reshape(width, 1).dot(shares)
        normal *= products.dot(weights)
        normal += g.dot(weights)
        g = g * weight
    result = _subtract(g, normal, normal)
    result *= scale
    return result, grad_weight, grad_bias


def native_layer_norm_backward(
    grad: np.ndarray,
    input: np.ndarray,
    normalized_shape: Sequence[int],
    mean: np.ndarray,
    rstd: np.ndarray,
    weight: np.ndarray | None,
    eps: float,
    edges: Sequence[Any],
) -> tuple[np.ndarray | None, np.ndarray | None, np.ndarray | None]:
    """`layer_norm_backward` for the inputs whose edge is not None, as the operator's formula calls it."""
    a, b, c = edges
    mask = a is not None, b is not None, c is not None
    return layer_norm_backward(grad, input, normalized_shape, mean, rstd, weight, None, mask)


__all__ = [
    "layer_norm",
    "layer_norm_backward",
    "native_batch_norm",
    "native_batch_norm_backward",
    "native_group_norm",
    "native_group_norm_backward",
    "native_layer_norm",
    "native_layer_norm_backward",
]
