"""Joining, repeating, flipping, copies of views, and tensors of which a view is replaced."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from ... import kernels
from ..._generated import functions as generated
from ...core import dtypes
from ...core.constants import contiguous_format
from ...core.where import users_level
from ...kernels.dims import normalize_dim
from ...tensor import Tensor, fresh, wrap
from ...tensor.beside import beside
from ...tensor.special import like_array
from ..factories import arange, empty
from ..registry import composite
from ..support import write_out
from . import shape
from .shape import _sizes, _tensors, _view, reshape


def _at_least(name: str, grow: Callable[[Tensor], Tensor]) -> Any:
    def at_least(*tensors: Any) -> Any:
        result = tuple(grow(t) for t in _tensors(tensors))
        return result[0] if len(tensors) == 1 and isinstance(tensors[0], Tensor) else result

    at_least.__name__ = at_least.__qualname__ = name
    at_least.__doc__ = f"The tensors with new dimensions of size 1, so that each has at least {name[-2]}."
    return at_least


def _to_1d(tensor: Tensor) -> Tensor:
    return tensor if tensor.ndim else reshape(tensor, (1,))


def _to_2d(tensor: Tensor) -> Tensor:
    if not tensor.ndim:
        return reshape(tensor, (1, 1))
    return generated.unsqueeze(tensor, 0) if tensor.ndim == 1 else tensor


def _to_3d(tensor: Tensor) -> Tensor:
    if not tensor.ndim:
        return reshape(tensor, (1, 1, 1))
    if tensor.ndim == 1:
        return generated.unsqueeze(generated.unsqueeze(tensor, 0), -1)
    return generated.unsqueeze(tensor, -1) if tensor.ndim == 2 else tensor


atleast_1d: Any = composite(method=False)(_at_least("atleast_1d", _to_1d))
atleast_2d: Any = composite(method=False)(_at_least("atleast_2d", _to_2d))
atleast_3d: Any = composite(method=False)(_at_least("atleast_3d", _to_3d))


@composite()
def diag(input: Tensor, diagonal: int = 0, *, out: Any = None) -> Tensor:
    """A matrix with a vector on its diagonal, or (a copy of) the diagonal of a matrix."""
    if input.ndim == 1:
        return generated.diag_embed(input, diagonal, out=out)
    if input.ndim == 2:
        return diagonal_copy(input, diagonal) if out is None else write_out(diag, out, (input, diagonal), {})
    raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input.ndim}D")


@composite()
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """A matrix with all elements on its diagonal."""
    return generated.diag_embed(reshape(input, (-1,)), offset)


def _check_some(name: str, tensors: Sequence[Tensor]) -> None:
    if not tensors:
        raise RuntimeError(f"{name} expects a non-empty TensorList")


@composite(method=False)
def hstack(tensors: Sequence[Tensor], *, out: Any = None) -> Tensor:
    """Side by side: along the second dimension, or the first of vectors."""
    _check_some("hstack", tensors)
    tensors = [_to_1d(t) for t in tensors]
    return generated.cat(tensors, 0 if tensors and tensors[0].ndim == 1 else 1, out=out)


@composite("row_stack", method=False)
def vstack(tensors: Sequence[Tensor], *, out: Any = None) -> Tensor:
    """One below the other: along the first dimension of matrices, vectors as rows."""
    _check_some("vstack", tensors)
    return generated.cat([_to_2d(t) for t in tensors], 0, out=out)


@composite(method=False)
def dstack(tensors: Sequence[Tensor], *, out: Any = None) -> Tensor:
    """One behind the other: along the third dimension."""
    _check_some("dstack", tensors)
    return generated.cat([_to_3d(t) for t in tensors], 2, out=out)


@composite(method=False)
def column_stack(tensors: Sequence[Tensor], *, out: Any = None) -> Tensor:
    """Side by side, vectors as columns."""
    _check_some("column_stack", tensors)
    return generated.cat([reshape(t, (-1, 1)) if t.ndim < 2 else t for t in tensors], 1, out=out)


@composite(method=False)
def block_diag(*tensors: Tensor) -> Tensor:
    """A matrix with the given ones along its diagonal and zeros elsewhere."""
    for position, block in enumerate(tensors):
        if block.ndim > 2:
            raise RuntimeError(
                "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input "
                f"{position} has {block.ndim} dimensions"
            )
    return generated._block_diag(tensors) if tensors else empty((1, 0))


@composite(method=False)
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Each vector along its own dimension of a common grid, expanded along the others."""
    vectors = list(_tensors(tensors))
    if indexing is None:
        warnings.warn(
            "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.",
            UserWarning,
            stacklevel=users_level(),
        )
        indexing = "ij"
    if len({str(t.device) for t in vectors}) > 1:
        raise RuntimeError("meshgrid expects all tensors to have the same device")
    kernels.meshgrid([like_array(t) for t in vectors], indexing)  # checks the arguments
    swap = indexing == "xy" and len(vectors) >= 2
    if swap:
        vectors[:2] = vectors[1::-1]
    shape, n = tuple(t.numel() for t in vectors), len(vectors)
    grids = [
        generated.expand(_view(t, (1,) * i + (shape[i],) + (1,) * (n - i - 1)), shape) for i, t in enumerate(vectors)
    ]
    if swap:
        grids[:2] = grids[1::-1]
    return tuple(grids)


@composite()
def fliplr(input: Tensor) -> Tensor:
    """In reverse order along the second dimension."""
    if input.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return generated.flip(input, 1)


@composite()
def flipud(input: Tensor) -> Tensor:
    """In reverse order along the first dimension."""
    if input.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return generated.flip(input, 0)


@composite()
def tile(input: Tensor, *dims: Any, **keywords: Any) -> Tensor:
    """As `repeat`, with missing leading `dims` taken as 1."""
    sizes = _sizes("tile", "dims", dims, keywords)
    return generated.repeat(input, (1,) * (input.ndim - len(sizes)) + sizes)


@composite()
def repeat_interleave(
    input: Tensor, repeats: Any, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Each element along `dim` (of the flattened tensor without one) repeated next to itself.

    >>> import retrograd as torch
    >>> torch.tensor([1, 2]).repeat_interleave(2)
    tensor([1, 1, 2, 2])
    """
    if dim is None:
        input, dim = input if input.ndim == 1 else reshape(input, (-1,)), 0
    elif not input.ndim:
        normalize_dim(dim, 0)
        input, dim = reshape(input, (1,)), 0
    dim = normalize_dim(dim, input.ndim)
    if isinstance(repeats, Tensor):
        # Which element stands in each place: the kernel that repeats, applied to the numbers of the elements.
        elements = arange(input._memory_.shape[dim], device=repeats.device)._numbers_
        places = wrap(kernels.repeat_interleave(elements, repeats._numbers_, 0, output_size))
        return generated.index_select(input, dim, places)
    if repeats < 0:
        raise RuntimeError("Repeats must be non-negative")
    shape = input._memory_.shape
    if output_size is not None and output_size != shape[dim] * repeats:
        raise RuntimeError(
            f"repeat_interleave: Invalid output_size, expected {shape[dim] * repeats} but got {output_size}"
        )
    repeated = generated.expand(generated.unsqueeze(input, dim + 1), (*shape[: dim + 1], repeats, *shape[dim + 1 :]))
    result = generated.clone(repeated, memory_format=contiguous_format)
    return _view(result, (*shape[:dim], shape[dim] * repeats, *shape[dim + 1 :]))


def _replaced(input: Tensor, src: Tensor, view: Callable[[Tensor], Tensor]) -> Tensor:
    """A copy of `input` whose part that `view` shows is `src`."""
    result = generated.clone(input)
    part = view(result)
    if part._memory_.shape != src._memory_.shape:
        raise RuntimeError(
            "expected src to have a size equal to the slice of self. "
            f"src size = {list(src._memory_.shape)}, slice size = {list(part._memory_.shape)}"
        )
    generated.copy_(part, src, False)
    return result


@composite(out=True)
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """`input` with `src` in place of ``input.select(dim, index)``.

    >>> import retrograd as torch
    >>> torch.select_scatter(torch.zeros(2, 2), torch.ones(2), 0, 0)
    tensor([[1., 1.],
            [0., 0.]])
    """
    return generated._select_scatter(input, src, dim, index)


@composite(out=True)
def slice_scatter(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """`input` with `src` in place of the slice of it."""
    return generated._slice_scatter(input, src, dim, start, end, step)


@composite(out=True)
def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """`input` with `src` in place of its diagonal."""
    return generated._diagonal_scatter(input, src, offset, dim1, dim2)


@composite(out=True)
def as_strided_scatter(
    input: Tensor, src: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """`input` with `src` in place of ``input.as_strided(size, stride, storage_offset)``."""
    return _replaced(input, src, lambda x: shape.as_strided(x, size, stride, storage_offset))


@cache
def _copying(node: type[Any]) -> type[Any]:
    """The class of the node of a view's copy: of the same slots and formulas, under torch's name for it."""
    made = {"__slots__": (), "__doc__": f"{node.__name__}, of a copy.", "of_a_copy": True}
    return type(f"{node.__name__}_copy", (node,), made)


def _dense(view: Tensor) -> Tensor:
    """A copy of a view that was made for it. The gradient of a copy is its own: the view's node serves for both."""
    result = generated.clone(view, memory_format=contiguous_format)
    edge = view._history_()
    if edge is not None and view._is_view() and result._edge_ is not None:
        node: Any = edge[0]
        if not hasattr(node, "of_a_copy"):  # several views have one node, and each of them comes here
            node.__class__ = _copying(node.__class__)
        result._edge_ = edge
    return result


def _all_dense(views: Sequence[Tensor]) -> tuple[Tensor, ...]:
    return tuple(_dense(view) for view in views)


@composite(method=False, out=True)
def alias_copy(input: Tensor) -> Tensor:
    """`alias` whose result has memory of its own."""
    return _dense(generated.alias(input))


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
    return _dense(generated.diagonal(input, offset, dim1, dim2))


@composite(method=False, out=True)
def permute_copy(input: Tensor, dims: Sequence[int]) -> Tensor:
    """`permute` whose result has memory of its own."""
    return _dense(generated.permute(input, dims))


@composite(method=False, out=True)
def select_copy(input: Tensor, dim: int, index: int) -> Tensor:
    """`select` whose result has memory of its own."""
    return _dense(generated.select(input, dim, index))


@composite(method=False, out=True)
def slice_copy(
    input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """`slice` whose result has memory of its own."""
    return _dense(generated.slice(input, dim, start, end, step))


@composite(method=False, out=True)
def squeeze_copy(input: Tensor, dim: Any = None) -> Tensor:
    """`squeeze` whose result has memory of its own."""
    return _dense(shape.squeeze(input, dim))


@composite(method=False, out=True)
def t_copy(input: Tensor) -> Tensor:
    """`t` whose result has memory of its own."""
    return _dense(generated.t(input))


@composite(method=False, out=True)
def transpose_copy(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """`transpose` whose result has memory of its own."""
    return _dense(generated.transpose(input, dim0, dim1))


@composite(method=False, out=True)
def unfold_copy(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """`unfold` whose result has memory of its own."""
    return _dense(generated.unfold(input, dimension, size, step))


@composite(method=False, out=True)
def unsqueeze_copy(input: Tensor, dim: int) -> Tensor:
    """`unsqueeze` whose result has memory of its own."""
    return _dense(generated.unsqueeze(input, dim))


@composite(method=False, out=True)
def _conj_copy(input: Tensor) -> Tensor:
    """`_conj` whose result has memory of its own."""
    return _dense(generated._conj(input))


@composite(method=False, out=True)
def _neg_view_copy(input: Tensor) -> Tensor:
    """`_neg_view` whose result has memory of its own."""
    return _dense(generated._neg_view(input))


@composite(method=False, out=True)
def view_as_complex_copy(input: Tensor) -> Tensor:
    """`view_as_complex` whose result has memory of its own."""
    return _dense(generated.view_as_complex(input))


@composite(method=False, out=True)
def view_as_real_copy(input: Tensor) -> Tensor:
    """`view_as_real` whose result has memory of its own."""
    return _dense(generated.view_as_real(input))


@composite(method=False, out=True)
def split_copy(input: Tensor, split_size: int, dim: int = 0) -> tuple[Tensor, ...]:
    """`split` whose result has memory of its own."""
    return _all_dense(shape.split(input, split_size, dim))


@composite(method=False, out=True)
def split_with_sizes_copy(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """`split_with_sizes` whose result has memory of its own."""
    return _all_dense(generated.split_with_sizes(input, split_sizes, dim))


@composite(method=False, out=True)
def unbind_copy(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """`unbind` whose result has memory of its own."""
    return _all_dense(generated.unbind(input, dim))


@composite(method=False, out=True)
def view_copy(input: Tensor, size: Any = None, *, dtype: Any = None) -> Tensor:
    """`view` whose result has memory of its own."""
    dtype = size if isinstance(size, dtypes.dtype) else dtype
    if dtype is not None:
        return _dense(generated.view_dtype(input, dtype))
    viewed = shape.reshape(input, size)
    return _dense(generated.view(input, tuple(viewed._memory_.shape)) if viewed is input else viewed)


@composite(method=False, out=True)
def expand_copy(input: Tensor, size: Sequence[int], *, implicit: bool = False) -> Tensor:
    """`expand` whose result has memory of its own."""
    return _dense(generated.expand(input, *size))


@composite(out=True)
def narrow_copy(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """`narrow` whose result has memory of its own."""
    view = shape.narrow(input.detach(), dim, start, length)  # which has the checks
    if isinstance(start, Tensor) or not view._is_view():
        return _dense(shape.narrow(input, dim, start, length))
    size = input._memory_.shape[normalize_dim(dim, input._memory_.ndim)]
    return generated._narrow_copy(input, dim, start + size if start < 0 else start, length)


@composite(method=False)
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """Every combination of one element from each vector, as rows.

    >>> import retrograd as torch
    >>> torch.cartesian_prod(torch.tensor([1, 2]), torch.tensor([3, 4]))
    tensor([[1, 3],
            [1, 4],
            [2, 3],
            [2, 4]])
    """
    for tensor in tensors:
        if tensor._memory_.ndim != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(tensor._memory_.shape)}")
    if len(tensors) == 1:
        return tensors[0]
    grids = meshgrid(*tensors, indexing="ij")
    return generated.stack([grid.reshape(-1) for grid in grids], 1)


@composite(method=False)
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Every choice of `r` elements of a vector, as rows.

    >>> import retrograd as torch
    >>> torch.combinations(torch.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    if input._memory_.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input._memory_.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return fresh(beside(input, np.empty(0, input._memory_.dtype))._numbers_)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    chosen = np.array(list(choose(range(input._memory_.shape[0]), r)), np.int64).reshape(-1, r)
    return generated.index_select(input, 0, beside(input, chosen.reshape(-1))).reshape(chosen.shape)


@composite(method=False, out=True)
def _chunk_cat(tensors: Sequence[Tensor], dim: int, num_chunks: int) -> Tensor:
    """Tensors cut into `num_chunks` along `dim`, filled up with zeros to equal sizes, and joined chunk by chunk.

    >>> import retrograd as torch
    >>> torch._chunk_cat([torch.tensor([1, 2, 3]), torch.tensor([4, 5])], 0, 2)
    tensor([[1, 2, 4],
            [3, 0, 5]])
    """
    if not tensors:
        raise RuntimeError("_chunk_cat expects a non-empty input tensor list")
    if num_chunks < 1:
        raise RuntimeError(f"_chunk_cat expects positive num_chunks, got {num_chunks}")
    first = tensors[0]
    dim = normalize_dim(dim, first.ndim)
    lead = first._memory_.shape[:dim]
    parts = []
    for tensor in tensors:
        shape = tensor._memory_.shape
        if not tensor._memory_.size:
            raise RuntimeError(f"_chunk_cat expects non-empty tensor, got one of shape {list(shape)}")
        if tensor.dtype is not first.dtype:
            both = f"{first.dtype}, {tensor.dtype}"
            raise RuntimeError(f"_chunk_cat expects all input tensors with the same dtype: {both}")
        if tensor.ndim <= dim or shape[:dim] != lead:
            raise RuntimeError(
                f"_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all tensors: {list(lead)}, {list(shape)}"
            )
        missing = -shape[dim] % num_chunks
        if missing:
            tensor = generated.cat([tensor, tensor.new_zeros((*lead, missing, *shape[dim + 1 :]))], dim)  # type: ignore[attr-defined]
        parts.append(tensor.reshape(*lead, num_chunks, -1))  # type: ignore[attr-defined]
    return generated.cat(parts, dim + 1)
