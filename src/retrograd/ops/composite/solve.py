"""Inverses, solutions of linear systems and determinants."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..._generated import functions as generated
from ...kernels.linalg_checks import check_floating, check_info, check_matrices
from ...return_types import return_type
from ...tensor import Tensor
from ...tensor.special import all_values
from ..registry import composite
from .mask import where

_solve_result = return_type("linalg_solve_ex", "result", "info")
_slogdet_result = return_type("slogdet", "sign", "logabsdet")


@composite(method=False)
def linalg_inv(A: Tensor) -> Tensor:
    """The inverses of matrices."""
    inverse, info = generated.linalg_inv_ex(A)
    check_info(all_values(info), "linalg.inv")
    return inverse


@composite(out=True)
def inverse(input: Tensor) -> Tensor:
    """The inverses of matrices.

    >>> import retrograd as torch
    >>> torch.inverse(torch.tensor([[2., 0.], [0., 4.]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return linalg_inv(input)


@composite(method=False)
def linalg_solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """The solution of ``A X = B``, or ``X A = B``."""
    return generated._linalg_solve_ex(A, B, left=left, check_errors=True)[0]


@composite(method=False)
def linalg_solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> Any:
    """The solution of ``A X = B``, and for each matrix 0 or the pivot that is zero."""
    return _solve_result(*generated._linalg_solve_ex(A, B, left=left, check_errors=check_errors))


@composite(method=False)
def linalg_tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """The inverse of `A` as a map from its last dimensions to its first `ind`."""
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    shape = tuple(A.shape)
    rows, columns = math.prod(shape[:ind]), math.prod(shape[ind:])
    if rows != columns:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got "
            f"{columns} != {rows}"
        )
    return linalg_inv(A.reshape(rows, columns)).reshape((*shape[ind:], *shape[:ind]))


@composite(method=False)
def linalg_tensorsolve(A: Tensor, B: Tensor, dims: Sequence[int] | None = None) -> Tensor:
    """The X with ``tensordot(A, X, X.ndim) == B``; `dims` of `A` are moved to its end first."""
    if dims is not None:
        A = A.movedim(tuple(dims), tuple(range(-len(dims), 0)))
    shape = tuple(A.shape)[B.ndim :]
    rows, columns = B.numel(), math.prod(shape)
    if rows != columns:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), "
            f"but got {columns} != {rows}"
        )
    return linalg_solve(A.reshape(rows, columns), B.reshape(rows)).reshape(shape)


@composite()
def det(input: Tensor) -> Tensor:
    """The determinants of matrices."""
    return generated.linalg_det(input)


@composite(out=True)
def slogdet(input: Tensor) -> Any:
    """The sign of the determinants, and the logarithm of their modulus."""
    return _slogdet_result(*generated.linalg_slogdet(input))


@composite()
def logdet(input: Tensor) -> Tensor:
    """The logarithms of the determinants: NaN where one is negative."""
    check_matrices(input._memory_, "logdet", True)
    check_floating(input._memory_, "logdet")
    sign, logabsdet = generated.linalg_slogdet(input)
    if input.is_complex():
        return sign.log() + logabsdet
    return where(sign == -1.0, math.nan, logabsdet)


@composite()
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """The pseudo-inverses of matrices."""
    return generated.linalg_pinv(input, rtol=rcond)
