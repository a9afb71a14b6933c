"""Linear algebra takes batches by itself: the examples become the first of the leading dimensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._generated import functions as generated
from ...tensor import Tensor
from ..batched import Level, spread, wrap, wrap_all
from .patterns import leading, padded, put

Function = Callable[..., Any]

#: The smallest number of dimensions that the operators' tensors have in an example.
_MATRICES = (
    "linalg_cholesky_ex", "cholesky", "cholesky_inverse", "linalg_lu_factor_ex", "linalg_lu", "linalg_ldl_factor_ex",
    "linalg_qr", "geqrf", "_linalg_svd", "_linalg_eigh", "linalg_eig", "_linalg_eigvals", "linalg_inv_ex",
    "linalg_det", "linalg_slogdet", "linalg_matrix_exp",
)  # fmt: skip


def _matrices(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if args[0]._memory_.ndim < 2:
        name = function.__name__.strip("_").removesuffix("_ex").replace("linalg_", "linalg.", 1)
        raise RuntimeError(
            f"{name}: The input tensor A must have at least 2 dimensions, but an example has {args[0]._memory_.ndim}."
        )
    return leading(level, function, args, kwargs)


def _alike(*vectors: int) -> Any:
    """Operators on several tensors: their leading dimensions are brought to the same number first.

    `vectors`: positions of tensors that have one dimension less than the matrices.
    """

    def apply(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        extra = {i: 1 if i in vectors else 0 for i, value in enumerate(args) if isinstance(value, Tensor)}
        ndim = max(args[i]._memory_.ndim + more for i, more in extra.items())
        inner = [padded(spread(value, level), ndim - extra[i]) if i in extra else value for i, value in enumerate(args)]
        named = {k: spread(v, level) if isinstance(v, Tensor) else v for k, v in kwargs.items()}
        return _parts(function(*inner, **named), level)

    return apply


def _parts(results: Any, level: Level) -> Any:
    """Results of which some may be left out: those are empty, and have no batch."""
    if isinstance(results, Tensor):
        return wrap(results, level)
    made = [generated.expand(r, level.size, *r._memory_.shape) if r._memory_.shape == (0,) else r for r in results]
    return wrap_all(results._make(made) if hasattr(results, "_make") else tuple(made), level)


def _solve(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A right side of one dimension less is one of vectors."""
    a, b = args
    if b._memory_.ndim == 1 or b._memory_.shape == a._memory_.shape[:-1]:
        result = function(spread(a, level), generated.unsqueeze(spread(b, level), -1), **kwargs)
        solution = generated.squeeze_dim(result[0], -1)
        return wrap_all(type(result)(solution, *result[1:]), level)
    return _alike()(level, function, args, kwargs)


def _tolerances(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """linalg_pinv and linalg_matrix_rank: the tolerances are numbers, or tensors of the leading dimensions."""
    value = spread(args[0], level)
    ndim = value._memory_.ndim - 3
    named = {
        k: padded(spread(v, level), ndim) if isinstance(v, Tensor) else v
        for k, v in kwargs.items()
    }
    return wrap_all(function(value, *args[1:], **named), level)


def _lstsq(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    a, b, *rest = args
    left, right = spread(a, level), spread(b, level)
    if b._memory_.ndim == a._memory_.ndim - 1:
        result = function(left, generated.unsqueeze(right, -1), *rest, **kwargs)
        return _parts(type(result)(generated.squeeze_dim(result[0], -1), *result[1:]), level)
    return _parts(function(left, right, *rest, **kwargs), level)


def register() -> None:
    put(_matrices, *_MATRICES)
    put(_alike(), "cholesky_solve", "linalg_solve_triangular", "triangular_solve")
    put(_alike(1), "lu_unpack", "linalg_lu_solve", "linalg_ldl_solve", "linalg_householder_product")
    put(_solve, "_linalg_solve_ex")
    put(_tolerances, "linalg_pinv", "linalg_matrix_rank")
    put(_lstsq, "linalg_lstsq")


__all__ = ["register", "wrap"]
