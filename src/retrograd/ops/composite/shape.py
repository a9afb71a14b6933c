"""Shape operators that have overloads, and those that are made of others.

Conversions (`to`, `float`, `new_zeros` ...) are in `conversion.py`, what writes to a tensor in `inplace.py`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod
from typing import Any

from ... import kernels
from ..._generated import functions as table
from ...core import dtypes
from ...core.constants import contiguous_format
from ...core.where import users_level
from ...kernels.dims import normalize_dim
from ...tensor import Tensor, wrap
from ...tensor.lazy_conjugation import check_view_dtype
from ..factories import arange
from ..registry import composite
from ..support import int_tuple, not_a_tensor

_view = table.view


def _sizes(name: str, argument: str, values: tuple[Any, ...], keywords: dict[Any, Any]) -> tuple[int, ...]:
    """The ints of ``f(2, 3)``, ``f((2, 3))`` or ``f(size=(2, 3))``."""
    if keywords:
        if values or argument not in keywords or len(keywords) > 1:
            unknown = next((k for k in keywords if k != argument), argument)
            raise TypeError(f"{name}() got an unexpected keyword argument '{unknown}'")
        values = (keywords[argument],)
    return int_tuple(name, argument, 1, values)


# ---------------------------------------------------------------------------------------------------------- new shapes


@composite(space="Tensor", bare=True)
def view(input: Tensor, *shape: Any, size: Any = None, dtype: Any = None) -> Tensor:
    """The same memory in another shape, or read as another dtype.

    >>> import retrograd as torch
    >>> torch.arange(4).view(2, 2)
    tensor([[0, 1],
            [2, 3]])
    """
    if shape and (size is not None or dtype is not None):
        raise TypeError("view() received an invalid combination of arguments: a size is given twice, or beside a dtype")
    if shape and shape[0].__class__ is int:
        try:
            return _view(input, shape)
        except TypeError:
            pass  # one of the others is not an int: told better below
    if dtype is not None:
        shape = (dtype,)
    if len(shape) == 1 and isinstance(shape[0], dtypes.dtype):
        check_view_dtype(input)
        return table.alias(input) if input.dtype is shape[0] else table.view_dtype(input, shape[0])
    return _view(input, _sizes("view", "size", shape, {} if size is None else {"size": size}))


@composite(space="Tensor")
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """The same memory in the shape of another tensor."""
    return _view(input, other._data.shape)


@composite(bare=True)
def reshape(input: Tensor, *shape: Any, **keywords: Any) -> Tensor:
    """The elements in another shape: a view where that is possible, else a copy.

    >>> import retrograd as torch
    >>> torch.zeros(2, 3).reshape(-1).shape
    torch.Size([6])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("reshape", "input", 1, input)
    size = _sizes("reshape", "shape", shape, keywords)
    data = input._memory
    if data.flags.c_contiguous:
        return _view(input, size)
    if kernels.is_viewable(data, size):
        return table._reshape_alias(input, size)
    return table._unsafe_view(table.clone(input, memory_format=contiguous_format), size)


@composite(space="Tensor")
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """The elements in the shape of another tensor."""
    return reshape(input, other._data.shape)


@composite()
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """The dimensions from `start_dim` to `end_dim` made one."""
    shape = input._data.shape
    n = len(shape)
    start, end = normalize_dim(start_dim, n), normalize_dim(end_dim, n)
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if not n:
        return reshape(input, (1,))
    if start == end:
        return input
    return reshape(input, (*shape[:start], prod(shape[start : end + 1]), *shape[end + 1 :]))


@composite()
def unflatten(input: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """The dimension `dim` made several."""
    return _view(input, kernels.unflatten(input._data, dim, sizes).shape)


@composite()
def ravel(input: Tensor) -> Tensor:
    """All elements in one dimension."""
    return _view(contiguous(input), (-1 if input._data.size else 0,))


@composite(space="Tensor")
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """Expanded to the shape of another tensor."""
    return table.expand(input, other._data.shape)


@composite()
def broadcast_to(input: Tensor, *size: Any, **keywords: Any) -> Tensor:
    """Expanded to `size`."""
    return table.expand(input, _sizes("broadcast_to", "size", size, keywords))


@composite(method=False)
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """The tensors expanded to the shape that they have in common."""
    tensors = _tensors(tensors)
    shape = kernels.broadcast_shape(*[t._data for t in tensors])
    return tuple(t if t._data.shape == shape else table.expand(t, shape) for t in tensors)


def _tensors(tensors: tuple[Any, ...]) -> tuple[Tensor, ...]:
    """``f(a, b)`` and ``f([a, b])`` alike."""
    return tuple(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors


@composite()
def squeeze(input: Tensor, dim: Any = None) -> Tensor:
    """Without the dimensions of size 1, or without those of `dim` that have size 1."""
    if dim is None:
        return table.squeeze(input)
    if isinstance(dim, (tuple, list)):
        return table.squeeze_dims(input, tuple(dim))
    return table.squeeze_dim(input, dim)


def _at_least(name: str, grow: Callable[[Tensor], Tensor]) -> Any:
    def at_least(*tensors: Any) -> Any:
        tensors = _tensors(tensors)
        result = tuple(grow(t) for t in tensors)
        return result[0] if len(result) == 1 else result

    at_least.__name__ = at_least.__qualname__ = name
    at_least.__doc__ = f"The tensors with new dimensions of size 1, so that each has at least {name[-2]}."
    return at_least


def _to_1d(tensor: Tensor) -> Tensor:
    return tensor if tensor.ndim else reshape(tensor, (1,))


def _to_2d(tensor: Tensor) -> Tensor:
    return reshape(tensor, (1, 1)) if not tensor.ndim else table.unsqueeze(tensor, 0) if tensor.ndim == 1 else tensor


def _to_3d(tensor: Tensor) -> Tensor:
    if not tensor.ndim:
        return reshape(tensor, (1, 1, 1))
    if tensor.ndim == 1:
        return table.unsqueeze(table.unsqueeze(tensor, 0), -1)
    return table.unsqueeze(tensor, -1) if tensor.ndim == 2 else tensor


atleast_1d: Any = composite(method=False)(_at_least("atleast_1d", _to_1d))
atleast_2d: Any = composite(method=False)(_at_least("atleast_2d", _to_2d))
atleast_3d: Any = composite(method=False)(_at_least("atleast_3d", _to_3d))


# ---------------------------------------------------------------------------------------------------------- new orders


@composite()
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """With two dimensions exchanged."""
    return table.transpose(input, axis0, axis1)


@composite("moveaxis")
def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """With the dimensions `source` at the places `destination`."""
    n = input.ndim
    kernels.movedim(input._data, source, destination)  # checks the arguments
    if not n:
        return table.alias(input)
    moved = [normalize_dim(d, n) for d in ([source] if isinstance(source, int) else source)]
    places = [normalize_dim(d, n) for d in ([destination] if isinstance(destination, int) else destination)]
    order = dict(zip(places, moved, strict=True))
    rest = iter([d for d in range(n) if d not in moved])
    return table.permute(input, tuple(order[d] if d in order else next(rest) for d in range(n)))


@composite(space="Tensor", property=True)
def T(input: Tensor) -> Tensor:
    """With its dimensions in reverse order."""
    n = input.ndim
    if n > 2:
        warnings.warn(
            "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it will "
            "throw an error in a future release. Consider `x.mT` to transpose batches of matrices or "
            "`x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor.",
            UserWarning,
            stacklevel=users_level(),
        )
    return table.permute(input, tuple(range(n - 1, -1, -1)))


def _of_0d(name: str, instead: str) -> None:
    warnings.warn(f"Tensor.{name} is deprecated on 0-D tensors. {instead}", UserWarning, stacklevel=users_level())


@composite(space="Tensor", property=True)
def mT(input: Tensor) -> Tensor:
    """With its last two dimensions exchanged."""
    if not input.ndim:
        _of_0d("mT", "This function is the identity in these cases.")
        return input
    if input.ndim < 2:
        raise RuntimeError(
            f"tensor.mT is only supported on matrices or batches of matrices. Got {input.ndim}-D tensor."
        )
    return table.transpose(input, -2, -1)


@composite()
def adjoint(input: Tensor) -> Tensor:
    """The conjugate transpose of matrices."""
    if not input.ndim:
        _of_0d("mH", "Consider using x.conj().")
        return input.conj() if input.is_complex() else input  # type: ignore[attr-defined]
    if input.ndim < 2:
        raise RuntimeError(
            f"tensor.adjoint() is only supported on matrices or batches of matrices. Got {input.ndim}-D tensor."
        )
    transposed = table.transpose(input, -2, -1)
    return transposed.conj() if input.is_complex() else transposed  # type: ignore[attr-defined]


@composite(space="Tensor", property=True)
def H(input: Tensor) -> Tensor:
    """The conjugate transpose of a matrix."""
    if input.ndim not in (0, 2):
        raise RuntimeError(
            f"tensor.H is only supported on matrices (2-D tensors). Got {input.ndim}-D tensor. For batches of "
            "matrices, consider using tensor.mH"
        )
    if not input.ndim:
        return input.conj() if input.is_complex() else input  # type: ignore[attr-defined]
    return adjoint(input)


@composite(space="Tensor", property=True)
def mH(input: Tensor) -> Tensor:
    """The conjugate transpose of matrices."""
    return adjoint(input)


# --------------------------------------------------------------------------------------------------------------- parts


@composite()
def narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """`length` elements from `start` along `dim`."""
    if isinstance(start, Tensor) and (start.ndim or start._data.dtype.kind not in "iu"):
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    start, end = kernels.narrow_range(input._data, dim, start, length)
    return table.slice(input, dim, start, end, 1)


@composite()
def diag(input: Tensor, diagonal: int = 0, *, out: Any = None) -> Tensor:
    """A matrix with a vector on its diagonal, or (a copy of) the diagonal of a matrix."""
    if input.ndim == 1:
        return table.diag_embed(input, diagonal, out=out)
    if input.ndim == 2:
        return table.clone(table.diagonal(input, diagonal), out=out)
    raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input.ndim}D")


@composite()
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """A matrix with all elements on its diagonal."""
    return table.diag_embed(reshape(input, (-1,)), offset)


@composite()
def split(input: Tensor, split_size: Any = None, dim: int = 0, **keywords: Any) -> tuple[Tensor, ...]:
    """Parts of `split_size` along `dim` (the last may be smaller), or of the sizes in a list."""
    split_size = keywords.pop("split_size_or_sections", split_size)
    if keywords or split_size is None:
        raise TypeError("split() expects a tensor, split_size_or_sections (an int or a list of ints) and dim")
    if isinstance(split_size, (tuple, list)):
        return table.split_with_sizes(input, tuple(split_size), dim)
    return table.split_Tensor(input, split_size, dim)


@composite()
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` parts of one size along `dim`; the last may be smaller."""
    if not input.ndim:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    n = input._data.shape[normalize_dim(dim, input.ndim)]
    if not n:
        return table.split_with_sizes(input, (0,) * chunks, dim)
    return table.split_Tensor(input, -(-n // chunks), dim)


#: More parts than fit into memory.
_MOST_PARTS = 1 << 24



@composite()
def tensor_split(input: Tensor, indices_or_sections: Any = None, dim: int = 0, **keywords: Any) -> tuple[Tensor, ...]:
    """So many nearly equal parts along `dim`, or those between the given indices."""
    for name in ("indices", "sections", "tensor_indices_or_sections"):
        indices_or_sections = keywords.pop(name, indices_or_sections)
    if keywords:
        raise TypeError(f"tensor_split() got an unexpected keyword argument '{next(iter(keywords))}'")
    if isinstance(indices_or_sections, Tensor):
        if indices_or_sections._data.dtype != "int64":
            raise RuntimeError(
                "tensor_split expected tensor_indices_or_sections to have dtype of long, but got "
                f"{kernels.scalar_name(indices_or_sections._data.dtype)}"
            )
        indices_or_sections = indices_or_sections.tolist()
    if isinstance(indices_or_sections, int) and indices_or_sections > _MOST_PARTS:
        raise RuntimeError(f"tensor_split(): can't allocate memory: you tried to make {indices_or_sections} tensors")
    cuts = kernels.tensor_split_cuts(input._data, indices_or_sections, dim)
    return tuple(table.slice(input, dim, start, end, 1) for start, end in pairwise(cuts))


def _split_along(name: str, least: int, dim: int) -> Any:
    def split_along(
        input: Tensor, *indices_or_sections_: Any, sections: int | None = None, indices: Any = None
    ) -> tuple[Tensor, ...]:
        given = [value for value in (*indices_or_sections_, sections, indices) if value is not None]
        if len(given) != 1:
            raise TypeError(f"{name}() takes a number of sections or a tuple of indices, but got {len(given)} of them")
        (indices_or_sections,) = given
        if input.ndim < least:
            raise RuntimeError(
                f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor with {input.ndim} "
                "dimensions!"
            )
        along = 0 if name == "hsplit" and input.ndim == 1 else dim
        if isinstance(indices_or_sections, str):
            raise TypeError(f"{name}() received an invalid combination of arguments - got (Tensor, str)")
        if isinstance(indices_or_sections, int) and (
            indices_or_sections <= 0 or input._data.shape[along] % indices_or_sections
        ):
            raise RuntimeError(
                f"torch.{name} attempted to split along dimension {along}, but the size of the dimension "
                f"{input._data.shape[along]} is not divisible by the split_size {indices_or_sections}!"
            )
        return tensor_split(input, indices_or_sections, along)

    split_along.__name__ = split_along.__qualname__ = name
    split_along.__doc__ = f"Parts along dimension {dim}: equal ones, or cut at the given indices."
    return split_along


hsplit: Any = composite()(_split_along("hsplit", 1, 1))
vsplit: Any = composite()(_split_along("vsplit", 2, 0))
dsplit: Any = composite()(_split_along("dsplit", 3, 2))


@composite()
def as_strided(input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """A view of the storage with any size, stride and offset (in elements)."""
    geometry = kernels.geometry(input._memory)
    offset = geometry[2] if storage_offset is None else storage_offset
    return table.as_strided_geometry(input, tuple(size), tuple(stride), offset, geometry)


def _slice_inverse_array(array: Any, src: Tensor, *_: Any) -> Any:
    data = src._data
    return kernels.as_strided(array, data.shape, kernels.strides(data), kernels.storage_offset(data))


@composite(method=False)
def slice_inverse(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """The tensor that `input`, in memory like that of ``src[start:end:step]``, is this slice of."""
    data = src._data
    result = as_strided(input, data.shape, kernels.strides(data), kernels.storage_offset(data))
    meta: Any = result._meta
    if meta is not None:
        meta.step = (_slice_inverse_array, slice_inverse, (src, dim, start, end, step), None)
    return result


# --------------------------------------------------------------------------------------------------------------- joins


def _check_some(name: str, tensors: Sequence[Tensor]) -> None:
    if not tensors:
        raise RuntimeError(f"{name} expects a non-empty TensorList")


@composite(method=False)
def hstack(tensors: Sequence[Tensor], *, out: Any = None) -> Tensor:
    """Side by side: along the second dimension, or the first of vectors."""
    _check_some("hstack", tensors)
    tensors = [_to_1d(t) for t in tensors]
    return table.cat(tensors, 0 if tensors and tensors[0].ndim == 1 else 1, out=out)


@composite("row_stack", method=False)
def vstack(tensors: Sequence[Tensor], *, out: Any = None) -> Tensor:
    """One below the other: along the first dimension of matrices, vectors as rows."""
    _check_some("vstack", tensors)
    return table.cat([_to_2d(t) for t in tensors], 0, out=out)


@composite(method=False)
def dstack(tensors: Sequence[Tensor], *, out: Any = None) -> Tensor:
    """One behind the other: along the third dimension."""
    _check_some("dstack", tensors)
    return table.cat([_to_3d(t) for t in tensors], 2, out=out)


@composite(method=False)
def column_stack(tensors: Sequence[Tensor], *, out: Any = None) -> Tensor:
    """Side by side, vectors as columns."""
    _check_some("column_stack", tensors)
    return table.cat([reshape(t, (-1, 1)) if t.ndim < 2 else t for t in tensors], 1, out=out)


@composite(method=False)
def block_diag(*tensors: Tensor) -> Tensor:
    """A matrix with the given ones along its diagonal and zeros elsewhere."""
    blocks = [_to_2d(t) for t in tensors]
    for position, block in enumerate(blocks):
        if block.ndim != 2:
            raise RuntimeError(
                "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input "
                f"{position} has {block.ndim} dimensions"
            )
    width, left, rows = sum(b._data.shape[1] for b in blocks), 0, []
    for block in blocks:
        right = width - left - block._data.shape[1]
        rows.append(table.constant_pad_nd(block, (left, right)))
        left += block._data.shape[1]
    return table.cat(rows, 0)


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
    kernels.meshgrid([t._data for t in vectors], indexing)  # checks the arguments
    swap = indexing == "xy" and len(vectors) >= 2
    if swap:
        vectors[:2] = vectors[1::-1]
    shape, n = tuple(t.numel() for t in vectors), len(vectors)
    grids = [
        table.expand(_view(t, (1,) * i + (shape[i],) + (1,) * (n - i - 1)), shape) for i, t in enumerate(vectors)
    ]
    if swap:
        grids[:2] = grids[1::-1]
    return tuple(grids)


# ------------------------------------------------------------------------------------------------------ moves, repeats


@composite()
def fliplr(input: Tensor) -> Tensor:
    """In reverse order along the second dimension."""
    if input.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return table.flip(input, 1)


@composite()
def flipud(input: Tensor) -> Tensor:
    """In reverse order along the first dimension."""
    if input.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return table.flip(input, 0)


@composite()
def tile(input: Tensor, *dims: Any, **keywords: Any) -> Tensor:
    """As `repeat`, with missing leading `dims` taken as 1."""
    sizes = _sizes("tile", "dims", dims, keywords)
    return table.repeat(input, (1,) * (input.ndim - len(sizes)) + sizes)


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
        input, dim = reshape(input, (-1,)), 0
    elif not input.ndim:
        normalize_dim(dim, 0)
        input, dim = reshape(input, (1,)), 0
    dim = normalize_dim(dim, input.ndim)
    if isinstance(repeats, Tensor):
        # Which element stands in each place: the kernel that repeats, applied to the numbers of the elements.
        elements = arange(input._data.shape[dim])._data
        places = wrap(kernels.repeat_interleave(elements, repeats._data, 0, output_size))
        return table.index_select(input, dim, places)
    if repeats < 0:
        raise RuntimeError("Repeats must be non-negative")
    shape = input._data.shape
    if output_size is not None and output_size != shape[dim] * repeats:
        raise RuntimeError(
            f"repeat_interleave: Invalid output_size, expected {shape[dim] * repeats} but got {output_size}"
        )
    repeated = table.expand(table.unsqueeze(input, dim + 1), (*shape[: dim + 1], repeats, *shape[dim + 1 :]))
    result = table.clone(repeated, memory_format=contiguous_format)
    return _view(result, (*shape[:dim], shape[dim] * repeats, *shape[dim + 1 :]))


# -------------------------------------------------------------------------------------------------------------- copies


@composite(space="Tensor")
def contiguous(input: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor itself where it is contiguous (in `memory_format`, row-major by default), else a contiguous copy."""
    if input.is_contiguous(memory_format):
        return input
    return table.clone(input, memory_format=memory_format or contiguous_format)
