"""A few singular values, principal components or eigenvalues of a matrix, by random projection or from the whole."""

from __future__ import annotations

from typing import Any

from ..._generated import functions as generated
from ...tensor import Tensor
from ..factories import randn
from ..registry import composite
from .decompositions import linalg_cholesky, linalg_eigh, linalg_svd
from .linalg import matmul


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
    if A._data.dtype.kind not in "fV":
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
