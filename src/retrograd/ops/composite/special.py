"""Special functions that are made of others, and pointwise functions between dtypes."""

from __future__ import annotations

import math

import numpy as np

from ..._generated import functions as generated
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
    terms = generated.lgamma(generated.add(generated.unsqueeze(input, -1), shifts))
    return generated.add(generated.sum_dim_IntList(terms, (-1,)), p * (p - 1) / 4 * math.log(math.pi))


@composite(space="Tensor")
def mvlgamma_(input: Tensor, p: int) -> Tensor:
    """In-place `mvlgamma`."""
    result = mvlgamma(generated.clone(input), p)
    check_out(input._data, result._memory.dtype, result._memory.shape)
    return generated.copy_(input, result, False)


@composite(name="polygamma", space="Tensor")
def _polygamma_method(input: Tensor, n: int) -> Tensor:
    """The n-th derivative of digamma."""
    return generated.polygamma(n, input)


@composite(space="Tensor")
def polygamma_(input: Tensor, n: int) -> Tensor:
    """In-place `polygamma`."""
    result = generated.polygamma(n, generated.clone(input))
    check_out(input._data, result._memory.dtype, result._memory.shape)
    return generated.copy_(input, result, False)
