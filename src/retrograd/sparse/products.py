"""Products of sparse matrices with plain and with sparse ones.

Two operators are each other's derivatives: `Multiply`, a sparse matrix (or its adjoint) times a plain one, and
`SampleProducts`, the elements of a product of two plain matrices at the coordinates of a sparse one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import kernels
from ..autograd.function import Function
from ..core.state import local
from ..kernels import SparseArray
from ..ops import namespace as ops
from ..tensor import Tensor, wrap
from ..tensor.sparse import AnySparse, CompressedTensor, SparseTensor
from .construction import to_layout
from .derivatives import (
    FromValues,
    coalesced,
    linear,
    masked,
    named,
    on,
    to_coo,
    to_dense,
    to_layout_of,
    values_of,
    with_values,
)
from .forms import both, compressed, coo


@named("SparseAddmmBackward0")
@linear(0, 1)
class Multiply(Function):
    """``a @ b``, or ``a.mH @ b``, of a sparse matrix and a plain matrix or vector."""

    @staticmethod
    def forward(ctx: Any, a: Any, b: Tensor, adjoint: bool) -> Tensor:
        needs = ctx.needs_input_grad
        ctx.save_for_backward(a if needs[1] else None, b if needs[0] else None)
        ctx.adjoint, ctx.like = adjoint, a._memory_
        product = kernels.multiply_sparse_dense(a._memory_, b._numbers_, adjoint)
        return wrap(product, local.state.new_vc)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        a, b = ctx.saved_tensors
        grad = to_dense(grad)
        of_a = of_b = None
        if b is not None:
            first, second = (b, grad) if ctx.adjoint else (grad, b)
            if grad.ndim == 1:
                first, second = first.unsqueeze(1), second.unsqueeze(1)
            like = ctx.like if ctx.like.coalesced else kernels.first_of_each(ctx.like)[0]
            of_a = FromValues.apply(SampleProducts.apply(first, second, like), like)
        if a is not None:
            of_b = Multiply.apply(a, grad, not ctx.adjoint)
        return of_a, of_b, None


@linear(0, 1)
class SampleProducts(Function):
    """The elements of ``a @ b.mH`` at the coordinates of `like`, one for each of its values."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, like: SparseArray) -> Tensor:
        needs = ctx.needs_input_grad
        ctx.save_for_backward(a if needs[1] else None, b if needs[0] else None)
        ctx.like = like
        second = b._numbers_
        rows, columns = like.indices
        sampled = kernels.sampled_products(
            a._numbers_, second.conj() if second.dtype.kind == "c" else second, rows, columns
        )
        return wrap(sampled, local.state.new_vc)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        a, b = ctx.saved_tensors
        sparse = FromValues.apply(grad, ctx.like)
        of_a = None if b is None else Multiply.apply(sparse, b, False)
        # b is conjugated in the product: d(b) = (grad^T conj(a)) conjugated.
        of_b = None if a is None else Multiply.apply(sparse, a, True)
        return of_a, of_b, None


def _check_matrices(a: Any, b: Any, name: str) -> None:
    for one in (a, b):
        if isinstance(one, SparseTensor) and one._memory_.sparse_dim != one._memory_.ndim:
            raise RuntimeError(
                f"{name}: expected sparse matrices without dense dimensions, but one has "
                f"{one._memory_.ndim - one._memory_.sparse_dim}"
            )
    if a._memory_.ndim != 2 or b._memory_.ndim not in (1, 2):
        raise RuntimeError(
            f"{name}: expected matrices, but got tensors of {a._memory_.ndim} and {b._memory_.ndim} dimensions"
        )
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({a.shape[0]}x{a.shape[1]} and {'x'.join(map(str, b.shape))})"
        )
    if a._memory_.dtype != b._memory_.dtype:
        raise RuntimeError(f"{name}: expected both matrices to have one dtype, but got {a.dtype} and {b.dtype}")


def multiply(a: Any, b: Any, name: str = "mm") -> Any:
    """The product of two matrices of which one or both are sparse, or of a sparse one and a vector."""
    _check_matrices(a, b, name)
    if isinstance(a, AnySparse) and isinstance(b, AnySparse):
        return _multiply_sparse(a, b)
    if isinstance(a, AnySparse):
        # Gradients are masked by coordinates.
        return Multiply.apply(to_coo(a) if isinstance(a, CompressedTensor) and a.requires_grad else a, b, False)
    return multiply_adjoint(b, a.mH).mH


def multiply_adjoint(a: Any, b: Any) -> Any:
    """``a.mH @ b``."""
    return Multiply.apply(to_coo(a) if isinstance(a, CompressedTensor) and a.requires_grad else a, b, True)


@named("SparseSparseMatmulBackward0")
@linear(0, 1)
class _SparseProduct(Function):
    """The product of two sparse matrices, by coordinates."""

    @staticmethod
    def forward(ctx: Any, a: Any, b: Any) -> Any:
        needs = ctx.needs_input_grad
        ctx.save_for_backward(a if needs[1] else None, b if needs[0] else None)
        ctx.like = a._memory_, b._memory_
        return on(kernels.multiply_sparse(a._memory_, b._memory_))

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        a, b = ctx.saved_tensors
        grad = to_coo(grad)
        of_a = of_b = None
        if b is not None:
            of_a = masked(multiply(grad, b.conj().t()), ctx.like[0])
        if a is not None:
            of_b = masked(multiply(a.conj().t(), grad), ctx.like[1])
        return of_a, of_b


def _multiply_sparse(a: Any, b: Any) -> Any:
    layout = a.layout if isinstance(a, CompressedTensor) else None
    blocksize = a._memory_.blocksize if layout is not None and a._memory_.blocks else None
    result = _SparseProduct.apply(*(to_coo(one) for one in (a, b)))
    return result if layout is None else to_layout(result, layout, blocksize)


# ------------------------------------------------------------------------------------------------------------ operators


@both("mm", "spmm", "dsmm", "hsmm")
def mm(input: Any, mat2: Any) -> Any:
    return multiply(input, mat2)


@both()
def mv(input: Any, vec: Any) -> Any:
    return multiply(input, vec, "mv")


@both("matmul", "__matmul__", "linalg_matmul")
def matmul(input: Any, other: Any) -> Any:
    n, m = input._memory_.ndim, other._memory_.ndim
    if n == 2 and m in (1, 2):
        return multiply(input, other, "matmul")
    if n == 1 and m == 2:
        return multiply_adjoint(other, input.conj()).conj() if isinstance(other, AnySparse) else NotImplemented
    if n == 3 and m == 3:
        return input.bmm(other)
    return NotImplemented


@coo()
def bmm(input: Any, mat2: Any) -> Any:
    if not isinstance(input, SparseTensor) or isinstance(mat2, AnySparse):
        raise NotImplementedError(
            "bmm: there is one of a sparse tensor of coordinates and a plain one, in this order. Write x.to_dense()"
        )
    if input._memory_.ndim != 3 or mat2._memory_.ndim != 3 or input.shape[0] != mat2.shape[0]:
        raise RuntimeError(f"bmm_sparse: batches do not match: {list(input.shape)} and {list(mat2.shape)}")
    if not input.shape[0]:
        return mat2.new_zeros((0, input.shape[1], mat2.shape[2]))
    return ops.stack([multiply(input.select(0, i), mat2.select(0, i), "bmm") for i in range(input.shape[0])])


@both()
def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    product = multiply(mat1, mat2, "addmm")
    if isinstance(product, AnySparse) != isinstance(input, AnySparse):
        raise RuntimeError(
            f"addmm_sparse_dense: expected strided result tensor, got tensor with layout {input.layout} (the product "
            f"has layout {product.layout})"
        )
    if isinstance(input, AnySparse) and input._memory_.kind is not product._memory_.kind:
        product = to_layout_of(product, input._memory_)
    if alpha != 1:
        product = product * alpha
    if beta == 0:
        return product
    return (input if beta == 1 else input * beta) + product


@compressed()
def addmv(input: Any, mat: Any, vec: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    product = multiply(mat, vec, "addmv")
    return (input if beta == 1 else input * beta) + (product if alpha == 1 else product * alpha)


@both("linear")
def _linear(input: Any, weight: Any, bias: Any = None) -> Any:
    product = input @ weight.t()
    return product if bias is None else product + bias


@coo("sspaddmm", "saddmm")
def sspaddmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    if not isinstance(mat1, SparseTensor):
        raise RuntimeError("sspaddmm: expected 'mat1' to be sparse, but it is strided")
    product = smm(mat1, mat2)
    scaled = product if alpha == 1 else product * alpha
    return (input if beta == 1 else input * beta) + scaled


@coo()
def smm(input: Any, mat2: Any) -> Any:
    if isinstance(mat2, AnySparse) or not isinstance(input, SparseTensor):
        raise RuntimeError("smm: expected a sparse matrix and a plain one")
    product = multiply(input, mat2, "smm")
    rows = np.unique(input._memory_.indices[0])
    indices = np.stack([np.repeat(rows, product.shape[1]), np.tile(np.arange(product.shape[1], like=rows), rows.size)])
    like = SparseArray(indices, np.empty_like(product._numbers_, shape=indices.shape[1]), tuple(product.shape))
    return FromValues.apply(product.index_select(0, wrap(rows)).reshape(-1), like)


@coo()
def hspmm(mat1: Any, mat2: Any) -> Any:
    if isinstance(mat2, AnySparse) or not isinstance(mat1, SparseTensor):
        raise RuntimeError("hspmm: expected a sparse matrix and a plain one")
    product = multiply(mat1, mat2, "hspmm")
    rows = np.unique(mat1._memory_.indices[0])
    like = SparseArray(
        rows[None], np.empty_like(product._numbers_, shape=(rows.size, product.shape[1])), tuple(product.shape), True
    )
    return FromValues.apply(product.index_select(0, wrap(rows)), like)


def sampled_addmm(input: Any, mat1: Tensor, mat2: Tensor, beta: Any = 1, alpha: Any = 1) -> Any:
    """``alpha * (mat1 @ mat2)`` where `input` has values, plus ``beta * input``."""
    for name, one in (("mat1", mat1), ("mat2", mat2)):
        if isinstance(one, AnySparse):
            raise RuntimeError(f"sampled_addmm: Expected {name} to be a tensor of strided layout, but got {one.layout}")
    if mat1.ndim != 2 or mat2.ndim != 2 or tuple(input.shape) != (mat1.shape[0], mat2.shape[1]):
        raise RuntimeError(
            f"sampled_addmm: self.shape[-2] and self.shape[-1] must match mat1.shape[-2] and mat2.shape[-1]: got "
            f"shapes "
            f"{list(input.shape)}, {list(mat1.shape)} and {list(mat2.shape)}"
        )
    if mat1.shape[1] != mat2.shape[0]:
        raise RuntimeError(
            f"sampled_addmm: mat1 and mat2 shapes cannot be multiplied ({mat1.shape[0]}x{mat1.shape[1]} and "
            f"{mat2.shape[0]}x{mat2.shape[1]})"
        )
    one = coalesced(to_coo(input))
    sampled = SampleProducts.apply(mat1, mat2.mH, one._memory_)
    values = (sampled if alpha == 1 else sampled * alpha) + values_of(one) * beta
    return to_layout_of(with_values(one, values), input._memory_)


def multiply_and_reduce(mat1: Any, mat2: Tensor, reduce: str) -> Tensor:
    """The product with another reduction than the sum: of what each value of a row contributes."""
    if not isinstance(mat1, CompressedTensor):
        raise NotImplementedError(
            "Could not run 'aten::_sparse_mm_reduce_impl' with arguments from the 'SparseCPU' backend: reduce is for "
            "tensors of layout torch.sparse_csr. Write x.to_sparse_csr()"
        )
    if reduce not in ("sum", "mean", "amax", "amin"):
        raise RuntimeError(f"reduce argument must be either sum, mean, amax or amin, got {reduce}")
    _check_matrices(mat1, mat2, "sparse.mm")
    one = coalesced(to_coo(mat1))
    rows, columns = one._memory_.indices
    parts = values_of(one).unsqueeze(1) * mat2.index_select(0, wrap(columns))
    index = wrap(rows).unsqueeze(1).expand(parts.shape)
    zeros = parts.new_zeros((mat1.shape[0], mat2.shape[1]))
    return zeros.scatter_reduce(0, index, parts, reduce, include_self=False)
