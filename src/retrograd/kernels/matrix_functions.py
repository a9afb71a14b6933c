"""Functions of matrices, batched: ranks and the exponential."""

from __future__ import annotations

from typing import Any

import numpy as np

from .linalg_checks import check_floating, check_matrices, svd
from .promotion import is_half
from .solve import matrix_tolerance


def linalg_matrix_rank(A: np.ndarray, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> np.ndarray:
    """How many singular values are above the tolerance."""
    check_matrices(A, "torch.linalg.matrix_rank", hermitian, "input")
    if A.dtype.char not in "fdFD":
        raise RuntimeError("This function doesn't handle types other than float and double")
    if not A.size:
        return np.zeros(A.shape[:-2], np.int64)
    values = np.abs(np.linalg.eigvalsh(A)) if hermitian else svd(A, compute_uv=False)
    bound = np.asarray(matrix_tolerance(A, values.max(-1), atol, rtol, "torch.linalg.matrix_rank"))
    return np.asarray((values > bound[..., None]).sum(-1), np.int64)


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
