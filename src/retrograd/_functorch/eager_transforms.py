"""`func`'s transforms at their other address."""

from __future__ import annotations

from typing import Any

from ..func import debug_unwrap, functionalize, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp
from ..func.transforms import _chosen

__all__ = [
    "debug_unwrap", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp",
]  # fmt: skip


def _slice_argnums(args: tuple[Any, ...], argnums: Any, as_tuple: bool = True) -> Any:
    """The arguments `argnums`: a tuple of them, also of one if `as_tuple`.

    >>> _slice_argnums((1, 2, 3), (0, -1)), _slice_argnums((1, 2, 3), 1, as_tuple=False)
    ((1, 3), 2)
    """
    found = _chosen(args, argnums)
    return (found,) if as_tuple and isinstance(argnums, int) else found
