"""Universal functions of NumPy and SciPy as operators of ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import special
from ...core.dtypes import bool_, from_numpy_dtype, uint8
from ...core.state import local
from ...ops import namespace as ops
from ...tensor import Tensor, wrap

__all__ = ["call_ufunc", "tensor_of"]


def _cbrt(x: Tensor) -> Tensor:
    return ops.sign(x) * ops.abs(x) ** (1 / 3)


def _divmod(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    return ops.floor_divide(x, y), ops.remainder(x, y)


def _modf(x: Tensor) -> tuple[Tensor, Tensor]:
    return ops.frac(x), ops.trunc(x)


def _vecdot(x: Tensor, y: Tensor) -> Tensor:
    return (ops.conj(x) * y).sum(-1)


def _matvec(x: Tensor, y: Tensor) -> Tensor:
    return ops.matmul(x, y.unsqueeze(-1)).squeeze(-1)


def _vecmat(x: Tensor, y: Tensor) -> Tensor:
    return ops.matmul(ops.conj(x).unsqueeze(-2), y).squeeze(-2)


#: By the name of the universal function, which is as unique as its operator's.
OPERATORS: dict[str, Callable[..., Any]] = {
    name: getattr(ops, name)
    for name in (
        "add", "floor_divide", "remainder", "fmod", "float_power", "positive", "sign", "exp", "exp2", "expm1", "log",
        "log2", "log10", "log1p", "sqrt", "square", "reciprocal", "sin", "cos", "tan", "arcsin", "arccos", "arctan",
        "arctan2", "hypot", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "deg2rad", "rad2deg", "maximum",
        "minimum", "fmax", "fmin", "logaddexp", "logaddexp2", "matmul", "floor", "ceil", "trunc", "heaviside",
        "copysign", "ldexp", "nextafter", "gcd", "lcm", "isnan", "isinf", "isfinite", "signbit", "equal",
        "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_xor",
        "logical_not", "bitwise_and", "bitwise_or", "bitwise_xor", "frexp",
    )
} | {
    "subtract": ops.sub, "multiply": ops.mul, "divide": ops.div, "power": ops.pow, "negative": ops.neg,
    "absolute": ops.abs, "fabs": ops.abs, "conjugate": ops.conj_physical, "rint": ops.round, "degrees": ops.rad2deg,
    "radians": ops.deg2rad, "invert": ops.bitwise_not, "left_shift": ops.bitwise_left_shift,
    "right_shift": ops.bitwise_right_shift, "equal": ops.eq, "not_equal": ops.ne,
    "cbrt": _cbrt, "divmod": _divmod, "modf": _modf, "vecdot": _vecdot, "matvec": _matvec, "vecmat": _vecmat,
}  # fmt: skip
#: SciPy's, of scipy.special.
OPERATORS |= {
    name: getattr(special, name)
    for name in (
        "erf", "erfc", "erfcx", "erfinv", "expit", "gammainc", "gammaincc", "gammaln", "i0", "i0e", "i1", "i1e",
        "log_ndtr", "logit", "ndtr", "ndtri", "psi", "xlog1py", "xlogy", "zeta",
    )
} | {"entr": special.entr, "sinc": special.sinc}  # fmt: skip

#: ``ufunc.reduce`` and ``ufunc.accumulate``.
REDUCTIONS: dict[str, Callable[..., Any]] = {
    "add": lambda x, dim, keepdim: ops.sum(x, dim, keepdim=keepdim),
    "multiply": lambda x, dim, keepdim: _over_dims(ops.prod, x, dim, keepdim),
    "maximum": lambda x, dim, keepdim: ops.amax(x, dim, keepdim=keepdim),
    "minimum": lambda x, dim, keepdim: ops.amin(x, dim, keepdim=keepdim),
    "logaddexp": lambda x, dim, keepdim: ops.logsumexp(x, dim, keepdim=keepdim),
}
SCANS: dict[str, Callable[..., Any]] = {
    "add": ops.cumsum, "multiply": ops.cumprod, "logaddexp": ops.logcumsumexp,
    "maximum": lambda x, dim: ops.cummax(x, dim)[0], "minimum": lambda x, dim: ops.cummin(x, dim)[0],
}  # fmt: skip


def _over_dims(function: Callable[..., Tensor], x: Tensor, dims: Any, keepdim: bool) -> Tensor:
    """A reduction of one dimension, of several in turn, the last first."""
    for dim in sorted([d % max(x.dim(), 1) for d in dims], reverse=True):
        x = function(x, dim, keepdim=keepdim)
    return x


def tensor_of(value: Any) -> Any:
    """An array as a Tensor, on its memory where a Tensor can lie so; numbers and Tensors as they are."""
    if not isinstance(value, np.ndarray):
        return value
    from_numpy_dtype(value.dtype)
    if any(step < 0 or step % value.itemsize for step in value.strides):
        value = value.copy()
    return wrap(value.view(np.ndarray), local.state.new_vc)


def call_ufunc(
    ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any], as_operator: bool
) -> Any:
    """What the operator gives, or NotImplemented where there is none.

    As Python's operator it follows torch's rules for dtypes and gives bools, else NumPy's, and bytes for bools.
    """
    name = ufunc.__name__
    if method == "__call__" and not kwargs:
        operator = OPERATORS.get(name)
        if operator is None or ufunc.nin != len(inputs):
            return NotImplemented
        operands = [tensor_of(x) for x in inputs]
        if as_operator:
            return operator(*operands) if _takes_numbers(operands) else operator(*map(_as_tensor, operands))
        types = _loop(ufunc, inputs)
        if types is None:
            return NotImplemented
        results = operator(*[_as_tensor(x).to(t) for x, t in zip(operands, types)])
        if not isinstance(results, tuple):
            return _typed(results, types[ufunc.nin])
        return tuple([_typed(part, t) for part, t in zip(results, types[ufunc.nin :])])
    if method == "outer" and not kwargs and len(inputs) == 2 and name in OPERATORS:
        left, right = (_as_tensor(tensor_of(x)) for x in inputs)
        left = left.reshape(*left.shape, *[1] * right.dim())
        return call_ufunc(ufunc, "__call__", (left, right), {}, as_operator=False)
    if method in ("reduce", "accumulate") and isinstance(inputs[0], Tensor):
        return _scan_or_reduce(name, method, *inputs, **kwargs)
    return NotImplemented


def _takes_numbers(operands: list[Any]) -> bool:
    """One of two may be a number, where Python's operators take it."""
    return all(isinstance(x, (Tensor, bool, int, float, complex, np.generic)) for x in operands) and len(operands) == 2


def _as_tensor(value: Any) -> Tensor:
    return value if isinstance(value, Tensor) else wrap(np.asarray(value), local.state.new_vc)


def _loop(ufunc: Any, inputs: tuple[Any, ...]) -> Any:
    """The dtypes that NumPy would compute with and in; Python's numbers take those of the others."""
    kinds: list[Any] = []
    for x in inputs:
        if isinstance(x, (Tensor, np.ndarray, np.generic)):
            kinds.append((x._memory_ if isinstance(x, Tensor) else x).dtype)
        elif isinstance(x, (bool, int, float, complex)):
            kinds.append(np.dtype(bool) if isinstance(x, bool) else type(x))
        else:
            kinds.append(np.asarray(x).dtype)
    try:
        types = ufunc.resolve_dtypes((*kinds, *[None] * ufunc.nout))
    except TypeError:
        return None
    return [wrap(np.empty(0, t)).dtype for t in types]


def _typed(result: Tensor, dtype: Any) -> Tensor:
    return result.to(uint8 if dtype is bool_ else dtype)


def _scan_or_reduce(
    name: str, method: str, x: Tensor, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False,
    initial: Any = None, where: Any = True,
) -> Any:  # fmt: skip
    if dtype is not None or out is not None or initial not in (None, np._NoValue) or where is not True:
        return NotImplemented
    if method == "accumulate":
        return SCANS[name](x, axis) if name in SCANS else NotImplemented
    if name not in REDUCTIONS:
        return NotImplemented
    dims = tuple(range(x.dim())) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return REDUCTIONS[name](x, dims, keepdims)
