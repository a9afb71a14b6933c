"""Quantiles, distances, covariances, histograms: statistics that are made of other operators."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import kernels
from ..._generated import functions as table
from ...autograd.forward_operators import forbid_duals
from ...autograd.grad_mode import no_grad
from ...core import dtypes
from ...kernels.dims import normalize_dim
from ...kernels.promotion import scalar_name
from ...return_types import return_type
from ...tensor import Tensor, fresh, wrap
from ..registry import composite
from ..support import not_a_tensor, write_out
from .reduce import mean, norm


@composite()
def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Any = None) -> Any:
    """The median of what is not NaN; with a `dim`, those along it and their indices."""
    if dim is None:
        return table.nanmedian(input, out=out)
    return table.nanmedian_dim(input, dim, keepdim, out=out)


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
    data = input._data
    if not data.size:
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    if data.dtype not in (np.float32, np.float64):
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
    if interpolation not in _INTERPOLATIONS:
        raise RuntimeError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
        )
    q = q if isinstance(q, Tensor) else wrap(np.array(q, data.dtype))
    if q._data.ndim > 1:
        raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
    if q._data.dtype != data.dtype:
        raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
    if not ((q._data >= 0) & (q._data <= 1)).all():
        raise RuntimeError(f"{name}() q values must be in the range [0, 1]")
    if dim is not None:
        normalize_dim(dim, data.ndim)
    if dim is None or not data.ndim:
        rows: Any = input.reshape((1,) * data.ndim + (-1,) if keepdim else -1)
    else:
        rows = input.unsqueeze(-1).transpose(dim % data.ndim, -1) if keepdim else input.movedim(dim, -1)
    ranked = table.sort(rows, -1).values
    ranks = _ranks(ranked, q, skip)
    many = ranks._data.ndim and q._data.ndim
    below = table.floor(ranks)
    if interpolation == "lower":
        result = _picked(ranked, below)
    elif interpolation == "higher":
        result = _picked(ranked, table.ceil(ranks))
    elif interpolation == "nearest":
        result = _picked(ranked, table.round(ranks))
    else:
        weight = 0.5 * table.ne(below, ranks) if interpolation == "midpoint" else ranks - below
        low, high = _picked(ranked, below), _picked(ranked, table.ceil(ranks))
        result = table.lerp(low, high, weight.to(low.dtype))
    # The quantiles are along the last dimension: several come first instead. In place, for the result is no view.
    if many:
        result.unsqueeze_(0).transpose_(0, -1)
    return result.squeeze_(-1)


def _ranks(ranked: Tensor, q: Tensor, skip: bool) -> Any:
    """Where the quantiles lie among the elements in order, of shape (..., number of quantiles)."""
    n = ranked._data.shape[-1]
    missing = np.isnan(ranked._data)
    shape = (*ranked._data.shape[:-1], q._data.size)
    if skip:
        last = np.maximum(n - missing.sum(-1, keepdims=True) - 1, 0).astype(q._data.dtype)
        return q.reshape(-1) * wrap(np.broadcast_to(last, shape).copy())
    # A row with a NaN has it for every quantile, and NaN is last.
    ranks = (q.reshape(-1) * (n - 1)).expand(shape)
    return table.masked_fill_Scalar(ranks, wrap(missing.any(-1, keepdims=True)), float(n - 1))


def _picked(ranked: Tensor, ranks: Tensor) -> Tensor:
    return table.gather(ranked, -1, wrap(ranks._data.astype(np.int64)))


# ------------------------------------------------------------------------------------------------------------ distances


@composite()
def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The p-norm of ``input - other``."""
    for position, (name, value) in enumerate((("input", input), ("other", other)), 1):
        if not isinstance(value, Tensor):
            raise not_a_tensor("dist", name, position, value)
    return norm(table.sub(input, other), p)


@composite(method=False)
def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """The norms over every dimension but `dim`, which are kept with size 1; over all for ``dim=-1``."""
    if dim == -1:
        return norm(v, pow)
    dim = normalize_dim(dim, v._data.ndim)
    others = tuple(d for d in range(v._data.ndim) if d != dim)
    return table.linalg_vector_norm(v, pow, others, True) if others else table.abs(v)


_COMPUTE_MODES = (
    None, "use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist",
)  # fmt: skip


@composite(method=False)
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: Any = None) -> Tensor:
    """The p-norms of the differences between every row of `x1` and every row of `x2`.

    >>> import retrograd as torch
    >>> torch.cdist(torch.tensor([[0., 0.]]), torch.tensor([[3., 4.], [0., 1.]]))
    tensor([[5., 1.]])
    """
    for name, x in (("X1", x1), ("X2", x2)):
        if x._data.dtype.kind not in "fV":
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: {x.dtype}")
        if x._data.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {x._data.ndim}D")
    if x1._data.shape[-1] != x2._data.shape[-1]:
        raise RuntimeError(
            f"X1 and X2 must have the same number of columns. X1: {x1._data.shape[-1]} X2: {x2._data.shape[-1]}"
        )
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    if compute_mode not in _COMPUTE_MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    if x1._data.dtype != x2._data.dtype:
        names = scalar_name(x1._data.dtype), scalar_name(x2._data.dtype)
        raise RuntimeError("expected scalar type {} but found {}".format(*names))
    return table.linalg_vector_norm(table.sub(table.unsqueeze(x1, -2), table.unsqueeze(x2, -3)), p, (-1,))


@composite("nn.functional.pdist", method=False)
def pdist(input: Tensor, p: float = 2) -> Tensor:
    """The p-norms of the differences between the rows of a matrix, each pair once."""
    if input._data.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input._data.ndim}D")
    if input._data.dtype.kind == "c":
        raise RuntimeError("pdist only supports floating-point dtypes")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    rows, columns = np.triu_indices(input._data.shape[0], 1)
    left, right = (table.index_select(input, 0, wrap(i.astype(np.int64))) for i in (rows, columns))
    return table.linalg_vector_norm(table.sub(left, right), p, (-1,))


@composite()
def renorm(input: Tensor, p: float, dim: int, maxnorm: float, *, out: Any = None) -> Tensor:
    """`input` with each slice along `dim` scaled down to the p-norm `maxnorm` if it has a greater one."""
    if out is not None:
        return write_out(renorm, out, (input, p, dim, maxnorm), {})
    ndim = input._data.ndim
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    if ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {ndim} dimensions")
    dim = normalize_dim(dim, ndim)
    others = tuple(d for d in range(ndim) if d != dim)
    with no_grad():
        larger = table.gt(table.linalg_vector_norm(input, p, others, True), maxnorm)
    # What is not scaled takes no part in the norms either: a row with a NaN is left alone, and so is its gradient.
    rows = table.where_self(larger, input, 0.0)
    size = table.linalg_vector_norm(rows, p, others, True)
    return table.where_self(larger, table.mul(rows, maxnorm / (size + 1e-7)), input)


@composite(space="Tensor")
def renorm_(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """In-place `renorm`."""
    return table.copy_(input, renorm(table.clone(input), p, dim, maxnorm), False)


# ----------------------------------------------------------------------------------------------------------- covariance


def _check_weights(name: str, weights: Tensor, kinds: str, observations: int) -> None:
    """May these weigh the observations of `cov`?"""
    data = weights._data
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
    if (data < 0).any():
        raise RuntimeError(f"cov(): {name} cannot be negative")


@composite()
def cov(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """The covariances of the rows of `input`, whose columns are observations; or the variance of a vector."""
    if input._data.ndim > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with {input._data.ndim} dimensions"
        )
    if input._data.dtype == np.bool_:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    rows: Any = input.reshape(1, -1) if input._data.ndim < 2 else input
    if rows._data.dtype.kind not in "fcV":
        rows = rows.to(dtypes.from_numpy_dtype(dtypes.default[0]))
    weights: Any = None
    if fweights is not None:
        _check_weights("fweights", fweights, "iu", rows._data.shape[1])
        weights = fweights
    if aweights is not None:
        _check_weights("aweights", aweights, "fV", rows._data.shape[1])
        weights = aweights if weights is None else weights * aweights
    if weights is None:
        count: Any = rows._data.shape[1]
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
        freedom = table.clamp_min(freedom, 0)
    product: Any = weighted @ centred.t().conj()
    result = product / freedom if isinstance(freedom, Tensor) or freedom else product * math.inf
    return result.squeeze()


@composite()
def corrcoef(input: Tensor) -> Tensor:
    """The correlation coefficients of the rows of `input`."""
    if input._data.ndim > 2:
        raise RuntimeError(
            "corrcoef(): expected input to have two or fewer dimensions but got an input with "
            f"{input._data.ndim} dimensions"
        )
    covariance: Any = cov(input)
    if not covariance._data.ndim:
        return covariance / covariance
    diagonal = covariance.diagonal()
    deviation = table.sqrt(diagonal.real if diagonal.is_complex() else diagonal)
    result = covariance / deviation.unsqueeze(-1) / deviation
    if result.is_complex():
        return table.complex(result.real.clamp(-1, 1), result.imag.clamp(-1, 1))
    return result.clamp(-1, 1)


# ----------------------------------------------------------------------------------------------------------- histograms


@composite(out=True)
def histogram(
    input: Tensor, bins: Any = 100, *, range: Sequence[float] | None = None, weight: Tensor | None = None,
    density: bool = False,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """(hist, bin_edges): how many elements, or how much weight, lies in each of the bins."""
    forbid_duals("histogram", input, weight)
    edges = bins._data if isinstance(bins, Tensor) else bins
    counts, edges = kernels.histogram(input._data, edges, range, None if weight is None else weight._data, density)
    return Histogram(fresh(counts), fresh(edges))


Histogram: Any = return_type("histogram", "hist", "bin_edges")
