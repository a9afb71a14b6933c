"""The factorization of symmetric and Hermitian matrices that need not be definite: ``A = L D L^T``, by LAPACK."""

from __future__ import annotations

from typing import Any

import numpy as np

from .linalg_checks import check_floating, check_matrices
from .promotion import broadcast_shape, scalar_name


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


__all__ = ["linalg_ldl_factor_ex", "linalg_ldl_solve"]
