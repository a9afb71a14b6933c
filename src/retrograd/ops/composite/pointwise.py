"""Pointwise operators that are made of others, and the public functions of overloaded ones."""

from __future__ import annotations

import warnings
from typing import Any

from ..._generated import functions as f
from ...core import dtypes
from ...core.where import users_level
from ...tensor import Tensor
from ..registry import composite
from ..support import needs_a_tensor, number


@composite("divide")
def div(input: Tensor, other: Any, *, rounding_mode: str | None = None, out: Tensor | None = None) -> Tensor:
    """``input / other``, rounded toward zero ("trunc") or down ("floor") if asked.

    >>> import retrograd as torch
    >>> torch.div(torch.tensor([-7., 7.]), 2, rounding_mode="floor")
    tensor([-4.,  3.])
    """
    if rounding_mode is None:
        return f.div(input, other, out=out)
    if not isinstance(input, Tensor) and isinstance(other, Tensor):
        from .operators import number_as_tensor

        input = number_as_tensor(input, other)
    return f.div_rounding_mode(input, other, rounding_mode=rounding_mode, out=out)


@composite("divide_", space="Tensor")
def div_(input: Tensor, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """In-place `div`."""
    if rounding_mode is None:
        return f.div_(input, other)
    return f.div_rounding_mode_(input, other, rounding_mode=rounding_mode)


@composite(method=False)
def rsub(input: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """``other - alpha * input``."""
    return (f.rsub_Tensor if isinstance(other, Tensor) else f.rsub_Scalar)(input, other, alpha=alpha)


@composite(out=True)
def true_divide(input: Tensor, other: Any) -> Tensor:
    """``input / other``."""
    return f.div(input, other)


@composite(bare=True)
def pow(input: Any, exponent: Any, *, out: Tensor | None = None) -> Tensor:
    """``input ** exponent``, either of which may be a number.

    >>> import retrograd as torch
    >>> torch.pow(torch.tensor([1., 2., 3.]), 2)
    tensor([1., 4., 9.])
    """
    if not isinstance(exponent, Tensor):
        exponent = number("pow", "exponent", 2, exponent)
        return f.pow_Tensor_Scalar(input, exponent, out=out)
    if isinstance(input, Tensor):
        return f.pow_Tensor_Tensor(input, exponent, out=out)
    return f.pow_Scalar(input, exponent, out=out)


@composite(space="Tensor")
def pow_(input: Tensor, exponent: Any) -> Tensor:
    """In-place `pow`."""
    if isinstance(exponent, Tensor):
        return f.pow_Tensor_Tensor_(input, exponent)
    return f.pow_Tensor_Scalar_(input, exponent)


@composite()
def square(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``input ** 2``."""
    return f.pow_Tensor_Scalar(input, 2, out=out)


@composite()
def square_(input: Tensor) -> Tensor:
    """In-place `square`."""
    return f.pow_Tensor_Scalar_(input, 2)


@composite(out=True)
def float_power(input: Any, exponent: Any) -> Tensor:
    """`pow` computed in double precision."""
    if input is None or exponent is None or not (isinstance(input, Tensor) or isinstance(exponent, Tensor)):
        raise needs_a_tensor("float_power", input, exponent)
    is_complex = [v.is_complex() if isinstance(v, Tensor) else isinstance(v, complex) for v in (input, exponent)]
    target = dtypes.complex128 if any(is_complex) else dtypes.float64
    base, power = (v.to(target) if isinstance(v, Tensor) else v for v in (input, exponent))
    return pow(base, power)


@composite(method=False)
def remainder(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """``input % other`` with the sign of `other`; either may be a number."""
    if not isinstance(input, Tensor) and isinstance(other, Tensor):
        from .operators import number_as_tensor

        input = number_as_tensor(input, other)
    return f.remainder(input, other, out=out)


@composite(method=False)
def where(condition: Tensor, input: Any = None, other: Any = None, *, out: Tensor | None = None) -> Any:
    """`input` where the condition holds, `other` elsewhere; with the condition alone, the indices where it holds.

    >>> import retrograd as torch
    >>> torch.where(torch.tensor([True, False]), 1., 2.)
    tensor([1., 2.])
    """
    if input is None and other is None:
        return condition.nonzero(as_tuple=True)
    if condition._data.dtype.char == "B":
        warnings.warn(
            "where received a uint8 condition tensor. This behavior is deprecated and will be removed in a future "
            "version of PyTorch. Use a boolean condition instead.",
            UserWarning,
            stacklevel=users_level(),
        )
    return f.where_self(condition, input, other, out=out)


@composite(name="where", space="Tensor")
def _where_method(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """`self` where the condition holds, `other` elsewhere."""
    return f.where_self(condition, self, other)


@composite("special.softmax", out=True)
def softmax(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """`nn.functional.softmax` as a function and method."""
    from ...nn.functional import softmax as function

    return function(input, dim, dtype=dtype)


@composite("special.log_softmax", out=True)
def log_softmax(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """`nn.functional.log_softmax` as a function and method."""
    from ...nn.functional import log_softmax as function

    return function(input, dim, dtype=dtype)


@composite()
def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Are all elements close?"""
    return bool(f.isclose(input, other, rtol, atol, equal_nan)._data.all())


@composite()
def equal(input: Tensor, other: Tensor) -> bool:
    """Same shape and same values?"""
    return input._data.shape == other._data.shape and bool((input._data == other._data).all())


@composite(method=False)
def is_tensor(obj: Any) -> bool:
    """Is it a Tensor?"""
    return isinstance(obj, Tensor)


@composite(method=False)
def is_inference(input: Tensor) -> bool:
    """Was it made in inference mode?"""
    return input.is_inference()


@composite(method=False)
def is_floating_point(input: Tensor) -> bool:
    """Is the dtype a real floating one?"""
    return input.is_floating_point()


@composite(method=False)
def is_complex(input: Tensor) -> bool:
    """Is the dtype complex?"""
    return input.is_complex()


@composite(method=False)
def numel(input: Tensor) -> int:
    """How many elements?"""
    return input.numel()
