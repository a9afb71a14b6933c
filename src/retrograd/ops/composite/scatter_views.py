"""``*_scatter``, a copy with a part of it replaced, and ``*_copy``, a view operator whose result has its own memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._generated import functions as table
from ...core import dtypes
from ...core.constants import contiguous_format
from ...tensor import Tensor
from ..registry import composite
from . import shape


def _replaced(input: Tensor, src: Tensor, view: Callable[[Tensor], Tensor]) -> Tensor:
    """A copy of `input` whose part that `view` shows is `src`."""
    result = table.clone(input)
    part = view(result)
    if part._data.shape != src._data.shape:
        raise RuntimeError(
            "expected src to have a size equal to the slice of self. "
            f"src size = {list(src._data.shape)}, slice size = {list(part._data.shape)}"
        )
    table.copy_(part, src, False)
    return result


@composite(out=True)
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """`input` with `src` in place of ``input.select(dim, index)``.

    >>> import retrograd as torch
    >>> torch.select_scatter(torch.zeros(2, 2), torch.ones(2), 0, 0)
    tensor([[1., 1.],
            [0., 0.]])
    """
    return _replaced(input, src, lambda x: table.select(x, dim, index))


@composite(out=True)
def slice_scatter(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """`input` with `src` in place of the slice of it."""
    return _replaced(input, src, lambda x: table.slice(x, dim, start, end, step))


@composite(out=True)
def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """`input` with `src` in place of its diagonal."""
    return _replaced(input, src, lambda x: table.diagonal(x, offset, dim1, dim2))


@composite(out=True)
def as_strided_scatter(
    input: Tensor, src: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """`input` with `src` in place of ``input.as_strided(size, stride, storage_offset)``."""
    return _replaced(input, src, lambda x: shape.as_strided(x, size, stride, storage_offset))


@composite(space="Tensor")
def fill_diagonal_(input: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Set the main diagonal of a matrix to `fill_value`; with `wrap`, again below a square."""
    sizes = input._data.shape
    if len(sizes) < 2:
        raise RuntimeError("dimensions must larger than 1")
    if len(sizes) > 2 and len(set(sizes)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    item = input._memory.itemsize
    steps = [s // item for s in input._memory.strides]
    count, step = min(sizes), sum(steps)
    from .inplace import fill_

    fill_(shape.as_strided(input, (count,), (step,), input.storage_offset()), fill_value)
    if wrap and len(sizes) == 2 and sizes[0] > sizes[1] + 1:
        columns = sizes[1]
        start = (columns + 1) * steps[0]
        rest = sizes[0] - columns - 1
        full, left = divmod(rest, columns + 1)
        for block in range(full + bool(left)):
            length = columns if block < full else min(left, columns)
            offset = input.storage_offset() + start + block * (columns + 1) * steps[0]
            fill_(shape.as_strided(input, (length,), (step,), offset), fill_value)
    return input


# ------------------------------------------------------------------------------------------------------ copies of views

def _dense(view: Tensor) -> Tensor:
    return table.clone(view, memory_format=contiguous_format)


def _all_dense(views: Sequence[Tensor]) -> tuple[Tensor, ...]:
    return tuple(_dense(view) for view in views)


@composite(method=False, out=True)
def alias_copy(input: Tensor) -> Tensor:
    """`alias` whose result has memory of its own."""
    return _dense(table.alias(input))


@composite(method=False, out=True)
def as_strided_copy(
    input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """`as_strided` whose result has memory of its own."""
    return _dense(shape.as_strided(input, size, stride, storage_offset))


@composite(method=False, out=True)
def detach_copy(input: Tensor) -> Tensor:
    """`detach` whose result has memory of its own."""
    return _dense(input.detach())


@composite(method=False, out=True)
def diagonal_copy(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """`diagonal` whose result has memory of its own."""
    return _dense(table.diagonal(input, offset, dim1, dim2))


@composite(method=False, out=True)
def permute_copy(input: Tensor, dims: Sequence[int]) -> Tensor:
    """`permute` whose result has memory of its own."""
    return _dense(table.permute(input, dims))


@composite(method=False, out=True)
def select_copy(input: Tensor, dim: int, index: int) -> Tensor:
    """`select` whose result has memory of its own."""
    return _dense(table.select(input, dim, index))


@composite(method=False, out=True)
def slice_copy(
    input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """`slice` whose result has memory of its own."""
    return _dense(table.slice(input, dim, start, end, step))


@composite(method=False, out=True)
def squeeze_copy(input: Tensor, dim: Any = None) -> Tensor:
    """`squeeze` whose result has memory of its own."""
    return _dense(shape.squeeze(input, dim))


@composite(method=False, out=True)
def t_copy(input: Tensor) -> Tensor:
    """`t` whose result has memory of its own."""
    return _dense(table.t(input))


@composite(method=False, out=True)
def transpose_copy(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """`transpose` whose result has memory of its own."""
    return _dense(table.transpose(input, dim0, dim1))


@composite(method=False, out=True)
def unfold_copy(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """`unfold` whose result has memory of its own."""
    return _dense(table.unfold(input, dimension, size, step))


@composite(method=False, out=True)
def unsqueeze_copy(input: Tensor, dim: int) -> Tensor:
    """`unsqueeze` whose result has memory of its own."""
    return _dense(table.unsqueeze(input, dim))


@composite(method=False, out=True)
def _conj_copy(input: Tensor) -> Tensor:
    """`_conj` whose result has memory of its own."""
    return _dense(table._conj(input))


@composite(method=False, out=True)
def _neg_view_copy(input: Tensor) -> Tensor:
    """`_neg_view` whose result has memory of its own."""
    return _dense(table._neg_view(input))


@composite(method=False, out=True)
def view_as_complex_copy(input: Tensor) -> Tensor:
    """`view_as_complex` whose result has memory of its own."""
    return _dense(table.view_as_complex(input))


@composite(method=False, out=True)
def view_as_real_copy(input: Tensor) -> Tensor:
    """`view_as_real` whose result has memory of its own."""
    return _dense(table.view_as_real(input))


@composite(method=False, out=True)
def split_copy(input: Tensor, split_size: int, dim: int = 0) -> tuple[Tensor, ...]:
    """`split` whose result has memory of its own."""
    return _all_dense(shape.split(input, split_size, dim))


@composite(method=False, out=True)
def split_with_sizes_copy(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """`split_with_sizes` whose result has memory of its own."""
    return _all_dense(table.split_with_sizes(input, split_sizes, dim))


@composite(method=False, out=True)
def unbind_copy(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """`unbind` whose result has memory of its own."""
    return _all_dense(table.unbind(input, dim))


@composite(method=False, out=True)
def view_copy(input: Tensor, size: Any = None, *, dtype: Any = None) -> Tensor:
    """`view` whose result has memory of its own."""
    dtype = size if isinstance(size, dtypes.dtype) else dtype
    return _dense(shape.reshape(input, size) if dtype is None else table.view_dtype(input, dtype))


@composite(method=False, out=True)
def expand_copy(input: Tensor, size: Sequence[int], *, implicit: bool = False) -> Tensor:
    """`expand` whose result has memory of its own."""
    return _dense(table.expand(input, *size))


@composite(out=True)
def narrow_copy(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """`narrow` whose result has memory of its own."""
    return _dense(shape.narrow(input, dim, start, length))
