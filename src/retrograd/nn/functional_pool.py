"""Pooling; part of ``functional``.  One spatial dimension is computed as an image of height 1, as torch does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import kernels
from .._generated import functions as generated
from ..tensor import Tensor
from .functional_conv import Ints, spread

OptionalInts = Sequence[int | None]

# ---------------------------------------------------------------------------------------------------------- max_pool


def _sizes(name: str, what: str, value: Ints, dims: int) -> tuple[int, ...]:
    values = spread(value, dims)
    if len(values) != dims:
        words = {1: "one int", 2: "two ints", 3: "three ints"}[dims]
        raise RuntimeError(f"{name}: {what} must either be a single int, or a tuple of {words}")
    return values


def _stride(name: str, stride: Ints | None, kernel: tuple[int, ...]) -> tuple[int, ...]:
    empty = stride is None or (not isinstance(stride, int) and not len(stride))
    return kernel if empty else _sizes(name, "stride", stride, len(kernel))  # type: ignore[arg-type]


def _max_pool(
    dims: int, input: Tensor, kernel_size: Ints, stride: Ints | None, padding: Ints, dilation: Ints, ceil_mode: bool,
    return_indices: bool,
) -> Any:  # fmt: skip
    name = f"max_pool{dims}d"
    kernel = _sizes(name, "kernel_size", kernel_size, dims)
    step = _stride(name, stride, kernel)
    edge, gap = _sizes(name, "padding", padding, dims), _sizes(name, "dilation", dilation, dims)
    if dims == 1:
        _check_max_pool1d(input, kernel[0], step[0], edge[0], gap[0], ceil_mode)
        kernel, step, edge, gap = (1, *kernel), (1, *step), (0, *edge), (1, *gap)
        input = generated.unsqueeze(input, -2)
    pool = generated._max_pool3d if dims == 3 else generated._max_pool2d
    values, taps = pool(input, kernel, step, edge, gap, bool(ceil_mode))
    indices = generated.max_pool_indices(taps, input._data.shape, kernel, step, edge, gap) if return_indices else None
    if dims == 1:
        values = generated.squeeze_dim(values, -2)
        indices = None if indices is None else generated.squeeze_dim(indices, -2)
    return (values, indices) if return_indices else values


def _check_max_pool1d(input: Tensor, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> None:
    shape = input._data.shape
    if len(shape) not in (2, 3) or 0 in shape[-2:]:
        raise RuntimeError(
            "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but got:"
            f"{list(shape)}"
        )
    for what, value in (("kernel_size", kernel), ("stride", stride), ("dilation", dilation)):
        if value <= 0:
            raise RuntimeError(f"max_pool1d() {what} must be greater than zero, but got {value}")
    if padding < 0:
        raise RuntimeError(f"max_pool1d() padding must be non-negative, but got {padding}")
    if padding > kernel // 2:
        raise RuntimeError(
            f"max_pool1d() padding should be at most half of kernel size, but got padding={padding} and "
            f"kernel_size={kernel}"
        )
    (size,) = kernels.pooled_size(shape[-1:], (kernel,), (stride,), (padding,), (dilation,), ceil_mode)
    if size <= 0:
        raise RuntimeError(f"max_pool1d() Invalid computed output size: {size}")


def max_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The maximum of each window of signals (batch, channels, length); with its index if `return_indices`.

    >>> import retrograd as torch
    >>> torch.nn.functional.max_pool1d(torch.tensor([[1., 3., 2., 5.]]), 2)
    tensor([[3., 5.]])
    """
    return _max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The maximum of each window of images (batch, channels, height, width).

    >>> import retrograd as torch
    >>> torch.nn.functional.max_pool2d(torch.arange(16.).reshape(1, 4, 4), 2)
    tensor([[[ 5.,  7.],
             [13., 15.]]])
    """
    return _max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The maximum of each window of volumes (batch, channels, depth, height, width)."""
    return _max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool1d_with_indices(input: Tensor, kernel_size: Ints, *args: Any, **kwargs: Any) -> Any:
    """`max_pool1d` with ``return_indices=True``."""
    return max_pool1d(input, kernel_size, *args, **{**kwargs, "return_indices": True})


def max_pool2d_with_indices(input: Tensor, kernel_size: Ints, *args: Any, **kwargs: Any) -> Any:
    """`max_pool2d` with ``return_indices=True``."""
    return max_pool2d(input, kernel_size, *args, **{**kwargs, "return_indices": True})


def max_pool3d_with_indices(input: Tensor, kernel_size: Ints, *args: Any, **kwargs: Any) -> Any:
    """`max_pool3d` with ``return_indices=True``."""
    return max_pool3d(input, kernel_size, *args, **{**kwargs, "return_indices": True})


# ---------------------------------------------------------------------------------------------------------- avg_pool


def avg_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of each window of signals.

    >>> import retrograd as torch
    >>> torch.nn.functional.avg_pool1d(torch.tensor([[1., 3., 2., 5.]]), 2)
    tensor([[2.0000, 3.5000]])
    """
    _check_signal("avg_pool1d", input)
    kernel = _sizes("avg_pool1d", "kernel_size", kernel_size, 1)
    step, edge = _stride("avg_pool1d", stride, kernel), _sizes("avg_pool1d", "padding", padding, 1)
    image = generated.unsqueeze(input, -2)
    args = (1, *kernel), (1, *step), (0, *edge), bool(ceil_mode), bool(count_include_pad), None
    return generated.squeeze_dim(generated._avg_pool2d(image, *args), -2)


def _avg_pool(
    dims: int, input: Tensor, kernel_size: Ints, stride: Ints | None, padding: Ints, ceil_mode: bool,
    count_include_pad: bool, divisor_override: int | None,
) -> Tensor:  # fmt: skip
    name = f"avg_pool{dims}d"
    if divisor_override == 0:
        raise RuntimeError("divisor must be not zero")
    kernel = _sizes(name, "kernel_size", kernel_size, dims)
    step, edge = _stride(name, stride, kernel), _sizes(name, "padding", padding, dims)
    pool = generated._avg_pool3d if dims == 3 else generated._avg_pool2d
    return pool(input, kernel, step, edge, bool(ceil_mode), bool(count_include_pad), divisor_override)


def avg_pool2d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window of images, or the sum divided by `divisor_override`."""
    return _avg_pool(2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def avg_pool3d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window of volumes, or the sum divided by `divisor_override`."""
    return _avg_pool(3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def _check_signal(name: str, input: Tensor) -> None:
    ndim = input._data.ndim
    if ndim not in (2, 3):
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {ndim}-dimensional tensor for argument #1 'self' (while checking "
            f"arguments for {name})"
        )


# ---------------------------------------------------------------------------------------------------------- lp_pool


def _lp_pool(dims: int, input: Tensor, norm_type: float, kernel_size: Ints, stride: Any, ceil_mode: bool) -> Tensor:
    kernel = spread(kernel_size, dims)
    step = None if stride is None else spread(stride, dims)
    pool: Any = (avg_pool1d, avg_pool2d, avg_pool3d)[dims - 1]
    mean = pool(input.pow(norm_type), kernel, step, 0, ceil_mode)
    area = 1
    for k in kernel:
        area *= k
    return ((mean.sign() * mean.abs().relu()) * area).pow(1.0 / norm_type)


def lp_pool1d(
    input: Tensor, norm_type: float, kernel_size: Ints, stride: Ints | None = None, ceil_mode: bool = False
) -> Tensor:
    """The `norm_type`-norm of each window of signals."""
    return _lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(
    input: Tensor, norm_type: float, kernel_size: Ints, stride: Ints | None = None, ceil_mode: bool = False
) -> Tensor:
    """The `norm_type`-norm of each window of images."""
    return _lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(
    input: Tensor, norm_type: float, kernel_size: Ints, stride: Ints | None = None, ceil_mode: bool = False
) -> Tensor:
    """The `norm_type`-norm of each window of volumes."""
    return _lp_pool(3, input, norm_type, kernel_size, stride, ceil_mode)


# --------------------------------------------------------------------------------------------------------- adaptive


def _adaptive_size(name: str, input: Tensor, output_size: int | OptionalInts, dims: int) -> tuple[int, ...]:
    shape = input._data.shape
    if dims == 1:
        _check_signal(name, input)
    elif len(shape) not in (dims + 1, dims + 2):
        colon = ":" if "max" in name else ""
        raise RuntimeError(f"{name}(): Expected {dims + 1}D or {dims + 2}D tensor, but got{colon} {list(shape)}")
    if isinstance(output_size, int):
        size: tuple[int, ...] = (output_size,) * dims
    else:
        given = tuple(output_size) * (dims if len(tuple(output_size)) == 1 else 1)
        if len(given) != dims:
            raise RuntimeError(f"{name}: output_size must be {dims}")
        size = tuple([n if s is None else int(s) for s, n in zip(given, shape[-dims:], strict=True)])
    if any(s < 0 for s in size):
        values = ", ".join(str(s) for s in size)
        raise RuntimeError(
            f"{name}: elements of output_size must be greater than or equal to 0 but received {{{values}}}"
        )
    return size


def adaptive_max_pool1d(input: Tensor, output_size: int | OptionalInts, return_indices: bool = False) -> Any:
    """The maxima of the windows that divide signals into `output_size` parts."""
    size = _adaptive_size("adaptive_max_pool1d", input, output_size, 1)
    found = generated._adaptive_max_pool2d(generated.unsqueeze(input, -2), (1, *size))
    values, indices = (generated.squeeze_dim(part, -2) for part in found)
    return (values, indices) if return_indices else values


def adaptive_max_pool2d(input: Tensor, output_size: int | OptionalInts, return_indices: bool = False) -> Any:
    """The maxima of the windows that divide images into `output_size` parts.

    >>> import retrograd as torch
    >>> torch.nn.functional.adaptive_max_pool2d(torch.arange(12.).reshape(1, 3, 4), (1, 2))
    tensor([[[ 9., 11.]]])
    """
    size = _adaptive_size("adaptive_max_pool2d", input, output_size, 2)
    values, indices = generated._adaptive_max_pool2d(input, size)
    return (values, indices) if return_indices else values


def adaptive_max_pool3d(input: Tensor, output_size: int | OptionalInts, return_indices: bool = False) -> Any:
    """The maxima of the windows that divide volumes into `output_size` parts."""
    size = _adaptive_size("adaptive_max_pool3d", input, output_size, 3)
    values, indices = generated._adaptive_max_pool3d(input, size)
    return (values, indices) if return_indices else values


def adaptive_avg_pool1d(input: Tensor, output_size: int | OptionalInts) -> Tensor:
    """The means of the windows that divide signals into `output_size` parts."""
    size = _adaptive_size("adaptive_avg_pool1d", input, output_size, 1)
    return generated.squeeze_dim(generated._adaptive_avg_pool2d(generated.unsqueeze(input, -2), (1, *size)), -2)


def adaptive_avg_pool2d(input: Tensor, output_size: int | OptionalInts) -> Tensor:
    """The means of the windows that divide images into `output_size` parts.

    >>> import retrograd as torch
    >>> torch.nn.functional.adaptive_avg_pool2d(torch.arange(12.).reshape(1, 3, 4), 1)
    tensor([[[5.5000]]])
    """
    size = _adaptive_size("adaptive_avg_pool2d", input, output_size, 2)
    if size == (1, 1):
        return input.mean((-1, -2), keepdim=True)
    return generated._adaptive_avg_pool2d(input, size)


def adaptive_avg_pool3d(input: Tensor, output_size: int | OptionalInts) -> Tensor:
    """The means of the windows that divide volumes into `output_size` parts."""
    size = _adaptive_size("adaptive_avg_pool3d", input, output_size, 3)
    if size == (1, 1, 1):
        return input.mean((-1, -2, -3), keepdim=True)
    return generated._adaptive_avg_pool3d(input, size)
