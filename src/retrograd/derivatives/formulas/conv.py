"""Formula helpers of convolutions."""

from __future__ import annotations

import math
from typing import Any

from ...kernels.conv_tbc import tbc_taps


def convolution_grad_input(
    ops: Any, grad: Any, weight: Any, input_size: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
    groups: int,
) -> Any:  # fmt: skip
    """The gradient of `convolution` for its input."""
    weight = weight.conj()
    if transposed:
        return convolution_of_size(ops, grad, weight, input_size, stride, padding, dilation, groups)
    return ops.convolution_backward_input(grad, weight, tuple(input_size), stride, padding, dilation, groups)


def convolution_grad_weight(
    ops: Any, grad: Any, input: Any, weight_size: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
    groups: int,
) -> Any:  # fmt: skip
    """The gradient of `convolution` for its weight."""
    input = input.conj()
    output, input = (input, grad) if transposed else (grad, input)
    return ops.convolution_backward_weight(output, input, tuple(weight_size), stride, padding, dilation, groups)


def convolution_of_size(
    ops: Any, input: Any, weight: Any, size: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    """`convolution`, of which the first windows alone count where `size` says that there are fewer."""
    result = ops.convolution(input, weight, None, stride, padding, dilation, False, (), groups)
    for dim in range(2, len(size)):
        if result.shape[dim] != size[dim]:
            result = ops.narrow(result, dim, 0, size[dim])
    return result


def sum_but_channels(ops: Any, grad: Any) -> Any:
    """The sum over everything but dimension 1: first over what is adjacent in memory."""
    batch, channels = grad.shape[:2]
    return ops.sum(ops.sum(ops.reshape(grad, (batch, channels, math.prod(grad.shape[2:]))), 2), 0)


def along_channels(ops: Any, values: Any, shape: Any) -> Any:
    """One value a channel, expanded to (batch, channels, ...)."""
    if values is None:
        return None
    return ops.expand(ops.reshape(values, (1, -1, *[1] * (len(shape) - 2))), tuple(shape))


# --------------------------------------------------------------------------------------------------------- time first


def conv_tbc_grad_input(ops: Any, grad: Any, weight: Any, size: Any, pad: int) -> Any:
    """The gradient of `conv_tbc` for its input: every tap gives back to what it met."""
    total = None
    for tap, first, source, count in tbc_taps(size[0], weight.shape[0], pad):
        part = ops.narrow(grad, 0, first, count) @ ops.transpose(ops.select(weight, 0, tap).conj(), 0, 1)
        part = ops.constant_pad_nd(part, (0, 0, 0, 0, source, size[0] - source - count), 0)
        total = part if total is None else total + part
    return ops.new_zeros(grad, tuple(size)) if total is None else total


def conv_tbc_grad_weight(ops: Any, grad: Any, input: Any, size: Any, pad: int) -> Any:
    """The gradient of `conv_tbc` for its weight, a matrix product for each tap."""
    _, channels, outputs = size
    parts = {
        tap: ops.transpose(ops.reshape(ops.narrow(input, 0, source, count), (-1, channels)).conj(), 0, 1)
        @ ops.reshape(ops.narrow(grad, 0, first, count), (-1, outputs))
        for tap, first, source, count in tbc_taps(input.shape[0], size[0], pad)
    }
    zeros = ops.new_zeros(grad, (channels, outputs)) if len(parts) < size[0] else None
    return ops.stack([parts.get(tap, zeros) for tap in range(size[0])])


def spread_in(ops: Any, values: Any, result: Any) -> Any:
    """One value an output, for a result whose last dimension they are."""
    return ops.expand(values, tuple(result.shape))
