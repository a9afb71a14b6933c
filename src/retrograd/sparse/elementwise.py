"""Operators that work element by element, on sparse tensors: on their values, where zero stays zero."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import kernels
from ..autograd.function import Function
from ..autograd.inplace import begin_inplace, bump_version, rebase_history
from ..core.state import local, process
from ..kernels import SparseArray
from ..kernels.promotion import can_cast
from ..ops import namespace as ops
from ..tensor import Tensor, wrap
from ..tensor.lazy_conjugation import write_back
from ..tensor.sparse import AnySparse, CompressedTensor, SparseTensor
from .derivatives import (
    Add,
    FromValues,
    Scale,
    coalesced,
    dense_values_at,
    find,
    linear,
    masked,
    named,
    on,
    to_coo,
    to_dense,
    to_layout_of,
    values_of,
    with_values,
)
from .forms import both, compressed, coo
from .inplace import in_place

# -------------------------------------------------------------------------------------------------------- of one tensor

#: Functions that give zero for zero.
UNARY = (
    "abs", "asin", "asinh", "atan", "atanh", "ceil", "conj_physical", "deg2rad", "erf", "erfinv", "expm1", "floor",
    "frac", "isinf", "isnan", "isneginf", "isposinf", "log1p", "nan_to_num", "rad2deg", "relu", "round",
    "round_decimals", "sgn", "sign", "signbit", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
)  # fmt: skip
#: Other names, under which functions composed of operators come here.
ALIASES = {"absolute": "abs", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan", "arctanh": "atanh",
           "fix": "trunc"}  # fmt: skip


def _unary(name: str, function: str) -> None:
    @both(name)
    def form(input: Any, *args: Any, **kwargs: Any) -> Any:
        one = coalesced(input) if isinstance(input, SparseTensor) else input
        return with_values(one, getattr(ops, function)(values_of(one), *args, **kwargs))


for _name in UNARY:
    _unary(_name, _name)
for _name, _function in ALIASES.items():
    _unary(_name, _function)
_angle = compressed("angle")(lambda input: with_values(input, ops.angle(values_of(input))))


@both()
def positive(input: Any) -> Any:
    return input


@named("NegBackward0")
@linear(0)
class _Neg(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Any) -> Any:
        return on(tensor._memory_.with_values(kernels.neg(tensor._memory_.values)))

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return -grad


@both("neg", "negative")
def neg(input: Any) -> Any:
    return _Neg.apply(input)


@coo("pow", "pow_Tensor_Scalar")
def pow(input: Any, exponent: Any) -> Any:
    if isinstance(exponent, Tensor):
        if exponent.ndim or not isinstance(input, SparseTensor):
            return NotImplemented
        exponent = exponent.item()
    if not isinstance(input, SparseTensor):
        return NotImplemented
    if exponent == 0:
        raise RuntimeError("pow: cannot raise to zeroth power on sparse tensor; it would make the result tensor dense")
    one = coalesced(input)
    return with_values(one, values_of(one) ** exponent)


@coo()
def square(input: Any) -> Any:
    one = coalesced(input)
    return with_values(one, values_of(one).square())


@both()
def real(input: Any) -> Any:
    return with_values(input, values_of(input).real) if input.is_complex() else input


@coo()
def view_as_real(input: Any) -> Any:
    return with_values(input, ops.view_as_real(values_of(input)))


@coo()
def view_as_complex(input: Any) -> Any:
    array = input._memory_
    if array.ndim == array.sparse_dim or array.shape[-1] != 2:
        raise RuntimeError(
            "view_as_complex_sparse is only supported for sparse tensors with the last dim == 2 and dense_dim > 0: "
            f"this one has shape {list(array.shape)} and {array.ndim - array.sparse_dim} dense dimensions"
        )
    return with_values(input, ops.view_as_complex(values_of(input)))


@coo()
def threshold_backward(grad_output: Any, input: Any, threshold: Any) -> Any:
    # The gradient of relu, at the places of its argument.
    if not isinstance(input, SparseTensor) or threshold != 0:
        return NotImplemented
    one = coalesced(input)
    values = values_of(masked(grad_output, one._memory_))
    return with_values(one, ops.threshold_backward(values, values_of(one), threshold))


# ---------------------------------------------------------------------------------------------------- sums, differences


def _add(input: Any, other: Any, alpha: Any, name: str) -> Any:
    if isinstance(alpha, Tensor):
        alpha = alpha.item()
    if not isinstance(input, Tensor) or not isinstance(other, Tensor) or not isinstance(other, AnySparse):
        if isinstance(input, CompressedTensor) and isinstance(other, Tensor):
            return _add_dense(other * alpha if alpha != 1 else other, input, 1)
        raise RuntimeError(
            f"add(sparse, dense) is not supported. Use add(dense, sparse) instead. ({name} got layouts "
            f"{_layout(input)} and {_layout(other)})"
        )
    if tuple(input.shape) != tuple(other.shape):
        raise RuntimeError(
            f"add: expected 'self' and 'other' to have same size, but self has size {list(input.shape)} while other "
            f"has "
            f"size {list(other.shape)} (FYI: op2-sparse addition does not currently support broadcasting)"
        )
    if not isinstance(input, AnySparse):
        return _add_dense(input, other, alpha)
    if isinstance(input, CompressedTensor) or isinstance(other, CompressedTensor):
        if input._memory_.kind is not other._memory_.kind:
            raise RuntimeError(
                f"Expected tensors of one layout, but {name} got {input.layout} and {other.layout}: write "
                f"x.to_sparse(layout={input.layout})"
            )
        result = Add.apply(coalesced(to_coo(input)), coalesced(to_coo(other)), alpha)
        return to_layout_of(result, input._memory_)
    _check_dims(input, other, name)
    return Add.apply(input, other, alpha)


def _add_dense(dense: Any, other: Any, alpha: Any) -> Any:
    return Add.apply(dense, to_coo(other), alpha)


def _check_dims(input: Any, other: Any, name: str) -> None:
    if input._memory_.sparse_dim != other._memory_.sparse_dim:
        raise RuntimeError(
            f"{name}: expected 'self' and 'other' to have same density, but 'self' has {input._memory_.sparse_dim} "
            f"sparse "
            f"dimensions while 'other' has {other._memory_.sparse_dim} sparse dimensions"
        )


def _layout(value: Any) -> str:
    return str(value.layout) if isinstance(value, Tensor) else type(value).__name__


@both("add")
def add(input: Any, other: Any, *args: Any, alpha: Any = 1) -> Any:
    return _add(input, other, args[0] if args else alpha, "add")


@both("sub", "subtract")
def sub(input: Any, other: Any, *args: Any, alpha: Any = 1) -> Any:
    alpha = args[0] if args else alpha
    return _add(input, other, -alpha, "sub")


@both()
def rsub(input: Any, other: Any, *args: Any, alpha: Any = 1) -> Any:
    return _add(other, input, -(args[0] if args else alpha), "rsub")


@both("add_")
def add_(input: Any, other: Any, *args: Any, alpha: Any = 1) -> Any:
    return _add_in_place(input, other, args[0] if args else alpha, "add_")


@both("sub_", "subtract_")
def sub_(input: Any, other: Any, *args: Any, alpha: Any = 1) -> Any:
    return _add_in_place(input, other, -(args[0] if args else alpha), "sub_")


def _add_in_place(input: Any, other: Any, alpha: Any, name: str) -> Any:
    """``input += alpha * other``; a plain tensor is written to where it lies."""
    if isinstance(input, AnySparse):
        return in_place(lambda a, b: _add(a, b, alpha, name), (input, other), {})
    if tuple(input.shape) != tuple(other.shape):
        raise RuntimeError(
            f"add: expected 'self' and 'other' to have same size, but self has size {list(input.shape)} while other "
            f"has "
            f"size {list(other.shape)} (FYI: dense-sparse addition does not currently support broadcasting)"
        )
    if isinstance(alpha, Tensor):
        alpha = alpha.item()
    state = local.state
    record = bool(state.grad_enabled and (input.requires_grad or other.requires_grad))
    begin_inplace(state, input, record)
    if not can_cast(other._memory_.dtype, input._memory_.dtype):
        raise RuntimeError(
            f"result type {other._type_name_()[:-6]} can't be cast to the desired output type "
            f"{input._type_name_()[:-6]}"
        )
    if process.dual_levels:
        return input.copy_(_add(input, other, alpha, name))
    edge = None
    if record:
        recorded = _Written.apply(input, other, alpha)
        edge = recorded._edge_
    array = input._numbers_
    kernels.add_at_coordinates(array, to_coo(other)._memory_, alpha)
    if array is not input._memory_:
        write_back(input, array)
    bump_version(input, name)
    if edge is not None:
        rebase_history(input, edge[0])
    return input


@named("AddBackward0")
class _Written(Function):
    """The history of ``input += alpha * other``, without the sum."""

    @staticmethod
    def forward(ctx: Any, input: Any, other: Any, alpha: Any) -> Any:
        ctx.alpha = alpha
        return ops.empty_like(input)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return Add.backward(ctx, grad)


# -------------------------------------------------------------------------------------------------- products, quotients


@both("mul", "multiply")
def mul(input: Any, other: Any) -> Any:
    if not isinstance(input, AnySparse):
        input, other = other, input
    if not isinstance(other, Tensor) or (not other.ndim and not isinstance(other, AnySparse)):
        return Scale.apply(input, other)
    if isinstance(other, AnySparse):
        return _mul_sparse(input, other)
    if isinstance(input, CompressedTensor):
        if tuple(other.shape) != tuple(input.shape):
            raise RuntimeError(
                f"sparse_mask(): operands have incompatible sizes; self has size {list(other.shape)} but mask has size "
                f"{list(input.shape)}"
            )
        taken = values_of(masked(other, input._memory_))
        return with_values(input, values_of(input) * taken)
    return _mul_dense(input, other)


@coo("mul_", "multiply_")
def mul_(input: Any, other: Any) -> Any:
    """Of a plain tensor by a sparse one: it becomes zero where that has no values."""
    if isinstance(input, AnySparse):
        return in_place(mul, (input, other), {})
    if tuple(input.shape) != tuple(other.shape):
        raise RuntimeError(
            f"mul: expected 'self' and 'other' to have same size, but self has size {list(input.shape)} while other "
            f"has size {list(other.shape)} (FYI: dense-sparse products in place do not currently support broadcasting)"
        )
    return input.mul_(to_dense(other))


def _mul_dense(input: Any, other: Tensor) -> Any:
    array = input._memory_
    shape = np.broadcast_shapes(array.shape, tuple(other.shape))
    if shape != array.shape:
        # As many copies of the sparse tensor as the other asks for.
        input = _broadcast(input, shape)
        array = input._memory_
    taken = dense_values_at(other.expand(shape), array.indices)
    return with_values(input, values_of(input) * taken)


def _broadcast(input: Any, shape: tuple[int, ...]) -> Any:
    """A sparse tensor repeated over new dimensions, and along those of size 1."""
    array = input._memory_
    new = len(shape) - array.ndim
    if shape[new + array.sparse_dim :] != array.shape[array.sparse_dim :]:
        raise RuntimeError(f"a sparse tensor of shape {list(array.shape)} cannot be broadcast to {list(shape)}")
    old = (1,) * new + array.shape[: array.sparse_dim]
    indices = np.concatenate([np.zeros_like(array.indices, shape=(new, array.nnz)), array.indices])
    numbers = np.arange(array.nnz, like=indices)
    for dim in range(len(old)):
        if old[dim] != shape[dim]:
            n = shape[dim]
            indices = np.repeat(indices, n, 1)
            indices[dim] = np.tile(np.arange(n, like=numbers), numbers.size)
            numbers = np.repeat(numbers, n)
    like = SparseArray(indices, np.empty_like(array.values, shape=(numbers.size, *array.values.shape[1:])), shape)
    return coalesced(FromValues.apply(values_of(input).index_select(0, wrap(numbers)), like))


def _mul_sparse(input: Any, other: Any) -> Any:
    layout = input._memory_ if isinstance(input, CompressedTensor) else None
    if layout is not None or isinstance(other, CompressedTensor):
        result = _mul_sparse(to_coo(input), to_coo(other))
        return result if layout is None else to_layout_of(result, layout)
    if tuple(input.shape) != tuple(other.shape):
        shape = np.broadcast_shapes(tuple(input.shape), tuple(other.shape))
        input, other = (one if tuple(one.shape) == shape else _broadcast(one, shape) for one in (input, other))
    _check_dims(input, other, "mul")
    return _Mul.apply(input, other)


@named("MulBackward0", "self", "other")
@linear(0, 1)
class _Mul(Function):
    """The product of two sparse tensors of one shape, where both have values."""

    @staticmethod
    def forward(ctx: Any, input: Any, other: Any) -> Any:
        needs = ctx.needs_input_grad
        ctx.save_for_backward(input if needs[1] else None, other if needs[0] else None)
        a, b = kernels.coalesce(input._memory_), kernels.coalesce(other._memory_)
        place, found = find(b, a.indices)
        kept = np.flatnonzero(found)
        product = kernels.mul(a.values[kept], b.values[place[kept]])
        return on(SparseArray(a.indices[:, kept], product, a.shape, True))

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        input, other = ctx.saved_tensors
        return None if other is None else grad * other.conj(), None if input is None else grad * input.conj()


@named("DivBackward0")
@linear(0)
class _Div(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Any, divisor: Any, rounding_mode: str | None) -> Any:
        ctx.divisor, ctx.rounded = divisor, rounding_mode is not None
        array = tensor._memory_
        values = ops.div(wrap(array.values), divisor, rounding_mode=rounding_mode)
        return on(array.with_values(values._numbers_))

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * 0 if ctx.rounded else grad / ctx.divisor, None, None


def _check_divisor(input: Any, other: Any, what: str = "Sparse division") -> None:
    if isinstance(other, Tensor) and (other.ndim or isinstance(other, AnySparse)):
        raise RuntimeError(
            f"{what} requires a scalar or zero-dim dense tensor divisor (got shape {list(other.shape)} for divisor)"
        )
    if not isinstance(input, AnySparse):
        raise RuntimeError(f"{what} requires a dense divisor, and a sparse tensor to divide")


@both("div", "divide", "true_divide", "div_Tensor_mode")
def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    _check_divisor(input, other)
    if isinstance(input, SparseTensor) and rounding_mode is not None:
        input = coalesced(input)
    if isinstance(other, Tensor) and other.requires_grad:
        return with_values(input, ops.div(values_of(input), other, rounding_mode=rounding_mode))
    return _Div.apply(input, other, rounding_mode)


@coo("div_", "divide_", "true_divide_")
def div_(input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    _check_divisor(input, other)
    return in_place(div, (input, other), {"rounding_mode": rounding_mode})


@coo()
def floor_divide(input: Any, other: Any) -> Any:
    _check_divisor(input, other, "Sparse floor division")
    one = coalesced(input)
    return with_values(one, ops.floor_divide(values_of(one), other))


# ------------------------------------------------------------------------------------------------------------- equality


@both()
def equal(input: Any, other: Any) -> bool:
    """Have both the same elements? (Torch has no form of it; gradients are compared with it all the same.)"""
    if not isinstance(input, AnySparse) or not isinstance(other, AnySparse) or input.layout is not other.layout:
        raise NotImplementedError(
            f"Could not run 'aten::equal' with layouts {_layout(input)} and {_layout(other)}: write x.to_dense()"
        )
    return tuple(input.shape) == tuple(other.shape) and ops.equal(to_dense(input), to_dense(other))
