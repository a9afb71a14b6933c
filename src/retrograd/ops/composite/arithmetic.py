"""Quotients, and Python's operators where they are more than one operator of the table."""

from __future__ import annotations

from typing import Any

from ..._generated import functions as generated
from ...core import dtypes
from ...kernels.promotion import result_dtype
from ...tensor import Tensor
from ...tensor.special import like_array
from ..arguments import as_number
from ..factories import tensor
from ..registry import composite
from ..support import NUMBERS, reflected


@composite("divide")
def div(input: Tensor, other: Any, *, rounding_mode: Any = ..., out: Tensor | None = None) -> Tensor:
    """``input / other``, rounded toward zero ("trunc") or down ("floor") if asked.

    >>> import retrograd as torch
    >>> torch.div(torch.tensor([-7., 7.]), 2, rounding_mode="floor")
    tensor([-4.,  3.])
    """
    if rounding_mode is ...:  # None is a way to round, with a node of its own
        return generated.div(input, other, out=out)
    if not isinstance(input, Tensor):
        input = number_as_tensor(input, other)
    return generated.div_rounding_mode(input, other, rounding_mode=rounding_mode, out=out)


@composite("divide_", space="Tensor")
def div_(input: Tensor, other: Any, *, rounding_mode: Any = ...) -> Tensor:
    """In-place `div`."""
    if rounding_mode is ...:
        return generated.div_(input, other)
    return generated.div_rounding_mode_(input, other, rounding_mode=rounding_mode)


@composite(method=False)
def rsub(input: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """``other - alpha * input``."""
    return (generated.rsub_Tensor if isinstance(other, Tensor) else generated.rsub_Scalar)(input, other, alpha=alpha)


@composite(out=True)
def true_divide(input: Tensor, other: Any) -> Tensor:
    """``input / other``."""
    return generated.div(input, other)


@composite(method=False)
def remainder(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """``input % other`` with the sign of `other`; either may be a number."""
    if not isinstance(input, Tensor) and isinstance(other, Tensor):
        input = number_as_tensor(input, other)
    return generated.remainder(input, other, out=out)


@composite(space="Tensor")
def true_divide_(input: Tensor, other: Any) -> Tensor:
    """In-place `true_divide`."""
    return generated.div_(input, other)


@composite()
def positive(input: Tensor) -> Tensor:
    """The tensor itself."""
    if input._memory_.dtype.kind == "b":
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


@composite(space="Tensor", bare=True)
def __pos__(self: Tensor) -> Tensor:
    return positive(self)


@composite("__rdiv__", space="Tensor", bare=True)
def __rtruediv__(self: Tensor, other: Any) -> Any:
    return generated.reciprocal(self) * other if isinstance(other, NUMBERS) else reflected("__rtruediv__", self, other)


@composite(space="Tensor", bare=True)
def __invert__(self: Tensor) -> Tensor:
    if self._memory_.dtype.kind not in "biu":
        raise TypeError(
            f"~ (operator.invert) is only implemented on integer and Boolean-type tensors, not {self.dtype}"
        )
    return generated.bitwise_not(self)


def number_as_tensor(value: Any, like: Any) -> Tensor:
    """A number as the 0-d tensor that it stands for beside `like`: of its dtype if that can hold it."""
    value = as_number(value)
    if not isinstance(like, Tensor):  # another number
        return tensor(value)
    return tensor(value, dtype=dtypes.from_numpy_dtype(result_dtype(like_array(like), value)))


# ``number OP self``, for operators that have no form for it: of the tensor that the number stands for.


@composite(space="Tensor", bare=True)
def __rfloordiv__(self: Tensor, other: Any) -> Any:
    if isinstance(other, NUMBERS):
        return generated.floor_divide(number_as_tensor(other, self), self)
    return reflected("__rfloordiv__", self, other)


@composite(space="Tensor", bare=True)
def __rmod__(self: Tensor, other: Any) -> Any:
    if isinstance(other, NUMBERS):
        return generated.remainder(number_as_tensor(other, self), self)
    return reflected("__rmod__", self, other)


@composite(space="Tensor", bare=True)
def __rlshift__(self: Tensor, other: Any) -> Any:
    if isinstance(other, NUMBERS):
        return generated.bitwise_left_shift(number_as_tensor(other, self), self)
    return reflected("__rlshift__", self, other)


@composite(space="Tensor", bare=True)
def __rrshift__(self: Tensor, other: Any) -> Any:
    if isinstance(other, NUMBERS):
        return generated.bitwise_right_shift(number_as_tensor(other, self), self)
    return reflected("__rrshift__", self, other)
