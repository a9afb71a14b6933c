"""Powers, and matrices of powers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._generated import functions as generated
from ...core import dtypes
from ...core.dtypes import int64
from ...kernels.promotion import is_half, scalar_name
from ...tensor import Tensor, fresh
from ..factories import ones_like
from ..registry import composite
from ..support import NUMBERS, needs_a_tensor, number, reflected


@composite(method=False)
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """The matrix whose columns are the powers of `x`, highest first unless `increasing`."""
    if x._memory_.ndim != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    n = x._memory_.shape[0] if N is None else N
    if n < 0:
        raise RuntimeError("N must be non-negative.")
    if x._memory_.dtype.kind in "biu":
        x = x.to(int64)  # in which the powers are multiplied up
    np.empty((x._memory_.shape[0], n), x._memory_.dtype)  # is there memory for it? Asked before the columns are made
    columns = [generated.pow_Tensor_Scalar(x, k) for k in range(n)]
    if not columns:
        return fresh(np.empty((x._memory_.shape[0], 0), x._memory_.dtype))
    return generated.stack(columns if increasing else columns[::-1], 1)


@composite(bare=True)
def pow(input: Any, exponent: Any, *, out: Tensor | None = None) -> Tensor:
    """``input ** exponent``, either of which may be a number.

    >>> import retrograd as torch
    >>> torch.pow(torch.tensor([1., 2., 3.]), 2)
    tensor([1., 4., 9.])
    """
    if not isinstance(exponent, Tensor):
        exponent = number("pow", "exponent", 2, exponent)
        return generated.pow_Tensor_Scalar(input, exponent, out=out)
    if isinstance(input, Tensor):
        return generated.pow_Tensor_Tensor(input, exponent, out=out)
    return generated.pow_Scalar(input, exponent, out=out)


@composite(space="Tensor")
def pow_(input: Tensor, exponent: Any) -> Tensor:
    """In-place `pow`."""
    if isinstance(exponent, Tensor):
        return generated.pow_Tensor_Tensor_(input, exponent)
    return generated.pow_Tensor_Scalar_(input, exponent)


@composite()
def square(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``input ** 2``."""
    return generated.pow_Tensor_Scalar(input, 2, out=out)


@composite()
def square_(input: Tensor) -> Tensor:
    """In-place `square`."""
    return generated.pow_Tensor_Scalar_(input, 2)


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
def linalg_vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """The powers ``x**0`` to ``x**(N-1)`` in rows."""
    if x._memory_.dtype.kind == "b" or is_half(x._memory_.dtype):
        raise RuntimeError(
            "linalg.vander supports floating point, complex, and integer tensors, but got "
            + scalar_name(x._memory_.dtype)
        )
    if not x.ndim:
        x = x.unsqueeze(0)
    n = int(x.shape[-1]) if N is None else N
    if n <= 1:
        raise RuntimeError("N must be greater than 1.")
    columns = x.unsqueeze(-1).expand((*x.shape, n - 1)).cumprod(-1)
    return generated.cat([ones_like(columns[..., :1]), columns], -1)


@composite(space="Tensor")
def float_power_(input: Tensor, exponent: Any) -> Tensor:
    """In-place `float_power`, for tensors of double precision."""
    result = float_power(input.detach(), exponent)
    if result._memory_.dtype != input._memory_.dtype:
        raise RuntimeError(
            f"the base given to float_power_ has dtype {scalar_name(input._memory_.dtype)} but the operation's result "
            f"requires dtype {scalar_name(result._memory_.dtype)}"
        )
    if isinstance(exponent, Tensor):
        return generated.pow_Tensor_Tensor_(input, exponent.to(input.dtype))
    return generated.pow_Tensor_Scalar_(input, exponent)


@composite(space="Tensor", bare=True)
def __pow__(self: Tensor, exponent: Any) -> Any:
    if exponent.__class__ is int or exponent.__class__ is float:
        return generated.pow_Tensor_Scalar(self, exponent)
    return pow(self, exponent) if isinstance(exponent, (Tensor, *NUMBERS)) else NotImplemented


@composite(space="Tensor", bare=True)
def __rpow__(self: Tensor, base: Any) -> Any:
    return generated.pow_Scalar(base, self) if isinstance(base, NUMBERS) else reflected("__rpow__", self, base)


@composite(space="Tensor", bare=True)
def __ipow__(self: Tensor, exponent: Any) -> Any:
    return self.pow_(exponent) if isinstance(exponent, (Tensor, *NUMBERS)) else NotImplemented
