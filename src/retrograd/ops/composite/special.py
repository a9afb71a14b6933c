"""Special functions that are made of others, and pointwise functions between dtypes."""

from __future__ import annotations

import numpy as np

from ..._generated import functions as generated
from ...kernels.promotion import check_out, scalar_name
from ...tensor import Tensor
from ...tensor.special import like_array
from ..registry import composite


@composite("special.multigammaln")
def mvlgamma(input: Tensor, p: int, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension `p`.

    >>> import retrograd as torch
    >>> torch.mvlgamma(torch.tensor([3.]), 1)
    tensor([0.6931])
    """
    _check_mvlgamma(input, p)
    return generated._mvlgamma(input, p, out=out)


def _check_mvlgamma(input: Tensor, p: int) -> None:
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    data = input._memory_
    if data.dtype == np.bool_:
        raise RuntimeError("The input tensor may not be a boolean tensor.")
    if data.dtype.kind in "cW":
        raise NotImplementedError(f"\"mvlgamma\" not implemented for '{scalar_name(data.dtype)}'")


@composite(space="Tensor")
def mvlgamma_(input: Tensor, p: int) -> Tensor:
    """In-place `mvlgamma`."""
    _check_mvlgamma(input, p)
    return generated._mvlgamma_(input, p)


@composite(method=False)
def special_round(input: Tensor, *, decimals: int = 0, out: Tensor | None = None) -> Tensor:
    """Rounded to `decimals` places, halves to even."""
    return generated.round(input, decimals=decimals, out=out)


@composite(name="polygamma", space="Tensor")
def _polygamma_method(input: Tensor, n: int) -> Tensor:
    """The n-th derivative of digamma."""
    return generated.polygamma(n, input)


@composite(space="Tensor")
def polygamma_(input: Tensor, n: int) -> Tensor:
    """In-place `polygamma`."""
    result = generated.polygamma(n, generated.clone(input))
    check_out(like_array(input), result._memory_.dtype, result._memory_.shape)
    return generated.copy_(input, result, False)
