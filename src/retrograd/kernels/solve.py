"""Inverses, solutions of linear systems and determinants, also of systems that have no solution."""

from __future__ import annotations

from typing import Any

import numpy as np

from .decompositions import _batch, _lu, _no_info, _trsm, linalg_lu_solve
from .linalg_checks import check_equation, check_floating, check_info, check_matrices, check_same_dtype, svd
from .promotion import scalar_name


def matrix_tolerance(a: np.ndarray, largest: np.ndarray, atol: Any, rtol: Any, function: str) -> np.ndarray:
    """Below which a singular value counts as zero, for every matrix."""
    for name, value in (("atol", atol), ("rtol or rcond" if "pinv" in function else "rtol", rtol)):
        if isinstance(value, np.ndarray) and value.dtype.kind == "c":
            raise RuntimeError(
                f"{function}: {name} tensor of complex type is not supported. Got {scalar_name(value.dtype)}"
            )
    if rtol is None:
        given = atol is not None and np.any(np.asarray(atol) > 0)
        relative = 0.0 if given else np.finfo(a.dtype).eps * max(a.shape[-2:])
    else:
        relative = rtol
    absolute = 0.0 if atol is None else atol
    return np.maximum(np.asarray(absolute), np.asarray(relative) * largest)


def linalg_pinv(A: np.ndarray, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> np.ndarray:
    """The pseudo-inverses, with singular values below the tolerance taken for zero."""
    if A.ndim < 2 or A.dtype.char not in "fdFD":
        raise RuntimeError(
            f"linalg.pinv({scalar_name(A.dtype)}{{{list(A.shape)}}}): expected a tensor with 2 or more dimensions of "
            "float, double, cfloat or cdouble types"
        )
    if not A.size:
        return np.empty((*A.shape[:-2], A.shape[-1], A.shape[-2]), A.dtype)
    if hermitian:
        check_matrices(A, "linalg.pinv", True)
        values, v = np.linalg.eigh(A)
        size = np.abs(values)
        largest, left, right = size.max(-1), v, v.swapaxes(-1, -2).conj()
    else:
        u, values, vh = svd(A, full_matrices=False)
        size, largest = values, values[..., 0]
        left, right = vh.swapaxes(-1, -2).conj(), u.swapaxes(-1, -2).conj()
    keep = size > np.asarray(matrix_tolerance(A, largest, atol, rtol, "torch.linalg.pinv"))[..., None]
    inverse = np.divide(1, values, out=np.zeros_like(values), where=keep)
    return ((left * inverse[..., None, :]) @ right).astype(A.dtype, copy=False)


def linalg_lstsq(
    A: np.ndarray, B: np.ndarray, rcond: float | None = None, driver: str | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The X of least norm that minimises ``A X - B``; the squared residuals, the ranks and the singular values."""
    if A.ndim < 2:
        raise RuntimeError("torch.linalg.lstsq: input must have at least 2 dimensions.")
    if B.ndim < 1:
        raise RuntimeError("torch.linalg.lstsq: other must have at least 1 dimension.")
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError("torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")
    if A.dtype != B.dtype:
        raise RuntimeError("torch.linalg.lstsq: Expected input and other to have the same dtype")
    check_floating(A, "torch.linalg.lstsq")
    vector = A.ndim - 1 == B.ndim and A.shape[:-1] == B.shape
    b = B[..., None] if vector else B
    if b.ndim < 2 or A.shape[-2] != b.shape[-2]:
        what = "(-1)" if B.ndim == 1 else "(-2)"
        raise RuntimeError(f"torch.linalg.lstsq: input.size(-2) should match other.size{what}")
    m, n = A.shape[-2:]
    u, s, vh = svd(A, full_matrices=False)
    bound = (np.finfo(A.dtype).eps * max(m, n) if rcond is None else rcond) * (s[..., :1] if s.size else 0)
    keep = s > bound
    inverse = np.divide(1, s, out=np.zeros_like(s), where=keep)
    x = vh.swapaxes(-1, -2).conj() @ (inverse[..., None] * (u.swapaxes(-1, -2).conj() @ b))
    rank = np.asarray(keep.sum(-1), np.int64)
    real = s.dtype
    residuals = np.empty((0,), real)
    if m > n and driver not in (None, "gelsy") and (driver == "gels" or bool((rank == n).all())):
        rest = A @ x - b
        residuals = (rest.real**2 + rest.imag**2).sum(-2).astype(real) if rest.dtype.kind == "c" else (rest**2).sum(-2)
        residuals = residuals[..., 0] if vector else residuals
    if driver == "gels":
        rank = np.empty((0,), np.int64)
    values = s if driver in ("gelsd", "gelss") else np.empty((0,), real)
    return (x[..., 0] if vector else x), residuals, rank, values


def _undefined(a: np.ndarray) -> np.ndarray | None:
    """Which matrices have a NaN: no pivot can be chosen among such, and what LAPACK then answers is accidental."""
    if not np.isnan(np.add.reduce(a, None)):
        return None
    undefined = np.isnan(a).any((-2, -1))
    return undefined if undefined.any() else None


def _inverse(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    undefined = _undefined(a)
    try:
        result = np.linalg.inv(a)
        if undefined is not None:
            result[undefined] = np.nan
        return result, _no_info(a)
    except np.linalg.LinAlgError:
        lu, pivots, info = _lu(a)
        eye = np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape)
        with np.errstate(all="ignore"):
            result = linalg_lu_solve(lu, pivots, eye)
        if undefined is not None:
            result[undefined] = np.nan
        return result, info


def linalg_inv_ex(A: np.ndarray, check_errors: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """The inverses, and for each matrix 0 or the pivot that is zero."""
    check_matrices(A, "linalg.inv", True)
    check_floating(A, "linalg.inv")
    result, info = _inverse(A)
    if check_errors:
        check_info(info, "linalg.inv")
    return result, info


def linalg_inv(A: np.ndarray) -> np.ndarray:
    """The inverses."""
    return linalg_inv_ex(A, True)[0]


def is_vector_rhs(a_shape: tuple[int, ...], b_shape: tuple[int, ...]) -> bool:
    """Is B one vector for each matrix A, rather than a matrix?"""
    return len(b_shape) == 1 or (len(a_shape) - 1 == len(b_shape) and tuple(a_shape[:-1]) == tuple(b_shape))


def linalg_solve_ex(
    A: np.ndarray, B: np.ndarray, left: bool = True, check_errors: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """The solution of ``A X = B``, or ``X A = B``, and for each matrix 0 or the pivot that is zero."""
    name = "linalg.solve"
    check_matrices(A, name)
    check_floating(A, name)
    check_same_dtype(A, B, name)
    check_matrices(A, name, True)
    vector = is_vector_rhs(A.shape, B.shape)
    if vector and not left:
        raise RuntimeError(
            f"{name}: Vector broadcasting of the left hand side is not supported for left=False. In this case "
            "linalg.solve is equivalent to B / A.squeeze(-1)"
        )
    b = B[..., None] if vector else B
    check_equation(A, b, left, name)
    batch = _batch(A, b)
    if not left:
        a, b = A.swapaxes(-1, -2), b.swapaxes(-1, -2)
    else:
        a = A
    info = _no_info(A)
    try:
        x = np.linalg.solve(a, np.broadcast_to(b, (*batch, *b.shape[-2:])))
    except np.linalg.LinAlgError:
        lu, pivots, info = _lu(a)
        if check_errors:
            check_info(info, "torch.linalg.solve")
        with np.errstate(all="ignore"):
            x = linalg_lu_solve(lu, pivots, b)
    undefined = _undefined(a)
    if undefined is not None:
        x[np.broadcast_to(undefined, batch)] = np.nan
    x = x if left else x.swapaxes(-1, -2)
    return (x[..., 0] if vector else x), info


def linalg_solve(A: np.ndarray, B: np.ndarray, left: bool = True) -> np.ndarray:
    """The solution of ``A X = B``, or ``X A = B``."""
    return linalg_solve_ex(A, B, left, True)[0]


def linalg_solve_triangular(
    A: np.ndarray, B: np.ndarray, upper: bool, left: bool = True, unitriangular: bool = False
) -> np.ndarray:
    """The solution of ``A X = B``, or ``X A = B``, where only one triangle of A counts."""
    name = "linalg.solve_triangular"
    check_matrices(A, name, True)
    check_matrices(B, name, argument="B")
    check_floating(A, name)
    check_same_dtype(A, B, name)
    check_equation(A, B, left, name)
    return _trsm(A, B, upper, left, unitriangular)


def triangular_solve(
    b: np.ndarray, A: np.ndarray, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """The older form of `linalg_solve_triangular`: the solution, and a copy of A."""
    check_matrices(b, "torch.triangular_solve", argument="b")
    check_matrices(A, "torch.triangular_solve", True)
    check_same_dtype(A, b, "torch.triangular_solve")
    check_equation(A, b, True, "torch.triangular_solve")
    a, up = (A.swapaxes(-1, -2), not upper) if transpose else (A, upper)
    solution = _trsm(a, b, up, True, unitriangular)
    return solution, np.broadcast_to(A, (*solution.shape[:-2], *A.shape[-2:])).copy()


def linalg_det(A: np.ndarray) -> np.ndarray:
    """The determinants."""
    check_matrices(A, "linalg.det", True)
    check_floating(A, "linalg.det")
    result = np.asarray(np.linalg.det(A))
    undefined = _undefined(A)
    return result if undefined is None else np.where(undefined, result.dtype.type(np.nan), result)


def linalg_slogdet(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The sign (of modulus 1, or 0) of the determinants, and the logarithm of their modulus."""
    check_matrices(A, "linalg.slogdet", True)
    check_floating(A, "linalg.slogdet")
    sign, log = map(np.asarray, np.linalg.slogdet(A))
    undefined = _undefined(A)
    if undefined is not None:
        log = np.where(undefined, log.dtype.type(np.nan), log)
    return (np.where(np.isnan(log), sign.dtype.type(0), sign) if np.isnan(log).any() else sign), log
