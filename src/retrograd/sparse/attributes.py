"""What a sparse tensor is made of, its copies and conversions."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import kernels
from ..autograd.inplace import bump_version
from ..core.dtypes import as_numpy_dtype
from ..kernels import SparseArray
from ..ops import namespace as ops
from ..tensor import Tensor, wrap
from ..tensor.sparse import AnySparse, CompressedTensor, SparseTensor
from . import construction
from .derivatives import (
    Clone,
    Mask,
    coalesced,
    copied,
    empty_array,
    on,
    to_coo,
    to_dense,
    values_of,
    with_values,
)
from .forms import both, compressed, coo
from .inplace import begin, write

# ---------------------------------------------------------------------------------------------------------- coordinates


def _need_coalesced(tensor: Any, what: str) -> None:
    if not tensor._memory_.coalesced:
        raise RuntimeError(f"Cannot get {what} on an uncoalesced tensor, please call .coalesce() first")


@coo()
def coalesce(input: Any) -> Any:
    return coalesced(input)


@coo()
def is_coalesced(input: Any) -> bool:
    return input._memory_.coalesced


@coo()
def _coalesced_(input: Any, coalesced: bool) -> Any:
    input._memory_.coalesced = bool(coalesced)
    bump_version(input)
    return input


@coo()
def indices(input: Any) -> Tensor:
    _need_coalesced(input, "indices")
    return wrap(input._memory_.indices)


@coo("_indices")
def _indices(input: Any) -> Tensor:
    return wrap(input._memory_.indices)


@coo()
def values(input: Any) -> Tensor:
    _need_coalesced(input, "values")
    return values_of(input)


@compressed("values")
def _compressed_values(input: Any) -> Tensor:
    return values_of(input)


@coo("_values")
def _values(input: Any) -> Tensor:
    return wrap(input._memory_.values)


@both()
def _nnz(input: Any) -> int:
    return input._memory_.nnz


@coo("sparse_dim", "_dimI")
def sparse_dim(input: Any) -> int:
    return input._memory_.sparse_dim


@coo("dense_dim", "_dimV")
def dense_dim(input: Any) -> int:
    return input._memory_.ndim - input._memory_.sparse_dim


@compressed("sparse_dim")
def _two(input: Any) -> int:
    return 2


@compressed("dense_dim")
def _compressed_dense_dim(input: Any) -> int:
    return input._memory_.dense_dim


def _part(name: str, by_rows: bool, part: str) -> None:
    @compressed(name)
    def get(input: Any) -> Tensor:
        if input._memory_.by_rows is not by_rows:
            layouts = "SparseCsr or SparseBsr" if by_rows else "SparseCsc or SparseBsc"
            raise RuntimeError(
                f"{name} expected sparse {'row' if by_rows else 'column'} compressed tensor layout but got "
                f"{input._memory_.layout_name} ({layouts} have {name})"
            )
        return wrap(getattr(input._memory_, part))


_part("crow_indices", True, "starts")
_part("col_indices", True, "places")
_part("ccol_indices", False, "starts")
_part("row_indices", False, "places")

# ---------------------------------------------------------------------------------------------------------- conversions


@both("to_dense")
def _to_dense(input: Any, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    return to_dense(input if dtype is None else input.to(dtype), masked_grad)


both("to_sparse")(construction.to_sparse)


@both()
def clone(input: Any, *, memory_format: Any = None) -> Any:
    if memory_format is not None and "preserve" not in str(memory_format):
        raise RuntimeError(f"unsupported memory format option {memory_format} for a tensor of layout {input.layout}")
    return Clone.apply(input)


@both()
def _to_copy(input: Any, dtype: Any = None) -> Any:
    return with_values(input, values_of(input).to(dtype=dtype, copy=True))


@both()
def alias(input: Any) -> Any:
    return input.detach()


@both()
def detach_copy(input: Any) -> Any:
    return on(copied(input._memory_))


@both("contiguous")
def _contiguous(input: Any, memory_format: Any = None) -> Any:
    return input


@both()
def conj(input: Any) -> Any:
    return input.conj_physical() if input.is_complex() else input


@both("resolve_conj", "resolve_neg")
def _as_it_is(input: Any) -> Any:
    return input


@both()
def is_same_size(input: Any, other: Any) -> bool:
    return tuple(input.shape) == tuple(other.shape)


# ------------------------------------------------------------------------------------------------------------- new ones


def _like(name: str) -> None:
    @both(name)
    def make(input: Any, *, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
             pin_memory: bool = False, memory_format: Any = None) -> Any:  # fmt: skip
        if memory_format is not None:
            raise RuntimeError("memory format option is only supported by strided tensors")
        if layout is not None and layout is not input.layout:
            made = getattr(ops, name)(ops.empty(input.shape, dtype=dtype or input.dtype, device=input.device))
            return construction.to_layout(made, layout).requires_grad_(requires_grad)
        array = input._memory_
        np_dtype = array.dtype if dtype is None else as_numpy_dtype(dtype)
        if isinstance(array, SparseArray):
            result = on(empty_array(array.shape, np_dtype, array.sparse_dim, array))
        elif name == "zeros_like":
            starts = np.zeros_like(array.starts)
            batch = array.batch_dim
            places = np.zeros_like(array.places, shape=(*array.places.shape[:-1], 0))
            shape = (*array.values.shape[:batch], 0, *array.values.shape[batch + 1 :])
            of_values = np.zeros_like(array.values, np_dtype, shape=shape)
            result = on(array.kind(starts, places, of_values, array.shape))
        else:
            result = on(array.with_values(np.empty_like(array.values, np_dtype)))
        return (result if device is None else result.to(device)).requires_grad_(requires_grad)


_like("zeros_like")
_like("empty_like")


def _random_like(name: str) -> None:
    # Drawn at the places where there are values, which is where gradients of masked functions are.
    @compressed(name)
    def make(input: Any, **options: Any) -> Any:
        options.pop("layout", None)
        drawn = getattr(ops, name)(wrap(input._memory_.values), **options)
        return on(input._memory_.with_values(drawn._numbers_))


for _name in ("rand_like", "randn_like"):
    _random_like(_name)


@coo("new_zeros", "new_empty")
def _new_zeros(input: Any, *size: Any, dtype: Any = None, **options: Any) -> Any:
    sizes = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
    wanted = input._memory_.dtype if dtype is None else as_numpy_dtype(dtype)
    return on(empty_array(tuple(sizes), wanted, like=input._memory_))


# ------------------------------------------------------------------------------------------------------------- in place


@coo()
def zero_(input: Any) -> Any:
    begin(input)
    array = input._memory_
    write(input, empty_array(array.shape, array.dtype, array.sparse_dim, array))
    return input


@compressed("zero_")
def _zero_compressed(input: Any) -> Any:
    begin(input)
    write(input, input._memory_.with_values(np.zeros_like(input._memory_.values)))
    return input


@both()
def copy_(input: Any, src: Any, non_blocking: bool = False) -> Any:
    if not isinstance(input, AnySparse) or type(input) is not type(src):
        raise RuntimeError(
            "copy_() between dense and sparse Tensors is not implemented! Found self type = "
            f"{type_of(input)} and src type = {type_of(src)}: write x.to_dense() or x.to_sparse()"
        )
    if tuple(input.shape) != tuple(src.shape):
        raise RuntimeError(f"copy_: sizes of the tensors do not match: {list(input.shape)} and {list(src.shape)}")
    begin(input)
    made = copied((src if src.device == input.device else src.detach().to(input.device))._memory_)
    write(input, made.with_values(kernels.to_dtype(made.values, input._memory_.dtype)))
    return input


def type_of(tensor: Any) -> str:
    return f"torch.{'sparse.' if isinstance(tensor, AnySparse) else ''}{tensor._type_name_()}"


@both("type")
def _type(input: Any, dtype: Any = None, non_blocking: bool = False, **options: Any) -> Any:
    if dtype is None:
        return type_of(input)
    return input.to(dtype)


@coo()
def sparse_resize_(input: Any, size: Any, sparse_dim: int, dense_dim: int) -> Any:
    array, shape = input._memory_, tuple(size)
    if sparse_dim + dense_dim != len(shape):
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(shape)}, sparse_dim = "
            f"{sparse_dim}, dense_dim = {dense_dim}"
        )
    if array.nnz:
        if sparse_dim != array.sparse_dim:
            raise RuntimeError(
                f"changing the number of sparse dimensions (from {array.sparse_dim} to {sparse_dim}) on a non-empty "
                "sparse tensor is not supported."
            )
        if dense_dim != array.ndim - array.sparse_dim:
            raise RuntimeError(
                f"changing the number of dense dimensions (from {array.ndim - array.sparse_dim} to {dense_dim}) on a "
                "non-empty sparse tensor is not supported."
            )
        for dim, (old, new) in enumerate(zip(array.shape, shape, strict=True)):
            if new < old:
                kind = "sparse" if dim < sparse_dim else "dense"
                raise RuntimeError(
                    f"shrinking the size of {kind} dimensions (from {list(array.shape)} to {list(shape)}) on a "
                    "non-empty sparse tensor is not supported."
                )
        enlarged = np.zeros_like(array.values, shape=(array.nnz, *shape[sparse_dim:]))
        enlarged[tuple([slice(n) for n in array.values.shape])] = array.values
        made = SparseArray(array.indices, enlarged, shape, array.coalesced)
    else:
        made = empty_array(shape, array.dtype, sparse_dim, array)
        made.coalesced = array.coalesced
    begin(input)
    write(input, made)
    return input


@coo()
def sparse_resize_and_clear_(input: Any, size: Any, sparse_dim: int, dense_dim: int) -> Any:
    if sparse_dim + dense_dim != len(size):
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = "
            f"{sparse_dim}, dense_dim = {dense_dim}"
        )
    begin(input)
    write(input, empty_array(tuple(size), input._memory_.dtype, sparse_dim, input._memory_))
    return input


@coo()
def resize_as_sparse_(input: Any, the_template: Any) -> Any:
    if not (isinstance(input, SparseTensor) and isinstance(the_template, SparseTensor)):
        raise RuntimeError("resize_as_sparse_: self and other must both be sparse")
    like = the_template._memory_
    return sparse_resize_(input, like.shape, like.sparse_dim, like.ndim - like.sparse_dim)


@coo()
def resize_as_(input: Any, the_template: Any, *, memory_format: Any = None) -> Any:
    if memory_format is not None:
        raise RuntimeError(f"Unsupported memory format for sparse tensor resize_as_ : {memory_format}")
    return resize_as_sparse_(input, the_template)


@both()
def is_nonzero(input: Any) -> bool:
    return bool(to_dense(input))


@compressed("resize_as_sparse_")
def _resize_as_compressed(input: Any, the_template: Any) -> Any:
    if input._memory_.kind is not the_template._memory_.kind:
        raise RuntimeError("resize_as_sparse_csr_: layout for self and src must be the same")
    begin(input)
    array = the_template._memory_
    write(input, array.with_values(np.empty_like(array.values, input._memory_.dtype)))
    return input


# ---------------------------------------------------------------------------------------------------------------- masks


@both()
def sparse_mask(input: Any, mask: Any) -> Any:
    if tuple(input.shape) != tuple(mask.shape):
        raise RuntimeError(
            f"sparse_mask(): operands have incompatible sizes; self has size {list(input.shape)} but mask has size "
            f"{list(mask.shape)}"
        )
    if isinstance(mask, SparseTensor):
        return Mask.apply(to_coo(input), mask)
    if isinstance(mask, CompressedTensor):
        taken = to_coo(input).sparse_mask(to_coo(mask))
        array = mask._memory_
        return construction.to_layout(taken, mask.layout, array.blocksize if array.blocks else None)
    raise TypeError(f"sparse_mask(): the mask must be a sparse tensor, but its layout is {mask.layout}")
