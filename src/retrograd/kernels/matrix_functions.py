"""Functions of matrices that are more than one LAPACK call: pseudo-inverse, least squares, exponential, reflectors.

Batched throughout.  The derivative formulas are in ``derivatives/formulas/matrix_functions.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .linalg_checks import check_finite, check_floating, check_matrices
from .promotion import is_half, scalar_name

# ------------------------------------------------------------------------------------------- pseudo-inverse, rank


def matrix_tolerance(a: np.ndarray, largest: np.ndarray, atol: Any, rtol: Any) -> np.ndarray:
    """Below which a singular value counts as zero, for every matrix."""
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
    check_finite(A)
    if hermitian:
        check_matrices(A, "linalg.pinv", True)
        values, v = np.linalg.eigh(A)
        size = np.abs(values)
        largest, left, right = size.max(-1), v, v.swapaxes(-1, -2).conj()
    else:
        u, values, vh = np.linalg.svd(A, full_matrices=False)
        size, largest = values, values[..., 0]
        left, right = vh.swapaxes(-1, -2).conj(), u.swapaxes(-1, -2).conj()
    keep = size > np.asarray(matrix_tolerance(A, largest, atol, rtol))[..., None]
    inverse = np.divide(1, values, out=np.zeros_like(values), where=keep)
    return ((left * inverse[..., None, :]) @ right).astype(A.dtype, copy=False)


def linalg_matrix_rank(A: np.ndarray, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> np.ndarray:
    """How many singular values are above the tolerance."""
    check_matrices(A, "torch.linalg.matrix_rank", hermitian, "input")
    if A.dtype.char not in "fdFD":
        raise RuntimeError("This function doesn't handle types other than float and double")
    if not A.size:
        return np.zeros(A.shape[:-2], np.int64)
    check_finite(A)
    values = np.abs(np.linalg.eigvalsh(A)) if hermitian else np.linalg.svd(A, compute_uv=False)
    bound = np.asarray(matrix_tolerance(A, values.max(-1), atol, rtol))
    return np.asarray((values > bound[..., None]).sum(-1), np.int64)


# ------------------------------------------------------------------------------------------- least squares


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
    check_finite(A)
    u, s, vh = np.linalg.svd(A, full_matrices=False)
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


# ------------------------------------------------------------------------------------------- exponential


#: Numerators of the diagonal Padé approximant of degree 13 to exp.
_PADE = (
    64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000, 10559470521600,
    670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1,
)  # fmt: skip
#: Up to this 1-norm the approximant is exact to double precision; above it the matrix is halved first.
_RADIUS = 5.371920351148152


def linalg_matrix_exp(A: np.ndarray) -> np.ndarray:
    """The exponentials, by scaling, a Padé approximant and repeated squaring."""
    check_matrices(A, "linalg.matrix_exp", True)
    check_floating(A, "linalg.matrix_exp", half=True)
    if not A.size:
        return A.copy()
    if is_half(A.dtype):
        return linalg_matrix_exp(A.astype(np.float32)).astype(A.dtype)
    norm = np.abs(A).sum(-2).max(-1)
    with np.errstate(all="ignore"):
        halvings = np.ceil(np.log2(norm / _RADIUS))
    halvings = np.where(np.isfinite(halvings), np.maximum(halvings, 0), 0).astype(np.int64)
    a = (A / np.exp2(halvings)[..., None, None]).astype(A.dtype, copy=False)
    p = [coefficient / _PADE[0] for coefficient in _PADE]
    eye = np.eye(a.shape[-1], dtype=a.dtype)
    a2 = a @ a
    a4 = a2 @ a2
    a6 = a4 @ a2
    odd = a @ (a6 @ (p[13] * a6 + p[11] * a4 + p[9] * a2) + p[7] * a6 + p[5] * a4 + p[3] * a2 + p[1] * eye)
    even = a6 @ (p[12] * a6 + p[10] * a4 + p[8] * a2) + p[6] * a6 + p[4] * a4 + p[2] * a2 + eye
    try:
        result = np.linalg.solve(even - odd, even + odd)
    except np.linalg.LinAlgError:
        return np.full_like(A, np.nan)
    for step in range(int(halvings.max())):
        more = halvings > step
        result[more] = result[more] @ result[more]
    return result


# ------------------------------------------------------------------------------------------- reflectors


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
