"""Maxima put back where they came from; part of ``functional``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ..._generated import functions as generated
from ...kernels.promotion import unsupported
from ...tensor import Tensor
from .conv import Ints, spread
from .family import family


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
    kernel = spread(kernel_size, dims)
    step = kernel if stride is None else spread(stride, dims)
    shape = input._data.shape
    if input._data.dtype.kind not in "fV":
        unsupported("max_unpool3d" if dims == 3 else "max_unpool2d", input._data.dtype)
    if indices._data.dtype != "int64":
        raise RuntimeError(f"elements in indices should be type int64 but got: {indices.dtype}")
    if indices._data.shape != shape:
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor ({list(shape)}) but got indices tensor "
            f"with shape: {list(indices._data.shape)}"
        )
    if len(shape) not in (dims + 1, dims + 2):
        raise RuntimeError(
            f"Input to max_unpooling{dims}d should be a {dims + 1}d or {dims + 2}d Tensor, but got a tensor with "
            f"{len(shape)} dims"
        )
    size = _output_size(shape, kernel, step, spread(padding, dims), output_size)
    volume = math.prod(size)
    places = indices._data
    if places.size and (int(places.min()) < 0 or int(places.max()) >= volume):
        wrong = int(places.min()) if int(places.min()) < 0 else int(places.max())
        raise RuntimeError(
            f"Found an invalid max index: {wrong} (output volumes are of size {'x'.join(str(s) for s in size)}"
        )
    lead = shape[: len(shape) - dims]
    rows = (*lead, math.prod(shape[len(shape) - dims :]))
    zeros = input.new_zeros((*lead, volume))
    result = generated.scatter_src(zeros, -1, indices.reshape(rows), input.reshape(rows))
    return result.reshape((*lead, *size))


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


max_unpool1d, max_unpool2d, max_unpool3d = family(
    "max_unpool{d}d",
    _make_max_unpool,
    """The values of `max_pool{d}d` at their indices, and zeros elsewhere.

    >>> import retrograd as torch
    >>> torch.nn.functional.max_unpool1d(torch.tensor([[3., 5.]]), torch.tensor([[1, 3]]), 2)
    tensor([[0., 3., 0., 5.]])
    """,
)
