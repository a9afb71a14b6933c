"""Special methods of Tensor that are not simply an operator of the table."""

from __future__ import annotations

from typing import Any

from ..._generated import functions as f
from ...core import dtypes
from ...tensor import Tensor
from ..arguments import as_number
from ..registry import composite
from ..support import NUMBERS, reflected
from .pointwise import pow


@composite()
def positive(input: Tensor) -> Tensor:
    """The tensor itself."""
    if input._data.dtype.kind == "b":
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


@composite(space="Tensor", bare=True)
def __pos__(self: Tensor) -> Tensor:
    return positive(self)


@composite(space="Tensor", bare=True)
def __rtruediv__(self: Tensor, other: Any) -> Any:
    return f.reciprocal(self) * other if isinstance(other, NUMBERS) else reflected("__rtruediv__", self, other)


@composite(space="Tensor", bare=True)
def __pow__(self: Tensor, exponent: Any) -> Any:
    return pow(self, exponent) if isinstance(exponent, (Tensor, *NUMBERS)) else NotImplemented


@composite(space="Tensor", bare=True)
def __invert__(self: Tensor) -> Tensor:
    if self._data.dtype.kind not in "biu":
        raise TypeError(
            f"~ (operator.invert) is only implemented on integer and Boolean-type tensors, not {self.dtype}"
        )
    return f.bitwise_not(self)


@composite(space="Tensor", bare=True)
def __rpow__(self: Tensor, base: Any) -> Any:
    return f.pow_Scalar(base, self) if isinstance(base, NUMBERS) else reflected("__rpow__", self, base)


@composite(space="Tensor", bare=True)
def __ipow__(self: Tensor, exponent: Any) -> Any:
    return self.pow_(exponent) if isinstance(exponent, (Tensor, *NUMBERS)) else NotImplemented


def number_as_tensor(value: Any, like: Tensor) -> Tensor:
    """A number as the 0-d tensor that it stands for beside `like`, whose dtype it takes if that can hold it."""
    from ...kernels.promotion import result_dtype
    from ..factories import tensor

    value = as_number(value)
    return tensor(value, dtype=dtypes.from_numpy_dtype(result_dtype(like._data, value)))


# ``number OP self``, for operators that have no form for it: of the tensor that the number stands for.


@composite(space="Tensor", bare=True)
def __rfloordiv__(self: Tensor, other: Any) -> Any:
    if isinstance(other, NUMBERS):
        return f.floor_divide(number_as_tensor(other, self), self)
    return reflected("__rfloordiv__", self, other)


@composite(space="Tensor", bare=True)
def __rmod__(self: Tensor, other: Any) -> Any:
    if isinstance(other, NUMBERS):
        return f.remainder(number_as_tensor(other, self), self)
    return reflected("__rmod__", self, other)


@composite(space="Tensor", bare=True)
def __rlshift__(self: Tensor, other: Any) -> Any:
    if isinstance(other, NUMBERS):
        return f.bitwise_left_shift(number_as_tensor(other, self), self)
    return reflected("__rlshift__", self, other)


@composite(space="Tensor", bare=True)
def __rrshift__(self: Tensor, other: Any) -> Any:
    if isinstance(other, NUMBERS):
        return f.bitwise_right_shift(number_as_tensor(other, self), self)
    return reflected("__rrshift__", self, other)
