"""The windows of images as columns, and back; part of ``functional``."""

from __future__ import annotations

from ..._generated import functions as generated
from ...kernels.promotion import unsupported
from ...tensor import Tensor
from .conv import Ints, spread


def _pairs(input: Tensor, **given: Ints) -> list:
    """Each as a pair; a list of another length is refused, and so are integers."""
    if input._data.dtype.kind in "iu":
        unsupported("im2col_out_cpu", input._data.dtype)
    for name, value in given.items():
        if not isinstance(value, int) and len(value) != 2:
            raise RuntimeError(f"It is expected {name} equals to 2, but got size {len(value)}")
    return [spread(value, 2) for value in given.values()]


def unfold(input: Tensor, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1) -> Tensor:
    """The windows of images (batch, channels, height, width) as the columns of (batch, channels * taps, windows).

    >>> import retrograd as torch
    >>> torch.nn.functional.unfold(torch.arange(6.).reshape(1, 1, 2, 3), 2)
    tensor([[[0., 1.],
             [1., 2.],
             [3., 4.],
             [4., 5.]]])
    """
    args = _pairs(input, kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride)
    batched = input._data.ndim == 4
    result = generated.im2col(input if batched else input.unsqueeze(0), *args)
    return result if batched else result.squeeze(0)


def fold(
    input: Tensor, output_size: Ints, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1
) -> Tensor:
    """The sum of columns, each put where its window lies in an image of `output_size`."""
    args = _pairs(
        input, output_size=output_size, kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride
    )
    batched = input._data.ndim == 3
    result = generated.col2im(input if batched else input.unsqueeze(0), *args)
    return result if batched else result.squeeze(0)
