"""Convolutions and their transposes; part of ``functional``.  All are the operator ``convolution``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..._generated import functions as generated
from ...tensor import Tensor
from .family import family

Ints = int | Sequence[int]


def spread(value: Ints, dims: int) -> tuple[int, ...]:
    """One int for each dimension: an int stands for all of them."""
    if isinstance(value, int):
        return (value,) * dims
    values = tuple([int(v) for v in value])
    return values * dims if len(values) == 1 else values


def _batched(name: str, input: Tensor, dims: int) -> tuple[Tensor, bool]:
    """`input` with a batch dimension, and whether it had one."""
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    ndim = input._data.ndim
    if ndim == dims + 2:
        return input, True
    if ndim == dims + 1:
        return generated.unsqueeze(input, 0), False
    raise RuntimeError(
        f"Expected {dims + 1}D (unbatched) or {dims + 2}D (batched) input to {name}, but got input of size: "
        f"{list(input._data.shape)}"
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
    stride, dilation = spread(stride, dims), spread(dilation, dims)
    if isinstance(padding, str):
        input, padding = _padded_by_name(input, weight, padding, stride, dilation)
    args = stride, spread(padding, dims), dilation, False, (0,) * dims, groups
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
    reach = [d * (k - 1) for d, k in zip(dilation, weight._data.shape[2:], strict=False)]
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
    stride, padding, dilation = (spread(value, dims) for value in (stride, padding, dilation))
    output_padding = spread(output_padding, dims)
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


conv1d, conv2d, conv3d = family(
    "conv{d}d",
    _make_conv,
    """The convolution of {things} with a weight (outputs, channels / groups, ...).

    >>> import retrograd as torch
    >>> torch.nn.functional.conv1d(torch.tensor([[1., 2., 3.]]), torch.tensor([[[1., 10.]]]))
    tensor([[21., 32.]])
    """,
)
conv_transpose1d, conv_transpose2d, conv_transpose3d = family(
    "conv_transpose{d}d",
    _make_conv_transpose,
    """The transpose of `conv{d}d`: what the gradient for its input is; the weight is (channels, outputs / groups, ...).

    >>> import retrograd as torch
    >>> torch.nn.functional.conv_transpose1d(torch.tensor([[1., 2.]]), torch.tensor([[[1., 10.]]]))
    tensor([[ 1., 12., 20.]])
    """,
)
