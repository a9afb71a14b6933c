"""Kernels of convolutions: one trilinear form, ``sum(grad * convolution(input, weight))``, seen from three sides.

`convolution` computes the output, `convolution_backward_input` and `convolution_backward_weight` its gradients; the
derivatives of any of the three are the other two, and a transposed convolution is `convolution_backward_input`.
`im2col` and `col2im` take the windows apart and put them together.

Note [Convolution as a product]
The windows of the input are laid out as the columns of a matrix, some images at a time so that the columns stay in the
cache, and BLAS multiplies them with the weight.  With stride 1 the image is kept flat, row after row: each tap of the
kernel is then one long copy of the same row, shifted.  The windows that wrap around the edge of a row give columns that
mean nothing; they are dropped when the bias is added, which is a pass over the output anyway.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import compiled_products
from .compiled import LARGE, is_used
from .conv_depthwise import by_rows
from .promotion import c_name, is_half, scalar_name, unsupported
from .storage import keeps_channels_last_of_either, shape_text

_BLOCK_BYTES = 1 << 22  # of columns, to stay in the cache
_MOST_WASTE = 1.6  # columns computed for one that is used, in the flat layout
Ints = Sequence[int]


class Windows:
    """Where the windows of a convolution lie in its padded input."""

    def __init__(self, size: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> None:
        n = len(kernel)
        self.kernel, self.stride, self.dilation = tuple(kernel), tuple(stride), tuple(dilation)
        self.padding: list[tuple[int, int]] = [(p, p) for p in padding]
        self.reach: list[int] = [dilation[d] * (kernel[d] - 1) for d in range(n)]
        self.cleared = 0  # of how many images the buffer's columns have zeros where nothing is written
        self.set_padding(size, self.padding)

    def set_padding(self, size: Ints, padding: list[tuple[int, int]], out: Ints | None = None) -> None:
        """Pad differently, by (before, after) of each dimension (what is negative crops), or use fewer windows."""
        self.padding = padding
        sides = zip(size, padding, strict=True)
        self.padded: list[int] = [s + before + after for s, (before, after) in sides]
        along = zip(self.padded, self.reach, self.stride, strict=True)
        self.out: list[int] = [(s - r - 1) // t + 1 for s, r, t in along]
        if out is not None:
            self.out = list(out)
        self.taps: int = math.prod(self.kernel)
        self.count: int = math.prod(self.out)
        row = math.prod(self.padded[1:])
        self.flat: bool = all(s == 1 for s in self.stride) and row <= _MOST_WASTE * math.prod(self.out[1:])
        self.width: int = self.out[0] * row if self.flat else self.count
        steps = [math.prod(self.padded[d + 1 :]) for d in range(len(self.kernel))]
        self.span: int = sum((o - 1) * s for o, s in zip(self.out, steps, strict=True)) + 1
        # A kernel that does not fit has no windows: its taps, of which there may be without number, are not listed.
        kernel = self.kernel if all(o > 0 for o in self.out) else (0,)
        self.offsets: list[int] = [
            sum(k * d * s for k, d, s in zip(tap, self.dilation, steps, strict=True))
            for tap in itertools.product(*(range(k) for k in kernel))
        ]

    def pad(self, x: np.ndarray) -> np.ndarray:
        """`x` with zeros around it, contiguous."""
        for d, (before, after) in enumerate(self.padding):
            if before < 0 or after < 0:
                x = x[(slice(None),) * (d + 2) + (slice(max(-before, 0), x.shape[d + 2] - max(-after, 0)),)]
        sides = [(max(before, 0), max(after, 0)) for before, after in self.padding]
        if not any(before or after for before, after in sides):
            return np.ascontiguousarray(x)
        result = np.zeros_like(x, shape=(*x.shape[:2], *self.padded), order="C")
        inner = tuple([slice(b, b + s) for (b, _), s in zip(sides, x.shape[2:], strict=True)])
        result[(slice(None), slice(None), *inner)] = x
        return result

    def blocks(self, batch: int, channels: int, itemsize: int) -> tuple[int, list[tuple[int, int]]]:
        """How many images at a time, and the first and last of each block."""
        size = max(1, min(batch, _BLOCK_BYTES // max(1, channels * self.taps * self.width * itemsize)))
        return size, [(i, min(i + size, batch)) for i in range(0, batch, size)]

    def buffer(self, x: np.ndarray, size: int) -> np.ndarray | None:
        """Memory for the columns of `size` images; none where the images themselves are the columns."""
        if self.flat and self.taps == 1:
            return None
        self.cleared = 0
        return np.empty_like(x, shape=(size * x.shape[1] * self.taps * self.width,), order="C")

    def columns(self, x: np.ndarray, buffer: np.ndarray | None, together: bool) -> np.ndarray:
        """(images, channels, taps, windows) of the padded `x`; `together` in memory as (channels, taps, images,
        windows), so that one product is of all images."""
        n, channels = x.shape[:2]
        if buffer is None:
            return x.reshape(n, channels, 1, self.width)
        columns = buffer[: n * channels * self.taps * self.width]
        if together:
            columns = columns.reshape(channels, self.taps, n, self.width).transpose(2, 0, 1, 3)
        else:
            columns = columns.reshape(n, channels, self.taps, self.width)
        if self.flat:
            rows = x.reshape(n, channels, -1)
            span = self.span
            if self.cleared != n:  # what is never written is still multiplied
                columns[..., span:] = 0
                self.cleared = n
            for tap, offset in enumerate(self.offsets):
                columns[:, :, tap, :span] = rows[:, :, offset : offset + span]
            return columns
        for tap, part in enumerate(self.tap_slices()):
            columns[:, :, tap].reshape(n, channels, *self.out)[...] = x[part]
        return columns

    def tap_slices(self) -> list[tuple[slice, ...]]:
        """For each tap of the kernel, the cells of the padded input that it meets."""
        each = [
            [slice(k * d, k * d + (o - 1) * s + 1, s) for k in range(kernel)]
            for kernel, d, o, s in zip(self.kernel, self.dilation, self.out, self.stride, strict=True)
        ]
        return [(slice(None), slice(None), *tap) for tap in itertools.product(*each)]

    def used(self, y: np.ndarray) -> np.ndarray:
        """Of (images, channels, windows) those that mean something, as (images, channels, ...)."""
        if not self.flat:
            return y.reshape(*y.shape[:2], *self.out)
        y = y.reshape(*y.shape[:2], self.out[0], *self.padded[1:])
        part: Any = (..., *[slice(o) for o in self.out])
        return y[part]


# ------------------------------------------------------------------------------------------------ the three sides


@keeps_channels_last_of_either
def convolution(
    input: np.ndarray,
    weight: np.ndarray,
    bias: np.ndarray | None,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: bool,
    output_padding: Ints,
    groups: int,
) -> np.ndarray:
    """The convolution (or transposed convolution) of (batch, channels, ...) with a weight, plus a bias a channel."""
    _check(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
    if bias is not None:  # of another dtype, where torch's kernel adds it to what it has computed
        bias = bias.astype(input.dtype, copy=False)
    if is_half(input.dtype):
        wide = [None if a is None else a.astype(np.float32) for a in (input, weight, bias)]
        return convolution(
            wide[0], wide[1], wide[2], stride, padding, dilation, transposed, output_padding, groups  # type: ignore[arg-type]
        ).astype(input.dtype)
    kernel: tuple[int, ...] = weight.shape[2:]
    if not transposed:
        windows = Windows(input.shape[2:], kernel, stride, padding, dilation)
        return _product(input, weight, bias, windows, groups)
    size = transposed_size(input.shape[2:], kernel, stride, padding, dilation, output_padding)
    shape = (input.shape[0], weight.shape[1] * groups, *size)
    return _scatter(input, weight, bias, shape, stride, padding, dilation, groups)


def convolution_backward_input(
    grad: np.ndarray,
    weight: np.ndarray,
    input_size: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> np.ndarray:
    """The gradient of a convolution for its input, which is a transposed convolution."""
    if is_half(grad.dtype):
        wide = _scatter(
            grad.astype(np.float32), weight.astype(np.float32), None, input_size, stride, padding, dilation, groups
        )
        return wide.astype(grad.dtype)
    return _scatter(grad, weight, None, input_size, stride, padding, dilation, groups)


def convolution_backward_weight(
    grad: np.ndarray,
    input: np.ndarray,
    weight_size: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> np.ndarray:
    """The gradient of a convolution for its weight."""
    if is_half(grad.dtype):
        wide = convolution_backward_weight(
            grad.astype(np.float32), input.astype(np.float32), weight_size, stride, padding, dilation, groups
        )
        return wide.astype(grad.dtype)
    if grad.size > LARGE or input.size > LARGE:
        fast = compiled_products.convolution_weight(
            np.ascontiguousarray(grad), np.ascontiguousarray(input), weight_size, stride, padding, dilation, groups
        )
        if fast is not None:
            return fast
    windows = Windows(input.shape[2:], weight_size[2:], stride, padding, dilation)
    if tuple(windows.out) != grad.shape[2:]:  # of a transposed convolution with much output_padding
        windows.set_padding(input.shape[2:], windows.padding, grad.shape[2:])
    batch, channels = input.shape[:2]
    outputs = weight_size[0]
    dtype = np.result_type(grad, input)
    result = np.zeros_like(input, dtype=dtype, shape=(groups, outputs // groups, channels // groups * windows.taps))
    if grad.size and input.size:
        x = windows.pad(input)
        size, blocks = windows.blocks(batch, channels, dtype.itemsize)
        buffer = windows.buffer(x, size)
        # Zero in the columns that mean nothing.
        aligned = windows.flat and windows.count != windows.width
        together = aligned and groups == 1 and buffer is not None
        g = None
        used = None
        if aligned and not np.isfinite(np.add.reduce(x, None)):  # nor may a NaN of the input be in them
            used = np.zeros((1, 1, windows.width), bool)
            windows.used(used)[...] = True
        for first, last in blocks:
            n = last - first
            columns = windows.columns(x[first:last], buffer, together)
            if used is not None:
                columns = np.where(used, columns, 0)
            rows = grad[first:last]
            if aligned:
                if g is None or len(g) != n:
                    g = np.zeros_like(grad, shape=(outputs, n, windows.width), order="C").swapaxes(0, 1)
                    g = g if together else g.copy()
                windows.used(g)[...] = rows
                rows = g
            if together:
                flat = columns.transpose(1, 2, 0, 3).reshape(-1, n * windows.width)
                result += np.matmul(rows.swapaxes(0, 1).reshape(outputs, -1), flat.T)
                continue
            rows = rows.reshape(n, groups, outputs // groups, windows.width)
            product = np.matmul(rows, columns.reshape(n, groups, -1, windows.width).swapaxes(-1, -2))
            result += product[0] if n == 1 else np.add.reduce(product, 0)
    return result.reshape(weight_size)


def _product(
    input: np.ndarray, weight: np.ndarray, bias: np.ndarray | None, windows: Windows, groups: int
) -> np.ndarray:
    """The convolution itself."""
    batch, channels = input.shape[:2]
    outputs = weight.shape[0]
    if input.size > LARGE or batch * outputs * windows.count > LARGE:
        fast = compiled_products.convolution(
            np.ascontiguousarray(input), np.ascontiguousarray(weight), bias, windows.stride,
            [before for before, _ in windows.padding], windows.dilation, groups, windows.out,
        )  # fmt: skip
        if fast is not None:
            return fast
    dtype = np.result_type(input, weight)
    result = np.empty_like(input, dtype=dtype, shape=(batch, outputs, *windows.out), order="C")
    shift = None if bias is None else bias.reshape(-1, *[1] * len(windows.out))
    if not input.size or not weight.size or not result.size:
        result[...] = 0 if shift is None else shift
        return result
    weight = np.ascontiguousarray(weight)
    if weight.shape[1] == 1 and outputs <= 2 * groups and len(windows.out) == 2 and windows.taps > 1 and (
        type(input) is np.ndarray
    ):
        by_rows(input, weight, windows, groups, result)
        if shift is not None:
            result += shift
        return result
    x = windows.pad(input)
    matrix = weight.reshape(groups, outputs // groups, -1)
    size, blocks = windows.blocks(batch, channels, dtype.itemsize)
    buffer = windows.buffer(x, size)
    direct = windows.count == windows.width
    together = not direct and groups == 1 and buffer is not None
    scratch = None if direct else np.empty_like(result, shape=(size * outputs * windows.width,))
    for first, last in blocks:
        n = last - first
        columns = windows.columns(x[first:last], buffer, together)
        target = result[first:last]
        y = (target.reshape(-1) if scratch is None else scratch)[: n * outputs * windows.width]
        if together:
            flat = columns.transpose(1, 2, 0, 3).reshape(-1, n * windows.width)
            y = np.matmul(matrix[0], flat, out=y.reshape(outputs, -1)).reshape(outputs, n, -1).swapaxes(0, 1)
        else:
            columns = columns.reshape(n, groups, -1, windows.width)
            np.matmul(matrix, columns, out=y.reshape(n, groups, outputs // groups, windows.width))
            y = y.reshape(n, outputs, -1)
        if scratch is not None:
            if shift is None:
                target[...] = windows.used(y)
            else:
                np.add(windows.used(y), shift, out=target)
        elif shift is not None:
            target += shift
    return result


def _scatter(
    grad: np.ndarray,
    weight: np.ndarray,
    bias: np.ndarray | None,
    input_size: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> np.ndarray:
    """The transposed convolution."""
    kernel = weight.shape[2:]
    dims = range(len(kernel))
    outputs, each = weight.shape[0] // groups, weight.shape[1]
    # A convolution again, with the kernel turned around and the channels exchanged.  It multiplies the kernel with the
    # zeros around the edges, which a NaN in the kernel must not meet.
    finite = bool(np.isfinite(np.add.reduce(weight, None)))
    by_one = all(s == 1 for s in stride)
    if finite and not by_one and math.prod(input_size) > LARGE:
        fast = _scatter_phases(grad, weight, bias, input_size, stride, padding, dilation, groups)
        if fast is not None:
            return fast
    if finite and by_one:
        if groups == 1 and outputs >= 2 * each and grad.size > LARGE and type(grad) is np.ndarray and not is_used():
            windows = Windows(input_size[2:], kernel, stride, padding, dilation)
            if windows.flat and windows.taps > 1 and tuple(windows.out) == grad.shape[2:]:
                return _scatter_columns(grad, weight, bias, input_size, windows)
        turned = _turned(weight, groups)
        windows = Windows(grad.shape[2:], kernel, stride, [0] * len(kernel), dilation)
        sides = []
        for d in dims:
            before = windows.reach[d] - padding[d]
            sides.append((before, input_size[d + 2] + windows.reach[d] - grad.shape[d + 2] - before))
        windows.set_padding(grad.shape[2:], sides)
        return _product(grad, turned, bias, windows, groups)
    windows = Windows(input_size[2:], kernel, stride, padding, dilation)
    batch = grad.shape[0]
    dtype = np.result_type(grad, weight)
    padded = np.zeros_like(grad, dtype=dtype, shape=(batch, each * groups, *windows.padded), order="C")
    if bias is not None:
        padded += bias.reshape(-1, *[1] * len(kernel))
    if grad.size and weight.size:
        matrix = weight.reshape(groups, outputs, -1).swapaxes(1, 2)
        out = grad.shape[2:]
        windows.out, windows.width = list(out), math.prod(out)
        taps = windows.tap_slices()
        for first, last in windows.blocks(batch, each * groups, dtype.itemsize)[1]:
            n = last - first
            columns = np.matmul(matrix, grad[first:last].reshape(n, groups, outputs, -1))
            columns = columns.reshape(n, each * groups, windows.taps, *out)
            target = padded[first:last]
            for tap, part in enumerate(taps):
                target[part] += columns[:, :, tap]
    if not any(padding):
        return padded
    inner = tuple([slice(p, p + s) for p, s in zip(padding, input_size[2:], strict=True)])
    return np.ascontiguousarray(padded[(slice(None), slice(None), *inner)])


def _scatter_columns(
    grad: np.ndarray, weight: np.ndarray, bias: np.ndarray | None, input_size: Ints, windows: Windows
) -> np.ndarray:
    """The transposed convolution, by columns that are the product: added up where each tap belongs.

    They are as many as the channels of the result, and where those of `grad` are more, the columns of `grad` would be
    more memory, which one thread has to write before all can read it.
    """
    outputs, each = weight.shape[:2]
    dtype = np.result_type(grad, weight)
    matrix = np.ascontiguousarray(weight.reshape(outputs, -1).T)
    result = np.empty(input_size, dtype)
    inner = tuple([slice(b, b + s) for (b, _), s in zip(windows.padding, input_size[2:], strict=True)])
    span, n = windows.span, 0
    for first, last in windows.blocks(grad.shape[0], each, dtype.itemsize)[1]:
        if last - first != n:
            n = last - first
            g = np.zeros((outputs, n, windows.width), dtype)
            columns = np.empty((each, windows.taps, n, windows.width), dtype)
            cells = np.empty((each, n, math.prod(windows.padded)), dtype)
        windows.used(g)[...] = grad[first:last].swapaxes(0, 1)
        np.matmul(matrix, g.reshape(outputs, -1), out=columns.reshape(len(matrix), -1))
        cells[:, :, :span] = columns[:, 0, :, :span]
        cells[:, :, span:] = 0
        for tap in range(1, windows.taps):
            cells[:, :, windows.offsets[tap] :][:, :, :span] += columns[:, tap, :, :span]
        image = cells.reshape(each, n, *windows.padded)[(slice(None), slice(None), *inner)]
        result[first:last] = image.swapaxes(0, 1)
    if bias is not None:
        result += bias.reshape(-1, *[1] * len(inner))
    return result


def _turned(weight: np.ndarray, groups: int) -> np.ndarray:
    """The weight whose convolution is the transposed one."""
    outputs, each, kernel = weight.shape[0] // groups, weight.shape[1], weight.shape[2:]
    turned = weight[(slice(None), slice(None), *[slice(None, None, -1)] * len(kernel))]
    return turned.reshape(groups, outputs, each, *kernel).swapaxes(1, 2).reshape(groups * each, outputs, *kernel)


def _scatter_phases(
    grad: np.ndarray,
    weight: np.ndarray,
    bias: np.ndarray | None,
    input_size: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> np.ndarray | None:
    """The transposed convolution with a stride, by the compiled kernel.

    Cells a stride apart meet the same taps, so that each phase of the result is a convolution of stride 1 with a
    part of the kernel.
    """
    result = np.empty(input_size, grad.dtype)
    grad = np.ascontiguousarray(grad)
    axes = []
    for size, taps, s, p, d in zip(input_size[2:], weight.shape[2:], stride, padding, dilation, strict=True):
        common = math.gcd(s, d)
        along = []
        for first in range(min(s, size)):
            phase = (first + p) % s
            tap = next((i for i in range(s // common) if i * d % s == phase), taps)
            part = slice(tap, None, s // common)
            met = len(range(*part.indices(taps)))
            # The window of the first cell, counted from the gradient that the last of these taps meets.
            before = (tap * d - phase) // s + (met - 1) * (d // common) - (first + p - phase) // s
            along.append((slice(first, None, s), part, met, before, d // common, len(range(first, size, s))))
        axes.append(along)
    for phases in itertools.product(*axes):
        cells = (slice(None), slice(None), *[phase[0] for phase in phases])
        if not all(met for _, _, met, _, _, _ in phases):
            result[cells] = 0 if bias is None else bias.reshape(-1, *[1] * len(phases))
            continue
        turned = _turned(weight[(slice(None), slice(None), *[phase[1] for phase in phases])], groups)
        values = compiled_products.convolution(
            grad, np.ascontiguousarray(turned), bias, [1] * len(phases), [phase[3] for phase in phases],
            [phase[4] for phase in phases], groups, [phase[5] for phase in phases],
        )  # fmt: skip
        if values is None:
            return None
        result[cells] = values
    return result


def transposed_size(
    size: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, output_padding: Ints
) -> list[int]:
    """The spatial sizes of a transposed convolution's result."""
    return [
        (size[d] - 1) * stride[d] - 2 * padding[d] + dilation[d] * (kernel[d] - 1) + output_padding[d] + 1
        for d in range(len(kernel))
    ]


# ---------------------------------------------------------------------------------------------------------- checks


def _check(
    input: np.ndarray,
    weight: np.ndarray,
    bias: np.ndarray | None,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: bool,
    output_padding: Ints,
    groups: int,
) -> None:
    dims = weight.ndim - 2
    for name, values in (("stride", stride), ("padding", padding), ("dilation", dilation)):
        if len(values) != dims:
            raise RuntimeError(
                f"expected {name} to be a single integer value or a list of {dims} values to match the convolution "
                f"dimensions, but got {name}={shape_text(values)}"
            )
    if any(p < 0 for p in padding):
        raise RuntimeError("negative padding is not supported")
    if any(p < 0 for p in output_padding):
        raise RuntimeError("negative output_padding is not supported")
    if any(s <= 0 for s in stride):
        raise RuntimeError("non-positive stride is not supported")
    if any(d <= 0 for d in dilation):
        raise RuntimeError(f"dilation should be greater than zero, but got {shape_text(dilation)}")
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    _check_channels(input, weight, bias, transposed, groups)
    if bias is not None and bias.dtype != input.dtype and not transposed:
        one, other = c_name(input.dtype), c_name(bias.dtype)
        raise RuntimeError(f"Input type ({one}) and bias type ({other}) should be the same")
    for part in (weight,) if bias is None or dims < 3 else (weight, bias):
        if part.dtype != input.dtype:
            raise RuntimeError(f"expected scalar type {scalar_name(input.dtype)} but found {scalar_name(part.dtype)}")
    if bias is not None and bias.dtype.kind == "c" and input.dtype.kind != "c":
        names = scalar_name(bias.dtype), scalar_name(input.dtype)
        raise RuntimeError("result type {} can't be cast to the desired output type {}".format(*names))
    if input.dtype.kind == "b":
        unsupported("slow_conv2d_cpu", input.dtype)
    kernel = weight.shape[2:]
    if transposed:
        if any(o >= s and o >= d for o, s, d in zip(output_padding, stride, dilation, strict=True)):
            raise RuntimeError(
                "output padding must be smaller than either stride or dilation, but got output_padding: "
                f"{shape_text(output_padding)} stride: {shape_text(stride)} dilation: {shape_text(dilation)}"
            )
        size = transposed_size(input.shape[2:], kernel, stride, padding, dilation, output_padding)
        if any(s <= 0 for s in size):
            raise RuntimeError(
                f"Given input size per channel: ({_times(input.shape[2:])}). Calculated output size per channel: "
                f"({_times(size)}). Output size is too small"
            )
        return
    padded = [s + 2 * p for s, p in zip(input.shape[2:], padding, strict=True)]
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    if any(r > s for r, s in zip(reach, padded, strict=True)):
        raise RuntimeError(
            f"Calculated padded input size per channel: ({_times(padded)}). Kernel size: ({_times(reach)}). Kernel "
            "size can't be greater than actual input size"
        )


def _check_channels(
    input: np.ndarray, weight: np.ndarray, bias: np.ndarray | None, transposed: bool, groups: int
) -> None:
    kind = "transposed=1" if transposed else f"groups={groups}"
    if weight.shape[0] < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got weight of size "
            f"{shape_text(weight.shape)} instead"
        )
    if weight.shape[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of "
            f"size [{shape_text(weight.shape)}] instead"
        )
    channels = weight.shape[0] if transposed else weight.shape[1] * groups
    if input.shape[1] != channels:
        raise RuntimeError(
            f"Given {kind}, weight of size {shape_text(weight.shape)}, expected input{shape_text(input.shape)} to have "
            f"{channels} channels, but got {input.shape[1]} channels instead"
        )
    outputs = weight.shape[1] * groups if transposed else weight.shape[0]
    if bias is not None and bias.shape != (outputs,):
        given = "Given transposed=1, weight" if transposed else "Given weight"
        raise RuntimeError(
            f"{given} of size {shape_text(weight.shape)}, expected bias to be 1-dimensional with {outputs} elements, "
            f"but got bias of size {shape_text(bias.shape)} instead"
        )


def _times(sizes: Ints) -> str:
    return " x ".join(str(s) for s in sizes)


def _windows(size: Ints, kernel: Ints, dilation: Ints, padding: Ints, stride: Ints) -> Windows:
    for name, values, least in (("kernel", kernel, 1), ("dilation", dilation, 1), ("stride", stride, 1)):
        if any(v < least for v in values):
            what = "kernel size" if name == "kernel" else name
            raise RuntimeError(f"{what} should be greater than zero, but got {shape_text(values)}")
    if any(p < 0 for p in padding):
        raise RuntimeError(f"padding should be non-negative, but got {shape_text(padding)}")
    windows = Windows(size, kernel, stride, padding, dilation)
    windows.flat = False
    windows.width = windows.count
    return windows


def im2col(a: np.ndarray, kernel: Ints, dilation: Ints, padding: Ints, stride: Ints) -> np.ndarray:
    """(batch, channels, height, width) as (batch, channels * taps, windows)."""
    if a.ndim != 4 or 0 in a.shape[1:]:
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, "
            f"but got: {shape_text(a.shape)}"
        )
    windows = _windows(a.shape[2:], kernel, dilation, padding, stride)
    if any(o < 1 for o in windows.out):
        raise RuntimeError(
            f"Given input with spatial size {_pair(a.shape[2:])}, kernel_size={_pair(kernel)}, "
            f"dilation={_pair(dilation)}, padding={_pair(padding)}, calculated shape of the array of sliding blocks as "
            f"{_pair(windows.out)}, but its components must be at least one."
        )
    buffer = np.empty_like(a, shape=(math.prod(a.shape[:2]) * windows.taps * windows.width,), order="C")
    columns = windows.columns(windows.pad(a), buffer, together=False)
    return columns.reshape(a.shape[0], a.shape[1] * windows.taps, windows.width)


def col2im(
    a: np.ndarray, output_size: Ints, kernel: Ints, dilation: Ints, padding: Ints, stride: Ints
) -> np.ndarray:
    """(batch, channels * taps, windows) added up in (batch, channels, height, width)."""
    if math.prod(kernel) >= 1 << 63:
        raise RuntimeError(
            f"Given kernel_width = {kernel[1]} and kernel_height = {kernel[0]} the product of kernel_width and "
            "kernel_height overflowed."
        )
    windows = _windows(output_size, kernel, dilation, padding, stride)
    if min(windows.out) < 1:
        raise RuntimeError(
            f"Given output_size={_pair(output_size)}, kernel_size={_pair(kernel)}, dilation={_pair(dilation)}, "
            f"padding={_pair(padding)}, stride={_pair(stride)}, calculated shape of the array of sliding blocks as "
            f"{_pair(windows.out)}, which is too small (non-positive)"
        )
    if a.ndim != 3 or 0 in a.shape[1:]:
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for "
            f"input, but got: {shape_text(a.shape)}"
        )
    taps = math.prod(kernel)
    if a.shape[1] % taps:
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
            f"input.size(1)={a.shape[1]} and kernel_size={_pair(kernel)}."
        )
    if a.shape[2] != windows.count:
        raise RuntimeError(
            f"Given output_size={_pair(output_size)}, kernel_size={_pair(kernel)}, dilation={_pair(dilation)}, "
            f"padding={_pair(padding)}, stride={_pair(stride)}, expected size of input's dimension 2 to match the "
            f"calculated number of sliding blocks {windows.out[0]} * {windows.out[1]} = {windows.count}, but got "
            f"input.size(2)={a.shape[2]}."
        )
    channels = a.shape[1] // taps
    columns = a.reshape(a.shape[0], channels, taps, *windows.out)
    padded = np.zeros_like(a, shape=(a.shape[0], channels, *windows.padded), order="C")
    for tap, part in enumerate(windows.tap_slices()):
        padded[part] += columns[:, :, tap]
    inner = tuple([slice(p, p + s) for p, s in zip(padding, output_size, strict=True)])
    return np.ascontiguousarray(padded[(slice(None), slice(None), *inner)])


def _pair(values: Ints) -> str:
    return f"({', '.join(str(v) for v in values)})"


__all__ = ["col2im", "convolution", "convolution_backward_input", "convolution_backward_weight", "im2col"]
