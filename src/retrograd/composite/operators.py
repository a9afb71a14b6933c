"""Special methods of Tensor that are not simply an operator of the table."""

from __future__ import annotations

from typing import Any

from .. import dtypes
from .._generated import functions as f
from ..op_support import NUMBERS
from ..tensor import Tensor
from .pointwise import pow
from .registry import METHODS


def _method(name: str) -> Any:
    def register(function: Any) -> Any:
        METHODS[name] = function
        return function

    return register


@_method("__rtruediv__")
def _rtruediv(self: Tensor, other: Any) -> Any:
    return f.reciprocal(self) * other if isinstance(other, NUMBERS) else NotImplemented


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
    return f.pow_Scalar(base, self) if isinstance(base, NUMBERS) else NotImplemented


@_method("__ipow__")
def _ipow(self: Tensor, exponent: Any) -> Any:
    return self.pow_(exponent) if isinstance(exponent, (Tensor, *NUMBERS)) else NotImplemented


@_method("__rfloordiv__")
def _rfloordiv(self: Tensor, other: Any) -> Any:
    return f.floor_divide(number_as_tensor(other, self), self) if isinstance(other, NUMBERS) else NotImplemented


@_method("__rmod__")
def _rmod(self: Tensor, other: Any) -> Any:
    return f.remainder(number_as_tensor(other, self), self) if isinstance(other, NUMBERS) else NotImplemented


@_method("__rlshift__")
def _rlshift(self: Tensor, other: Any) -> Any:
    return f.bitwise_left_shift(number_as_tensor(other, self), self) if isinstance(other, NUMBERS) else NotImplemented


@_method("__rrshift__")
def _rrshift(self: Tensor, other: Any) -> Any:
    return f.bitwise_right_shift(number_as_tensor(other, self), self) if isinstance(other, NUMBERS) else NotImplemented


def number_as_tensor(value: Any, like: Tensor) -> Tensor:
    """A number as the 0-d tensor that it stands for beside `like`, whose dtype it takes if that can hold it."""
    from ..factories import tensor
    from ..kernels.promotion import result_dtype

    return tensor(value, dtype=dtypes.from_numpy_dtype(result_dtype(like._data, value)))
