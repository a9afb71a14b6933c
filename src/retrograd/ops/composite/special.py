"""Special functions that are made of others, and pointwise functions between dtypes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._generated import functions as table
from ...core import dtypes
from ...kernels.promotion import check_out, scalar_name
from ...tensor import Tensor, wrap
from ..registry import composite
from ..support import write_out


@composite("special.multigammaln")
def mvlgamma(input: Tensor, p: int, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension `p`.

    >>> import retrograd as torch
    >>> torch.mvlgamma(torch.tensor([3.]), 1)
    tensor([0.6931])
    """
    if out is not None:
        return write_out(mvlgamma, out, (input, p), {})
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    data = input._data
    if data.dtype == np.bool_:
        raise RuntimeError("The input tensor may not be a boolean tensor.")
    if data.dtype.kind == "c":
        raise NotImplementedError(f"\"mvlgamma\" not implemented for '{scalar_name(data.dtype)}'")
    dtype = data.dtype if data.dtype.kind in "fV" else dtypes.default[0]
    shifts = wrap(np.arange(0, -p, -1).astype(dtype) / dtype.type(2))
    terms = table.lgamma(table.add(table.unsqueeze(input, -1), shifts))
    return table.add(table.sum_dim_IntList(terms, (-1,)), p * (p - 1) / 4 * math.log(math.pi))


@composite(space="Tensor")
def mvlgamma_(input: Tensor, p: int) -> Tensor:
    """In-place `mvlgamma`."""
    result = mvlgamma(table.clone(input), p)
    check_out(input._data, result._data.dtype, result._data.shape)
    return table.copy_(input, result, False)


@composite(name="polygamma", space="Tensor")
def _polygamma_method(input: Tensor, n: int) -> Tensor:
    """The n-th derivative of digamma."""
    return table.polygamma(n, input)


@composite(space="Tensor")
def polygamma_(input: Tensor, n: int) -> Tensor:
    """In-place `polygamma`."""
    result = table.polygamma(n, table.clone(input))
    check_out(input._data, result._data.dtype, result._data.shape)
    return table.copy_(input, result, False)


@composite(space="Tensor")
def float_power_(input: Tensor, exponent: Any) -> Tensor:
    """In-place `float_power`, for tensors of double precision."""
    from .pointwise import float_power

    result = float_power(table.clone(input), exponent)
    if result._data.dtype != input._data.dtype:
        raise RuntimeError(
            f"the base given to float_power_ has dtype {scalar_name(input._data.dtype)} but the operation's result "
            f"requires dtype {scalar_name(result._data.dtype)}"
        )
    return table.copy_(input, result, False)


@composite(space="Tensor")
def true_divide_(input: Tensor, other: Any) -> Tensor:
    """In-place `true_divide`."""
    return table.div_(input, other)
