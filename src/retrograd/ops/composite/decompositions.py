"""``torch.linalg`` that is made of others: the ``_ex`` forms with their errors raised, norms, powers, products.

`retrograd/linalg.py` is the namespace that users see; the older names at the top level (``torch.svd``) are here too.
"""

from __future__ import annotations

from typing import Any

from ..._generated import functions as generated
from ...core.state import process
from ...kernels.linalg_checks import check_info
from ...return_types import return_type
from ...tensor import Tensor
from ...tensor.special import all_values
from ..random_factories import randn
from ..registry import composite
from .products import matmul

_svd_result = return_type("linalg_svd", "U", "S", "Vh")
_old_svd_result = return_type("svd", "U", "S", "V")
_eigh_result = return_type("linalg_eigh", "eigenvalues", "eigenvectors")
_lu_factor_result = return_type("linalg_lu_factor", "LU", "pivots")
_lu_result = return_type("_lu_with_info", "LU", "pivots", "info")
_ldl_factor_result = return_type("linalg_ldl_factor", "LD", "pivots")
_qr_result = return_type("qr", "Q", "R")


def _differentiated(x: Tensor) -> bool:
    """May a derivative be asked of what is computed from `x`?"""
    return bool(process.dual_levels) or x.requires_grad


# ------------------------------------------------------------------------------------------------------- decompositions


@composite(method=False)
def linalg_cholesky(A: Tensor, *, upper: bool = False) -> Tensor:
    """The Cholesky factors of positive-definite matrices."""
    factor, info = generated.linalg_cholesky_ex(A, upper=upper)
    check_info(all_values(info), "linalg.cholesky")
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
    check_info(all_values(info), "torch.linalg.lu_factor")
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
def lu(input: Tensor, pivot: bool = True, get_infos: bool = False) -> Any:
    """The older form of linalg.lu_factor; with `get_infos`, of linalg.lu_factor_ex."""
    if get_infos:
        return _lu_result(*generated.linalg_lu_factor_ex(input, pivot=pivot))
    return tuple(linalg_lu_factor(input, pivot=pivot))


@composite(out=True)
def ormqr(input: Tensor, input2: Tensor, input3: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    """The product of `input3` and the whole orthogonal matrix of the reflectors in `input` and `input2`."""
    tau, other = input2, input3
    for name, one in (("input", input), ("other", other)):
        if one.ndim < 2:
            raise RuntimeError(f"torch.ormqr: {name} must have at least 2 dimensions.")
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
    if size != m:
        raise RuntimeError(f"torch.ormqr: other.shape[{-2 if left else -1}] must be equal to input.shape[-2]")
    if tau.shape[-1] != min(size, n):
        raise RuntimeError(
            f"torch.ormqr: tau.shape[-1] must be equal to min(other.shape[{-2 if left else -1}], input.shape[-1])"
        )
    for name, batch in (("tau", tau.shape[:-1]), ("other", other.shape[:-2])):
        if batch != input.shape[:-2]:
            raise RuntimeError(
                f"torch.ormqr: Expected batch dimensions of {name} to be equal to input.shape[:-2], but got "
                f"{list(batch)}"
            )
    for name, one in (("tau", tau), ("other", other)):
        if one.dtype != input.dtype:
            raise RuntimeError(
                f"torch.ormqr: Expected input and {name} to have the same dtype, but input has dtype "
                f"{input._type_name_()[:-6]} and {name} has dtype {one._type_name_()[:-6]}"
            )
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


def _adjoint(x: Tensor) -> Tensor:
    return x.mH


def _approximate_basis(A: Tensor, q: int, niter: int, M: Tensor | None) -> Tensor:
    """An orthonormal basis of about the range of ``A - M``, by products with random vectors."""

    def product(x: Tensor) -> Tensor:
        return matmul(A, x) if M is None else matmul(A, x) - matmul(M, x)

    def adjoint_product(x: Tensor) -> Tensor:
        return matmul(_adjoint(A), x) if M is None else matmul(_adjoint(A), x) - matmul(_adjoint(M), x)

    basis = generated.linalg_qr(product(randn(A.shape[-1], q, dtype=A.dtype)))[0]
    for _ in range(niter):
        basis = generated.linalg_qr(adjoint_product(basis))[0]
        basis = generated.linalg_qr(product(basis))[0]
    return basis


@composite(method=False)
def svd_lowrank(A: Tensor, q: int = 6, niter: int = 2, M: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """About the `q` largest singular values of ``A - M`` and their vectors: U, S and V, by random projection.

    >>> import retrograd as torch
    >>> A = torch.outer(torch.tensor([3., 4.]), torch.tensor([0., 1.]))
    >>> torch.svd_lowrank(A, q=1)[1]
    tensor([5.])
    """
    if q is None:
        q = 6
    if A.shape[-2] < A.shape[-1]:
        u, s, v = svd_lowrank(_adjoint(A), q, niter, None if M is None else _adjoint(M))
        return v, s, u
    if M is not None:
        M = M.expand(A.shape)
    basis = _approximate_basis(A, q, niter, M)
    small = matmul(_adjoint(basis), A if M is None else A - M)
    u, s, vh = linalg_svd(small, full_matrices=False)
    return matmul(basis, u), s, _adjoint(vh)


@composite(method=False)
def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """About the first `q` principal components of the rows of `A`: U, S and V, as `svd_lowrank` finds them."""
    m, n = A.shape[-2:]
    if q is None:
        q = min(6, m, n)
    elif not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, q, niter)


@composite(method=False)
def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Any = None,
    ortho_iparams: dict[Any, Any] | None = None,
    ortho_fparams: dict[Any, Any] | None = None,
    ortho_bparams: dict[Any, Any] | None = None,
) -> tuple[Tensor, Tensor]:
    """The `k` largest (or smallest) eigenvalues of a symmetric positive-definite `A`, and their vectors.

    With `B`, those of ``A x = lambda B x``.  All matrices are dense here, so that the whole spectrum is computed, once
    and to full precision: there is nothing to iterate, precondition or track, and the first guess `X` says no more
    than how many are wanted.

    >>> import retrograd as torch
    >>> torch.lobpcg(torch.diag(torch.tensor([1., 2., 3.])), k=1)[0]
    tensor([3.])
    """
    size = A.shape[-1]
    if k is None:
        k = 1 if X is None else X.shape[-1]
    if n is not None:
        k = n
    if k < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {k}: [{size}, {k}]")
    if A._memory_.dtype.kind not in "fV":
        raise RuntimeError(f"lobpcg: expected a matrix of floating point dtype, but got {A.dtype}")
    if size < 3 * k:
        raise ValueError(
            f"LPBPCG algorithm is not applicable when the number of A rows (={size}) is smaller than 3 x the number of "
            f"requested eigenpairs (={k})"
        )
    if method not in (None, "basic", "ortho"):
        raise ValueError(f"method must be 'basic' or 'ortho', but got {method!r}")
    matrix, factor = A, None
    if B is not None:
        # With B = L L^H the vectors L^H x are eigenvectors of L^-1 A L^-H.
        factor = linalg_cholesky(B)
        half = generated.linalg_solve_triangular(factor, matrix, upper=False)
        matrix = _adjoint(generated.linalg_solve_triangular(factor, _adjoint(half), upper=False))
    values, vectors = linalg_eigh((matrix + _adjoint(matrix)) / 2)
    if largest is None or largest:
        values, vectors = values.flip(-1), vectors.flip(-1)
    values, vectors = values[..., :k], vectors[..., :k]
    if factor is not None:
        vectors = generated.linalg_solve_triangular(_adjoint(factor), vectors, upper=True)
    return values, vectors
