"""Formula helpers of matrix decompositions: Cholesky, QR, LU, the singular value decomposition, eigenvectors.

Singular vectors and eigenvectors of a complex matrix are defined up to a phase each.  A loss that depends on the phase
has no gradient, and is refused (Note [Gauge]): the gradient along the phase, the imaginary part of the diagonal of
``V.mH @ gV``, must vanish.
"""

from __future__ import annotations

from typing import Any

from ...tensor import Tensor
from ...tensor.special import all_values


def _is_complex(x: Any) -> bool:
    """Is this array or Tensor complex?"""
    return "complex" in str(x.dtype)


def adjoint_of(ops: Any, x: Any) -> Any:
    """The conjugate transposes of matrices."""
    x = ops.transpose(x, -2, -1)
    return ops.conj(x) if _is_complex(x) else x


def diagonal_of(ops: Any, x: Any) -> Any:
    """The diagonals of matrices."""
    return ops.diagonal(x, 0, -2, -1)


def off_diagonal(ops: Any, x: Any) -> Any:
    """Matrices with zeros on the diagonal."""
    return x - ops.diag_embed(diagonal_of(ops, x))


def _plus(a: Any, b: Any) -> Any:
    """The sum of two terms, of which either may be None."""
    return b if a is None else a if b is None else a + b


def check_gauge(ops: Any, phase: Any, message: str) -> None:
    """Refuse a loss whose derivative along the phase of some vector is not zero."""
    fine = ops.abs(phase) <= 1e-2
    if not (all_values(fine) if isinstance(fine, Tensor) else fine).all():  # of all examples, where it is batched
        raise RuntimeError(message)


# ------------------------------------------------------------------------------------------------------------- Cholesky


def cholesky_backward(ops: Any, grad: Any, factor: Any, upper: bool) -> Any:
    """Through ``A = L @ L.mH``; the gradient is Hermitian."""
    low = adjoint_of(ops, factor) if upper else factor
    grad = adjoint_of(ops, grad) if upper else grad
    high = adjoint_of(ops, low)
    inner = ops.tril(high @ grad)
    inner = 0.5 * (inner + adjoint_of(ops, ops.tril(inner, -1)))
    inner = ops.linalg_solve_triangular(high, inner, upper=True)
    return ops.linalg_solve_triangular(low, inner, upper=False, left=False)


def cholesky_jvp(ops: Any, tangent: Any, factor: Any, upper: bool) -> Any:
    """``L`` times the lower triangle, its diagonal halved, of ``L^-1 dA L^-H``."""
    low = adjoint_of(ops, factor) if upper else factor
    inner = ops.linalg_solve_triangular(low, tangent, upper=False)
    inner = ops.linalg_solve_triangular(adjoint_of(ops, low), inner, upper=True, left=False)
    inner = ops.tril(inner) - 0.5 * ops.diag_embed(diagonal_of(ops, inner))
    result = low @ inner
    return adjoint_of(ops, result) if upper else result


def cholesky_inverse_backward(ops: Any, grad: Any, factor: Any, upper: bool, inverse: Any) -> Any:
    """Through ``(L @ L.mH)^-1``."""
    common = inverse @ ((grad + adjoint_of(ops, grad)) @ inverse)
    return -(factor @ common) if upper else -(common @ factor)


def cholesky_inverse_jvp(ops: Any, factor: Any, tangent: Any, upper: bool, inverse: Any) -> Any:
    """``-X dA X``, where dA is the tangent of ``L @ L.mH``."""
    moved = adjoint_of(ops, tangent) @ factor if upper else tangent @ adjoint_of(ops, factor)
    return -(inverse @ (moved + adjoint_of(ops, moved)) @ inverse)


def cholesky_solve_backward(
    ops: Any, grad: Any, factor: Any, upper: bool, solution: Any, edges: tuple[Any, ...]
) -> tuple[Any, ...]:
    """The gradients of the right-hand side and of the factor."""
    grad_b = ops.cholesky_solve(grad, factor, upper)
    grad_factor = None
    if edges[1] is not None:
        product = grad_b @ adjoint_of(ops, solution)
        common = product + adjoint_of(ops, product)
        grad_factor = -(factor @ common) if upper else -(common @ factor)
    return grad_b, grad_factor


def cholesky_solve_jvp(ops: Any, b_t: Any, factor: Any, factor_t: Any, upper: bool, solution: Any) -> Any:
    """``A^-1 (dB - dA X)``."""
    moved = adjoint_of(ops, factor_t) @ factor if upper else factor_t @ adjoint_of(ops, factor)
    return ops.cholesky_solve(b_t - (moved + adjoint_of(ops, moved)) @ solution, factor, upper)


# ------------------------------------------------------------------------------------------------------------------- QR


def _check_qr(rows: int, columns: int, mode: str) -> None:
    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use linalg.qr(A, "
            "mode='reduced') if you are going to differentiate through linalg.qr."
        )
    if mode == "complete" and rows > columns:
        raise RuntimeError("The QR decomposition is not differentiable when mode='complete' and nrows > ncols.")


def qr_backward(ops: Any, grads: Any, q: Any, r: Any, mode: str, shape: tuple[int, ...]) -> Any:
    """Of a wide matrix the left square part has a QR decomposition, and R's other columns follow from Q."""
    m, n = shape[-2:]
    _check_qr(m, n, mode)
    grad_q, grad_r = grads
    if m >= n:
        return _qr_backward(ops, grad_q, grad_r, q, r)
    right = None
    if grad_r is not None:
        square, right = grad_r[..., :m], grad_r[..., m:]
        grad_q = _plus(grad_q, q @ (r[..., m:] @ adjoint_of(ops, right)))
    else:
        square = None
    left = _qr_backward(ops, grad_q, square, q, r[..., :m])
    right = ops.zeros_like(r[..., m:]) if right is None else q @ right
    return ops.cat([left, right], -1)


def _qr_backward(ops: Any, grad_q: Any, grad_r: Any, q: Any, r: Any) -> Any:
    inner = None if grad_r is None else grad_r @ adjoint_of(ops, r)
    inner = _plus(inner, None if grad_q is None else -(adjoint_of(ops, q) @ grad_q))
    upper = ops.triu(inner)
    middle = upper + adjoint_of(ops, upper) - ops.diag_embed(ops.real(diagonal_of(ops, upper)))
    return ops.linalg_solve_triangular(adjoint_of(ops, r), _plus(grad_q, q @ middle), upper=False, left=False)


def qr_jvp(ops: Any, tangent: Any, q: Any, r: Any, mode: str) -> tuple[Any, ...]:
    """``dR = P R`` and ``dQ = dA R^-1 - Q P`` with P upper triangular."""
    m, n = tangent.shape[-2:]
    _check_qr(m, n, mode)
    k = min(m, n)
    moved = ops.linalg_solve_triangular(r[..., :k], tangent[..., :k], upper=True, left=False)
    inner = adjoint_of(ops, q) @ moved
    inner = inner + adjoint_of(ops, inner)
    upper = ops.triu(inner) - 0.5 * ops.diag_embed(diagonal_of(ops, inner))
    dq, dr = moved - q @ upper, upper @ r[..., :k]
    if m < n:
        rest = adjoint_of(ops, dq) @ (q @ r[..., k:]) + adjoint_of(ops, q) @ tangent[..., k:]
        dr = ops.cat([dr, rest], -1)
    return dq, dr


# ------------------------------------------------------------------------------------------------------------------- LU


def lu_backward(ops: Any, grad_l: Any, grad_u: Any, p: Any, low: Any, high: Any) -> Any:
    """A square part of the matrix has an LU decomposition; the other rows of L, or columns of U, follow from it."""
    m, n = low.shape[-2], high.shape[-1]
    k = min(m, n)
    square_l, square_u = low[..., :k, :], high[..., :k]
    rest = None
    g_l = None if grad_l is None else grad_l[..., :k, :]
    g_u = None if grad_u is None else grad_u[..., :k]
    if m > k and grad_l is not None:
        rest = ops.linalg_solve_triangular(adjoint_of(ops, square_u), grad_l[..., k:, :], upper=False, left=False)
        g_u = _plus(g_u, -(adjoint_of(ops, low[..., k:, :]) @ rest))
    elif n > k and grad_u is not None:
        rest = ops.linalg_solve_triangular(adjoint_of(ops, square_l), grad_u[..., k:], upper=True, unitriangular=True)
        g_l = _plus(g_l, -(rest @ adjoint_of(ops, high[..., k:])))
    inner = None if g_l is None else ops.tril(adjoint_of(ops, square_l) @ g_l, -1)
    inner = _plus(inner, None if g_u is None else ops.triu(g_u @ adjoint_of(ops, square_u)))
    inner = ops.linalg_solve_triangular(adjoint_of(ops, square_l), inner, upper=True, unitriangular=True)
    result = ops.linalg_solve_triangular(adjoint_of(ops, square_u), inner, upper=False, left=False)
    if m != n:
        part = low[..., k:, :] if m > k else high[..., k:]
        result = ops.cat([result, ops.zeros_like(part) if rest is None else rest], -2 if m > k else -1)
    return p @ result


def lu_factor_backward(ops: Any, grad: Any, lu: Any, pivots: Any) -> Any:
    """As `lu_backward`, of both factors in one matrix."""
    k = min(lu.shape[-2:])
    p, low, high = ops.lu_unpack(lu, pivots)
    return lu_backward(ops, ops.tril(grad[..., :k], -1), ops.triu(grad[..., :k, :]), p, low, high)


def lu_jvp(ops: Any, tangent: Any, p: Any, low: Any, high: Any) -> tuple[Any, ...]:
    """``dL = L tril(F)`` and ``dU = triu(F) U``, where F is ``L^-1 dA U^-1`` of the square part."""
    m, n = tangent.shape[-2:]
    k = min(m, n)
    tangent = ops.transpose(p, -2, -1) @ tangent
    square_l, square_u = low[..., :k, :], high[..., :k]
    inner = ops.linalg_solve_triangular(square_l, tangent[..., :k, :k], upper=False, unitriangular=True)
    inner = ops.linalg_solve_triangular(square_u, inner, upper=True, left=False)
    dl, du = square_l @ ops.tril(inner, -1), ops.triu(inner) @ square_u
    if m > k:
        rest = tangent[..., k:, :] - low[..., k:, :] @ du
        dl = ops.cat([dl, ops.linalg_solve_triangular(square_u, rest, upper=True, left=False)], -2)
    elif n > k:
        rest = tangent[..., k:] - dl @ high[..., k:]
        rest = ops.linalg_solve_triangular(square_l, rest, upper=False, unitriangular=True)
        du = ops.cat([du, rest], -1)
    return None, dl, du


def lu_factor_jvp(ops: Any, tangent: Any, lu: Any, pivots: Any) -> tuple[Any, ...]:
    """As `lu_jvp`, of both factors in one matrix."""
    _, dl, du = lu_jvp(ops, tangent, *ops.lu_unpack(lu, pivots))
    m, n = tangent.shape[-2:]
    if m > n:
        du = ops.cat([du, ops.zeros_like(dl[..., n:, :])], -2)
    elif n > m:
        dl = ops.cat([dl, ops.zeros_like(du[..., m:])], -1)
    return dl + du, None, None


def lu_unpack_backward(ops: Any, grads: Any, shape: tuple[int, ...]) -> Any:
    """Both gradients in one matrix."""
    m, n = shape[-2:]
    k = min(m, n)
    low, high = grads
    if any(g is not None and g.ndim < 2 for g in (low, high)):  # they were not unpacked
        return ops.new_zeros(low if high is None else high, shape)
    if low is not None:
        low = ops.tril(low, -1)
        low = ops.cat([low, ops.new_zeros(low, (*shape[:-1], n - k))], -1) if n > k else low
    if high is not None:
        high = ops.triu(high)
        high = ops.cat([high, ops.new_zeros(high, (*shape[:-2], m - k, n))], -2) if m > k else high
    return _plus(low, high)


def lu_unpack_jvp(ops: Any, tangent: Any, unpack_data: bool) -> tuple[Any, ...]:
    """The tangents of L and U."""
    if not unpack_data:
        return None, ops.new_zeros(tangent, (0,)), ops.new_zeros(tangent, (0,))
    k = min(tangent.shape[-2:])
    return None, ops.tril(tangent[..., :k], -1), ops.triu(tangent[..., :k, :])


def lu_solve_backward(
    ops: Any, grad: Any, lu: Any, pivots: Any, x: Any, left: bool, adjoint: bool, edges: tuple[Any, ...]
) -> tuple[Any, ...]:
    """The gradients of the factorization and of the right-hand side."""
    grad_b = ops.linalg_lu_solve(lu, pivots, grad, left=left, adjoint=not adjoint)
    grad_lu = None
    if edges[0] is not None:
        if left:
            grad_a = -(x @ adjoint_of(ops, grad_b)) if adjoint else -(grad_b @ adjoint_of(ops, x))
        else:
            grad_a = -(adjoint_of(ops, grad_b) @ x) if adjoint else -(adjoint_of(ops, x) @ grad_b)
        p, low, high = ops.lu_unpack(lu, pivots)
        grad_a = ops.transpose(p, -2, -1) @ grad_a
        grad_lu = ops.tril(grad_a @ adjoint_of(ops, high), -1) + ops.triu(adjoint_of(ops, low) @ grad_a)
    return grad_lu, grad_b


def lu_solve_jvp(ops: Any, lu: Any, lu_t: Any, pivots: Any, b_t: Any, x: Any, left: bool, adjoint: bool) -> Any:
    """``A^-1 (dB - dA X)``."""
    p, low, high = ops.lu_unpack(lu, pivots)
    da = p @ (ops.tril(lu_t, -1) @ high + low @ ops.triu(lu_t))
    da = adjoint_of(ops, da) if adjoint else da
    rest = b_t - (da @ x if left else x @ da)
    return ops.linalg_lu_solve(lu, pivots, rest, left=left, adjoint=adjoint)


# ------------------------------------------------------------------------------------------------------ singular values

_SVD_GAUGE = (
    "svd_backward: The singular vectors in the complex case are specified up to multiplication by e^{i phi}. The "
    "specified loss function depends on this phase term, making it ill-defined."
)


def _gaps(ops: Any, values: Any) -> Any:
    # values[j] - values[i], and 1 on the diagonal.
    return values[..., None, :] - values[..., :, None] + ops.diag_embed(ops.ones_like(values))


def svd_backward(ops: Any, grads: Any, u: Any, s: Any, vh: Any) -> Any:
    """Through ``A = U diag(S) Vh``. See Note [Gauge]."""
    grad_u, grad_s, grad_vh = grads
    k, m, n = s.shape[-1], u.shape[-2], vh.shape[-1]
    u, vh = u[..., :k], vh[..., :k, :]
    if grad_u is None and grad_vh is None:
        return (u * grad_s[..., None, :]) @ vh
    skew_u = skew_v = inner = None
    uh, v = adjoint_of(ops, u), adjoint_of(ops, vh)
    if grad_u is not None:
        grad_u = grad_u[..., :k]
        skew_u = uh @ grad_u
    if grad_vh is not None:
        grad_v = adjoint_of(ops, grad_vh[..., :k, :])
        skew_v = vh @ grad_v
    gaps = _gaps(ops, s * s)
    diagonal = grad_s
    if _is_complex(u):
        phase_u = None if skew_u is None else ops.imag(diagonal_of(ops, skew_u))
        phase_v = None if skew_v is None else ops.imag(diagonal_of(ops, skew_v))
        check_gauge(ops, _plus(phase_u, phase_v), _SVD_GAUGE)
        phase = _plus(phase_u, None if phase_v is None else -phase_v) / (2 * s)
        diagonal = _plus(diagonal, 1j * phase)
    if skew_u is not None:
        inner = off_diagonal(ops, skew_u - adjoint_of(ops, skew_u)) / gaps * s[..., None, :]
    if skew_v is not None:
        inner = _plus(inner, s[..., :, None] * (off_diagonal(ops, skew_v - adjoint_of(ops, skew_v)) / gaps))
    if diagonal is not None:
        inner = inner + ops.diag_embed(diagonal)
    result = u @ inner @ vh
    if m > k and grad_u is not None:
        result = result + ((grad_u - u @ skew_u) / s[..., None, :]) @ vh
    if n > k and grad_vh is not None:
        result = result + (u / s[..., None, :]) @ adjoint_of(ops, grad_v - v @ skew_v)
    return result


def svd_jvp(ops: Any, tangent: Any, u: Any, s: Any, vh: Any) -> tuple[Any, ...]:
    """The tangents of U, S and Vh, the phase shared by both vectors; vectors without a singular value do not move."""
    k, m, n = s.shape[-1], u.shape[-2], vh.shape[-1]
    rest_u, rest_vh = u[..., k:], vh[..., k:, :]
    u, vh = u[..., :k], vh[..., :k, :]
    uh, v = adjoint_of(ops, u), adjoint_of(ops, vh)
    dp = uh @ tangent @ v
    ds = ops.real(diagonal_of(ops, dp))
    gaps = _gaps(ops, s * s)
    row, column = s[..., None, :], s[..., :, None]
    dph = adjoint_of(ops, dp)
    dx = off_diagonal(ops, dp * row + column * dph) / gaps
    dy = off_diagonal(ops, column * dp + dph * row) / gaps
    if _is_complex(u):
        turn = ops.diag_embed(1j * ops.imag(diagonal_of(ops, dp)) / (2 * s))
        dx, dy = dx + turn, dy - turn
    du, dv = u @ dx, v @ dy
    if m > k:
        du = du + (tangent @ v - u @ dp) / row
    if n > k:
        dv = dv + (adjoint_of(ops, tangent) @ u - v @ dph) / row
    dvh = adjoint_of(ops, dv)
    if rest_u.shape[-1]:
        du = ops.cat([du, ops.zeros_like(rest_u)], -1)
    if rest_vh.shape[-2]:
        dvh = ops.cat([dvh, ops.zeros_like(rest_vh)], -2)
    return du, ds, dvh


# --------------------------------------------------------------------------------------------------------- eigenvectors


def _eigen_gauge(name: str) -> str:
    return (
        f"{name}_backward: The eigenvectors in the complex case are specified up to multiplication by e^{{i phi}}. The "
        "specified loss function depends on this quantity, so it is ill-defined."
    )


def eigh_backward(ops: Any, grads: Any, values: Any, vectors: Any) -> Any:
    """Through ``A = V diag(L) V.mH``. See Note [Gauge]."""
    grad_l, grad_v = grads
    vh = adjoint_of(ops, vectors)
    if grad_v is None:
        return (vectors * grad_l[..., None, :]) @ vh
    inner = vh @ grad_v
    if _is_complex(inner):
        check_gauge(ops, ops.imag(diagonal_of(ops, inner)), _eigen_gauge("linalg_eigh"))
    inner = off_diagonal(ops, inner) / _gaps(ops, values)
    # One triangle stands for both, so the gradient is Hermitian.
    inner = 0.5 * (inner + adjoint_of(ops, inner))
    if grad_l is not None:
        inner = inner + ops.diag_embed(grad_l)
    return vectors @ inner @ vh


def eigh_jvp(ops: Any, tangent: Any, values: Any, vectors: Any) -> tuple[Any, ...]:
    """``dL`` is the diagonal of ``V.mH dA V``, and dV comes from the rest."""
    inner = adjoint_of(ops, vectors) @ tangent @ vectors
    dl = ops.real(diagonal_of(ops, inner))
    return dl, vectors @ (off_diagonal(ops, inner) / _gaps(ops, values))


def eig_backward(ops: Any, grads: Any, values: Any, vectors: Any) -> Any:
    """Through ``A = V diag(L) V^-1`` with columns of norm 1. See Note [Gauge]."""
    grad_l, grad_v = grads
    vh = adjoint_of(ops, vectors)
    if grad_v is None:
        return ops.linalg_solve(vh, grad_l[..., :, None] * vh)
    inner = vh @ grad_v
    diagonal = diagonal_of(ops, inner)
    check_gauge(ops, ops.imag(diagonal), _eigen_gauge("linalg_eig"))
    inner = inner - (vh @ vectors) * ops.real(diagonal)[..., None, :]
    inner = off_diagonal(ops, inner) / ops.conj(_gaps(ops, values))
    if grad_l is not None:
        inner = inner + ops.diag_embed(grad_l)
    return ops.linalg_solve(vh, inner @ vh)


def eig_jvp(ops: Any, tangent: Any, values: Any, vectors: Any) -> tuple[Any, ...]:
    """The diagonal of ``V^-1 dA V``; and dV, kept orthogonal to what would change the norms."""
    tangent = tangent + ops.zeros_like(vectors)
    inner = ops.linalg_solve(vectors, tangent @ vectors)
    dl = diagonal_of(ops, inner)
    dv = vectors @ (off_diagonal(ops, inner) / _gaps(ops, values))
    growth = ops.real(diagonal_of(ops, adjoint_of(ops, vectors) @ dv))
    return dl, dv - vectors * growth[..., None, :]


# --------------------------------------------------------------------------------------------------------------- LDL


def ldl_solve_backward(ops: Any, grad: Any, LD: Any, pivots: Any, hermitian: bool) -> Any:
    """For the right-hand side: the solution of the adjoint system, whose matrix is A itself or its conjugate."""
    if hermitian:
        return ops.linalg_ldl_solve(LD, pivots, grad, hermitian=True)
    return ops.conj(ops.linalg_ldl_solve(LD, pivots, ops.conj(grad)))


def _reflectors(ops: Any, a: Any, tau: Any) -> tuple[list[Any], Any]:
    # The vectors, as columns, and the identity's first columns.
    if not a.shape[-2]:
        return [], a
    low, eye = ops.tril(a, -1), ops.zeros_like(ops.tril(a, -1))
    one = ops.diag_embed(ops.ones_like(a[..., 0, :]))
    m, n = a.shape[-2:]
    if m > n:
        one = ops.cat([one, eye[..., n:, :]], -2)
    low = low + one
    return [low[..., i : i + 1] for i in range(tau.shape[-1])], one


def _reflect(ops: Any, tau: Any, v: Any, x: Any) -> Any:
    return x - tau * (v @ (adjoint_of(ops, v) @ x))


def householder_product_backward(ops: Any, grad: Any, a: Any, tau: Any) -> tuple[Any, ...]:
    """The gradients of the vectors and of tau, reflector by reflector."""
    vectors, product = _reflectors(ops, a, tau)
    scales = [tau[..., i : i + 1, None] for i in range(len(vectors))]
    behind = []
    for v, scale in zip(reversed(vectors), reversed(scales), strict=True):
        behind.append(product)
        product = _reflect(ops, scale, v, product)
    columns, grad_tau = [], []
    for v, scale, x in zip(vectors, scales, reversed(behind), strict=True):
        gx, xg = grad @ (adjoint_of(ops, x) @ v), x @ (adjoint_of(ops, grad) @ v)
        grad_tau.append(-(adjoint_of(ops, v) @ gx)[..., 0])
        columns.append(-(ops.conj(scale) * gx) - scale * xg)
        grad = _reflect(ops, ops.conj(scale), v, grad)
    rest = a[..., len(vectors) :]
    if rest.shape[-1]:
        columns.append(ops.zeros_like(rest))
    if not grad_tau:
        return ops.zeros_like(a), ops.zeros_like(tau)
    return ops.tril(ops.cat(columns, -1), -1), ops.cat(grad_tau, -1)


def householder_product_jvp(ops: Any, a: Any, a_t: Any, tau: Any, tau_t: Any) -> Any:
    """The product rule over the reflectors, from the last to the first."""
    vectors, product = _reflectors(ops, a, tau)
    moved, low_t = ops.zeros_like(product), ops.tril(a_t, -1)
    for i in reversed(range(len(vectors))):
        v, dv = vectors[i], low_t[..., i : i + 1]
        scale, dscale = tau[..., i : i + 1, None], tau_t[..., i : i + 1, None]
        vh, dvh = adjoint_of(ops, v), adjoint_of(ops, dv)
        turned = dscale * (v @ (vh @ product)) + scale * (dv @ (vh @ product) + v @ (dvh @ product))
        moved = _reflect(ops, scale, v, moved) - turned
        product = _reflect(ops, scale, v, product)
    return moved
