"""Medians, quantiles, covariances, histograms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import kernels
from ..._generated import functions as generated
from ...autograd.forward_operators import forbid_duals
from ...core import dtypes
from ...kernels.dims import normalize_dim
from ...kernels.promotion import scalar_name, unsupported
from ...return_types import return_type
from ...tensor import Tensor, fresh
from ...tensor.beside import beside
from ...tensor.special import all_values
from ..registry import composite
from ..support import write_out
from .reduce import _aliased, mean


@composite()
def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Any = None) -> Any:
    """The median of what is not NaN; with a `dim`, those along it and their indices."""
    if dim is None:
        return generated.nanmedian(input, out=out)
    return generated.nanmedian_dim(input, dim, keepdim, out=out)


# ------------------------------------------------------------------------------------------------------------ quantiles

_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


@composite()
def quantile(
    input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear",
    out: Any = None,
) -> Tensor:  # fmt: skip
    """The quantiles `q`, a number or a vector of numbers in [0, 1]; with a `dim`, along it.

    >>> import retrograd as torch
    >>> torch.quantile(torch.tensor([0., 1., 2., 3.]), 0.5)
    tensor(1.5000)
    """
    if out is not None:
        return write_out(quantile, out, (input, q, dim, keepdim), {"interpolation": interpolation})
    return _quantile("quantile", input, q, dim, keepdim, interpolation, False)


@composite()
def nanquantile(
    input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear",
    out: Any = None,
) -> Tensor:  # fmt: skip
    """`quantile` of what is not NaN."""
    if out is not None:
        return write_out(nanquantile, out, (input, q, dim, keepdim), {"interpolation": interpolation})
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation, True)


def _quantile(name: str, input: Tensor, q: Any, dim: Any, keepdim: bool, interpolation: str, skip: bool) -> Tensor:
    data = input._memory_
    if not data.size:
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    if data.dtype not in (np.float32, np.float64):
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
    if interpolation not in _INTERPOLATIONS:
        raise RuntimeError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
        )
    if not isinstance(q, Tensor):
        given = np.array(q, data.dtype)
        if not ((given >= 0) & (given <= 1)).all():
            raise RuntimeError(f"quantile() q must be in the range [0, 1] but got {float(q):g}")
        q = beside(input, given)
    if q._memory_.ndim > 1:
        raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
    if q._memory_.dtype != data.dtype:
        raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
    if not ((all_values(q) >= 0) & (all_values(q) <= 1)).all():
        raise RuntimeError(f"{name}() q values must be in the range [0, 1]")
    if dim is not None:
        normalize_dim(dim, data.ndim)
    if dim is None or not data.ndim:
        rows: Any = input.reshape((1,) * data.ndim + (-1,) if keepdim else -1)
    else:
        rows = input.unsqueeze(-1).transpose(dim % data.ndim, -1) if keepdim else input.movedim(dim, -1)
    ranked = generated.sort(rows, -1).values
    ranks = _ranks(ranked, q, skip)
    many = ranks._memory_.ndim and q._memory_.ndim
    below = generated.floor(ranks)
    if interpolation == "lower":
        result = _picked(ranked, below)
    elif interpolation == "higher":
        result = _picked(ranked, generated.ceil(ranks))
    elif interpolation == "nearest":
        result = _picked(ranked, generated.round(ranks))
    else:
        weight = 0.5 * generated.ne(below, ranks) if interpolation == "midpoint" else ranks - below
        low, high = _picked(ranked, below), _picked(ranked, generated.ceil(ranks))
        result = generated.lerp(low, high, weight.to(low.dtype))
    # The quantiles are along the last dimension: several come first instead. In place, for the result is no view.
    if many:
        result.unsqueeze_(0).transpose_(0, -1)
    return result.squeeze_(-1)


def _ranks(ranked: Tensor, q: Tensor, skip: bool) -> Any:
    """Where the quantiles lie among the elements in order, of shape (..., number of quantiles)."""
    n = ranked._memory_.shape[-1]
    missing = generated.isnan(ranked)
    shape = (*ranked._memory_.shape[:-1], q._memory_.size)
    if skip:
        last = (n - 1 - missing.sum(-1, keepdim=True)).clamp(min=0).to(q.dtype)
        return q.reshape(-1) * last.expand(shape)
    # A row with a NaN has it for every quantile, and NaN is last.
    ranks = (q.reshape(-1) * (n - 1)).expand(shape)
    return generated.masked_fill_Scalar(ranks, missing.any(-1, keepdim=True), float(n - 1))


def _picked(ranked: Tensor, ranks: Tensor) -> Tensor:
    return generated.gather(ranked, -1, ranks.detach().long())


# ----------------------------------------------------------------------------------------------------------- covariance


def _check_weights(name: str, weights: Tensor, kinds: str, observations: int) -> None:
    """May these weigh the observations of `cov`?"""
    data = weights._memory_
    if data.ndim > 1:
        raise RuntimeError(
            f"cov(): expected {name} to have one or fewer dimensions but got {name} with {data.ndim} dimensions"
        )
    if data.dtype.kind not in kinds:
        kind = "floating point" if kinds == "fV" else "integral"
        raise RuntimeError(
            f"cov(): expected {name} to have {kind} dtype but got {name} with {scalar_name(data.dtype)} dtype"
        )
    if data.size != observations:
        raise RuntimeError(
            f"cov(): expected {name} to have the same numel as there are observations in the input but got {data.size} "
            f"!= {observations}"
        )
    if (all_values(weights) < 0).any():
        raise RuntimeError(f"cov(): {name} cannot be negative")


@composite()
def cov(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """The covariances of the rows of `input`, whose columns are observations; or the variance of a vector."""
    if input._memory_.ndim > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with "
            f"{input._memory_.ndim} dimensions"
        )
    if input._memory_.dtype == np.bool_:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    rows: Any = input.reshape(1, -1) if input._memory_.ndim < 2 else input
    if rows._memory_.dtype.kind not in "fcVW":
        rows = rows.to(dtypes.from_numpy_dtype(dtypes.default[0]))
    weights: Any = None
    if fweights is not None:
        _check_weights("fweights", fweights, "iu", rows._memory_.shape[1])
        weights = fweights
    if aweights is not None:
        _check_weights("aweights", aweights, "fV", rows._memory_.shape[1])
        weights = aweights if weights is None else weights * aweights
    if weights is None:
        count: Any = rows._memory_.shape[1]
        centred = rows - mean(rows, 1, True)
        weighted = centred
        freedom: Any = max(count - correction, 0)
    else:
        total = weights.sum()
        centred = rows - (rows * weights).sum(1, True) / total
        weighted = centred * weights
        if aweights is None or not correction:
            freedom = total - correction
        else:
            freedom = total - correction * (weights * aweights).sum() / total
        freedom = generated.clamp_min(freedom, 0)
    product: Any = weighted @ centred.t().conj()
    result = product / freedom if isinstance(freedom, Tensor) or freedom else product * math.inf
    return result.squeeze()


@composite()
def corrcoef(input: Tensor) -> Tensor:
    """The correlation coefficients of the rows of `input`."""
    if input._memory_.ndim > 2:
        raise RuntimeError(
            "corrcoef(): expected input to have two or fewer dimensions but got an input with "
            f"{input._memory_.ndim} dimensions"
        )
    covariance: Any = cov(input)
    if not covariance._memory_.ndim:
        return covariance / covariance
    diagonal = covariance.diagonal()
    deviation = generated.sqrt(diagonal.real if diagonal.is_complex() else diagonal)
    result = covariance / deviation.unsqueeze(-1) / deviation
    if result.is_complex():
        return generated.complex(result.real.clamp(-1, 1), result.imag.clamp(-1, 1))
    return result.clamp(-1, 1)


# ----------------------------------------------------------------------------------------------------------- histograms


@composite(out=True)
def histogram(
    input: Tensor, bins: Any = 100, *, range: Sequence[float] | None = None, weight: Tensor | None = None,
    density: bool = False,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """(hist, bin_edges): how many elements, or how much weight, lies in each of the bins."""
    forbid_duals("histogram", input, weight)
    edges = bins._numbers_ if isinstance(bins, Tensor) else bins
    weights = None if weight is None else weight._numbers_
    counts, edges = kernels.histogram(input._numbers_, edges, range, weights, density)
    return Histogram(fresh(counts), fresh(edges))


Histogram: Any = return_type("histogram", "hist", "bin_edges")


@composite(method=False)
def histogramdd(
    input: Tensor, bins: Any, *, range: Any = None, weight: Tensor | None = None, density: bool = False
) -> Any:
    """(hist, bin_edges): how many of the rows of `input`, which are points, lie in each box."""
    forbid_duals("histogramdd", input, weight)
    if input._memory_.ndim < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    if input._memory_.dtype not in (np.float32, np.float64):
        unsupported("histogramdd", input._memory_.dtype)
    axes = input._memory_.shape[-1]
    if isinstance(bins, int):
        bins = [bins] * axes
    if len(bins) != axes:
        raise RuntimeError("histogramdd: The size of bins must be equal to the innermost dimension of the input.")
    if not axes:  # one point of no dimension, or none: there is nothing to count
        return _histogramdd(input.new_full((), np.nan if density else 0), ())
    points = input._numbers_.reshape(-1, axes)
    edges = [b._numbers_ if isinstance(b, Tensor) else b for b in bins]
    spans = None
    if range is not None:
        spans = list(zip(range[::2], range[1::2], strict=True))
    weights = None if weight is None else weight._numbers_.reshape(-1)
    try:
        counts, found = np.histogramdd(points, bins=edges, range=spans, density=density, weights=weights)
    except ValueError as error:
        raise RuntimeError(f"torch.histogramdd: {error}") from None
    dtype = input._memory_.dtype
    return _histogramdd(fresh(counts.astype(dtype)), tuple(fresh(edge.astype(dtype)) for edge in found))


_histogramdd = return_type("histogramdd", "hist", "bin_edges")


@composite()
def median(input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Any = None, **aliases: Any) -> Any:
    """The lower median of all elements; with a `dim`, those along it and their indices."""
    dim, keepdim = _aliased("median", dim, keepdim, aliases)
    if dim is None:
        return generated.median(input, out=out)
    return generated.median_dim(input, dim, keepdim, out=out)
