"""The operators of sparse tensors that others are made of, with their derivatives.

Each is a `Function`: its forward computes on what the tensors hold (``kernels/sparse.py``), its backward is written
with operators, so that it can be recorded itself.  Everything else that operators mean for sparse tensors (the other
files of this package) is composed of these and of operators on the values, which are plain tensors.

A gradient of a sparse tensor need not have its coordinates: it is a tensor of the same shape, sparse or not.  Where
torch computes gradients only at the coordinates of the tensor (*masked*), so do these.  It is the gradient of the
elements, not of the values: of values at one place, which are added up, each has the gradient of the element.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import kernels
from ..autograd.function import Function
from ..core.state import local, process
from ..kernels import CompressedArray, SparseArray
from ..ops import namespace as ops
from ..tensor import Tensor, wrap
from ..tensor.sparse import AnySparse, CompressedTensor, SparseTensor


def _item(source: str, position: int) -> property:
    return property(lambda node: getattr(node, source)[position])


def named(name: str, *saved: str) -> Any:
    """Give the node of a Function torch's name, and what it saves torch's names (``_saved_self`` and the like)."""

    def rename(cls: Any) -> Any:
        node = cls._backward_cls
        node.__name__ = node.__qualname__ = name
        for position, own in enumerate(saved):
            for prefix, source in (("_saved_", "saved_tensors"), ("_raw_saved_", "_raw_saved_tensors")):
                setattr(node, prefix + own, _item(source, position))
        return cls

    return rename


def linear(*positions: int) -> Any:
    """Say in which of its arguments a Function is linear, in each for itself: that is its forward mode.

    (Nobody watches arguments that are not linear: they are numbers, or what was there before.)
    """

    def add(cls: Any) -> Any:
        forward = cls.forward

        def keeping(ctx: Any, *args: Any) -> Any:
            if process.dual_levels:
                ctx.arguments = args
                ctx.materialize_grads = False  # for jvp: what does not vary adds nothing
            return forward(ctx, *args)

        def jvp(ctx: Any, *tangents: Any) -> Any:
            total = None
            for position in positions:
                if tangents[position] is not None:
                    args = list(ctx.arguments)
                    args[position] = tangents[position]
                    part = cls.apply(*args)
                    total = part if total is None else total + part
            return total

        cls.forward, cls.jvp = staticmethod(keeping), staticmethod(jvp)
        return cls

    return add


def on(array: Any) -> Any:
    """A sparse tensor on `array`, to be given to the user."""
    result = array.as_tensor()
    result._vc_ = local.state.new_vc
    return result


def zeros_like(array: Any) -> SparseTensor:
    """A sparse tensor of no values."""
    return on(empty_array(array.shape, array.dtype, like=array))


def empty_array(shape: tuple[int, ...], dtype: Any, sparse_dim: int | None = None, like: Any = None) -> SparseArray:
    """No values, where those of another sparse array lie."""
    sparse_dim = len(shape) if sparse_dim is None else sparse_dim
    where = None if like is None else like.values
    indices = np.zeros((sparse_dim, 0), np.int64, like=where)
    return SparseArray(indices, np.zeros((0, *shape[sparse_dim:]), dtype, like=where), shape, True)


# ------------------------------------------------------------------------------------------------ values at coordinates


@named("SparseCooTensorWithDimsAndTensorsBackward0")
@linear(0)
class FromValues(Function):
    """A sparse tensor of these values; `like` has the coordinates."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, like: Any) -> Any:
        ctx.like = like
        return on(like.with_values(values._numbers_))

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return values_of_gradient(grad, ctx.like), None


@named("ValuesBackward0")
class Values(Function):
    """The values of a sparse tensor, at its coordinates as they are."""

    @staticmethod
    def forward(ctx: Any, tensor: Any) -> Tensor:
        ctx.like = tensor._memory_
        return wrap(tensor._memory_.values, local.state.new_vc)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        like = ctx.like
        if isinstance(like, SparseArray) and not like.coalesced:
            # Values at one place have one gradient, that of their sum: what is done with each of them is the same.
            like, first = kernels.first_of_each(like)
            grad = grad.index_select(0, wrap(first))
        return FromValues.apply(grad, like)

    @staticmethod
    def jvp(ctx: Any, tangent: Any) -> Any:
        like = ctx.like
        if not isinstance(like, SparseArray) or tangent._memory_.indices is like.indices:
            return values_of_gradient(tangent, like)
        pattern, first = kernels.first_of_each(like)
        values = values_at(tangent, pattern.indices)
        zeros = values.new_zeros((like.nnz, *values.shape[1:]))
        return zeros.index_copy(0, wrap(first), values)


@named("CoalesceBackward0")
@linear(0)
class Coalesce(Function):
    """Each coordinate once, in order."""

    @staticmethod
    def forward(ctx: Any, tensor: Any) -> Any:
        return on(kernels.coalesce(tensor._memory_))

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad


def with_values(tensor: Any, values: Tensor) -> Any:
    """A tensor with the coordinates of `tensor` and other values."""
    return FromValues.apply(values, tensor._memory_)


def values_of(tensor: Any) -> Tensor:
    """The values of a sparse tensor at its coordinates."""
    return Values.apply(tensor)


def coalesced(tensor: Any) -> Any:
    """The tensor itself, if it is coalesced already."""
    return tensor if tensor._memory_.coalesced else Coalesce.apply(tensor)


def as_coordinates(indices: np.ndarray) -> tuple[Tensor, ...]:
    """The coordinates, to index a plain tensor with."""
    return tuple([wrap(row) for row in indices])


def dense_values_at(tensor: Tensor, indices: np.ndarray) -> Tensor:
    """The values of a plain tensor at coordinates."""
    if not len(indices):
        return tensor.unsqueeze(0).expand(indices.shape[1], *tensor.shape)
    return tensor[as_coordinates(indices)]


def values_at(tensor: Any, indices: np.ndarray) -> Tensor:
    """The values of any tensor (of coordinates, or plain) at coordinates; zeros where a sparse one has none."""
    if not isinstance(tensor, SparseTensor):
        return dense_values_at(tensor, indices)
    array = tensor._memory_
    if array.indices is indices:
        return values_of(tensor)
    if array.sparse_dim != len(indices):
        return dense_values_at(to_dense(tensor), indices)
    tensor = coalesced(tensor)
    array = tensor._memory_
    place, found = find(array, indices)
    if not array.nnz:
        return wrap(np.zeros_like(array.values, shape=(indices.shape[1], *array.values.shape[1:])))
    values = values_of(tensor).index_select(0, wrap(place))
    if found.all():
        return values
    keep = wrap(found.reshape(-1, *[1] * (values.ndim - 1)))
    return values.masked_fill(~keep, 0)


def find(array: SparseArray, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the values of a coalesced array for some coordinates are, and whether there are any."""
    own = kernels.coordinates_to_numbers(array.indices, array.shape)
    asked = kernels.coordinates_to_numbers(indices, array.shape)
    place = np.minimum(np.searchsorted(own, asked), max(0, own.size - 1))
    return place, (own[place] == asked if own.size else np.zeros_like(asked, bool))


def values_of_gradient(grad: Any, like: Any) -> Tensor:
    """What of a gradient belongs to the values of `like`."""
    if isinstance(like, SparseArray):
        return values_at(to_coo(grad), like.indices)
    if isinstance(grad, CompressedTensor) and grad._memory_.kind is like.kind and grad._memory_.places is like.places:
        return values_of(grad)
    # By the coordinates of all values, in the order in which they lie.
    order = like.with_values(np.arange(like.values.size, like=like.places).reshape(like.values.shape)).to_coo()
    if like.dense_dim:
        sizes = like.values.shape[: like.values.ndim - like.dense_dim]
        numbers = np.arange(math_prod(sizes), like=like.places).reshape(sizes)
        order = like.kind(like.starts, like.places, numbers, like.shape[: len(like.shape) - like.dense_dim]).to_coo()
    values = values_at(to_dense(grad) if isinstance(grad, AnySparse) else grad, order.indices)
    back = np.empty_like(order.values)
    back[order.values] = np.arange(order.values.size, like=back)
    return values.index_select(0, wrap(back)).reshape(like.values.shape)


def math_prod(sizes: Any) -> int:
    return int(np.prod(sizes, dtype=np.int64))


# ---------------------------------------------------------------------------------------------------- to and from dense


def dense_array(array: Any) -> np.ndarray:
    """All elements."""
    if isinstance(array, CompressedArray):
        array = array.to_coo()
    result = np.zeros(array.shape, array.dtype, like=array.values)
    if array.dtype == bool:
        array = kernels.coalesce(array)
        if array.nnz:
            result[tuple(array.indices)] = array.values
        return result
    return kernels.add_at_coordinates(result, array)


@named("ToDenseBackward0")
@linear(0)
class ToDense(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Any, masked_grad: bool | None) -> Tensor:
        ctx.like, ctx.masked_grad = tensor._memory_, masked_grad is not False
        return wrap(dense_array(tensor._memory_), local.state.new_vc)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        like = ctx.like
        if ctx.masked_grad:
            return masked(grad, like), None
        return to_layout_of(grad, like), None


def to_dense(tensor: Any, masked_grad: bool | None = None) -> Tensor:
    """The plain tensor; itself, if it is plain."""
    return ToDense.apply(tensor, masked_grad) if isinstance(tensor, AnySparse) else tensor


def masked(grad: Any, like: Any) -> Any:
    """A gradient at the coordinates of `like` alone, in its layout."""
    if isinstance(like, SparseArray):
        like = kernels.coalesce(like)
    return FromValues.apply(values_of_gradient(grad, like), like)


def nonzero_array(array: np.ndarray, sparse_dim: int) -> SparseArray:
    """The elements (over the dense dimensions: the parts) that are not zero."""
    flat = array != 0
    if sparse_dim < array.ndim:
        flat = flat.any(tuple(range(sparse_dim, array.ndim)))
    indices = np.stack(np.nonzero(flat)) if sparse_dim else np.zeros((0, int(bool(flat))), np.int64, like=array)
    values = kernels.values_at(array, indices)
    values = values if values.flags.c_contiguous else values.copy()
    return SparseArray(indices.astype(np.int64, copy=False), values, array.shape, True)


@named("ToSparseBackward0")
@linear(0)
class ToCoo(Function):
    """The elements of a plain tensor that are not zero."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, sparse_dim: int) -> Any:
        return on(nonzero_array(tensor._numbers_, sparse_dim))

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return to_dense(grad), None


@named("ToSparseBackward0")
@linear(0)
class CompressedToCoo(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Any) -> Any:
        ctx.like = tensor._memory_
        return on(tensor._memory_.to_coo())

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return masked(grad, ctx.like)


def to_coo(tensor: Any, sparse_dim: int | None = None) -> Any:
    """By coordinates; a plain tensor stays as it is unless `sparse_dim` is given."""
    if isinstance(tensor, CompressedTensor):
        return CompressedToCoo.apply(tensor)
    if isinstance(tensor, SparseTensor) or sparse_dim is None:
        return tensor
    return ToCoo.apply(tensor, sparse_dim)


def compress(array: SparseArray, kind: type[CompressedArray], blocksize: tuple[int, int]) -> CompressedArray:
    """The same matrices compressed; the sparse dimensions are the batch dimensions and those of the matrix."""
    array = kernels.coalesce(array)
    (r, c), batch = blocksize, array.shape[: array.sparse_dim - 2]
    rows, columns = array.shape[array.sparse_dim - 2 : array.sparse_dim]
    if rows % r or columns % c:
        raise RuntimeError(
            f"Tensor size({array.sparse_dim - 2 if rows % r else array.sparse_dim - 1}) "
            f"{rows if rows % r else columns} needs to be divisible by blocksize[{0 if rows % r else 1}] "
            f"{r if rows % r else c}"
        )
    of_batch = kernels.coordinates_to_numbers(array.indices[:-2], batch)
    row, column = array.indices[-2:]
    sizes = (rows // r, columns // c) if kind.by_rows else (columns // c, rows // r)
    line, place = (row // r, column // c) if kind.by_rows else (column // c, row // r)
    numbers = (of_batch * sizes[0] + line) * sizes[1] + place
    blocks, block = np.unique(numbers, return_inverse=True)
    groups = math_prod(batch)
    in_lines = np.bincount(blocks // sizes[1] if blocks.size else blocks, minlength=groups * sizes[0])
    in_lines = in_lines.reshape(groups, sizes[0])
    per_batch = in_lines.sum(1)
    if groups and (per_batch != per_batch[0]).any():
        raise RuntimeError("Expect the same number of specified elements per batch.")
    nnz = int(per_batch[0]) if groups else 0
    starts = np.zeros((groups, sizes[0] + 1), np.int64, like=blocks)
    np.cumsum(in_lines, 1, out=starts[:, 1:])
    dense = array.values.shape[1:]
    if kind.blocks:
        values = np.zeros_like(array.values, shape=(blocks.size, r, c, *dense))
        values[block, row % r, column % c] = array.values
        dense = (r, c, *dense)
    else:
        values = np.empty_like(array.values, shape=(blocks.size, *dense))
        values[block] = array.values
    return kind(
        starts.reshape(*batch, -1), (blocks % sizes[1] if blocks.size else blocks).reshape(*batch, nnz),
        values.reshape(*batch, nnz, *dense), array.shape,
    )  # fmt: skip


@linear(0)
class ToCompressed(Function):
    """Any tensor with its rows or columns compressed."""

    @staticmethod
    def forward(ctx: Any, tensor: Any, kind: type[CompressedArray], blocksize: tuple[int, int], dense_dim: int) -> Any:
        array = tensor._memory_ if isinstance(tensor, AnySparse) else None
        ctx.like = array
        if array is None:
            coordinates = nonzero_array(tensor._numbers_, tensor.ndim - dense_dim)
        else:
            coordinates = array.to_coo() if isinstance(array, CompressedArray) else array
        return on(compress(coordinates, kind, blocksize))

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return (to_dense(grad) if ctx.like is None else to_layout_of(grad, ctx.like)), None, None, None


named("ToSparseBackward0")(ToCompressed)


def to_layout_of(tensor: Any, like: Any) -> Any:
    """A tensor in the layout of `like`, with all its values."""
    if isinstance(like, SparseArray):
        return to_coo(tensor, like.sparse_dim)
    if (
        isinstance(tensor, AnySparse)
        and tensor._memory_.kind is like.kind
        and tensor._memory_.blocksize == like.blocksize
    ):
        return tensor
    return ToCompressed.apply(tensor, like.kind, like.blocksize, like.dense_dim)


# --------------------------------------------------------------------------------------------------------------- linear


@named("AddBackward0")
class Add(Function):
    """``a + alpha * b``, where one or both are sparse; of both, of one layout."""

    @staticmethod
    def forward(ctx: Any, a: Any, b: Any, alpha: Any) -> Any:
        ctx.alpha = alpha
        if process.dual_levels:
            ctx.arguments = a, b
            ctx.materialize_grads = False
        dtype = ops.result_type(a, b).np
        x, y = (one._memory_ if isinstance(one, AnySparse) else one._numbers_ for one in (a, b))
        if not isinstance(a, AnySparse):
            return wrap(kernels.add_at_coordinates(x.astype(dtype), y, alpha), local.state.new_vc)
        if not isinstance(b, AnySparse):
            scaled = kernels.mul(y, alpha) if alpha != 1 else y
            return wrap(kernels.add_at_coordinates(scaled.astype(dtype), x), local.state.new_vc)
        x, y = (one.with_values(kernels.to_dtype(one.values, dtype)) for one in (x, y))
        if alpha != 1:
            y = y.with_values(kernels.to_dtype(kernels.mul(y.values, alpha), dtype))
        return on(kernels.add_sparse(x, y))

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad, grad if ctx.alpha == 1 else grad * _conjugate(ctx.alpha), None

    @staticmethod
    def jvp(ctx: Any, a: Any, b: Any, alpha: Any) -> Any:
        one, other = (
            x if x is not None else ops.zeros_like(y) for x, y in ((a, ctx.arguments[0]), (b, ctx.arguments[1]))
        )
        return Add.apply(one, other, ctx.alpha)


@named("MulBackward0")
@linear(0, 1)
class Scale(Function):
    """A sparse tensor times a number or a tensor of one element."""

    @staticmethod
    def forward(ctx: Any, tensor: Any, factor: Any) -> Any:
        needs = ctx.needs_input_grad
        ctx.save_for_backward(tensor if needs[1] else None, factor if needs[0] and isinstance(factor, Tensor) else None)
        ctx.factor = None if isinstance(factor, Tensor) else factor
        ctx.shape = factor.shape if isinstance(factor, Tensor) else ()
        value = factor._numbers_ if isinstance(factor, Tensor) else factor
        array = tensor._memory_
        values = kernels.mul(array.values, value)
        if isinstance(factor, Tensor) and factor.ndim:
            values = values.reshape(array.values.shape)
        return on(array.with_values(values))

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        tensor, factor = ctx.saved_tensors
        first = second = None
        if ctx.needs_input_grad[0]:
            first = grad * (_conjugate(ctx.factor) if factor is None else factor.conj())
        if tensor is not None:
            one = coalesced(to_coo(tensor))
            second = (values_at(to_coo(grad), one._memory_.indices) * values_of(one).conj()).sum().reshape(ctx.shape)
        return first, second


def _conjugate(number: Any) -> Any:
    return number.conjugate() if isinstance(number, complex) else number


@named("CloneBackward0")
@linear(0)
class Clone(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Any) -> Any:
        return on(copied(tensor._memory_))

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad


def copied(array: Any) -> Any:
    """The same in memory of its own."""
    if isinstance(array, SparseArray):
        return SparseArray(array.indices.copy(), array.values.copy(), array.shape, array.coalesced)
    return array.kind(array.starts.copy(), array.places.copy(), array.values.copy(), array.shape)


@named("ToCopyBackward0")
@linear(0)
class Moved(Function):
    """The same on another device."""

    @staticmethod
    def forward(ctx: Any, tensor: Any, device: Any, non_blocking: bool) -> Any:
        ctx.back = tensor.device
        array, place = tensor._memory_, device.place
        parts = [getattr(array, name) for name in array.parts]
        if place is None:
            parts = [part.get() for part in parts]
        else:
            parts = [place.take(part, non_blocking) for part in parts]
        made = array.kind(*parts, array.shape)
        if isinstance(array, SparseArray):
            made.coalesced = array.coalesced
        return on(made)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad.to(ctx.back), None, None


@named("PermuteBackward0")
@linear(0)
class Permute(Function):
    """A sparse tensor of coordinates with its dimensions in another order: sparse ones first, as they were."""

    @staticmethod
    def forward(ctx: Any, tensor: Any, dims: tuple[int, ...]) -> Any:
        ctx.dims = dims
        array = tensor._memory_
        n = array.sparse_dim
        indices = array.indices[list(dims[:n])]
        values = array.values.transpose(0, *[d - n + 1 for d in dims[n:]])
        shape = tuple([array.shape[d] for d in dims])
        kept = array.coalesced and (dims[:n] == tuple(range(n)) or array.nnz < 2)
        return on(SparseArray(indices, values, shape, kept))

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad.permute(tuple(np.argsort(ctx.dims).tolist())), None


@named("SparseMaskBackward0")
@linear(0)
class Mask(Function):
    """The values of a tensor at the coordinates of a mask."""

    @staticmethod
    def forward(ctx: Any, tensor: Any, mask: Any) -> Any:
        ctx.like = mask._memory_
        with_grad_off = values_at(to_coo(tensor), mask._memory_.indices)
        pattern = mask._memory_
        return on(SparseArray(pattern.indices, with_grad_off._numbers_, pattern.shape, pattern.coalesced))

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        # Unmasked elsewhere: zeros there.
        return to_dense(masked(grad, ctx.like)), None
