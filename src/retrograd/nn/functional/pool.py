"""Pooling and its inverse; part of ``functional``.

One spatial dimension is computed as an image of height 1, as torch does.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

from ... import kernels
from ..._generated import functions as generated
from ...core.state import local
from ...kernels.promotion import unsupported
from ...kernels.storage import has_channels_last
from ...ops.registry import composite
from ...random import default_generator, generator_of
from ...tensor import Tensor, wrap
from ...tensor.special import all_values
from .conv import Ints, per_dimension
from .family import declared_family

OptionalInts = Sequence[int | None]

# ---------------------------------------------------------------------------------------------------------- max_pool


def _uniform_samples(shape: tuple[int, ...], dtype: Any, device: Any = None) -> Tensor:
    """Uniform numbers; within a vmap, those that it says."""
    levels = local.state.batch_levels
    if levels:
        return levels[-1].draw(_uniform_samples, (shape, dtype, device), {})
    drawn = wrap((default_generator if device is None else generator_of(device)).uniform(shape, dtype))
    return drawn if device is None else drawn.to(device)  # type: ignore[attr-defined]


def _sizes(name: str, what: str, value: Ints, dims: int, most: int = 0x7FFFFFFF) -> tuple[int, ...]:
    values = per_dimension(value, dims)
    if len(values) != dims:
        words = {1: "one int", 2: "two ints", 3: "three ints"}[dims]
        raise RuntimeError(f"{name}: {what} must either be a single int, or a tuple of {words}")
    if max(values) > most:
        raise RuntimeError(f"{name}: {what}: value cannot be converted to type int without overflow")
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
    shape = input._memory_.shape
    indices = generated.max_pool_indices(taps, shape, kernel, step, edge, gap) if return_indices else None
    if dims == 1:
        values = generated.squeeze_dim(values, -2)
        indices = None if indices is None else generated.squeeze_dim(indices, -2)
    return (values, indices) if return_indices else values


def _check_max_pool1d(input: Tensor, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> None:
    shape = input._memory_.shape
    if len(shape) not in (2, 3) or 0 in shape[-2:]:
        raise RuntimeError(
            "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but got:"
            f"{list(shape)}"
        )
    for what, value in (("kernel_size", kernel), ("stride", stride), ("dilation", dilation)):
        if value <= 0:
            raise RuntimeError(f"max_pool1d() {what} must be greater than zero, but got {value}")
    if padding < 0:
        # (Here and below, torch says one thing or the other, depending on return_indices.)
        raise RuntimeError(
            f"max_pool1d() padding must be non-negative, but got {padding} (pad must be non-negative, but got pad: "
            f"{padding})"
        )
    if padding > kernel // 2:
        raise RuntimeError(
            f"max_pool1d() padding should be at most half of kernel size, but got padding={padding} and "
            f"kernel_size={kernel} (pad should be at most half of effective kernel size, but got pad={padding}, "
            f"kernel_size={kernel} and dilation={dilation})"
        )
    (size,) = kernels.pooled_size(shape[-1:], (kernel,), (stride,), (padding,), (dilation,), ceil_mode)
    if size <= 0:
        raise RuntimeError(f"max_pool1d() Invalid computed output size: {size}. Output size is too small")


def _make_max_pool(dims: int) -> Callable[..., Any]:
    def max_pool(
        input: Tensor,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        dilation: Ints = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        return _max_pool(dims, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)

    return max_pool


max_pool1d: Callable[..., Any]
max_pool2d: Callable[..., Any]
max_pool3d: Callable[..., Any]
max_pool1d, max_pool2d, max_pool3d = declared_family(
    "max_pool{d}d",
    _make_max_pool,
    """The maximum of each window of {things}; with its index if `return_indices`.

    >>> import retrograd as torch
    >>> torch.nn.functional.max_pool1d(torch.tensor([[1., 3., 2., 5.]]), 2)
    tensor([[3., 5.]])
    """,
    shared=(1, 2, 3),
)


def with_indices(pools: tuple[Callable[..., Any], ...], *also: str) -> tuple[Callable[..., Any], ...]:
    """The functions with ``return_indices=True``, declared; the first under the names `also` too."""

    def make(pool: Callable[..., Any]) -> Callable[..., Any]:
        most = list(inspect.signature(pool).parameters).index("return_indices")  # given, it makes no difference

        @functools.wraps(pool)
        def function(*args: Any, **kwargs: Any) -> Any:
            return pool(*args[:most], **{**kwargs, "return_indices": True})

        function.__name__ = function.__qualname__ = f"{pool.__name__}_with_indices"
        function.__doc__ = f"`{pool.__name__}` with ``return_indices=True``."
        return composite(*(also if pool is pools[0] else ()), space="nn.functional")(function)

    return tuple([make(pool) for pool in pools])


max_pool1d_with_indices: Callable[..., Any]
max_pool2d_with_indices: Callable[..., Any]
max_pool3d_with_indices: Callable[..., Any]
max_pool1d_with_indices, max_pool2d_with_indices, max_pool3d_with_indices = with_indices(
    (max_pool1d, max_pool2d, max_pool3d), "torch.max_pool1d_with_indices"
)


# ---------------------------------------------------------------------------------------------------------- avg_pool


@composite("torch.avg_pool1d", space="nn.functional")
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


def _make_avg_pool(dims: int) -> Callable[..., Tensor]:
    def avg_pool(
        input: Tensor,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Tensor:
        return _avg_pool(dims, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)

    return avg_pool


avg_pool2d: Callable[..., Tensor]
avg_pool3d: Callable[..., Tensor]
avg_pool2d, avg_pool3d = declared_family(
    "avg_pool{d}d",
    _make_avg_pool,
    "The mean of each window of {things}, or the sum divided by `divisor_override`.",
    (2, 3),
    out=True,
)


def _check_signal(name: str, input: Tensor) -> None:
    ndim = input._memory_.ndim
    if ndim not in (2, 3):
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {ndim}-dimensional tensor for argument #1 'self' (while checking "
            f"arguments for {name})"
        )


# ---------------------------------------------------------------------------------------------------------- lp_pool


def _lp_pool(dims: int, input: Tensor, norm_type: float, kernel_size: Ints, stride: Any, ceil_mode: bool) -> Tensor:
    kernel = per_dimension(kernel_size, dims)
    step = None if stride is None else per_dimension(stride, dims)
    pool: Any = (avg_pool1d, avg_pool2d, avg_pool3d)[dims - 1]
    mean = pool(input.pow(norm_type), kernel, step, 0, ceil_mode)
    area = 1
    for k in kernel:
        area *= k
    return ((mean.sign() * mean.abs().relu()) * area).pow(1.0 / norm_type)


def _make_lp_pool(dims: int) -> Callable[..., Tensor]:
    def lp_pool(
        input: Tensor, norm_type: float, kernel_size: Ints, stride: Ints | None = None, ceil_mode: bool = False
    ) -> Tensor:
        return _lp_pool(dims, input, norm_type, kernel_size, stride, ceil_mode)

    return lp_pool


lp_pool1d: Callable[..., Tensor]
lp_pool2d: Callable[..., Tensor]
lp_pool3d: Callable[..., Tensor]
lp_pool1d, lp_pool2d, lp_pool3d = declared_family(
    "lp_pool{d}d", _make_lp_pool, "The `norm_type`-norm of each window of {things}."
)


# --------------------------------------------------------------------------------------------------------- adaptive


def _adaptive_size(name: str, input: Tensor, output_size: int | OptionalInts, dims: int) -> tuple[int, ...]:
    shape = input._memory_.shape
    if dims == 1:
        _check_signal(name, input)
    elif not isinstance(output_size, int) and len(shape) <= len(output_size):
        raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
    elif len(shape) not in (dims + 1, dims + 2):
        colon = ":" if "max" in name else ""
        raise RuntimeError(f"{name}(): Expected {dims + 1}D or {dims + 2}D tensor, but got{colon} {list(shape)}")
    if isinstance(output_size, int):
        size: tuple[int, ...] = (output_size,) * dims
    else:
        given = tuple(output_size) * (dims if len(tuple(output_size)) == 1 else 1)
        if len(given) != dims:
            if dims == 1:
                raise RuntimeError(f"{name}() argument 'output_size' should contain one int (got {len(given)})")
            what = f"{name}(): internal error: output_size.size()" if "max" in name else f"{name}: output_size"
            raise RuntimeError(f"{what} must be {dims}")
        size = tuple([n if s is None else int(s) for s, n in zip(given, shape[-dims:], strict=True)])
    if any(s < 0 for s in size):
        if "max" in name:
            negative = next(s for s in size if s < 0)
            whole = [*shape[: len(shape) - dims], *([1] if dims == 1 else []), *size]
            raise RuntimeError(f"Trying to create tensor with negative dimension {negative}: {whole}")
        values = ", ".join(str(s) for s in size)
        raise RuntimeError(
            f"{name}: elements of output_size must be greater than or equal to 0 but received {{{values}}}"
        )
    return size


def _check_not_empty(name: str, input: Tensor, dims: int) -> None:
    """There are channels, and there is something in them; the batch may be empty."""
    shape = input._memory_.shape
    for dim in range(max(len(shape) - dims - 1, 0), len(shape)):
        if not shape[dim]:
            raise RuntimeError(
                f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
                f"{list(shape)} with dimension {dim} being empty"
            )


def _make_adaptive_max_pool(dims: int) -> Callable[..., Any]:
    pool = generated._adaptive_max_pool3d if dims == 3 else generated._adaptive_max_pool2d

    def adaptive_max_pool(input: Tensor, output_size: int | OptionalInts, return_indices: bool = False) -> Any:
        size = _adaptive_size(f"adaptive_max_pool{dims}d", input, output_size, dims)
        _check_not_empty(f"adaptive_max_pool{dims}d", input, dims)
        if dims == 1:
            found = pool(generated.unsqueeze(input, -2), (1, *size))
            values, indices = (generated.squeeze_dim(part, -2) for part in found)
        else:
            values, indices = pool(input, size)
        return (values, indices) if return_indices else values

    return adaptive_max_pool


adaptive_max_pool1d: Callable[..., Any]
adaptive_max_pool2d: Callable[..., Any]
adaptive_max_pool3d: Callable[..., Any]
adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = declared_family(
    "adaptive_max_pool{d}d",
    _make_adaptive_max_pool,
    """The maxima of the windows that divide {things} into `output_size` parts.

    >>> import retrograd as torch
    >>> torch.nn.functional.adaptive_max_pool2d(torch.arange(12.).reshape(1, 3, 4), (1, 2))
    tensor([[[ 9., 11.]]])
    """,
)
adaptive_max_pool1d_with_indices: Callable[..., Any]
adaptive_max_pool2d_with_indices: Callable[..., Any]
adaptive_max_pool3d_with_indices: Callable[..., Any]
adaptive_max_pool1d_with_indices, adaptive_max_pool2d_with_indices, adaptive_max_pool3d_with_indices = with_indices(
    (adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d)
)


def _make_adaptive_avg_pool(dims: int) -> Callable[..., Tensor]:
    pool = generated._adaptive_avg_pool3d if dims == 3 else generated._adaptive_avg_pool2d

    def adaptive_avg_pool(input: Tensor, output_size: int | OptionalInts) -> Tensor:
        size = _adaptive_size(f"adaptive_avg_pool{dims}d", input, output_size, dims)
        if dims == 1:
            return generated.squeeze_dim(adaptive_avg_pool2d(generated.unsqueeze(input, -2), (1, *size)), -2)
        if set(size) == {1}:
            mean = input.mean(tuple(range(-1, -dims - 1, -1)), keepdim=True)
            if kernels.is_contiguous(input._memory_) or not has_channels_last(input._memory_):
                return mean
            shape = mean._memory_.shape
            channels = shape[1]
            return mean.as_strided_(shape, (channels, 1, *[channels] * dims))
        return pool(input, size)

    return adaptive_avg_pool


adaptive_avg_pool1d: Callable[..., Tensor]
adaptive_avg_pool2d: Callable[..., Tensor]
adaptive_avg_pool3d: Callable[..., Tensor]
adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = declared_family(
    "adaptive_avg_pool{d}d",
    _make_adaptive_avg_pool,
    """The means of the windows that divide {things} into `output_size` parts.

    >>> import retrograd as torch
    >>> torch.nn.functional.adaptive_avg_pool2d(torch.arange(12.).reshape(1, 3, 4), 1)
    tensor([[[5.5000]]])
    """,
    shared=(1,),
)


# ------------------------------------------------------------------------------------------------------- fractional


def _make_fractional_max_pool(dims: int) -> Callable[..., Any]:
    pool = generated._fractional_max_pool3d if dims == 3 else generated._fractional_max_pool2d
    name = f"fractional_max_pool{dims}d"

    def fractional_max_pool(
        input: Tensor,
        kernel_size: Ints,
        output_size: Ints | None = None,
        output_ratio: float | Sequence[float] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> Any:
        shape = input._memory_.shape
        _check_not_empty(name, input, dims)
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
        if output_size is None:
            ratios = (output_ratio,) * dims if isinstance(output_ratio, (int, float)) else tuple(output_ratio or ())
            if len(ratios) != dims:
                raise ValueError(f"{name} requires output_ratio to either be a single Int or tuple of Ints.")
            output_size = tuple([int(n * r) for n, r in zip(shape[-dims:], ratios, strict=True)])
        if _random_samples is None:
            batch = shape[0] if len(shape) == dims + 2 else 1
            planes = (batch, shape[len(shape) - dims - 1], dims)
            _random_samples = _uniform_samples(planes, input._memory_.dtype, input.device)
        for what, value in (("kernel_size", kernel_size), ("output_size", output_size)):
            if not isinstance(value, int) and len(value) != dims:
                raise RuntimeError(f"{name}: {what} must either be a single Int or tuple of Ints")
        kernel, size = (
            _sizes(name, what, value, dims, 0x7FFFFFFFFFFFFFFF)
            for what, value in (("kernel_size", kernel_size), ("output_size", output_size))
        )
        values, indices = pool(input, kernel, size, _random_samples)
        return (values, indices) if return_indices else values

    return fractional_max_pool


fractional_max_pool2d: Callable[..., Any]
fractional_max_pool3d: Callable[..., Any]
fractional_max_pool2d, fractional_max_pool3d = declared_family(
    "fractional_max_pool{d}d",
    _make_fractional_max_pool,
    """The maxima of windows of {things} whose steps are drawn at random, to make `output_size` of them.

    >>> import retrograd as torch
    >>> torch.nn.functional.fractional_max_pool2d(torch.ones(1, 5, 5), 2, output_size=3).shape
    torch.Size([1, 3, 3])
    """,
    (2, 3),
)
fractional_max_pool2d_with_indices: Callable[..., Any]
fractional_max_pool3d_with_indices: Callable[..., Any]
fractional_max_pool2d_with_indices, fractional_max_pool3d_with_indices = with_indices(
    (fractional_max_pool2d, fractional_max_pool3d)
)


def _output_size(
    shape: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    given: Sequence[int] | None,
) -> tuple[int, ...]:
    dims = len(kernel)
    size = shape[len(shape) - dims :]
    default = [(size[d] - 1) * stride[d] + kernel[d] - 2 * padding[d] for d in range(dims)]
    if given is None:
        return tuple(default)
    wanted = tuple([int(s) for s in given])
    if len(wanted) == dims + 2:
        wanted = wanted[2:]
    if len(wanted) != dims:
        raise ValueError(
            f"output_size should be a sequence containing {dims} or {dims + 2} elements, but it has a length of "
            f"'{len(wanted)}'"
        )
    for d in range(dims):
        low, high = default[d] - stride[d], default[d] + stride[d]
        if not low < wanted[d] < high:
            raise ValueError(f"invalid output_size {list(wanted)} (dim {d} must be between {low} and {high})")
    return wanted


def _max_unpool(
    dims: int,
    input: Tensor,
    indices: Tensor,
    kernel_size: Ints,
    stride: Ints | None,
    padding: Ints,
    output_size: Sequence[int] | None,
) -> Tensor:
    kernel = per_dimension(kernel_size, dims)
    step = kernel if stride is None else per_dimension(stride, dims)
    if dims == 3 and len(step) == dims and min(step) <= 0:
        raise RuntimeError(f"strides should be greater than zero, but got stride: {list(step)}")
    shape = input._memory_.shape
    if input._memory_.dtype.kind not in "fV":
        unsupported("max_unpool3d" if dims == 3 else "max_unpool2d", input._memory_.dtype)
    if indices._memory_.dtype != "int64":
        raise RuntimeError(f"elements in indices should be type int64 but got: {indices.dtype}")
    if indices._memory_.shape != shape:
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor ({list(shape)}) but got indices tensor "
            f"with shape: {list(indices._memory_.shape)}"
        )
    if len(shape) not in (dims + 1, dims + 2):
        raise RuntimeError(
            f"Input to max_unpooling{dims}d should be a {dims + 1}d or {dims + 2}d Tensor, but got a tensor with "
            f"{len(shape)} dims"
        )
    if len(kernel) != dims:
        needed = {1: "one element", 2: "two elements (height, width)", 3: "three elements (depth, height, width)"}[dims]
        raise RuntimeError(f"There should be exactly {needed} in output_size, but got {len(kernel)} elements.")
    size = _output_size(shape, kernel, step, per_dimension(padding, dims), output_size)
    volume = math.prod(size)
    places = all_values(indices)
    if places.size and (int(places.min()) < 0 or int(places.max()) >= volume):
        wrong = int(places.min()) if int(places.min()) < 0 else int(places.max())
        raise RuntimeError(
            f"Found an invalid max index: {wrong} (output volumes are of size {'x'.join(str(s) for s in size)}"
        )
    if dims == 1:
        image = generated._max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), (*size, 1))
        return image.squeeze(-1)
    return (generated._max_unpool2d if dims == 2 else generated._max_unpool3d)(input, indices, tuple(size))


def _make_max_unpool(dims: int) -> Callable[..., Tensor]:
    def max_unpool(
        input: Tensor,
        indices: Tensor,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        output_size: Sequence[int] | None = None,
    ) -> Tensor:
        return _max_unpool(dims, input, indices, kernel_size, stride, padding, output_size)

    return max_unpool


max_unpool1d: Callable[..., Tensor]
max_unpool2d: Callable[..., Tensor]
max_unpool3d: Callable[..., Tensor]
max_unpool1d, max_unpool2d, max_unpool3d = declared_family(
    "max_unpool{d}d",
    _make_max_unpool,
    """The values of `max_pool{d}d` at their indices, and zeros elsewhere.

    >>> import retrograd as torch
    >>> torch.nn.functional.max_unpool1d(torch.tensor([[3., 5.]]), torch.tensor([[1, 3]]), 2)
    tensor([[0., 3., 0., 5.]])
    """,
)
