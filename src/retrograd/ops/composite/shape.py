"""Shape operators that have overloads, and those that are made of others.

Conversions (`to`, `float`, `new_zeros` ...) are in `conversion.py`, what writes to a tensor in `inplace.py`.
"""

from __future__ import annotations

import builtins
import warnings
from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Any

from ... import kernels
from ..._generated import functions as generated
from ..._generated import nodes
from ...autograd.accumulate_grad import outdate_accumulator
from ...autograd.forward_operators import seeing_levels_outside, tangents_by_level
from ...autograd.hooks import rebase_hooks
from ...autograd.inplace import bump_version, check_record, end_inplace, inference_error
from ...core import dtypes
from ...core.constants import contiguous_format
from ...core.meta import materialize_autograd_meta
from ...core.size import Size
from ...core.state import local, process
from ...core.version_counter import INFERENCE
from ...core.where import users_level
from ...kernels.dims import normalize_dim
from ...tensor import Tensor
from ...tensor.lazy_conjugation import check_view_dtype
from ...tensor.special import like_array
from ..registry import composite
from ..support import int_tuple, no_array, not_a_tensor

_view = generated.view


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
    if shape:
        if size is not None or dtype is not None:
            raise TypeError(
                "view() received an invalid combination of arguments: a size is given twice, or beside a dtype"
            )
        if shape[0].__class__ is int:
            try:
                return _view(input, shape)
            except TypeError:
                pass  # one of the others is not an int: told better below
    if dtype is not None:
        shape = (dtype,)
    if len(shape) == 1 and isinstance(shape[0], dtypes.dtype):
        check_view_dtype(input)
        return generated.view_dtype(input, shape[0])
    return _view(input, _sizes("view", "size", shape, {} if size is None else {"size": size}))


@composite(space="Tensor")
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """The same memory in the shape of another tensor."""
    return _view(input, other._memory_.shape)


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
    data = input._memory_
    if data.flags.c_contiguous:
        return _view(input, size)
    if kernels.is_viewable(data, size):
        return generated._reshape_alias(input, size)
    return generated._unsafe_view(generated.clone(input, memory_format=contiguous_format), size)


@composite(space="Tensor")
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """The elements in the shape of another tensor."""
    return reshape(input, other._memory_.shape)


@composite()
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """The dimensions from `start_dim` to `end_dim` made one."""
    shape = input._memory_.shape
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
    return _view(input, kernels.unflatten(like_array(input), dim, sizes).shape)


@composite()
def ravel(input: Tensor) -> Tensor:
    """All elements in one dimension."""
    return _view(contiguous(input), (-1 if input._memory_.size else 0,))


@composite(space="Tensor")
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """Expanded to the shape of another tensor."""
    return generated.expand(input, other._memory_.shape)


@composite()
def broadcast_to(input: Tensor, *size: Any, **keywords: Any) -> Tensor:
    """Expanded to `size`."""
    return generated.expand(input, _sizes("broadcast_to", "size", size, keywords))


@composite(method=False)
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """The tensors expanded to the shape that they have in common."""
    tensors = _tensors(tensors)
    shape = kernels.broadcast_shape(*[t._memory_ for t in tensors])
    return tuple(t if t._memory_.shape == shape else generated.expand(t, shape) for t in tensors)


def _tensors(tensors: tuple[Any, ...]) -> tuple[Tensor, ...]:
    """``f(a, b)`` and ``f([a, b])`` alike."""
    return tuple(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors


@composite()
def squeeze(input: Tensor, dim: Any = None) -> Tensor:
    """Without the dimensions of size 1, or without those of `dim` that have size 1."""
    if dim is None:
        return generated.squeeze(input)
    if isinstance(dim, (tuple, list)):
        return generated.squeeze_dims(input, tuple(dim))
    return generated.squeeze_dim(input, dim)


# ---------------------------------------------------------------------------------------------------------- new orders


@composite()
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """With two dimensions exchanged."""
    return generated.transpose(input, axis0, axis1)


@composite("moveaxis")
def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """With the dimensions `source` at the places `destination`."""
    n = input.ndim
    kernels.movedim(like_array(input), source, destination)  # checks the arguments
    if not n:
        return generated.alias(input)
    moved = [normalize_dim(d, n) for d in ([source] if isinstance(source, int) else source)]
    places = [normalize_dim(d, n) for d in ([destination] if isinstance(destination, int) else destination)]
    order = dict(zip(places, moved, strict=True))
    rest = iter([d for d in range(n) if d not in moved])
    return generated.permute(input, tuple(order[d] if d in order else next(rest) for d in range(n)))


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
    return generated.permute(input, tuple(range(n - 1, -1, -1)))


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
    return generated.transpose(input, -2, -1)


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
    transposed = generated.transpose(input, -2, -1)
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
    if isinstance(start, Tensor) and (start.ndim or start._memory_.dtype.kind not in "iu"):
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    start, end = kernels.narrow_range(input._memory_, dim, start, length)
    return generated.slice(input, dim, start, end, 1)


@composite()
def split(input: Tensor, split_size: Any = None, dim: int = 0, **keywords: Any) -> tuple[Tensor, ...]:
    """Parts of `split_size` along `dim` (the last may be smaller), or of the sizes in a list."""
    split_size = keywords.pop("split_size_or_sections", split_size)
    if keywords or split_size is None:
        raise TypeError("split() expects a tensor, split_size_or_sections (an int or a list of ints) and dim")
    if isinstance(split_size, Tensor):
        if split_size._numbers_.size != 1:
            raise TypeError("split_with_sizes(): argument 'split_sizes' (position 2) must be tuple of ints, not Tensor")
        split_size = int(split_size)  # also of a float: torch takes its whole part
    if isinstance(split_size, (tuple, list)):
        return generated.split_with_sizes(input, tuple(split_size), dim)
    return generated.split_Tensor(input, split_size, dim)


@composite()
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` parts of one size along `dim`; the last may be smaller."""
    if not input.ndim:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    n = input._memory_.shape[normalize_dim(dim, input.ndim)]
    if not n:
        return generated.split_with_sizes(input, (0,) * chunks, dim)
    return generated.split_Tensor(input, -(-n // chunks), dim)


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
        if indices_or_sections._memory_.dtype != "int64":
            raise RuntimeError(
                "tensor_split expected tensor_indices_or_sections to have dtype of long, but got "
                f"{kernels.scalar_name(indices_or_sections._memory_.dtype)}"
            )
        if indices_or_sections._memory_.ndim > 1:
            raise RuntimeError(
                "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, "
                f"but got a tensor with {indices_or_sections._memory_.ndim} dims"
            )
        indices_or_sections = indices_or_sections.tolist()
    if isinstance(indices_or_sections, int) and indices_or_sections > _MOST_PARTS:
        raise RuntimeError(f"tensor_split(): can't allocate memory: you tried to make {indices_or_sections} tensors")
    cuts = kernels.tensor_split_cuts(input._memory_, indices_or_sections, dim)
    cuts = [input._memory_.shape[dim] if cut is None else cut for cut in cuts]
    return tuple(generated.slice(input, dim, start, end, 1) for start, end in pairwise(cuts))


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
            indices_or_sections <= 0 or input._memory_.shape[along] % indices_or_sections
        ):
            raise RuntimeError(
                f"torch.{name} attempted to split along dimension {along}, but the size of the dimension "
                f"{input._memory_.shape[along]} is not divisible by the split_size {indices_or_sections}!"
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
    if input._special_ is not None:
        return no_array(as_strided, "as_strided", "input", 1, input, (input, size, stride, storage_offset), {})
    geometry = kernels.geometry(input._memory_)
    return generated.as_strided_geometry(input, tuple(size), tuple(stride), storage_offset, geometry)


# -------------------------------------------------------------------------------------------------------------- copies


@composite(space="Tensor")
def contiguous(input: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor itself where it is contiguous (in `memory_format`, row-major by default), else a contiguous copy."""
    if input.is_contiguous(memory_format):
        return input
    return generated.clone(input, memory_format=memory_format or contiguous_format)


@composite(method=False)
def linalg_diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonals of matrices, a view."""
    return generated.diagonal(A, offset, dim1, dim2)


@composite()
def unsafe_split(tensor: Tensor, split_size: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """`split` whose outputs may be written to in place, if the input is not used after that."""
    return generated.unsafe_split_Tensor(tensor, split_size, dim)


@composite()
def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """`chunk` whose outputs may be written to in place, if the input is not used after that."""
    sizes = tuple(part.shape[dim] for part in kernels.chunk(like_array(input), chunks, dim))
    if not sizes or not sizes[0]:
        return generated.unsafe_split_with_sizes(input, sizes, dim)
    return generated.unsafe_split_Tensor(input, sizes[0], dim)


#: The nodes of views that a tensor itself becomes.
_IN_PLACE: dict[type[Any], type[Any]] = {
    nodes.SqueezeBackward0: nodes.SqueezeBackward3,
    nodes.SqueezeBackward1: nodes.SqueezeBackward4,
    nodes.SqueezeBackward2: nodes.SqueezeBackward5,
    nodes.UnsqueezeBackward0: nodes.UnsqueezeBackward1,
    nodes.TransposeBackward0: nodes.TransposeBackward1,
    nodes.TBackward0: nodes.TBackward1,
}


def become(name: str, input: Tensor, operator: Any, *args: Any) -> Tensor:
    """`input` itself becomes the view that `operator` gives of it: the in-place method `name`."""
    if input._special_ is not None:
        result = input._become_(operator, args)  # type: ignore[attr-defined]
        if result is not NotImplemented:
            return result
    state = local.state
    if input._vc_ is INFERENCE and not state.inference:
        raise inference_error()
    if state.grad_enabled and input.requires_grad:
        check_record(input)
    old = input._history_() if state.grad_enabled else None
    tangents = tangents_by_level(input) if process.dual_levels else {}
    view = operator(input, *args)
    edge = view._history_()
    if edge is not None and edge[0].__class__ in _IN_PLACE:
        edge[0].__class__ = _IN_PLACE[edge[0].__class__]  # made just now, of the same slots
    input._memory_ = view._memory_
    for level, tangent in tangents.items():
        with seeing_levels_outside(level):
            become(name, tangent, operator, *args)
    meta: Any = materialize_autograd_meta(input)
    if not meta.is_view:
        meta.restrided = True
        outdate_accumulator(input)
        end_inplace(input, input._memory_, None if edge is None else edge[0], name)
        return input
    meta.before, meta.step = view._grad_meta_.before, view._grad_meta_.step  # the same base, and one more step from it
    bump_version(input)
    if edge is not None:
        meta.edge, meta.attr_version = edge, input._version
        if meta.hooks is not None or meta.retains_grad:
            rebase_hooks(input, old, edge)
    return input


@composite(space="Tensor")
def squeeze_(input: Tensor, dim: Any = None) -> Tensor:
    """In-place `squeeze`."""
    return become("squeeze_", input, squeeze, dim)


@composite(space="Tensor")
def unsqueeze_(input: Tensor, dim: int) -> Tensor:
    """In-place `unsqueeze`."""
    return become("unsqueeze_", input, generated.unsqueeze, dim)


@composite(space="Tensor")
def t_(input: Tensor) -> Tensor:
    """In-place `t`."""
    return become("t_", input, generated.t)


@composite(space="Tensor")
def transpose_(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """In-place `transpose`."""
    return become("transpose_", input, generated.transpose, dim0, dim1)


@composite(space="Tensor")
def swapdims_(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """In-place `swapdims`."""
    return become("swapdims_", input, generated.transpose, dim0, dim1)


@composite(space="Tensor")
def swapaxes_(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """In-place `swapaxes`."""
    return become("swapaxes_", input, generated.transpose, axis0, axis1)


@composite()
def is_same_size(input: Tensor, other: Tensor) -> builtins.bool:
    """Whether two tensors have the same shape."""
    return input._memory_.shape == other._memory_.shape


@composite(method=False, bare=True)
def broadcast_shapes(*shapes: builtins.int | Sequence[builtins.int]) -> Size:
    """The shape that tensors of these shapes are broadcast to.

    >>> import retrograd as torch
    >>> torch.broadcast_shapes((2, 1), (3,), 1)
    torch.Size([2, 3])
    """
    for position, shape in enumerate(shapes):
        if not isinstance(shape, int) and not (
            isinstance(shape, (tuple, list)) and all(isinstance(n, (int, float)) for n in shape)
        ):
            raise RuntimeError(
                f"Input shapes should be of type ints, a tuple of ints, or a list of ints, got "
                f"{type(shape).__name__} as argument {position}"
            )
    sizes = [(shape,) if isinstance(shape, int) else tuple(shape) for shape in shapes]
    result = [1] * max((len(size) for size in sizes), default=0)
    for position, size in enumerate(sizes):
        for dim in range(-1, -len(size) - 1, -1):
            if size[dim] not in (1, result[dim]):
                if result[dim] != 1:
                    raise RuntimeError(
                        f"Attempting to broadcast a dimension of length {size[dim]} at {dim}! Mismatching argument at "
                        f"index {position} had {size}; but expected shape should be broadcastable to {result}"
                    )
                if size[dim] < 0:
                    raise ValueError(
                        f"Attempting to broadcast a dimension with negative length! Argument {position} had {size}"
                    )
                result[dim] = size[dim]
    return Size(result)  # a float that is the size of another argument too is taken, but is no size by itself
