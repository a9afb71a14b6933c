"""Products: a batch of them is one larger product wherever one factor is the same for all examples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._generated import functions as generated
from ...ops.composite.products import linear
from ...tensor import Tensor
from ..batched import RULES, Level, front, is_batched, reshaped, spread, to_front, wrap
from .patterns import padded, put, shifted, writes

Function = Callable[..., Any]


def _check(name: str, *expected: tuple[str, Tensor, int]) -> None:
    for argument, tensor, ndim in expected:
        if tensor._memory_.ndim != ndim:
            given = [f"{what} has dim {one._memory_.ndim}" for what, one, _ in expected]
            raise RuntimeError(
                f"Shape mismatch: Got incorrect dims for {name}: {' and '.join(given)}, but expected {argument} to "
                "have "
                f"dim {ndim}."
            )


def product(level: Level, a: Tensor, b: Tensor) -> Tensor:
    """``a @ b`` of examples that are matrices: the value, with the examples in front."""
    if not is_batched(b, level):
        left = front(a)  # type: ignore[arg-type]
        size, n, k = left._memory_.shape
        return reshaped(generated.mm(reshaped(left, (size * n, k)), b), (size, n, b._memory_.shape[1]))
    if not is_batched(a, level):
        # The examples side by side make one wide matrix.
        value: Tensor = b.value  # type: ignore[attr-defined]
        right = generated.permute(to_front(value, b.bdim), 1, 0, 2)  # type: ignore[attr-defined]
        k, size, m = right._memory_.shape
        wide = generated.mm(a, right.reshape(k, size * m))
        return generated.permute(wide.reshape(a._memory_.shape[0], size, m), 1, 0, 2)
    return generated.bmm(front(a), front(b))  # type: ignore[arg-type]


def _mm(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    a, b = args
    _check("mm", ("self", a, 2), ("mat2", b, 2))
    return wrap(product(level, a, b), level)


def _bmm(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    a, b = args
    _check("bmm", ("batch1", a, 3), ("batch2", b, 3))
    return wrap(_bmm_value(level, a, b), level)


def _bmm_value(level: Level, a: Tensor, b: Tensor) -> Tensor:
    left, right = spread(a, level), spread(b, level)
    size, count = left._memory_.shape[:2]
    if right._memory_.shape[1] != count or left._memory_.shape[3] != right._memory_.shape[2]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{count}, {left._memory_.shape[3]}] but "
            f"got: {list(right._memory_.shape[1:3])}."
        )
    flat = [reshaped(v, (size * count, *v._memory_.shape[2:])) for v in (left, right)]
    result = generated.bmm(*flat)
    return reshaped(result, (size, count, *result._memory_.shape[1:]))


def _mv(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    matrix, vector = args
    _check("mv", ("self", matrix, 2), ("vec", vector, 1))
    return wrap(_mv_value(level, matrix, vector), level)


def _mv_value(level: Level, matrix: Tensor, vector: Tensor) -> Tensor:
    if not is_batched(matrix, level):
        return generated.mm(front(vector), generated.t(matrix))  # type: ignore[arg-type]
    left = front(matrix)  # type: ignore[arg-type]
    if not is_batched(vector, level):
        size, n, k = left._memory_.shape
        return reshaped(generated.mv(reshaped(left, (size * n, k)), vector), (size, n))
    return generated.squeeze_dim(generated.bmm(left, generated.unsqueeze(front(vector), 2)), 2)  # type: ignore[arg-type]


def _dot(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    a, b = args
    _check(function.__name__, ("self", a, 1), ("tensor", b, 1))
    if a._memory_.shape != b._memory_.shape:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{a._memory_.shape[0]}] and src [{b._memory_.shape[0]}] to "
            "have the same number of elements"
        )
    if function is generated.vdot:
        a = a.conj()
    if not is_batched(a, level):
        a, b = b, a
    if not is_batched(b, level):
        return wrap(generated.mv(front(a), b), level)
    left, right = generated.unsqueeze(front(a), 1), generated.unsqueeze(front(b), 2)
    return wrap(generated.view(generated.bmm(left, right), (level.size,)), level)


def _added(multiply: Callable[[Level, Any, Any], Tensor], ndim: int) -> Any:
    """``beta * self + alpha * (a @ b)``."""

    def apply(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        bias, a, b = args
        beta, alpha = kwargs.get("beta", 1), kwargs.get("alpha", 1)
        if ndim == 2 and is_batched(bias, level) and is_batched(a, level) and is_batched(b, level):
            _check("addmm", ("mat1", a, 2), ("mat2", b, 2))
            made = generated.baddbmm(padded(front(bias), 2), front(a), front(b), beta=beta, alpha=alpha)
            return _or_write(function, bias, wrap(made, level))
        if is_batched(a, level) or is_batched(b, level):
            result: Tensor = wrap(multiply(level, a, b), level)
        else:
            result = {2: generated.mm, 1: generated.mv, 3: generated.bmm}[ndim](a, b)
        if alpha != 1:
            result = result * alpha
        if beta != 0:
            result = result + (bias if beta == 1 else bias * beta)
        return _or_write(function, bias, result)

    return apply


def _or_write(function: Function, target: Tensor, result: Tensor) -> Tensor:
    return target.copy_(result) if writes(function) else result


def _addbmm(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    bias, a, b = args
    beta, alpha = kwargs.get("beta", 1), kwargs.get("alpha", 1)
    result = generated.bmm(a, b).sum(0)
    result = result if alpha == 1 else result * alpha
    if beta != 0:
        result = result + (bias if beta == 1 else bias * beta)
    return _or_write(function, bias, result)


def _addr(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    bias, a, b = args
    beta, alpha = kwargs.get("beta", 1), kwargs.get("alpha", 1)
    if all(x._memory_.dtype == np.bool_ for x in (bias, a, b)):
        result = generated.unsqueeze(a, 1) & b if alpha else generated.unsqueeze(a, 1) & b & False
        return _or_write(function, bias, (result | bias) if beta else result)
    result = generated.unsqueeze(a, 1) * b
    result = result if alpha == 1 else result * alpha
    if beta != 0:
        result = result + (bias if beta == 1 else bias * beta)
    return _or_write(function, bias, result)


def _linear(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``input @ weight.T + bias`` of the commonest shapes; of others, as it is composed."""
    input, weight, bias = args
    if bias is None:
        return NotImplemented
    lead, (rows, inside) = input._memory_.shape, weight._memory_.shape if weight._memory_.ndim == 2 else (-1, -1)
    if not 1 <= len(lead) <= 2 or lead[-1] != inside or bias._memory_.shape != (rows,):
        return NotImplemented
    if not is_batched(weight, level):
        if is_batched(bias, level):
            return NotImplemented
        return wrap(function(front(input), weight, bias), level)
    left, transposed = spread(input, level), generated.transpose(front(weight), 1, 2)
    if len(lead) == 1:
        left = generated.unsqueeze(left, 1)
    added = reshaped(front(bias), (level.size, 1, rows)) if is_batched(bias, level) else bias  # type: ignore[arg-type]
    result = generated.baddbmm(added, left, transposed)
    return wrap(generated.squeeze_dim(result, 1) if len(lead) == 1 else result, level)


def _einsum(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """One letter more, in the operands that are batched and in the result."""
    equation, operands = args
    equation = equation.replace(" ", "")
    inputs, arrow, output = equation.partition("->")
    terms = inputs.split(",")
    unused = next(c for c in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" if c not in equation)
    if not arrow:
        letters = sorted({c for c in inputs if c.isalpha() and inputs.count(c) == 1})
        output = ("..." if "..." in inputs else "") + "".join(letters)
    terms = [unused + term if is_batched(x, level) else term for term, x in zip(terms, operands, strict=True)]
    values = [front(x) if is_batched(x, level) else x for x in operands]
    return wrap(function(",".join(terms) + "->" + unused + output, values), level)


def _cross(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    a, b = args
    ndim = max(a._memory_.ndim, b._memory_.ndim)
    values = []
    for tensor in (a, b):
        value = spread(tensor, level)
        shape = value._memory_.shape
        values.append(generated.view(value, (shape[0], *(1,) * (ndim - len(shape) + 1), *shape[1:])))
    return wrap(function(*values, dim=shifted(kwargs.get("dim", -1), ndim)), level)


def _trace(level: Level, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    _check("trace", ("self", args[0], 2))
    return wrap(generated.sum_dim_IntList(generated.diagonal(front(args[0]), 0, 1, 2), [1], False), level)


def register() -> None:
    put(_mm, "mm")
    put(_bmm, "bmm")
    put(_mv, "mv")
    put(_dot, "dot", "vdot")
    put(_added(product, 2), "addmm")
    put(_added(_mv_value, 1), "addmv")
    put(_added(_bmm_value, 3), "baddbmm")
    put(_addbmm, "addbmm")
    put(_addr, "addr")
    put(_einsum, "einsum")
    put(_cross, "linalg_cross")
    put(_trace, "trace")
    RULES[linear] = _linear
