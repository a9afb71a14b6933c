"""Decompositions of matrices, batched, and what is computed from their factors.

NumPy's stacked LAPACK calls do the work; where NumPy has none (LU, triangular systems) or does not say which matrix
of a batch failed, SciPy's LAPACK is called matrix by matrix.  `linalg_checks.py` has the checks and the errors.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .linalg_checks import (
    LinAlgError,
    check_equation,
    check_floating,
    check_info,
    check_matrices,
    check_same_dtype,
    svd,
)
from .promotion import broadcast_shape, scalar_name
from .storage import shape_text


def _adjoint(a: np.ndarray) -> np.ndarray:
    return a.swapaxes(-1, -2).conj()


def _no_info(a: np.ndarray) -> np.ndarray:
    return np.zeros(a.shape[:-2], np.int32)


def _batch(a: np.ndarray, b: np.ndarray) -> tuple[int, ...]:
    # The batch dimensions that two operands broadcast to; `b` comes first in torch's error.
    return broadcast_shape(np.empty((*b.shape[:-2], 0)), np.empty((*a.shape[:-2], 0)))[:-1]


# ------------------------------------------------------------------------------------------------------ LU


def _lu(a: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    # LU in one matrix, pivots counted from 1, and LAPACK's info, for every matrix.
    from scipy.linalg import get_lapack_funcs

    m, n = a.shape[-2:]
    k = min(m, n)
    lu = np.empty(a.shape, a.dtype)
    pivots, info = np.empty((*a.shape[:-2], k), np.int32), _no_info(a)
    if not a.size:
        return lu, pivots, info
    if info.size > k:
        return _eliminate(a.copy(), pivots, info)
    (getrf,) = get_lapack_funcs(("getrf",), (a,))
    for index in np.ndindex(*a.shape[:-2]):
        lu[index], piv, status = getrf(a[index])
        pivots[index], info[index] = piv + 1, max(status, 0)
    return lu, pivots, info


def _eliminate(lu: np.ndarray, pivots: np.ndarray, info: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    # Gaussian elimination of many small matrices at once: one step for a column, not one call for a matrix.
    shape, k = lu.shape, pivots.shape[-1]
    flat, pivot, status = lu.reshape(-1, *shape[-2:]), pivots.reshape(-1, k), info.reshape(-1)
    every = np.arange(len(flat))
    for i in range(k):
        column = flat[:, i:, i]
        size = np.abs(column.real) + np.abs(column.imag) if flat.dtype.kind == "c" else np.abs(column)
        row = size.argmax(-1) + i
        pivot[:, i] = row + 1
        chosen = flat[every, row]
        flat[every, row] = flat[:, i]
        flat[:, i] = chosen
        head = chosen[:, i]
        status[(head == 0) & (status == 0)] = i + 1
        flat[:, i + 1 :, i] /= np.where(head == 0, 1, head)[:, None]
        flat[:, i + 1 :, i + 1 :] -= flat[:, i + 1 :, i, None] * flat[:, None, i, i + 1 :]
    return lu, pivots, info


def _check_pivot(pivot: bool) -> None:
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")


def linalg_lu_factor_ex(
    A: np.ndarray, pivot: bool = True, check_errors: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """L and U in one matrix, the pivots, and where a pivot is zero."""
    if A.ndim < 2:
        raise RuntimeError(
            f"torch.lu_factor: Expected tensor with 2 or more dimensions. Got size: {list(A.shape)} instead"
        )
    check_floating(A, "linalg.lu_factor")
    _check_pivot(pivot)
    result = _lu(A)
    if check_errors:
        check_info(result[2], "torch.linalg.lu_factor")
    return result


def linalg_lu(A: np.ndarray, pivot: bool = True) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """P, L and U with ``A = P @ L @ U``."""
    if A.ndim < 2:
        raise RuntimeError(f"linalg.lu: Expected tensor with 2 or more dimensions. Got size: {list(A.shape)} instead")
    check_floating(A, "linalg.lu")
    _check_pivot(pivot)
    lu, pivots, _ = _lu(A)
    lower, upper = _parts(lu)
    return _permutation_matrix(pivots, A.shape[-2], A.dtype), lower, upper


def _parts(lu: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    k = min(lu.shape[-2:])
    return np.tril(lu[..., :k], -1) + np.eye(lu.shape[-2], k, dtype=lu.dtype), np.triu(lu[..., :k, :])


def _order(pivots: np.ndarray, m: int) -> np.ndarray:
    """Which row each row of ``L @ U`` is of A."""
    order = np.empty((*pivots.shape[:-1], m), np.int64)
    for index in np.ndindex(*pivots.shape[:-1]):
        rows = list(range(m))
        for i, p in enumerate(pivots[index].tolist()):
            rows[i], rows[p - 1] = rows[p - 1], rows[i]
        order[index] = rows
    return order


def _permutation_matrix(pivots: np.ndarray, m: int, dtype: Any) -> np.ndarray:
    return np.eye(m, dtype=dtype)[_order(pivots, m)].swapaxes(-1, -2)


def lu_unpack(
    LU_data: np.ndarray, LU_pivots: np.ndarray, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """P, L and U of a factorization that has both factors in one matrix; empty ones that are not asked for."""
    if unpack_pivots and LU_pivots.dtype != np.int32:
        raise RuntimeError(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\nNote: this "
            "function is intended to be used with the output produced by torch.linalg.lu_factor"
        )
    p, low, high = (np.empty((0,), LU_data.dtype) for _ in range(3))
    if unpack_pivots:
        if ((LU_pivots < 1) | (LU_pivots > LU_data.shape[-2])).any():
            raise RuntimeError(
                "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive. Did you properly pass the "
                "result of lu_factor?"
            )
        p = _permutation_matrix(LU_pivots, LU_data.shape[-2], LU_data.dtype)
    if unpack_data:
        low, high = _parts(LU_data)
    return p, low, high


def linalg_lu_solve(
    LU: np.ndarray, pivots: np.ndarray, B: np.ndarray, left: bool = True, adjoint: bool = False
) -> np.ndarray:
    """The solution of ``A X = B`` (or ``X A = B``, or with A's adjoint), from the LU factorization of A."""
    check_matrices(LU, "linalg.lu_solve", True, "LU")
    check_matrices(B, "linalg.lu_solve", argument="B")
    check_floating(LU, "linalg.lu_solve")
    check_same_dtype(LU, B, "linalg.lu_solve")
    if pivots.dtype != np.int32:
        raise RuntimeError("linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32")
    if pivots.ndim and pivots.shape[-1] != LU.shape[-1]:
        raise RuntimeError("linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix")
    if pivots.shape != LU.shape[:-1]:
        raise RuntimeError(
            "linalg.lu_solve: Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{shape_text(pivots.shape)} instead"
        )
    check_equation(LU, B, left, "linalg.lu_solve")
    bounds = {"greater or equal to 1": pivots < 1, "smaller or equal to LU.size(-2)": pivots > LU.shape[-2]}
    for bound, beyond in bounds.items():
        if beyond.any():
            raise RuntimeError(
                f"Pivots given to lu_solve must all be {bound}. Did you properly pass the result of lu_factor?"
            )
    order = _order(pivots, LU.shape[-2])
    if left and not adjoint:
        return _trsm(LU, _trsm(LU, _picked(B, order, -2), False, True, True), True)
    if left:
        low = _trsm(_adjoint(LU), B, False)
        return _picked(_trsm(_adjoint(LU), low, True, True, True), order.argsort(-1), -2)
    if not adjoint:
        return _picked(_trsm(LU, _trsm(LU, B, True, False), False, False, True), order.argsort(-1), -1)
    up = _trsm(_adjoint(LU), _picked(B, order, -1), True, False, True)
    return _trsm(_adjoint(LU), up, False, False)


def _picked(x: np.ndarray, order: np.ndarray, dim: int) -> np.ndarray:
    """Rows or columns in another order: not by a product, in which 0 times infinity would spoil the others."""
    order = order[..., :, None] if dim == -2 else order[..., None, :]
    ndim = max(x.ndim, order.ndim)
    x, order = (a.reshape((1,) * (ndim - a.ndim) + a.shape) for a in (x, order))
    return np.take_along_axis(x, order, dim)


def _trsm(a: np.ndarray, b: np.ndarray, upper: bool, left: bool = True, unitriangular: bool = False) -> np.ndarray:
    # The triangular system for every matrix of the broadcast batch.
    from scipy.linalg import get_blas_funcs

    batch = _batch(a, b)
    shape = (*batch, *b.shape[-2:])
    result = np.empty(shape, b.dtype)
    if not result.size:
        return result
    a, b = np.broadcast_to(a, (*batch, *a.shape[-2:])), np.broadcast_to(b, shape)
    if len(batch) and math.prod(batch) > a.shape[-1]:
        if left:
            return _substitute(a, b, result, upper, unitriangular)
        at, bt, xt = a.swapaxes(-1, -2), b.swapaxes(-1, -2), result.swapaxes(-1, -2)
        return _substitute(at, bt, xt, not upper, unitriangular).swapaxes(-1, -2)
    (trsm,) = get_blas_funcs(("trsm",), (a, b))
    for index in np.ndindex(*batch):
        result[index] = trsm(1.0, a[index], b[index], side=not left, lower=not upper, diag=unitriangular)
    return result


def _substitute(a: np.ndarray, b: np.ndarray, x: np.ndarray, upper: bool, unitriangular: bool) -> np.ndarray:
    # Many small triangular systems at once: one step for a row, not one call for a matrix.
    n = a.shape[-1]
    for i in reversed(range(n)) if upper else range(n):
        done = slice(i + 1, None) if upper else slice(None, i)
        row = b[..., i, :] - (a[..., i, None, done] @ x[..., done, :])[..., 0, :]
        x[..., i, :] = row if unitriangular else row / a[..., i, i, None]
    return x


# ------------------------------------------------------------------------------------------------------ Cholesky


def linalg_cholesky_ex(
    A: np.ndarray, upper: bool = False, check_errors: bool = False, name: str = "linalg.cholesky"
) -> tuple[np.ndarray, np.ndarray]:
    """L with ``A = L @ L.mH`` (or U with ``A = U.mH @ U``), and for each matrix 0 or the minor that fails."""
    check_matrices(A, name, True)
    check_floating(A, name)
    a, info = (_adjoint(A) if upper else A), _no_info(A)
    try:
        low = np.linalg.cholesky(a)
    except np.linalg.LinAlgError:
        low = _cholesky_each(a, info)
    if not np.isfinite(np.add.reduce(a, None)):
        for index in zip(*np.nonzero(~np.isfinite(a).all((-2, -1)))) if a.ndim > 2 else [()]:
            low[index], info[index] = _cholesky_by_columns(a[index])
    if check_errors:
        check_info(info, name)
    return (_adjoint(low) if upper else low), info


def _cholesky_each(a: np.ndarray, info: np.ndarray) -> np.ndarray:
    # One by one, where one of them is not positive.
    from scipy.linalg import get_lapack_funcs

    low = np.empty(a.shape, a.dtype)
    (potrf,) = get_lapack_funcs(("potrf",), (a,))
    for index in np.ndindex(*a.shape[:-2]):
        low[index], info[index] = potrf(a[index], lower=True, clean=True)
    return low


def _cholesky_by_columns(a: np.ndarray) -> tuple[np.ndarray, int]:
    # For a matrix with a NaN or infinity, where not every LAPACK sees that a minor is not positive.
    low = np.tril(a)
    for j in range(len(a)):
        pivot = low[j, j].real - np.vdot(low[j, :j], low[j, :j]).real
        if not pivot > 0:
            low[j, j] = pivot
            return low, j + 1
        low[j, j] = np.sqrt(pivot)
        low[j + 1 :, j] = (low[j + 1 :, j] - low[j + 1 :, :j] @ low[j, :j].conj()) / low[j, j]
    return low, 0


def cholesky(A: np.ndarray, upper: bool = False) -> np.ndarray:
    """The older name of the Cholesky factor."""
    return linalg_cholesky_ex(A, upper, True, "cholesky")[0]


def cholesky_inverse(L: np.ndarray, upper: bool = False) -> np.ndarray:
    """The inverse of the matrix whose Cholesky factor is `L`."""
    check_matrices(L, "cholesky_inverse", True)
    check_floating(L, "cholesky_inverse")
    diagonal = np.diagonal(L, axis1=-2, axis2=-1) == 0
    if diagonal.any():
        check_info(np.where(diagonal.any(-1), diagonal.argmax(-1) + 1, 0), "cholesky_inverse")
    low = _trsm(L, np.eye(L.shape[-1], dtype=L.dtype), upper)
    return low @ _adjoint(low) if upper else _adjoint(low) @ low


def cholesky_solve(B: np.ndarray, L: np.ndarray, upper: bool = False) -> np.ndarray:
    """The solution of ``A X = B`` for the matrix A whose Cholesky factor is `L`."""
    if B.ndim < 2:
        raise RuntimeError(f"b should have at least 2 dimensions, but has {B.ndim} dimensions instead")
    if L.ndim < 2:
        raise RuntimeError(f"u should have at least 2 dimensions, but has {L.ndim} dimensions instead")
    check_matrices(L, "cholesky_solve", True)
    if L.shape[-1] != B.shape[-2]:
        raise RuntimeError(
            f"Incompatible matrix sizes for cholesky_solve: each A matrix is {L.shape[-2]} by {L.shape[-1]} but each b "
            f"matrix is {B.shape[-2]} by {B.shape[-1]}"
        )
    check_floating(L, "cholesky_solve")
    check_same_dtype(L, B, "cholesky_solve")
    if upper:
        return _trsm(L, _trsm(_adjoint(L), B, False), True)
    return _trsm(_adjoint(L), _trsm(L, B, False), True)


# ------------------------------------------------------------------------------------------------------ QR, SVD, eigen


def linalg_qr(A: np.ndarray, mode: str = "reduced") -> tuple[np.ndarray, np.ndarray]:
    """Q with orthonormal columns and R upper triangular."""
    check_matrices(A, "linalg.qr")
    check_floating(A, "linalg.qr")
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    if mode == "r":
        return np.empty((0,), A.dtype), np.asarray(np.linalg.qr(A, mode="r"))
    q, r = np.linalg.qr(A, mode=mode)  # type: ignore[call-overload]
    return q, r


def geqrf(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The QR decomposition as LAPACK keeps it: R above the reflectors' vectors, and their scales tau."""
    check_matrices(a, "torch.geqrf", argument="input")
    check_floating(a, "linalg.qr")
    h, tau = np.linalg.qr(a, mode="raw")
    return h.swapaxes(-1, -2), tau


def linalg_svd(
    A: np.ndarray, full_matrices: bool = True, compute_uv: bool = True
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """U, S and Vh with ``A = U @ diag(S) @ Vh``; empty U and Vh without `compute_uv`."""
    check_matrices(A, "linalg.svd")
    check_floating(A, "linalg.svd")
    if compute_uv:
        u, s, vh = svd(A, full_matrices)
        return u, s, vh
    empty = np.empty((0,), A.dtype)
    return empty, svd(A, compute_uv=False), empty


def linalg_eigh(A: np.ndarray, UPLO: str = "L", compute_v: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues, ascending, and eigenvectors of Hermitian matrices, of which one triangle is read."""
    check_matrices(A, "linalg.eigh", True)
    side: Any = UPLO.upper()
    if side not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    check_floating(A, "linalg.eigh")
    try:
        if compute_v:
            values, vectors = np.linalg.eigh(A, side)
            return values, vectors
        return np.linalg.eigvalsh(A, side), np.empty((0,), A.dtype)
    except np.linalg.LinAlgError:
        raise LinAlgError(
            "linalg.eigh: The algorithm failed to converge because the input matrix is ill-conditioned or has too many "
            "repeated eigenvalues."
        ) from None


def linalg_eig(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and eigenvectors, complex."""
    check_matrices(A, "linalg.eig", True)
    check_floating(A, "linalg.eig")
    values, vectors = _eigen(np.linalg.eig, A)
    dtype = np.result_type(A.dtype, np.complex64)
    return values.astype(dtype, copy=False), vectors.astype(dtype, copy=False)


def linalg_eigvals(A: np.ndarray) -> np.ndarray:
    """Eigenvalues, complex."""
    check_matrices(A, "linalg.eigvals", True)
    check_floating(A, "linalg.eigvals")
    return _eigen(np.linalg.eigvals, A).astype(np.result_type(A.dtype, np.complex64), copy=False)


def _eigen(function: Any, a: np.ndarray) -> Any:
    try:
        return function(a)
    except np.linalg.LinAlgError:
        if not np.isfinite(a).all():
            raise RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.") from None
        raise LinAlgError("linalg.eig: The algorithm failed to converge.") from None


def _lapack(routine: str, a: np.ndarray, hermitian: bool) -> Any:
    from scipy.linalg import get_lapack_funcs

    prefix = "he" if hermitian and a.dtype.kind == "c" else "sy"
    return get_lapack_funcs((prefix + routine,), (a,))[0]


def linalg_ldl_factor_ex(
    A: np.ndarray, hermitian: bool = False, check_errors: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """L and D in one matrix, the pivots, and for each matrix 0 or the block of D that is zero."""
    name = "torch.linalg.ldl_factor_ex"
    check_matrices(A, name, True)
    check_floating(A, name)
    ld = np.empty(A.shape, A.dtype)
    pivots, info = np.empty(A.shape[:-1], np.int32), np.zeros(A.shape[:-2], np.int32)
    if A.size:
        factor = _lapack("trf", A, hermitian)
        for index in np.ndindex(*A.shape[:-2]):
            ld[index], pivots[index], info[index] = factor(A[index], lower=1)
    if check_errors and info.any():
        raise RuntimeError(f"torch.linalg.ldl_factor: the block {int(info[info != 0][0])} of D is exactly zero")
    return np.tril(ld), pivots, info


def linalg_ldl_solve(LD: np.ndarray, pivots: np.ndarray, B: np.ndarray, hermitian: bool = False) -> np.ndarray:
    """The solution of ``A X = B``, from the factorization of A."""
    name = "torch.linalg.ldl_solve"
    check_matrices(LD, name, True, "LD")
    check_floating(LD, name)
    if B.ndim < 2:
        raise RuntimeError(f"{name}: Expected B to have at least 2 dimensions, but it has {B.ndim} dimensions instead")
    if LD.shape[:-1] != pivots.shape:
        raise RuntimeError(
            f"{name}: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{list(pivots.shape)} instead"
        )
    if pivots.dtype.kind not in "iu":
        raise RuntimeError(f"{name}: Expected pivots to be integers. Got {scalar_name(pivots.dtype)}")
    if LD.dtype != B.dtype:
        raise RuntimeError(
            f"Expected b and A to have the same dtype, but found b of type {scalar_name(B.dtype)} and A of type "
            f"{scalar_name(LD.dtype)} instead."
        )
    if LD.shape[-1] != B.shape[-2]:
        raise RuntimeError(f"{name}: LD has {LD.shape[-1]} rows, but B has {B.shape[-2]}")
    batch = broadcast_shape(np.empty((*B.shape[:-2], 0)), np.empty((*LD.shape[:-2], 0)))[:-1]
    ld = np.broadcast_to(LD, (*batch, *LD.shape[-2:]))
    b = np.broadcast_to(B, (*batch, *B.shape[-2:]))
    places = np.broadcast_to(pivots, (*batch, pivots.shape[-1]))
    result = np.empty(b.shape, B.dtype)
    if result.size:
        solve = _lapack("trs", LD, hermitian)
        for index in np.ndindex(*batch):
            result[index], _ = solve(ld[index], places[index], b[index], lower=1)
    return result


def linalg_householder_product(A: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """The first columns of the product of the reflectors whose vectors are below the diagonal of `A`."""
    name = "torch.linalg.householder_product"
    if A.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if A.shape[-2] < A.shape[-1]:
        raise RuntimeError(f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1]")
    if A.shape[-1] < tau.shape[-1]:
        raise RuntimeError(f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]")
    if tau.ndim != A.ndim - 1:
        raise RuntimeError(
            f"{name}: Expected tau to have one dimension less than input, but got tau.ndim equal to {tau.ndim} and "
            f"input.ndim is equal to {A.ndim}"
        )
    check_floating(A, name)
    if A.dtype != tau.dtype:
        raise RuntimeError(
            f"{name}: tau dtype {scalar_name(tau.dtype)} does not match input dtype {scalar_name(A.dtype)}"
        )
    m, n = A.shape[-2:]
    result = np.broadcast_to(np.eye(m, n, dtype=A.dtype), A.shape).copy()
    low = np.tril(A, -1) + np.eye(m, n, dtype=A.dtype)
    for i in reversed(range(tau.shape[-1])):
        v = low[..., i : i + 1]
        result -= tau[..., i, None, None] * (v @ (v.swapaxes(-1, -2).conj() @ result))
    return result
