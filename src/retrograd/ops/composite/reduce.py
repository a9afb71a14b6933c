"""Reductions: public functions that choose between overloads, and reductions over stretches."""

from __future__ import annotations

import builtins
import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import kernels
from ..._generated import functions as generated
from ...core import dtypes
from ...core.where import users_level
from ...kernels.dims import normalize_dims
from ...kernels.promotion import scalar_name
from ...tensor import Tensor, fresh
from ...tensor.beside import beside, on_host
from ..arguments import wrong_type
from ..registry import composite
from ..support import write_out

Dims = int | Sequence[int] | None

_sum_all, _mean_all = generated.sum, generated.mean


def _aliased(name: str, dim: Any, keepdim: Any, aliases: dict[Any, Any]) -> tuple[Any, bool]:
    """`dim` and `keepdim` with NumPy's names for them taken into account; a list of dims as a tuple."""
    if aliases:
        if dim is None or dim is LEFT_OUT:
            dim = aliases.pop("axis", dim)
        if not keepdim:
            keepdim = aliases.pop("keepdims", keepdim)
        if aliases:  # a name that there is not, or a second one for an argument that was given
            raise TypeError(f"{name}() got an unexpected keyword argument '{next(iter(aliases))}'")
    if keepdim is not False and keepdim is not True:
        raise wrong_type(name, "keepdim", 3, "bool", keepdim)
    return (tuple(dim) if isinstance(dim, list) else dim), keepdim


def _for_dtype(input: Tensor, dtype: Any) -> Tensor:
    """`input`, or what is to be reduced in its place if the result has a dtype that has no gradient."""
    np_dtype = dtypes.as_numpy_dtype(dtype)
    if np_dtype is not None and np_dtype.kind not in "fcVW" and input.requires_grad:
        return input.detach()
    return input


# ------------------------------------------------------------------------------------------------------ sums, products


class _LeftOut:
    """In place of a dim that is not given: None is one that is, and may be kept."""

    def __repr__(self) -> str:
        return "None"


LEFT_OUT = _LeftOut()


@composite(bare=True)
def sum(
    input: Tensor, dim: Any = LEFT_OUT, keepdim: bool = False, *, dtype: Any = None, out: Any = None, **aliases: Any
) -> Tensor:
    """The sum of all elements, or over the dimensions `dim`.

    >>> import retrograd as torch
    >>> x = torch.tensor([[1., 2.], [3., 4.]])
    >>> x.sum(), x.sum(0), x.sum(dim=1, keepdim=True).shape
    (tensor(10.), tensor([4., 6.]), torch.Size([2, 1]))
    """
    if dim is LEFT_OUT and keepdim is False and dtype is None and out is None and not aliases:
        return _sum_all(input)
    dim, keepdim = _aliased("sum", dim, keepdim, aliases)
    if dim is LEFT_OUT:
        if keepdim is not False:
            raise TypeError(f"sum() received an invalid combination of arguments: keepdim={keepdim!r} without a dim")
        return _sum_all(_for_dtype(input, dtype), dtype=dtype, out=out)
    input = _for_dtype(input, dtype)
    return generated.sum_dim_IntList(input, dim, keepdim, dtype=dtype, out=out)


@composite(bare=True)
def mean(
    input: Tensor, dim: Any = LEFT_OUT, keepdim: bool = False, *, dtype: Any = None, out: Any = None, **aliases: Any
) -> Tensor:
    """The mean of all elements, or over the dimensions `dim`."""
    if dim is LEFT_OUT and keepdim is False and dtype is None and out is None and not aliases:
        return _mean_all(input)
    dim, keepdim = _aliased("mean", dim, keepdim, aliases)
    if dim is LEFT_OUT:
        if keepdim is not False:
            raise TypeError(f"mean() received an invalid combination of arguments: keepdim={keepdim!r} without a dim")
        return _mean_all(input, dtype=dtype, out=out)
    return generated.mean_dim(input, dim, keepdim, dtype=dtype, out=out)


@composite()
def nanmean(
    input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None, **aliases: Any
) -> Tensor:
    """The mean of what is not NaN."""
    if not (input.is_floating_point() or input.is_complex()):
        raise RuntimeError(
            "nanmean(): expected input to have floating point or complex dtype but got "
            f"{scalar_name(input._memory_.dtype)}"
        )
    dim, keepdim = _aliased("nanmean", dim, keepdim, aliases)
    valid = sum(generated.logical_not(generated.isnan(input)), dim, keepdim)
    return generated.div(generated.nansum(input, dim, keepdim, dtype=dtype), valid, out=out)


@composite()
def prod(
    input: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None, **aliases: Any
) -> Tensor:
    """The product of all elements, or over the dimension `dim`."""
    if dim is None and keepdim is False and dtype is None and not aliases:
        return generated.prod(input, out=out)
    dim, keepdim = _aliased("prod", dim, keepdim, aliases)
    input = _for_dtype(input, dtype)
    if dim is None:
        return generated.prod(input, dtype=dtype, out=out)
    return generated.prod_dim_int(input, dim, keepdim, dtype=dtype, out=out)


@composite("Tensor.sum_to_size", space="internal")
def sum_to_size(input: Tensor, *size: Any) -> Tensor:
    """`input` summed over the dimensions along which a tensor of `size` was broadcast to it."""
    if len(size) == 1 and isinstance(size[0], (tuple, list)):
        size = tuple(size[0])
    shape = input._memory_.shape
    if shape == size and size:
        return input
    lead = len(shape) - len(size)
    if lead < 0 or any(n not in (1, m) for n, m in zip(size, shape[lead:], strict=True)):
        raise RuntimeError(f"size {{{list(size)}}} is not expandable to size {{{list(shape)}}}.")
    if not size:
        return _sum_all(input)
    kept = [d for d, n in enumerate(size, lead) if n == 1 and shape[d] != 1]
    result = generated.sum_dim_IntList(input, (*range(lead), *kept), True)
    return generated.view(result, size) if lead else result


# ------------------------------------------------------------------------------------------------------------- spreads


def _reduced_count(input: Tensor, dim: Any) -> int:
    """How many elements go into one of the result; 0 where `dim` is wrong, for the operator to say so."""
    shape = input._memory_.shape
    if dim is None or dim == () or not shape:
        return input._memory_.size
    dims = (dim,) if isinstance(dim, int) else dim
    return math.prod([shape[d] for d in dims]) if all(-len(shape) <= d < len(shape) for d in dims) else 0


def _deviation(operator: Any, name: str, doc: str) -> Any:
    """var, std, var_mean or std_mean: ``unbiased=False`` is the older way to say ``correction=0``."""

    def deviation(
        input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
        correction: float | None = None, out: Any = None, **aliases: Any,
    ) -> Any:  # fmt: skip
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        dim, keepdim = _aliased(name, dim, keepdim, aliases)
        if unbiased is not None:
            if correction is not None:
                raise TypeError(f"{name}() received both unbiased and correction; correction=0 is unbiased=False")
            correction = int(unbiased)
        if correction is None and dim is not None:
            correction = 1
        counted = 1 if correction is None else correction
        if counted > 0 and _reduced_count(input, dim) <= counted and input._memory_.size:
            warnings.warn(
                f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor "
                "(input numel divided by output numel).",
                UserWarning,
                stacklevel=users_level(),
            )
        if out is not None:
            return operator(input, dim, correction=correction, keepdim=keepdim, out=out)
        result = operator(input, dim, correction=correction, keepdim=keepdim)
        return tuple(result) if isinstance(result, tuple) else result  # torch has no names for the pairs

    deviation.__name__ = deviation.__qualname__ = name
    deviation.__doc__ = doc
    return deviation


var: Any = composite()(
    _deviation(generated.var_correction, "var", "The variance over `dim`, divided by n - correction.")
)
std: Any = composite()(_deviation(generated.std_correction, "std", "The standard deviation over `dim`."))
var_mean: Any = composite(method=False)(
    _deviation(generated.var_mean_correction, "var_mean", "Variance and mean over `dim`.")
)
std_mean: Any = composite(method=False)(
    _deviation(generated.std_mean_correction, "std_mean", "Standard deviation and mean over `dim`.")
)


# ------------------------------------------------------------------------------------------------------------ extremes


def _extreme(name: str, whole: Any, along: Any, elementwise: str) -> Any:
    """max or min: of all elements, along a dimension (with the indices), or of two tensors element by element."""

    def extreme(
        input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Tensor | None = None, out: Any = None,
        **aliases: Any,
    ) -> Any:  # fmt: skip
        if dim is None and other is None and out is None and not aliases:
            return whole(input)
        if isinstance(dim, Tensor):
            dim, other = None, dim
        if other is not None:
            return getattr(generated, elementwise)(input, other, out=out)
        dim, keepdim = _aliased(name, dim, keepdim, aliases)
        if dim is None:
            return whole(input, out=out)
        return along(input, dim, keepdim, out=out)

    extreme.__name__ = extreme.__qualname__ = name
    extreme.__doc__ = (
        f"The {'largest' if name == 'max' else 'smallest'} of all elements; with a `dim`, those along it and their "
        f"indices; with another tensor, `{elementwise}`."
    )
    return extreme


max: Any = composite()(_extreme("max", generated.max, generated.max_dim, "maximum"))
min: Any = composite()(_extreme("min", generated.min, generated.min_dim, "minimum"))

_NAMES = {"max": "amax", "amax": "amax", "min": "amin", "amin": "amin", "sum": "sum", "mean": "sum", "prod": "prod"}
#: What a stretch of no elements gives.
_NEUTRAL = {"amax": -math.inf, "amin": math.inf, "sum": 0, "prod": 1}


def _bools(name: str, input: Tensor) -> Tensor:
    if input._memory_.dtype.kind != "b":
        raise RuntimeError(f"{name}(): expected a tensor of bools, but got {input.dtype}: write x.bool()")
    return input


@composite()
def _is_all_true(input: Tensor) -> Tensor:
    """Are all elements of a tensor of bools True?"""
    return _bools("_is_all_true", input).all()  # type: ignore[attr-defined]


@composite()
def _is_any_true(input: Tensor) -> Tensor:
    """Is an element of a tensor of bools True?"""
    return _bools("_is_any_true", input).any()  # type: ignore[attr-defined]


@composite("_segment_reduce", method=False)
def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """`data` reduced over stretches along `axis`, of the given `lengths` or between the given `offsets`.

    >>> import retrograd as torch
    >>> torch.segment_reduce(torch.tensor([1., 2., 3., 4.]), "sum", lengths=torch.tensor([1, 3]))
    tensor([1., 9.])
    """
    if out is not None:
        keywords = {"lengths": lengths, "offsets": offsets, "axis": axis, "unsafe": unsafe, "initial": initial}
        return write_out(segment_reduce, out, (data, reduce), keywords)
    if reduce not in _NAMES:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    if data._memory_.dtype.kind not in "fV":
        raise NotImplementedError(f"\"_segment_reduce_cpu\" not implemented for '{scalar_name(data._memory_.dtype)}'")
    counts = _counts(data, lengths, offsets, axis % builtins.max(data.ndim, 1), unsafe)
    axis = counts.ndim - 1
    name, count = _NAMES[reduce], counts.shape[-1]
    start = _NEUTRAL[name] if initial is None else initial
    # What lies in no stretch goes to one more, which is dropped.
    index = np.full(data._memory_.shape[: axis + 1], count, np.int64)
    for row in np.ndindex(*counts.shape[:-1]):
        first = 0 if offsets is None or lengths is not None else int(on_host(offsets._numbers_)[row][0])
        stretches = np.repeat(np.arange(count), counts[row])
        index[row][first : first + stretches.size] = stretches
    more = bool((index == count).any())
    base = data.new_full((*data.shape[:axis], count + more, *data.shape[axis + 1 :]), start)
    where = np.broadcast_to(index.reshape(*index.shape, *[1] * (data.ndim - axis - 1)), data._memory_.shape)
    at = beside(data, where)
    if name in ("amax", "amin"):
        result = _extreme_of_stretches(base, axis, at, data, name)
    elif name == "prod" and kernels.isnan(data._numbers_).any():
        result = _product_with_nans(base, axis, at, data)
    else:
        result = generated.scatter_reduce(base, axis, at, generated.straight(data), name, include_self=True)
    result = result.narrow(axis, 0, count) if more else result
    if reduce == "mean":
        divisors = counts.reshape(*counts.shape, *[1] * (data.ndim - axis - 1)).astype(data._memory_.dtype)
        # Of no elements, torch gives the initial value, or NaN where there is none.
        divisors = divisors if initial is None else np.maximum(divisors, divisors.dtype.type(1))
        result = result / beside(data, divisors)
    return result


def _extreme_of_stretches(base: Tensor, axis: int, at: Tensor, data: Tensor, name: str) -> Tensor:
    """The largest or smallest of each stretch and of what it starts with, which takes no part in the gradient."""
    found = generated.scatter_reduce(base, axis, at, generated.straight(data), name, include_self=False)
    better = (found.detach() >= base) if name == "amax" else (found.detach() <= base)
    return generated.where_self(better | found.detach().isnan(), found, base)


def _product_with_nans(base: Tensor, axis: int, at: Tensor, data: Tensor) -> Tensor:
    """The product of each stretch; the gradient of an element that is NaN is the product of the others."""
    nans, zeros = data.detach().isnan(), base.new_zeros(base.shape)
    others = generated.scatter_reduce(base, axis, at, data.masked_fill(nans, 1), "prod", include_self=True)
    own = generated.scatter_reduce(zeros, axis, at, data.masked_fill(~nans, 0), "sum", include_self=True)
    count = generated.scatter_reduce(zeros, axis, at, nans.to(data.dtype), "sum", include_self=True)
    own = own * generated.where_self(count > 1, own.new_full((), math.nan), own.new_ones(()))
    return others * generated.where_self(count > 0, own, own.new_ones(()))


def _counts(data: Tensor, lengths: Tensor | None, offsets: Tensor | None, axis: int, unsafe: bool) -> np.ndarray:
    """How many elements each stretch has, as an array whose last dimension is the one that is reduced."""
    given = lengths if lengths is not None else offsets
    if given is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    name = "lengths" if lengths is not None else "offsets"
    if given._memory_.dtype.kind not in "iu":
        raise NotImplementedError(
            f"\"_segment_reduce_{name}_cpu_kernel1\" not implemented for '{scalar_name(given._memory_.dtype)}'"
        )
    if axis != given.ndim - 1:
        raise RuntimeError(f"segment_reduce(): Expected axis to be the last dimension of {name} but got {axis}.")
    if lengths is None:
        if given._memory_.shape[-1] < 1:
            raise RuntimeError("segment_reduce(): Expected offsets to have at least one element")
        return np.diff(on_host(given._numbers_), axis=-1)
    if not unsafe:
        if (given._numbers_ < 0).any():
            raise RuntimeError("lengths contains negative value!")
        if (given._numbers_.sum(-1) != data.shape[axis]).any():
            raise RuntimeError(
                "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when "
                "!unsafe."
            )
    return on_host(given._numbers_)


@composite(out=True)
def hash_tensor(input: Tensor, dim: Any = (), *, keepdim: bool = False, mode: int = 0) -> Tensor:
    """One number for all elements, or for those along `dim`: their bits as 64-bit numbers, exclusively or'ed.

    >>> import retrograd as torch
    >>> torch.hash_tensor(torch.tensor([5, 3]))
    tensor(6, dtype=torch.uint64)
    """
    if mode != 0:
        raise RuntimeError(f"Unknown hash_tensor mode: {mode}: 0 (exclusive or) is the only one")
    data = input._numbers_
    dims = normalize_dims(dim, data.ndim)[: data.ndim]
    if not data.size and dim in (None, (), []):
        raise RuntimeError(
            "hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim "
            "with the 'dim' argument."
        )
    return fresh(kernels.hash_tensor(data, dims, keepdim))
