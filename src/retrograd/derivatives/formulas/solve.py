"""Formula helpers of inverses, solutions and determinants."""

from __future__ import annotations

from typing import Any

from ...kernels.solve import is_vector_rhs
from .decompositions import _is_complex, _plus, adjoint_of
from .shared import _has_values


def inv_backward(ops: Any, grad: Any, inverse: Any) -> Any:
    """``-X^H g X^H``."""
    high = adjoint_of(ops, inverse)
    return -(high @ (grad @ high))


def solve_backward(
    ops: Any, grad: Any, a: Any, x: Any, left: bool, b_shape: tuple[int, ...], edges: tuple[Any, ...]
) -> tuple[Any, ...]:
    """The gradients of A and B in ``A X = B``."""
    vector = is_vector_rhs(tuple(a.shape), tuple(b_shape))
    if vector:
        grad, x = grad[..., None], x[..., None]
    grad_b = ops.linalg_solve_ex(adjoint_of(ops, a), grad, left=left)[0]
    grad_a = None
    if edges[0] is not None:
        grad_a = -(grad_b @ adjoint_of(ops, x)) if left else -(adjoint_of(ops, x) @ grad_b)
    return grad_a, grad_b[..., 0] if vector else grad_b


def solve_jvp(ops: Any, a: Any, a_t: Any, b_t: Any, x: Any, left: bool) -> Any:
    """``A^-1 (dB - dA X)``; infinite or NaN where A is singular, which solve_ex does not refuse."""
    vector = is_vector_rhs(tuple(a.shape), tuple(b_t.shape))
    if vector:
        b_t, x = b_t[..., None], x[..., None]
    result = ops.linalg_solve_ex(a, b_t - (a_t @ x if left else x @ a_t), left=left)[0]
    return result[..., 0] if vector else result


def _triangle(ops: Any, x: Any, upper: bool, unitriangular: bool) -> Any:
    return ops.triu(x, int(unitriangular)) if upper else ops.tril(x, -int(unitriangular))


def solve_triangular_backward(
    ops: Any, grad: Any, a: Any, x: Any, upper: bool, left: bool, unitriangular: bool, edges: tuple[Any, ...]
) -> tuple[Any, ...]:
    """The gradients of A, in its triangle, and B."""
    grad_b = ops.linalg_solve_triangular(
        adjoint_of(ops, a), grad, upper=not upper, left=left, unitriangular=unitriangular
    )
    grad_a = None
    if edges[0] is not None:
        grad_a = -(grad_b @ adjoint_of(ops, x)) if left else -(adjoint_of(ops, x) @ grad_b)
        grad_a = _triangle(ops, grad_a, upper, unitriangular)
    return grad_a, grad_b


def solve_triangular_jvp(
    ops: Any, a: Any, a_t: Any, b_t: Any, x: Any, upper: bool, left: bool, unitriangular: bool
) -> Any:
    """``A^-1 (dB - dA X)``, where only the triangle of dA counts."""
    moved = _triangle(ops, a_t, upper, unitriangular)
    rest = b_t - (moved @ x if left else x @ moved)
    return ops.linalg_solve_triangular(a, rest, upper=upper, left=left, unitriangular=unitriangular)


def triangular_solve_backward(
    ops: Any, grads: Any, a: Any, x: Any, upper: bool, transpose: bool, unitriangular: bool, edges: tuple[Any, ...]
) -> tuple[Any, ...]:
    """The gradients of b and A; the copy of A that is returned counts too."""
    grad, grad_copy = grads
    grad_a = grad_b = None
    if grad is not None:
        if transpose:
            a, upper = ops.transpose(a, -2, -1), not upper
        wanted = (edges[1], edges[0])
        grad_a, grad_b = solve_triangular_backward(ops, grad, a, x, upper, True, unitriangular, wanted)
        grad_a = ops.transpose(grad_a, -2, -1) if transpose and grad_a is not None else grad_a
    return grad_b, _plus(grad_a, grad_copy) if edges[1] is not None else None


def triangular_solve_jvp(
    ops: Any, a: Any, a_t: Any, b_t: Any, x: Any, upper: bool, transpose: bool, unitriangular: bool
) -> tuple[Any, ...]:
    """The tangents of the solution and of the copy of A."""
    copy = ops.expand(a_t, (*x.shape[:-2], *a_t.shape[-2:]))
    if transpose:
        a, a_t, upper = ops.transpose(a, -2, -1), ops.transpose(a_t, -2, -1), not upper
    return solve_triangular_jvp(ops, a, a_t, b_t, x, upper, True, unitriangular), copy


def cofactors(ops: Any, a: Any, det: Any) -> Any:
    """The conjugated cofactors, G: the derivative of the determinant along dA is the sum of ``conj(G) * dA``."""
    if not _has_values(det) or bool(ops.all(det != 0)):
        return ops.conj(det)[..., None, None] * adjoint_of(ops, ops.linalg_inv_ex(a)[0])
    # Of a singular matrix, from its singular values: in place of each, the product of the others.
    u, s, vh = ops.linalg_svd(a, False)
    n = s.shape[-1]
    eye = ops.diag_embed(ops.ones_like(s))
    others = ops.prod(s[..., None, :] * (1 - eye) + eye, -1) if n else s
    phase = ops.conj(ops.linalg_det(u) * ops.linalg_det(vh))
    return phase[..., None, None] * ((u * others[..., None, :]) @ vh)


def det_backward(ops: Any, grad: Any, det: Any, a: Any) -> Any:
    """The gradient times the conjugated cofactors."""
    return grad[..., None, None] * cofactors(ops, a, det)


def det_jvp(ops: Any, tangent: Any, det: Any, a: Any) -> Any:
    """The sum of the cofactors times the tangent."""
    return ops.sum(ops.conj(cofactors(ops, a, det)) * tangent, (-2, -1))


def slogdet_backward(ops: Any, grads: Any, a: Any, sign: Any) -> Any:
    """``d log det = tr(A^-1 dA)``: its real part moves the logarithm, its imaginary part turns the sign."""
    grad_sign, grad_log = grads
    factor = grad_log
    if _is_complex(a):
        turned = None
        if grad_sign is not None:
            turned = grad_sign * ops.conj(sign)
            turned = 0.5 * (turned - ops.conj(turned))
        factor = _plus(factor, turned)
    if factor is None:
        return ops.zeros_like(a)
    wanted = ops.diag_embed(ops.expand(factor[..., None], tuple(a.shape[:-1])))
    return ops.linalg_solve_ex(adjoint_of(ops, a), wanted)[0]


def slogdet_jvp(ops: Any, tangent: Any, a: Any, sign: Any) -> tuple[Any, ...]:
    """The tangents of the sign and of the logarithm."""
    trace = ops.sum(ops.diagonal(ops.linalg_solve_ex(a, tangent)[0], 0, -2, -1), -1)
    if not _is_complex(a):
        return ops.zeros_like(sign), trace
    return sign * (0.5 * (trace - ops.conj(trace))), ops.real(trace)


def pinv_backward(ops: Any, grad: Any, pinv: Any, a: Any) -> Any:
    """Golub and Pereyra's derivative of the pseudo-inverse P, transposed."""
    high, grad_h = adjoint_of(ops, pinv), adjoint_of(ops, grad)
    result = -(high @ grad @ high)
    right = grad_h @ pinv
    left = pinv @ grad_h
    return result + (right - a @ (pinv @ right)) @ high + high @ (left - (left @ pinv) @ a)


def pinv_jvp(ops: Any, tangent: Any, pinv: Any, a: Any) -> Any:
    """``-P dA P + P P^H dA^H (1 - A P) + (1 - P A) dA^H P^H P``."""
    high, tangent_h = adjoint_of(ops, pinv), adjoint_of(ops, tangent)
    left, right = pinv @ (high @ tangent_h), (tangent_h @ high) @ pinv
    return -(pinv @ tangent @ pinv) + (left - (left @ a) @ pinv) + (right - pinv @ (a @ right))


def lstsq_backward(ops: Any, grads: Any, a: Any, b: Any, x: Any, edges: tuple[Any, ...]) -> tuple[Any, ...]:
    """The gradients of A and B, through ``X = pinv(A) B`` and the squared residuals of ``A X - B``."""
    grad_x, grad_rest = grads[0], grads[1]
    vector = a.ndim - 1 == b.ndim and tuple(a.shape[:-1]) == tuple(b.shape)
    if vector:
        b, x = b[..., None], x[..., None]
        grad_x = None if grad_x is None else grad_x[..., None]
    grad_a = grad_b = None
    if grad_x is not None:
        pinv = ops.linalg_pinv(a)
        grad_b = adjoint_of(ops, pinv) @ grad_x
        if edges[0] is not None:
            grad_a = pinv_backward(ops, grad_x @ adjoint_of(ops, b), pinv, a)
    if grad_rest is not None and 0 not in grad_rest.shape:
        grad_rest = grad_rest[..., None] if vector else grad_rest
        rest = 2 * (a @ x - b) * grad_rest[..., None, :]
        grad_a = _plus(grad_a, rest @ adjoint_of(ops, x))
        grad_b = _plus(grad_b, -rest)
    return grad_a, grad_b[..., 0] if vector and grad_b is not None else grad_b


def lstsq_jvp(ops: Any, a: Any, a_t: Any, b: Any, b_t: Any, x: Any, residuals: Any) -> tuple[Any, ...]:
    """The tangents of the solution and of the squared residuals."""
    vector = a.ndim - 1 == b.ndim and tuple(a.shape[:-1]) == tuple(b.shape)
    if vector:
        b, b_t, x = b[..., None], b_t[..., None], x[..., None]
    pinv = ops.linalg_pinv(a)
    result = pinv @ b_t + pinv_jvp(ops, a_t, pinv, a) @ b
    moved = ops.zeros_like(residuals)
    if 0 not in residuals.shape:
        rest = a @ x - b
        moved = 2 * ops.real(ops.sum(ops.conj(rest) * (a_t @ x - b_t), -2))
        moved = moved[..., 0] if vector else moved
    return (result[..., 0] if vector else result), moved, None, None
