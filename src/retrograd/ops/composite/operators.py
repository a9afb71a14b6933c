"""Special methods of Tensor that are not simply an operator of the table."""

from __future__ import annotations

from typing import Any

from ..._generated import functions as f
from ...core import dtypes
from ...tensor import Tensor
from ..arguments import as_number
from ..registry import METHODS, composite
from ..support import NUMBERS, reflected
from .pointwise import pow


def _method(name: str) -> Any:
    def register(function: Any) -> Any:
        METHODS[name] = function
        return function

    return register


@composite()
def positive(input: Tensor) -> Tensor:
    """The tensor itself."""
    if input._data.dtype.kind == "b":
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


METHODS["__pos__"] = positive


@_method("__rtruediv__")
def _rtruediv(self: Tensor, other: Any) -> Any:
    return f.reciprocal(self) * other if isinstance(other, NUMBERS) else reflected("__rtruediv__", self, other)


@_method("__pow__")
def _pow(self: Tensor, exponent: Any) -> Any:
    return pow(self, exponent) if isinstance(exponent, (Tensor, *NUMBERS)) else NotImplemented


@_method("__invert__")
def _invert(self: Tensor) -> Tensor:
    if self._data.dtype.kind not in "biu":
        raise TypeError(
            f"~ (operator.invert) is only implemented on integer and Boolean-type tensors, not {self.dtype}"
        )
    return f.bitwise_not(self)


@_method("__rpow__")
def _rpow(self: Tensor, base: Any) -> Any:
    return f.pow_Scalar(base, self) if isinstance(base, NUMBERS) else reflected("__rpow__", self, base)


@_method("__ipow__")
def _ipow(self: Tensor, exponent: Any) -> Any:
    return self.pow_(exponent) if isinstance(exponent, (Tensor, *NUMBERS)) else NotImplemented


def _reflect(name: str, operator: Any) -> Any:
    """``number OP self``, for an operator that has no form for it: of the tensor that the number stands for."""

    def method(self: Tensor, other: Any) -> Any:
        if isinstance(other, NUMBERS):
            return operator(number_as_tensor(other, self), self)
        return reflected(name, self, other)

    METHODS[name] = method


def number_as_tensor(value: Any, like: Tensor) -> Tensor:
    """A number as the 0-d tensor that it stands for beside `like`, whose dtype it takes if that can hold it."""
    from ...kernels.promotion import result_dtype
    from ..factories import tensor

    value = as_number(value)
    return tensor(value, dtype=dtypes.from_numpy_dtype(result_dtype(like._data, value)))


_reflect("__rfloordiv__", f.floor_divide)
_reflect("__rmod__", f.remainder)
_reflect("__rlshift__", f.bitwise_left_shift)
_reflect("__rrshift__", f.bitwise_right_shift)
