"""``torch.linalg``: decompositions, solutions, determinants, norms and products of matrices, batched.

Thin: the operators are in the table and in ``ops/composite``, among `products`, `decompositions`, `solve` and others.

>>> import retrograd as torch
>>> A = torch.tensor([[2., 1.], [1., 3.]])
>>> torch.linalg.solve(A, torch.tensor([3., 4.]))
tensor([1., 1.])
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .kernels.linalg_checks import LinAlgError
from .ops import namespace as ops
from .ops.checked import checked
from .ops.support import write_out

__all__ = ["LinAlgError"]


#: What the first argument is called, in torch's documentation or in its signatures.
_FIRST = ("A", "input", "x", "LD", "LU", "tensors")


#: Where a second argument without a name is a tolerance.
_TOLERANT = {"pinv": "rtol", "matrix_rank": "atol"}
#: What an argument is called in torch's signature, where that is not what it is called here.
_OTHER_NAMES = {"pinv": {"rcond": "rtol"}, "matrix_rank": {"tol": "atol"}, "tensorsolve": {"other": "B"}}


def _public(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The operator under its short name, with ``out=``: a Tensor, or one for each result."""
    other_names = {"axis": "dim", "keepdims": "keepdim", **_OTHER_NAMES.get(name, {})}

    @functools.wraps(function)
    def call(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        if not args:
            args = tuple([kwargs.pop(first) for first in _FIRST if first in kwargs][:1])
        if name in _TOLERANT and len(args) > 1:  # an older form: the tolerance, and whether matrices are Hermitian
            kwargs.update(zip((_TOLERANT[name], "hermitian"), args[1:], strict=False))
            args = args[:1]
        for given, own in other_names.items():
            if given in kwargs:
                kwargs[own] = kwargs.pop(given)
        return function(*args, **kwargs) if out is None else write_out(function, out, args, kwargs)

    return checked(call, name, f"linalg.{name}")


#: Names that are more than ``linalg_NAME``.
_OTHERS: dict[str, Callable[..., Any]] = {"matmul": ops.matmul, "matrix_power": ops.matrix_power}

for _name in (
    "cholesky", "cholesky_ex", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh",
    "householder_product", "inv", "inv_ex", "ldl_factor", "ldl_factor_ex", "ldl_solve", "lstsq", "lu", "lu_factor",
    "lu_factor_ex", "lu_solve", "matmul", "matrix_exp", "matrix_norm", "matrix_power", "matrix_rank", "multi_dot",
    "norm", "pinv", "qr", "slogdet", "solve", "solve_ex", "solve_triangular", "svd", "svdvals", "tensorinv",
    "tensorsolve", "vander", "vecdot", "vector_norm",
):  # fmt: skip
    globals()[_name] = _public(_name, _OTHERS[_name] if _name in _OTHERS else getattr(ops, f"linalg_{_name}"))
    __all__.append(_name)


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module 'torch.linalg' has no attribute {name!r}")
