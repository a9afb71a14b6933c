"""Powers, exponentials and condition numbers of matrices."""

from __future__ import annotations

import math
from typing import Any

from ..._generated import functions as generated
from ...kernels.linalg_checks import check_matrices
from ...tensor import Tensor
from ...tensor.special import all_values
from ..factories import eye
from ..registry import composite
from .decompositions import linalg_svdvals
from .distance import linalg_matrix_norm
from .mask import where
from .products import matmul
from .solve import linalg_inv


@composite(method=False)
def linalg_cond(A: Tensor, p: Any = None) -> Tensor:
    """The condition numbers of matrices, in the norm `p`."""
    if A.ndim < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    if isinstance(p, str):
        check_matrices(A._memory_, f"linalg.cond(ord={p})", True)
    if not math.prod(A.shape[-2:]):
        return A.new_zeros(A.shape[:-2], dtype=A.real.dtype)
    if p is None or p in (2, -2):
        values = linalg_svdvals(A)
        large, small = values[..., 0], values[..., -1]
        return small / large if p == -2 else large / small
    if p not in ("fro", "nuc", 1, -1, math.inf, -math.inf):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    check_matrices(A._memory_, f"linalg.cond(ord={p})", True)
    if p == "nuc":
        values = linalg_svdvals(A)
        return values.sum(-1) * values.reciprocal().sum(-1)
    inverse, info = generated.linalg_inv_ex(A)
    result = linalg_matrix_norm(A, p) * linalg_matrix_norm(inverse, p)
    singular = info != 0
    return where(singular, math.inf, result) if all_values(singular).any() else result


@composite("linalg_matrix_power", out=True)
def matrix_power(input: Tensor, n: int) -> Tensor:
    """The product of `n` copies of each matrix; of its inverse for a negative `n`.

    >>> import retrograd as torch
    >>> torch.matrix_power(torch.tensor([[1., 1.], [0., 1.]]), 5)
    tensor([[1., 5.],
            [0., 1.]])
    """
    check_matrices(input._memory_, "linalg.matrix_power", True)
    if n == 0:
        return input.clone().copy_(eye(input.shape[-1], dtype=input.dtype))
    if n < 0:
        return matrix_power(linalg_inv(input), -n)
    if n == 1:
        return input.clone()
    result, square = None, input
    while True:
        if n & 1:
            result = square if result is None else matmul(result, square)
        n >>= 1
        if not n:
            assert result is not None
            return result
        square = matmul(square, square)


@composite()
def matrix_exp(input: Tensor) -> Tensor:
    """The exponentials of matrices."""
    return generated.linalg_matrix_exp(input)
