"""The functions and methods of sparse tensors that users find; the package `sparse` says what they do.

Sparse tensors answer for themselves (Note [Special tensors]).  What stands here is how these are called, and what they
are for plain tensors.
"""

from __future__ import annotations

from typing import Any

from ...core import layout as layouts
from ...tensor import Tensor
from ..registry import composite


def _construction() -> Any:
    from ...sparse import construction  # sparse tensors are made of operators; and few programs use them

    return construction


# ------------------------------------------------------------------------------------------------------------- new ones


def _own(layout: Any, given: Any, pin_memory: bool) -> Any:
    """The layout that a function makes tensors of, whose arguments ask for nothing else."""
    if pin_memory:
        raise RuntimeError("pin_memory=True is for dense tensors: pin the indices and values")
    if given is not None and given is not layout:
        raise RuntimeError(f"expected layout {layout}, but got {given}: sparse_compressed_tensor makes all of them")
    return layout


@composite(method=False, bare=True)
def sparse_coo_tensor(*args: Any, **kwargs: Any) -> Tensor:
    """A sparse tensor of `values` at `indices` (one row a sparse dimension), of shape `size`.

    >>> import retrograd as torch
    >>> torch.sparse_coo_tensor([[0, 1], [2, 0]], [3., 4.], (2, 3)).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 0.]])
    """
    return _construction().sparse_coo_tensor(*args, **kwargs)


@composite(method=False)
def sparse_compressed_tensor(
    compressed_indices: Any, plain_indices: Any, values: Any, size: Any = None, *, dtype: Any = None,
    layout: Any = None, device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:  # fmt: skip
    """A tensor of one of the layouts in which rows or columns of matrices are compressed."""
    if layout is None:
        raise RuntimeError("sparse_compressed_tensor: layout is required, such as torch.sparse_csr")
    parts = compressed_indices, plain_indices, values, size, dtype, device, requires_grad, check_invariants
    return _construction().sparse_compressed(_own(layout, layout, pin_memory), *parts)


@composite(method=False)
def sparse_csr_tensor(
    crow_indices: Any, col_indices: Any, values: Any, size: Any = None, *, dtype: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
    layout: Any = None,
) -> Tensor:  # fmt: skip
    """A matrix by rows: those of `values` before ``crow_indices[i + 1]`` are in the first i + 1, at `col_indices`.

    >>> import retrograd as torch
    >>> torch.sparse_csr_tensor([0, 1, 2], [2, 0], [3., 4.], (2, 3)).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 0.]])
    """
    parts = crow_indices, col_indices, values, size, dtype, device, requires_grad, check_invariants
    return _construction().sparse_compressed(_own(layouts.sparse_csr, layout, pin_memory), *parts)


@composite(method=False)
def sparse_csc_tensor(
    ccol_indices: Any, row_indices: Any, values: Any, size: Any = None, *, dtype: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
    layout: Any = None,
) -> Tensor:  # fmt: skip
    """A matrix by columns."""
    parts = ccol_indices, row_indices, values, size, dtype, device, requires_grad, check_invariants
    return _construction().sparse_compressed(_own(layouts.sparse_csc, layout, pin_memory), *parts)


@composite(method=False)
def sparse_bsr_tensor(
    crow_indices: Any, col_indices: Any, values: Any, size: Any = None, *, dtype: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
    layout: Any = None,
) -> Tensor:  # fmt: skip
    """A matrix of blocks, by rows of them."""
    parts = crow_indices, col_indices, values, size, dtype, device, requires_grad, check_invariants
    return _construction().sparse_compressed(_own(layouts.sparse_bsr, layout, pin_memory), *parts)


@composite(method=False)
def sparse_bsc_tensor(
    ccol_indices: Any, row_indices: Any, values: Any, size: Any = None, *, dtype: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
    layout: Any = None,
) -> Tensor:  # fmt: skip
    """A matrix of blocks, by columns of them."""
    parts = ccol_indices, row_indices, values, size, dtype, device, requires_grad, check_invariants
    return _construction().sparse_compressed(_own(layouts.sparse_bsc, layout, pin_memory), *parts)


# ---------------------------------------------------------------------------------------------------------- conversions


@composite(space="Tensor")
def to_sparse(
    input: Tensor, sparse_dim: Any = None, *, layout: Any = None, blocksize: Any = None, dense_dim: int | None = None
) -> Tensor:
    """The elements that are not zero, as a sparse tensor; the first `sparse_dim` dimensions are sparse.

    >>> import retrograd as torch
    >>> torch.tensor([0., 5., 0.]).to_sparse()
    tensor(indices=tensor([[1]]),
           values=tensor([5.]),
           size=(3,), nnz=1, layout=torch.sparse_coo)
    """
    return _construction().to_sparse(input, sparse_dim, layout=layout, blocksize=blocksize, dense_dim=dense_dim)


@composite(space="Tensor")
def to_sparse_coo(input: Tensor) -> Tensor:
    """The tensor by coordinates."""
    return input.to_sparse()


@composite(space="Tensor")
def to_sparse_csr(input: Tensor, dense_dim: int | None = None) -> Tensor:
    """The tensor with its rows compressed."""
    return _construction().to_layout(input, layouts.sparse_csr, None, dense_dim)


@composite(space="Tensor")
def to_sparse_csc(input: Tensor, dense_dim: int | None = None) -> Tensor:
    """The tensor with its columns compressed."""
    return _construction().to_layout(input, layouts.sparse_csc, None, dense_dim)


@composite(space="Tensor")
def to_sparse_bsr(input: Tensor, blocksize: Any, dense_dim: int | None = None) -> Tensor:
    """The tensor in blocks, with rows of them compressed."""
    return _construction().to_layout(input, layouts.sparse_bsr, blocksize, dense_dim)


@composite(space="Tensor")
def to_sparse_bsc(input: Tensor, blocksize: Any, dense_dim: int | None = None) -> Tensor:
    """The tensor in blocks, with columns of them compressed."""
    return _construction().to_layout(input, layouts.sparse_bsc, blocksize, dense_dim)


@composite(space="Tensor")
def to_dense(input: Tensor, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    """The plain tensor of all elements; itself, if it is one. `masked_grad`: gradients where it has values alone."""
    return input if dtype is None else input.to(dtype)


@composite(space="Tensor")
def sparse_mask(input: Tensor, mask: Tensor) -> Tensor:
    """The elements at the places where the sparse tensor `mask` has values."""
    raise TypeError(f"sparse_mask(): the mask must be a sparse tensor, but its layout is {mask.layout}")


# -------------------------------------------------------------------------------------------------- what one is made of


def _expected(name: str, what: str, input: Tensor) -> RuntimeError:
    got = getattr(input._memory_, "layout_name", "Strided")
    return RuntimeError(f"{name} expected {what} but got {got}")


_COORDINATES = "sparse coordinate tensor layout"


@composite(space="Tensor")
def coalesce(input: Tensor) -> Tensor:
    """The sparse tensor with each coordinate once, in order: values at the same place are added."""
    raise _expected("coalesce", _COORDINATES, input)


@composite(space="Tensor")
def is_coalesced(input: Tensor) -> bool:
    """Has each coordinate one value, and are they in order?"""
    raise _expected("is_coalesced", _COORDINATES, input)


@composite(space="Tensor")
def _coalesced_(input: Tensor, coalesced: bool) -> Tensor:
    raise _expected("_coalesced_", _COORDINATES, input)


@composite(space="Tensor")
def indices(input: Tensor) -> Tensor:
    """The coordinates of a coalesced sparse tensor."""
    raise _expected("indices", _COORDINATES, input)


@composite(space="Tensor")
def _indices(input: Tensor) -> Tensor:
    raise _expected("_indices", _COORDINATES, input)


@composite(space="Tensor")
def values(input: Tensor) -> Tensor:
    """The values of a sparse tensor."""
    raise _expected("values", "sparse tensor layout", input)


@composite(space="Tensor")
def _values(input: Tensor) -> Tensor:
    raise _expected("_values", _COORDINATES, input)


@composite(space="Tensor")
def _nnz(input: Tensor) -> int:
    raise NotImplementedError(
        f"Could not run 'aten::_nnz' with arguments from the 'CPU' backend: a tensor of layout {input.layout} has a "
        f"value "
        "for each of its elements, x.numel()"
    )


@composite("_dimI", space="Tensor")
def sparse_dim(input: Tensor) -> int:
    """How many dimensions are sparse: none of a plain tensor."""
    return 0 * input._memory_.ndim


@composite("_dimV", space="Tensor")
def dense_dim(input: Tensor) -> int:
    """How many dimensions the values of a sparse tensor have."""
    return input._memory_.ndim


@composite(space="Tensor")
def crow_indices(input: Tensor) -> Tensor:
    """Where each row begins among the values."""
    raise _expected("crow_indices", "sparse row compressed tensor layout", input)


@composite(space="Tensor")
def col_indices(input: Tensor) -> Tensor:
    """The column of each value."""
    raise _expected("col_indices", "sparse row compressed tensor layout", input)


@composite(space="Tensor")
def ccol_indices(input: Tensor) -> Tensor:
    """Where each column begins among the values."""
    raise _expected("ccol_indices", "sparse column compressed tensor layout", input)


@composite(space="Tensor")
def row_indices(input: Tensor) -> Tensor:
    """The row of each value."""
    raise _expected("row_indices", "sparse column compressed tensor layout", input)


@composite(method=False)
def indices_copy(input: Tensor) -> Tensor:
    """A copy of the coordinates."""
    return input.indices().clone()


@composite(method=False)
def values_copy(input: Tensor) -> Tensor:
    """A copy of the values."""
    return input.values().clone()


@composite(method=False)
def crow_indices_copy(input: Tensor) -> Tensor:
    """A copy of where each row begins."""
    return input.crow_indices().clone()


@composite(method=False)
def col_indices_copy(input: Tensor) -> Tensor:
    """A copy of the columns of the values."""
    return input.col_indices().clone()


@composite(method=False)
def ccol_indices_copy(input: Tensor) -> Tensor:
    """A copy of where each column begins."""
    return input.ccol_indices().clone()


@composite(method=False)
def row_indices_copy(input: Tensor) -> Tensor:
    """A copy of the rows of the values."""
    return input.row_indices().clone()


# ------------------------------------------------------------------------------------------------------------- in place


@composite(space="Tensor")
def sparse_resize_(input: Tensor, size: Any, sparse_dim: int, dense_dim: int) -> Tensor:
    """Another shape for a sparse tensor, in place; what it has must stay in it."""
    raise _expected("sparse_resize_", _COORDINATES, input)


@composite(space="Tensor")
def sparse_resize_and_clear_(input: Tensor, size: Any, sparse_dim: int, dense_dim: int) -> Tensor:
    """Another shape for a sparse tensor, in place, without values."""
    raise _expected("sparse_resize_and_clear_", _COORDINATES, input)


@composite()
def resize_as_sparse_(input: Tensor, the_template: Tensor) -> Tensor:
    """The shape of another sparse tensor, in place."""
    raise _expected("resize_as_sparse_", _COORDINATES, input)


# ------------------------------------------------------------------------------------------------------------- products


@composite("dsmm", "hsmm", method=False)
def spmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices."""
    return input.mm(mat2)


@composite()
def smm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of a sparse matrix and a plain one, as a sparse tensor."""
    raise _expected("smm", _COORDINATES, input)


@composite(method=False)
def hspmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """The product of a sparse matrix and a plain one: the rows that are not zero, as a sparse tensor of rows."""
    raise _expected("hspmm", _COORDINATES, mat1)


@composite("torch.saddmm")
def sspaddmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """``beta * input + alpha * (mat1 @ mat2)``, where `input` and `mat1` are sparse."""
    raise _expected("sspaddmm", _COORDINATES, input)


# -------------------------------------------------------------------------------------------- gradients that are sparse


@composite(space="internal")
def embedding_sparse_gradient(grad: Tensor, indices: Tensor, num_weights: int, padding_idx: int = -1) -> Tensor:
    """The gradient of `embedding` for its weight, as a sparse tensor of rows."""
    return _construction().embedding_sparse_gradient(grad, indices, num_weights, padding_idx)


@composite(space="internal")
def gather_sparse_gradient(grad: Tensor, shape: Any, dim: int, index: Tensor) -> Tensor:
    """The gradient of `gather`, as a sparse tensor."""
    return _construction().gather_sparse_gradient(grad, shape, dim, index)
