"""``*_scatter``, a copy with a part of it replaced, and ``*_copy``, a view operator whose result has its own memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._generated import functions as table
from ...core.constants import contiguous_format
from ...tensor import Tensor
from ..registry import FUNCTIONS, composite, with_out
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


@composite(function=False)
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

_COPIED: dict[str, Callable[..., Any]] = {
    "alias_copy": table.alias,
    "as_strided_copy": shape.as_strided,
    "detach_copy": Tensor.detach,
    "diagonal_copy": table.diagonal,
    "permute_copy": table.permute,
    "select_copy": table.select,
    "slice_copy": table.slice,
    "split_copy": shape.split,
    "split_with_sizes_copy": table.split_with_sizes,
    "squeeze_copy": shape.squeeze,
    "t_copy": table.t,
    "transpose_copy": table.transpose,
    "unbind_copy": table.unbind,
    "unfold_copy": table.unfold,
    "unsqueeze_copy": table.unsqueeze,
    "_conj_copy": table._conj,
    "_neg_view_copy": table._neg_view,
    "view_as_complex_copy": table.view_as_complex,
    "view_as_real_copy": table.view_as_real,
    "view_copy": shape.reshape,
}


def _dense(view: Tensor) -> Tensor:
    return table.clone(view, memory_format=contiguous_format)


def _copying(name: str, view: Callable[..., Any]) -> Callable[..., Any]:
    def copied(input: Tensor, *args: Any, **kwargs: Any) -> Any:
        result = view(input, *args, **kwargs)
        return tuple(_dense(r) for r in result) if isinstance(result, tuple) else _dense(result)

    copied.__name__ = copied.__qualname__ = name
    copied.__doc__ = f"`{name.removesuffix('_copy')}` whose result has memory of its own."
    return copied


for _name, _view in _COPIED.items():
    FUNCTIONS[_name] = with_out(_copying(_name, _view), _name)


@composite(method=False, out=True)
def expand_copy(input: Tensor, size: Sequence[int], *, implicit: bool = False) -> Tensor:
    """`expand` whose result has memory of its own."""
    return _dense(table.expand(input, *size))


@composite(out=True)
def narrow_copy(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """`narrow` whose result has memory of its own."""
    return _dense(shape.narrow(input, dim, start, length))
