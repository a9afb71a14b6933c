"""Convolutions, their transposes, and the windows they see (`fold`, `unfold`); part of ``functional``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._generated import functions as generated
from ...kernels.promotion import unsupported
from ...ops.registry import composite
from ...tensor import Tensor
from .family import declared_family

Ints = int | Sequence[int]


def per_dimension(value: Ints, dims: int) -> tuple[int, ...]:
    """One int for each dimension: an int stands for all of them."""
    if isinstance(value, int):
        return (value,) * dims
    values = tuple([int(v) for v in value])
    return values * dims if len(values) == 1 else values


def _batched(name: str, input: Tensor, dims: int) -> tuple[Tensor, bool]:
    """`input` with a batch dimension, and whether it had one."""
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    ndim = input._memory_.ndim
    if ndim == dims + 2:
        return input, True
    if ndim == dims + 1:
        return generated.unsqueeze(input, 0), False
    raise RuntimeError(
        f"Expected {dims + 1}D (unbatched) or {dims + 2}D (batched) input to {name}, but got input of size: "
        f"{list(input._memory_.shape)}"
    )


def _conv(
    name: str,
    dims: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Ints,
    padding: str | Ints,
    dilation: Ints,
    groups: int,
) -> Tensor:
    input, batched = _batched(name, input, dims)
    stride, dilation = per_dimension(stride, dims), per_dimension(dilation, dims)
    if isinstance(padding, str):
        input, padding = _padded_by_name(input, weight, padding, stride, dilation)
    args = stride, per_dimension(padding, dims), dilation, False, (0,) * dims, groups
    result = generated.convolution(input, weight, bias, *args)
    return result if batched else generated.squeeze_dim(result, 0)


def _padded_by_name(
    input: Tensor, weight: Tensor, padding: str, stride: Sequence[int], dilation: Sequence[int]
) -> tuple[Tensor, tuple[int, ...]]:
    """The padding that "valid" or "same" means; what is more on one side than on the other is added to the input."""
    if padding == "valid":
        return input, (0,) * len(stride)
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: '{padding}'")
    if any(s != 1 for s in stride):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    reach = [d * (k - 1) for d, k in zip(dilation, weight._memory_.shape[2:], strict=False)]
    if any(r % 2 for r in reach):
        more = [side for r in reversed(reach) for side in (0, r % 2)]
        input = generated.constant_pad_nd(input, tuple(more), 0)
    return input, tuple([r // 2 for r in reach])


def _conv_transpose(
    name: str,
    dims: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Ints,
    padding: Ints,
    output_padding: Ints,
    groups: int,
    dilation: Ints,
) -> Tensor:
    input, batched = _batched(name, input, dims)
    stride, padding, dilation = (per_dimension(value, dims) for value in (stride, padding, dilation))
    output_padding = per_dimension(output_padding, dims)
    result = generated.convolution(input, weight, bias, stride, padding, dilation, True, output_padding, groups)
    return result if batched else generated.squeeze_dim(result, 0)


def _make_conv(dims: int) -> Callable[..., Tensor]:
    def conv(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Ints = 1,
        padding: str | Ints = 0,
        dilation: Ints = 1,
        groups: int = 1,
    ) -> Tensor:
        return _conv(f"conv{dims}d", dims, input, weight, bias, stride, padding, dilation, groups)

    return conv


def _make_conv_transpose(dims: int) -> Callable[..., Tensor]:
    def conv_transpose(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Ints = 1,
        padding: Ints = 0,
        output_padding: Ints = 0,
        groups: int = 1,
        dilation: Ints = 1,
    ) -> Tensor:
        name = f"conv_transpose{dims}d"
        return _conv_transpose(name, dims, input, weight, bias, stride, padding, output_padding, groups, dilation)

    return conv_transpose


conv1d: Callable[..., Tensor]
conv2d: Callable[..., Tensor]
conv3d: Callable[..., Tensor]
conv1d, conv2d, conv3d = declared_family(
    "conv{d}d",
    _make_conv,
    """The convolution of {things} with a weight (outputs, channels / groups, ...).

    >>> import retrograd as torch
    >>> torch.nn.functional.conv1d(torch.tensor([[1., 2., 3.]]), torch.tensor([[[1., 10.]]]))
    tensor([[21., 32.]])
    """,
    shared=(1, 2, 3),
)
conv_transpose1d: Callable[..., Tensor]
conv_transpose2d: Callable[..., Tensor]
conv_transpose3d: Callable[..., Tensor]
conv_transpose1d, conv_transpose2d, conv_transpose3d = declared_family(
    "conv_transpose{d}d",
    _make_conv_transpose,
    """The transpose of `conv{d}d`: what the gradient for its input is; the weight is (channels, outputs / groups, ...).

    >>> import retrograd as torch
    >>> torch.nn.functional.conv_transpose1d(torch.tensor([[1., 2.]]), torch.tensor([[[1., 10.]]]))
    tensor([[ 1., 12., 20.]])
    """,
    shared=(1, 2, 3),
)


def _pairs(input: Tensor, **given: Ints) -> list[Any]:
    """Each as a pair; a list of another length is refused, and so are integers."""
    if input._memory_.dtype.kind in "iu":
        unsupported("im2col_out_cpu", input._memory_.dtype)
    for name, value in given.items():
        if not isinstance(value, int) and len(value) != 2:
            raise RuntimeError(f"It is expected {name} equals to 2, but got size {len(value)}")
    return [per_dimension(value, 2) for value in given.values()]


@composite(space="nn.functional")
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
    batched = input._memory_.ndim == 4
    result = generated.im2col(input if batched else input.unsqueeze(0), *args)
    return result if batched else result.squeeze(0)


@composite(space="nn.functional")
def fold(
    input: Tensor, output_size: Ints, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1
) -> Tensor:
    """The sum of columns, each put where its window lies in an image of `output_size`."""
    args = _pairs(
        input, output_size=output_size, kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride
    )
    batched = input._memory_.ndim == 3
    result = generated.col2im(input if batched else input.unsqueeze(0), *args)
    return result if batched else result.squeeze(0)
