"""Formula helpers of functions of matrices."""

from __future__ import annotations

from typing import Any

from .decompositions import adjoint_of

# ---------------------------------------------------------------------------------------------------------- exponential


def matrix_exp_differential(ops: Any, a: Any, direction: Any, adjoint: bool) -> Any:
    """The derivative of exp at A along a direction: the upper right block of exp of ``[[A, E], [0, A]]``."""
    a = adjoint_of(ops, a) if adjoint else a
    n = a.shape[-1]
    top = ops.cat([a, direction], -1)
    bottom = ops.cat([ops.zeros_like(a), a], -1)
    return ops.linalg_matrix_exp(ops.cat([top, bottom], -2))[..., :n, n:]
