"""``torch.linalg`` that is made of others: the ``_ex`` forms with their errors raised, norms, powers, products.

`retrograd/linalg.py` is the namespace that users see; the older names at the top level (``torch.svd``) are here too.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from ..._generated import functions as generated
from ...core.state import local
from ...kernels.dims import normalize_dim
from ...kernels.linalg_checks import check_floating, check_info, check_matrices
from ...kernels.promotion import is_half, scalar_name
from ...return_types import return_type
from ...tensor import Tensor
from ..registry import composite
from .linalg import _cheapest_splits, _multiply_chain, matmul
from .pointwise import where

_svd_result = return_type("linalg_svd", "U", "S", "Vh")
_old_svd_result = return_type("svd", "U", "S", "V")
_eigh_result = return_type("linalg_eigh", "eigenvalues", "eigenvectors")
_solve_result = return_type("linalg_solve_ex", "result", "info")
_lu_factor_result = return_type("linalg_lu_factor", "LU", "pivots")
_lu_result = return_type("_lu_with_info", "LU", "pivots", "info")
_ldl_factor_result = return_type("linalg_ldl_factor", "LD", "pivots")
_slogdet_result = return_type("slogdet", "sign", "logabsdet")
_qr_result = return_type("qr", "Q", "R")


def _differentiated(x: Tensor) -> bool:
    """May a derivative be asked of what is computed from `x`?"""
    return bool(local.state.dual_levels) or x.requires_grad


# ---------------------------------------------------------------------------------------------------- inverses, systems


@composite(method=False)
def linalg_inv(A: Tensor) -> Tensor:
    """The inverses of matrices."""
    inverse, info = generated.linalg_inv_ex(A)
    check_info(info._data, "linalg.inv")
    return inverse


@composite(out=True)
def inverse(input: Tensor) -> Tensor:
    """The inverses of matrices.

    >>> import retrograd as torch
    >>> torch.inverse(torch.tensor([[2., 0.], [0., 4.]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return linalg_inv(input)


@composite(method=False)
def linalg_solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """The solution of ``A X = B``, or ``X A = B``."""
    return generated._linalg_solve_ex(A, B, left=left, check_errors=True)[0]


@composite(method=False)
def linalg_solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> Any:
    """The solution of ``A X = B``, and for each matrix 0 or the pivot that is zero."""
    return _solve_result(*generated._linalg_solve_ex(A, B, left=left, check_errors=check_errors))


@composite(method=False)
def linalg_tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """The inverse of `A` as a map from its last dimensions to its first `ind`."""
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    shape = tuple(A.shape)
    rows, columns = math.prod(shape[:ind]), math.prod(shape[ind:])
    if rows != columns:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got "
            f"{columns} != {rows}"
        )
    return linalg_inv(A.reshape(rows, columns)).reshape((*shape[ind:], *shape[:ind]))


@composite(method=False)
def linalg_tensorsolve(A: Tensor, B: Tensor, dims: Sequence[int] | None = None) -> Tensor:
    """The X with ``tensordot(A, X, X.ndim) == B``; `dims` of `A` are moved to its end first."""
    if dims is not None:
        A = A.movedim(tuple(dims), tuple(range(-len(dims), 0)))
    shape = tuple(A.shape)[B.ndim :]
    rows, columns = math.prod(tuple(A.shape)[: B.ndim]), math.prod(shape)
    if rows != columns:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), "
            f"but got {columns} != {rows}"
        )
    return linalg_solve(A.reshape(rows, columns), B.reshape(rows)).reshape(shape)


# --------------------------------------------------------------------------------------------------------- determinants


@composite()
def det(input: Tensor) -> Tensor:
    """The determinants of matrices."""
    return generated.linalg_det(input)


@composite(out=True)
def slogdet(input: Tensor) -> Any:
    """The sign of the determinants, and the logarithm of their modulus."""
    return _slogdet_result(*generated.linalg_slogdet(input))


@composite()
def logdet(input: Tensor) -> Tensor:
    """The logarithms of the determinants: NaN where one is negative."""
    check_matrices(input._data, "logdet", True)
    check_floating(input._data, "logdet")
    sign, logabsdet = generated.linalg_slogdet(input)
    if input.is_complex():
        return sign.log() + logabsdet
    return where(sign == -1.0, math.nan, logabsdet)


# ------------------------------------------------------------------------------------------------------- decompositions


@composite(method=False)
def linalg_cholesky(A: Tensor, *, upper: bool = False) -> Tensor:
    """The Cholesky factors of positive-definite matrices."""
    factor, info = generated.linalg_cholesky_ex(A, upper=upper)
    check_info(info._data, "linalg.cholesky")
    return factor


@composite(out=True)
def qr(input: Tensor, some: bool = True) -> Any:
    """The older form of linalg.qr: complete unless `some`."""
    return _qr_result(*generated.linalg_qr(input, "reduced" if some else "complete"))


@composite(method=False)
def linalg_svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> Any:
    """U, S and Vh with ``A = U @ diag(S) @ Vh``."""
    _check_driver(driver)
    return _svd_result(*generated._linalg_svd(A, full_matrices))


@composite(method=False)
def linalg_svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """The singular values, in descending order."""
    _check_driver(driver)
    return generated._linalg_svd(A, False, _differentiated(A))[1]


def _check_driver(driver: str | None) -> None:
    if driver is not None:
        raise RuntimeError(
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
        )


@composite(out=True)
def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> Any:
    """The older form of linalg.svd, with V in place of Vh; zeros for U and V without `compute_uv`."""
    if not compute_uv:
        m, n = input.shape[-2:]
        batch = tuple(input.shape[:-2])
        u, v = input.detach().new_zeros((*batch, m, m)), input.detach().new_zeros((*batch, n, n))
        return _old_svd_result(u, linalg_svdvals(input), v)
    u, s, vh = generated._linalg_svd(input, not some)
    v = vh.transpose(-2, -1)
    return _old_svd_result(u, s, v.conj() if v.is_complex() else v)


@composite(method=False)
def linalg_eigh(A: Tensor, UPLO: str = "L") -> Any:
    """Eigenvalues, ascending, and eigenvectors of Hermitian matrices."""
    return _eigh_result(*generated._linalg_eigh(A, UPLO))


@composite(method=False)
def linalg_eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """Eigenvalues of Hermitian matrices, ascending."""
    return generated._linalg_eigh(A, UPLO, _differentiated(A))[0]


@composite(method=False)
def linalg_eigvals(A: Tensor) -> Tensor:
    """Eigenvalues, complex."""
    return generated.linalg_eig(A)[0] if _differentiated(A) else generated._linalg_eigvals(A)


@composite(method=False)
def linalg_lu_factor(A: Tensor, *, pivot: bool = True) -> Any:
    """Both factors in one matrix, and the pivots."""
    lu, pivots, info = generated.linalg_lu_factor_ex(A, pivot=pivot)
    check_info(info._data, "torch.linalg.lu_factor")
    return _lu_factor_result(lu, pivots)


@composite(method=False)
def linalg_ldl_factor(A: Tensor, *, hermitian: bool = False) -> Any:
    """L and D of ``A = L D L^T`` in one matrix, and the pivots."""
    ld, pivots, _ = generated.linalg_ldl_factor_ex(A, hermitian=hermitian, check_errors=True)
    return _ldl_factor_result(ld, pivots)


@composite(out=True)
def lu_solve(input: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """The older form of linalg.lu_solve, with the right-hand side first."""
    return generated.linalg_lu_solve(LU_data, LU_pivots, input)


@composite()
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """The pseudo-inverses of matrices."""
    return generated.linalg_pinv(input, rtol=rcond)


@composite()
def lu(input: Tensor, pivot: bool = True, get_infos: bool = False) -> Any:
    """The older form of linalg.lu_factor; with `get_infos`, of linalg.lu_factor_ex."""
    if get_infos:
        return _lu_result(*generated.linalg_lu_factor_ex(input, pivot=pivot))
    return tuple(linalg_lu_factor(input, pivot=pivot))


@composite(out=True)
def ormqr(input: Tensor, input2: Tensor, input3: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    """The product of `input3` and the whole orthogonal matrix of the reflectors in `input` and `input2`."""
    tau, other = input2, input3
    check_matrices(input._data, "torch.ormqr", argument="input")
    check_matrices(other._data, "torch.ormqr", argument="other")
    m, n = input.shape[-2:]
    size = other.shape[-2 if left else -1]
    if tau.ndim != input.ndim - 1:
        raise RuntimeError(
            f"torch.ormqr: Expected tau to have one dimension less than input, but got tau.ndim equal to {tau.ndim} "
            f"and input.ndim is equal to {input.ndim}"
        )
    if other.ndim != input.ndim:
        raise RuntimeError(
            "torch.ormqr: Expected other to have the same number of dimensions as input, but got other.ndim equal to "
            f"{other.ndim} and input.ndim is equal to {input.ndim}"
        )
    if tau.shape[-1] != min(size, n):
        raise RuntimeError(
            f"torch.ormqr: tau.shape[-1] must be equal to min(other.shape[{-2 if left else -1}], input.shape[-1])"
        )
    if size != m:
        raise RuntimeError(f"torch.ormqr: other.shape[{-2 if left else -1}] must be equal to input.shape[-2]")
    square = input if m == n else input[..., :m]
    if n < m:
        square = generated.cat([input, input.new_zeros((*input.shape[:-1], m - n))], -1)
    q = generated.linalg_householder_product(square, tau)
    if transpose:
        q = q.transpose(-2, -1)
        q = q.conj() if q.is_complex() else q
    return matmul(q, other) if left else matmul(other, q)


@composite(out=True)
def orgqr(input: Tensor, input2: Tensor) -> Tensor:
    """The older name of linalg.householder_product."""
    return generated.linalg_householder_product(input, input2)


# ----------------------------------------------------------------------------------------------------- norms, condition


@composite(method=False)
def linalg_matrix_norm(
    A: Tensor, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """The norms of matrices: "fro", "nuc", or of order inf, 1, 2 and their negatives."""
    check_matrices(A._data, "linalg.matrix_norm")
    if A._data.dtype.kind not in "fcV":
        raise RuntimeError(
            "linalg.matrix_norm: Expected a floating point or complex tensor as input. Got "
            f"{scalar_name(A._data.dtype)}"
        )
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    if len(dims) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(str(d) for d in dims)}")
    rows, columns = (normalize_dim(d, A.ndim) for d in dims)
    if rows == columns:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({dims[0]}, {dims[1]})")
    if ord == "fro":
        return generated.linalg_vector_norm(A, 2, (rows, columns), keepdim, dtype=dtype)
    if ord != "nuc" if isinstance(ord, str) else abs(ord) not in (1, 2, math.inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    A = A if dtype is None else A.to(dtype)
    if ord == "nuc" or abs(ord) == 2:
        values = linalg_svdvals(A.movedim((rows, columns), (-2, -1)))
        result = values.sum(-1) if ord == "nuc" else values.amax(-1) if ord > 0 else values.amin(-1)
        if keepdim:
            for d in sorted((rows, columns)):
                result = result.unsqueeze(d)
        return result
    inner, outer = (columns, rows) if abs(ord) == math.inf else (rows, columns)
    sums = generated.linalg_vector_norm(A, 1, (inner,), keepdim)
    outer -= int(not keepdim and inner < outer)
    return sums.amax(outer, keepdim) if ord > 0 else sums.amin(outer, keepdim)


@composite(method=False, out=True)
def nuclear_norm(input: Tensor, dim: Any = (-2, -1), keepdim: bool = False) -> Tensor:
    """The sum of the singular values."""
    if isinstance(dim, bool):  # without dimensions, keepdim may be the second argument
        dim, keepdim = (-2, -1), dim
    return linalg_matrix_norm(input, "nuc", dim, keepdim)


@composite(method=False, out=True)
def frobenius_norm(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The square root of the sum of the squares."""
    return generated.linalg_vector_norm(input, 2, dim, keepdim)


@composite(method=False)
def linalg_norm(A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The norm of vectors or of matrices, by the number of dimensions in `dim`."""
    if dim is not None:
        dim = (int(dim),) if isinstance(dim, (int, Tensor)) else tuple(dim)
        if len(dim) not in (1, 2):
            raise RuntimeError(
                f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got [{', '.join(str(d) for d in dim)}]"
            )
    elif ord is not None and A.ndim not in (1, 2):
        raise RuntimeError(
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {A.ndim}D."
        )
    if ord is not None and (isinstance(ord, str) or (len(dim) == 2 if dim is not None else A.ndim == 2)):
        return linalg_matrix_norm(A, ord, (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
    return generated.linalg_vector_norm(A, 2 if ord is None else ord, dim, keepdim, dtype=dtype)


@composite(method=False)
def linalg_cond(A: Tensor, p: Any = None) -> Tensor:
    """The condition numbers of matrices, in the norm `p`."""
    if A.ndim < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    if p is None or p in (2, -2):
        values = linalg_svdvals(A)
        large, small = values[..., 0], values[..., -1]
        return small / large if p == -2 else large / small
    if p not in ("fro", "nuc", 1, -1, math.inf, -math.inf):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    check_matrices(A._data, f"linalg.cond(ord={p})", True)
    inverse, info = generated.linalg_inv_ex(A)
    result = linalg_matrix_norm(A, p) * linalg_matrix_norm(inverse, p)
    singular = info != 0
    return where(singular, math.inf, result) if bool(singular.any()) else result


# ------------------------------------------------------------------------------------------------------------- products


@composite("linalg_matrix_power", out=True)
def matrix_power(input: Tensor, n: int) -> Tensor:
    """The product of `n` copies of each matrix; of its inverse for a negative `n`.

    >>> import retrograd as torch
    >>> torch.matrix_power(torch.tensor([[1., 1.], [0., 1.]]), 5)
    tensor([[1., 5.],
            [0., 1.]])
    """
    check_matrices(input._data, "linalg.matrix_power", True)
    if n == 0:
        from ..factories import eye

        return input.clone().copy_(eye(input.shape[-1], dtype=input.dtype))
    if n < 0:
        return matrix_power(linalg_inv(input), -n)
    if n == 1:
        return input.clone()
    result, square = None, input
    while True:
        if n & 1:
            result = square if result is None else matmul(result, square)
        n >>= 1
        if not n:
            assert result is not None
            return result
        square = matmul(square, square)


@composite()
def matrix_exp(input: Tensor) -> Tensor:
    """The exponentials of matrices."""
    return generated.linalg_matrix_exp(input)


@composite(method=False)
def linalg_multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """The product of matrices, in the cheapest order; the first and the last may be vectors."""
    tensors = list(tensors)
    n = len(tensors)
    if n < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {n}")
    first, last = tensors[0], tensors[-1]
    for position, x in ((0, first), (n - 1, last)):
        if x.ndim not in (1, 2):
            which = "first" if position == 0 else "last"
            raise RuntimeError(f"multi_dot(): the {which} tensor must be 1D or 2D but got {x.ndim}D")
    shape = []
    if first.ndim == 1:
        tensors[0] = first.unsqueeze(0)
    else:
        shape.append(first.shape[0])
    if last.ndim == 1:
        tensors[-1] = last.unsqueeze(-1)
    else:
        shape.append(last.shape[1])
    for i, x in enumerate(tensors):
        if x.ndim != 2:
            raise RuntimeError(f"multi_dot(): tensor {i} must be 2D but got {x.ndim}D")
        if x.dtype != tensors[0].dtype:
            raise RuntimeError(
                f"multi_dot(): all tensors must have be the same dtype but tensor 0 is {tensors[0].dtype} and tensor "
                f"{i} {x.dtype}"
            )
    for i, (a, b) in enumerate(itertools.pairwise(tensors)):
        if a.shape[-1] != b.shape[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {i} and {i + 1} with shapes {list(a.shape)} and {list(b.shape)} cannot be "
                "multiplied"
            )
    sizes = [x.shape[0] for x in tensors] + [tensors[-1].shape[-1]]
    return _multiply_chain(tensors, _cheapest_splits(sizes), 0, n - 1).view(tuple(shape))


@composite(method=False)
def linalg_vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """The dot products of vectors along `dim`, the first conjugated."""
    for v in (x, y):
        if v._data.dtype.kind not in "fcV":
            raise RuntimeError(
                f"linalg.vecdot: Expected a floating point or complex tensor as input. Got {scalar_name(v._data.dtype)}"
            )
    if x._data.dtype != y._data.dtype:
        names = scalar_name(x._data.dtype), scalar_name(y._data.dtype)
        raise RuntimeError(
            "linalg.vecdot: Expected x and y to have the same dtype, but found x of type {} and y of type {} "
            "instead".format(*names)
        )
    if x.ndim == 1 == y.ndim:
        return generated.vdot(x, y)
    return ((x.conj() if x.is_complex() else x) * y).sum(dim)


@composite(method=False)
def linalg_vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """The powers ``x**0`` to ``x**(N-1)`` in rows."""
    if x._data.dtype.kind == "b" or is_half(x._data.dtype):
        raise RuntimeError(
            "linalg.vander supports floating point, complex, and integer tensors, but got "
            + scalar_name(x._data.dtype)
        )
    if not x.ndim:
        x = x.unsqueeze(0)
    n = int(x.shape[-1]) if N is None else N
    if n <= 1:
        raise RuntimeError("N must be greater than 1.")
    columns = x.unsqueeze(-1).expand((*x.shape, n - 1)).cumprod(-1)
    from ..factories import ones_like

    return generated.cat([ones_like(columns[..., :1]), columns], -1)


@composite(method=False)
def linalg_diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonals of matrices, a view."""
    return generated.diagonal(A, offset, dim1, dim2)
