"""What the kernels of matrix decompositions check before LAPACK sees a matrix, and the error for what it refuses."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from .promotion import is_half, scalar_name


class _LinAlgError(RuntimeError):
    """LAPACK could not do what was asked: the matrix is singular, not positive-definite, or does not converge."""


LinAlgError = _LinAlgError

_KERNELS = {
    "linalg.det": "lu_cpu",
    "linalg.cholesky": "cholesky_cpu",
    "cholesky": "cholesky_cpu",
    "linalg.qr": "geqrf_cpu",
    "linalg.svd": "linalg_svd_cpu",
    "linalg.eigh": "linalg_eigh_cpu",
    "linalg.eig": "linalg_eig_out_cpu",
    "linalg.eigvals": "linalg_eig_out_cpu",
    "linalg.lu": "lu_cpu",
    "linalg.lu_factor": "lu_cpu",
}


def check_matrices(a: np.ndarray, name: str, square: bool = False, argument: str = "A") -> None:
    """`a` is a batch of matrices, square ones if `square`."""
    if a.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor {argument} must have at least 2 dimensions.")
    if square and a.shape[-1] != a.shape[-2]:
        raise RuntimeError(
            f"{name}: {argument} must be batches of square matrices, but they are {a.shape[-2]} by {a.shape[-1]} "
            "matrices"
        )


def check_floating(a: np.ndarray, name: str, half: bool = False) -> None:
    """`a` has a dtype that LAPACK knows (or is half precision, where a kernel takes that too)."""
    if a.dtype.char in "fdFD" or (half and is_half(a.dtype)):
        return
    if a.dtype.kind in "fcVW":
        if name in _KERNELS:
            raise NotImplementedError(f"\"{_KERNELS[name]}\" not implemented for '{scalar_name(a.dtype)}'")
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {scalar_name(a.dtype)}")
    if name in ("linalg.eigh", "linalg.lu", "linalg.lu_factor"):
        raise NotImplementedError(f"\"{_KERNELS[name]}\" not implemented for '{scalar_name(a.dtype)}'")
    if name in ("linalg.eig", "linalg.eigvals"):
        raise RuntimeError(f"Unknown Complex ScalarType for {scalar_name(a.dtype)}")
    raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {scalar_name(a.dtype)}")


def check_same_dtype(a: np.ndarray, b: np.ndarray, name: str) -> None:
    """The matrices and the right-hand sides have one dtype."""
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"{name}: Expected A and B to have the same dtype, but found A of type {scalar_name(a.dtype)} and B of "
            f"type {scalar_name(b.dtype)} instead"
        )


def check_equation(a: np.ndarray, b: np.ndarray, left: bool, name: str) -> None:
    """The sizes of ``A X = B``, or ``X A = B``, fit."""
    if a.shape[-2] != b.shape[-2 if left else -1]:
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} "
            f"({a.shape[-2]}x{a.shape[-1]} and {b.shape[-2]}x{b.shape[-1]})"
        )


def svd(a: np.ndarray, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """NumPy's, but matrices with NaNs are refused, and all is NaN for those with infinities.

    Some LAPACKs look for the singular values of an infinite matrix for ever, so none gets to see one.
    """
    infinite = None
    if not np.isfinite(np.add.reduce(a, None)) and not (finite := np.isfinite(a).all((-2, -1))).all():
        undefined = np.isnan(a).any((-2, -1))
        if undefined.any():
            _no_singular_values(f"(Batch element {int(np.flatnonzero(undefined)[0])}): " if undefined.ndim else "")
        infinite = ~finite
        a = np.where(infinite[..., None, None], 0, a).astype(a.dtype)
    try:
        found: Any = np.linalg.svd(a, full_matrices, compute_uv)  # type: ignore[call-overload]
    except np.linalg.LinAlgError:
        _no_singular_values("")
    if infinite is None:
        return found if compute_uv else np.ascontiguousarray(found)  # NumPy's has the order of the batch in memory
    if not compute_uv:
        return np.where(infinite[..., None], np.nan, found).astype(found.dtype)
    return tuple(
        np.where(infinite.reshape(infinite.shape + (1,) * (part.ndim - infinite.ndim)), np.nan, part).astype(part.dtype)
        for part in found
    )


def _no_singular_values(batch: str) -> NoReturn:
    raise LinAlgError(
        f"linalg.svd: {batch}The algorithm failed to converge because the input matrix contained non-finite values."
    )


def check_info(info: np.ndarray, name: str) -> None:
    """Raise torch's error if LAPACK reported a failure for some matrix of the batch."""
    if info.any():
        raise_info(info, name)


def raise_info(info: np.ndarray, name: str) -> NoReturn:
    """The error for the first matrix of the batch whose `info` is not zero."""
    batch = f"(Batch element {int(np.flatnonzero(info)[0])}): " if info.ndim else ""
    code = int(info.reshape(-1)[np.flatnonzero(info)[0]])
    text = f"{name}: {batch}"
    if "inv" in name:
        raise LinAlgError(
            f"{text}The diagonal element {code} is zero, the inversion could not be completed because the input matrix "
            "is singular."
        )
    if "solve" in name:
        raise LinAlgError(f"{text}The solver failed because the input matrix is singular.")
    if "cholesky" in name:
        raise LinAlgError(
            f"{text}The factorization could not be completed because the input is not positive-definite (the leading "
            f"minor of order {code} is not positive-definite)."
        )
    if "lu_factor" in name:
        raise RuntimeError(
            f"{text}U[{code},{code}] is zero and using it on lu_solve would result in a division by zero. If you still "
            "want to perform the factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
        )
    raise LinAlgError(
        f"{text}The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated "
        f"values (error code: {code})."
    )
