"""Operators on those elements of a tensor where a mask is True.

Masked elements are replaced by what changes nothing in the operation (0 in a sum, -inf in a maximum), and the ordinary
operator does the rest; means and variances count the others.  A `MaskedTensor` brings its own mask.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..core import dtypes
from ..core.dtypes import dtype as DType
from ..core.late import operators as ops
from ..core.layout import sparse_coo, sparse_csr, strided
from ..core.type_info import iinfo
from ..nn import functional as F
from ..tensor import Tensor
from .maskedtensor.core import MaskedTensor, _to

Dims = int | tuple[int, ...] | list[int] | None

_REDUCTIONS = frozenset(
    ["sum", "prod", "amax", "amin", "argmax", "argmin", "mean", "median", "norm", "var", "std", "logsumexp"]
)
_NORMALIZATIONS = frozenset(["softmax", "log_softmax", "softmin", "normalize", "cumsum", "cumprod"])


# ------------------------------------------------------------------------------------------------------------- the mask


def _reduction_identity(op_name: str, input: Tensor, *args: Any) -> Tensor | None:
    """What changes nothing in an operation on such a tensor, as a scalar tensor; None if there is no such value."""
    name = op_name.rsplit(".", 1)[-1]
    if name in ("mean", "var", "std"):
        return None
    dtype = input.dtype
    value: Any
    if name in ("sum", "cumsum"):
        value = 0
    elif name in ("prod", "cumprod"):
        value = 1
    elif name == "norm":
        value = math.inf if args and args[0] == -math.inf else 0
    elif name == "median":
        value, dtype = math.nan, dtype if input.is_floating_point() else dtypes.float32
    elif name in ("amax", "argmax", "logaddexp", "logsumexp", "amin", "argmin"):
        smallest = name not in ("amin", "argmin")
        if input.is_floating_point() or (name == "logsumexp" and input.is_complex()):
            value = -math.inf if smallest else math.inf
        elif dtype.name != "bool" and not input.is_complex():
            value = iinfo(dtype).min if smallest else iinfo(dtype).max
        else:
            raise NotImplementedError(f"identity of {name} on {dtype} input")
    else:
        raise NotImplementedError(f"identity of {name} on {dtype} input")
    return ops.tensor(value, dtype=dtype, device=input.device)


def _canonical_dim(dim: Dims, ndim: int) -> tuple[int, ...]:
    """Dimensions as a sorted tuple; None and () are all of them."""
    if dim is None or (not isinstance(dim, int) and len(dim) == 0):
        return tuple(range(ndim))
    ndim = max(ndim, 1)
    found: list[int] = []
    for d in (dim,) if isinstance(dim, int) else dim:
        if not -ndim <= d < ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {d})"
            )
        if d % ndim in found:
            raise RuntimeError(f"dim={d} appears multiple times in the list of dims")
        found.append(d % ndim)
    return tuple(sorted(found))


def _where(mask: Tensor, input: Tensor, fill_value: Tensor) -> Tensor:
    """`input` where the mask is True, else `fill_value`.

    Of sparse tensors the result has an element wherever the mask is True somewhere, be it 0 because the input has none.
    """
    if mask.layout is strided:
        return ops.where(mask, input, fill_value)
    if mask.layout is sparse_csr:
        found: Any = _where(mask.to_sparse_coo(), input.to_sparse_coo(), fill_value)  # type: ignore[attr-defined]
        return found.to_sparse_csr()
    if mask.layout is not sparse_coo:
        raise ValueError(f"_where expects strided or sparse COO or sparse CSR tensor but got {mask.layout}")
    chosen: Any = mask.coalesce()  # type: ignore[attr-defined]
    places, values = chosen.indices(), chosen.values()
    rows = values if values.dim() == 1 else values.flatten(1).any(1)
    places, values = places[:, rows], values[rows]
    taken = input.to_dense()[tuple(places)]  # type: ignore[attr-defined]
    result: Any = ops.sparse_coo_tensor(places, ops.where(values, taken, fill_value), tuple(input.shape))
    return result._coalesced_(True)


def _input_mask(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The mask of an operator, of the shape of its input and of bools."""
    mask = kwargs.get("mask")
    if mask is None:
        raise ValueError("_input_mask requires explicit mask")
    if not isinstance(mask, Tensor):
        raise TypeError(f"mask must be a Tensor, not {type(mask).__name__}")
    if mask.shape != input.shape:
        if mask.ndim > input.ndim:
            raise IndexError(
                "_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)"
            )
        mask = ops.broadcast_to(mask, tuple(input.shape))
    return mask if mask.dtype is dtypes.bool_ else _to(mask, dtypes.bool_)


def _output_mask(op: Callable[..., Any], input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Where the result of an operator of this module depends on some element that is not masked."""
    name = getattr(op, "__name__", None)
    if name is None or not callable(op):
        raise ValueError(f"_output_mask expected masked operation (got {type(op).__name__} object)")
    if name in _NORMALIZATIONS:
        return _input_mask(input, *args, **kwargs)
    if name not in _REDUCTIONS:
        raise ValueError(f"_output_mask expected masked operation (got callable {op.__module__}.{name})")
    if name == "norm" and args:
        args = args[1:]
    dims = _canonical_dim(args[0] if args else kwargs.get("dim"), input.ndim)
    result = _input_mask(input, *args, **kwargs)
    for d in reversed(dims):
        result = ops.any(result, d, bool(kwargs.get("keepdim", False)))
    return result


def _combine_input_and_mask(op: Any, input: Tensor, mask: Tensor | None, *args: Any) -> Tensor:
    """`input` with its masked elements replaced by what changes nothing in `op`: a function, or its name."""
    if isinstance(input, MaskedTensor):
        mask, input = input.get_mask(), input.get_data()
    if mask is None:
        return input
    name = op if isinstance(op, str) else getattr(op, "__name__", None)
    if name is None:
        raise ValueError(f"_combine_input_and_mask expected masked operation (got {type(op).__name__} object)")
    neutral = _reduction_identity(name, input, *args)
    if neutral is None:
        raise ValueError(f"{name} has no value that would change nothing in it")
    return _where(_input_mask(input, mask=mask), input, neutral)


def _plain(input: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """The data and the mask, be it that of a masked tensor."""
    if isinstance(input, MaskedTensor):
        return input.get_data(), input.get_mask()
    return input, mask


def _check_layout(name: str, input: Tensor) -> None:
    if str(input.layout) != "torch.strided":
        raise ValueError(f"masked {name} expects strided tensor (got {input.layout} tensor)")


def _of_sparse(
    op: Callable[..., Any], input: Any, dim: Dims, keepdim: Any, dtype: DType | None, mask: Any
) -> Tensor:
    """A reduction of a sparse tensor: sparse again, with an element wherever one that is not masked goes into it."""
    name = op.__name__
    if input.layout is not sparse_coo and input.layout is not sparse_csr:
        raise ValueError(f"masked {name} expects strided, sparse_coo or sparse_csr tensor (got {input.layout} tensor)")
    if mask is None and not (name == "sum" and input.layout is sparse_coo):
        # What is not there is 0, and would take part.
        kind = str(input.layout).removeprefix("torch.")
        raise ValueError(f"masked {name} expects explicit mask for {kind} tensor input")
    if input.layout is sparse_csr and not keepdim:
        kinds = {"sum": RuntimeError, "prod": RuntimeError}
        raise kinds.get(name, AssertionError)("reduction operations on CSR tensors with keepdim=False is unsupported")
    plain = input.to_dense()
    places = ops.ones_like(plain, dtype=dtypes.bool_) if mask is None else mask
    places = _input_mask(plain, mask=places if places.layout is strided else places.to_dense())
    result: Any = op(plain, dim, keepdim=keepdim, dtype=dtype, mask=places)
    there: Any = _output_mask(op, plain, dim, keepdim=keepdim, mask=places)
    return result.sparse_mask(there.to_sparse() if input.layout is sparse_coo else there.to_sparse_csr())


def _of_small_ints(input: Tensor) -> DType:
    """The dtype in which sums and products are taken."""
    return input.dtype if input.is_floating_point() or input.is_complex() else dtypes.int64


# ----------------------------------------------------------------------------------------------------------- reductions


def sum(
    input: Tensor, dim: Dims = None, *, keepdim: bool | None = False, dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The sum of the elements that are not masked, along `dim`.

    >>> import retrograd as torch
    >>> x, mask = torch.tensor([[1., 2.], [3., 4.]]), torch.tensor([[True, False], [True, True]])
    >>> torch.masked.sum(x, 1, mask=mask)
    tensor([1., 7.])
    """
    if input.layout is not strided:
        return _of_sparse(sum, input, dim, keepdim, dtype, mask)
    found, dims = _combine_input_and_mask("sum", input, mask), _canonical_dim(dim, input.ndim)
    return ops.sum_dim_IntList(found, dims, bool(keepdim), dtype=dtype or _of_small_ints(input))


def prod(
    input: Tensor, dim: Dims = None, *, keepdim: bool | None = False, dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The product of the elements that are not masked, along `dim`.

    >>> import retrograd as torch
    >>> torch.masked.prod(torch.tensor([2., 3., 5.]), mask=torch.tensor([True, False, True]))
    tensor(10.)
    """
    if input.layout is not strided:
        return _of_sparse(prod, input, dim, keepdim, dtype, mask)
    result = _to(_combine_input_and_mask("prod", input, mask), dtype or _of_small_ints(input))
    for d in reversed(_canonical_dim(dim, input.ndim)):
        result = ops.prod_dim_int(result, d, bool(keepdim))
    return result


def amax(
    input: Tensor, dim: Dims = None, *, keepdim: bool | None = False, dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The largest of the elements that are not masked, along `dim`; the smallest number where all are.

    >>> import retrograd as torch
    >>> torch.masked.amax(torch.tensor([2., 3.]), mask=torch.tensor([True, False]))
    tensor(2.)
    """
    if input.layout is not strided:
        return _of_sparse(amax, input, dim, keepdim, dtype, mask)
    found = _combine_input_and_mask("amax", input, mask)
    return _to(ops.amax(found, _canonical_dim(dim, input.ndim), bool(keepdim)), dtype or input.dtype)


def amin(
    input: Tensor, dim: Dims = None, *, keepdim: bool | None = False, dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The smallest of the elements that are not masked, along `dim`; the largest number where all are.

    >>> import retrograd as torch
    >>> torch.masked.amin(torch.tensor([2., 3.]), mask=torch.tensor([False, True]))
    tensor(3.)
    """
    if input.layout is not strided:
        return _of_sparse(amin, input, dim, keepdim, dtype, mask)
    found = _combine_input_and_mask("amin", input, mask)
    return _to(ops.amin(found, _canonical_dim(dim, input.ndim), bool(keepdim)), dtype or input.dtype)


def argmax(
    input: Tensor, dim: int | None = None, *, keepdim: bool | None = False, dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Where the largest of the elements that are not masked is, as a number of `dtype` (else of that of the input).

    >>> import retrograd as torch
    >>> torch.masked.argmax(torch.tensor([2., 5., 3.]), 0, mask=torch.tensor([True, False, True]), dtype=torch.int64)
    tensor(2)
    """
    _check_layout("argmax", input)
    found = ops.argmax(_combine_input_and_mask("argmax", input, mask), dim, bool(keepdim))
    return _to(found, dtype or input.dtype)


def argmin(
    input: Tensor, dim: int | None = None, *, keepdim: bool | None = False, dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Where the smallest of the elements that are not masked is, as a number of `dtype` (else of that of the input).

    >>> import retrograd as torch
    >>> torch.masked.argmin(torch.tensor([2., 1., 3.]), 0, mask=torch.tensor([True, False, True]), dtype=torch.int64)
    tensor(0)
    """
    _check_layout("argmin", input)
    found = ops.argmin(_combine_input_and_mask("argmin", input, mask), dim, bool(keepdim))
    return _to(found, dtype or input.dtype)


def _count(input: Tensor, mask: Tensor | None, dim: Dims, keepdim: bool) -> Tensor:
    """How many elements there are along dimensions that are not masked."""
    dims = _canonical_dim(dim, input.ndim)
    if mask is not None:
        return ops.sum_dim_IntList(_input_mask(input, mask=mask), dims, keepdim, dtype=dtypes.int64)
    return ops.sum_dim_IntList(ops.ones(tuple(input.shape), dtype=dtypes.int64, device=input.device), dims, keepdim)


def mean(
    input: Tensor, dim: Dims = None, *, keepdim: bool | None = False, dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The mean of the elements that are not masked, along `dim`; NaN where all are.

    >>> import retrograd as torch
    >>> torch.masked.mean(torch.tensor([1., 2., 6.]), mask=torch.tensor([True, False, True]))
    tensor(3.5000)
    """
    if input.layout is sparse_csr:
        return _of_sparse(mean, input, dim, keepdim, dtype, mask)
    _check_layout("mean", input)
    source = "Input" if dtype is None else "Optional"
    dtype = input.dtype if dtype is None else dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(
            f"mean(): Could not infer output dtype. {source} dtype must be either a floating point or complex dtype. "
            f"Got: {dtype}"
        )
    data, mask = _plain(input, mask)
    return sum(data, dim, keepdim=keepdim, dtype=dtype, mask=mask) / _count(data, mask, dim, bool(keepdim))  # type: ignore[return-value]


def median(
    input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """The median of the elements that are not masked, along `dim` (of two in the middle, the smaller); NaN if all are.

    >>> import retrograd as torch
    >>> torch.masked.median(torch.tensor([[1., 9., 5.]]), 1, mask=torch.tensor([[True, False, True]]))
    tensor([1.])
    """
    _check_layout("median", input)
    at = _canonical_dim(dim, input.ndim)[0]
    dtype = input.dtype if dtype is None else dtype
    data, mask = _plain(input, mask)
    real = data.is_floating_point()
    found = _combine_input_and_mask("median", data if real else _to(data, dtypes.float32), mask)
    result = ops.nanmedian(found, at, keepdim).values
    if real:
        return result
    if bool(ops.any(ops.isnan(result))):
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    return _to(result, dtype)


def logsumexp(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """The logarithm of the sum of the exponentials of the elements that are not masked, along `dim`.

    >>> import retrograd as torch
    >>> torch.masked.logsumexp(torch.tensor([0., 0., 9.]), 0, mask=torch.tensor([True, True, False]))
    tensor(0.6931)
    """
    _check_layout("logsumexp", input)
    found = _combine_input_and_mask("logsumexp", input, mask)
    return _to(ops.logsumexp(found, _canonical_dim(dim, input.ndim), keepdim), dtype or input.dtype)


def norm(
    input: Tensor, ord: float | None = 2.0, dim: Dims = None, *, keepdim: bool | None = False,
    dtype: DType | None = None, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The vector norm of the elements that are not masked, along `dim`.

    >>> import retrograd as torch
    >>> torch.masked.norm(torch.tensor([3., 7., 4.]), 2., 0, mask=torch.tensor([True, False, True]))
    tensor(5.)
    """
    _check_layout("norm", input)
    found = _combine_input_and_mask("norm", input, mask, ord)
    dims = _canonical_dim(dim, input.ndim)
    return ops.linalg_vector_norm(found, ord, dims, bool(keepdim), dtype=dtype or input.dtype)


def _variance(
    input: Tensor, dim: Dims, unbiased: bool | None, correction: float | None, keepdim: bool, dtype: DType | None,
    mask: Tensor | None,
) -> Tensor:  # fmt: skip
    _check_layout("std/var", input)
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    if correction is None:
        correction = 1 if unbiased is None or unbiased else 0
    data, mask = _plain(input, mask)
    if dtype is None:
        dtype = data.dtype if data.is_floating_point() or data.is_complex() else dtypes.float32
    computed = dtype if dtype.is_floating_point or dtype.is_complex else dtypes.float32
    count: Any = _count(data, mask, dim, True)
    centered: Any = data - sum(data, dim, keepdim=True, dtype=dtype, mask=mask) / count
    total: Any = sum(centered * centered.conj(), dim, keepdim=keepdim, dtype=computed, mask=mask)
    if not keepdim:
        count = count.reshape(total.shape)
    if correction:
        real = total.real.dtype if computed.is_complex else computed
        count = ops.clamp_min(count.to(real) - correction, 0)
    return _to(total / count, dtype)


def var(
    input: Tensor, dim: Dims = None, unbiased: bool | None = None, *, correction: float | None = None,
    keepdim: bool | None = False, dtype: DType | None = None, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The variance of the elements that are not masked, along `dim`; NaN where there are none.

    >>> import retrograd as torch
    >>> torch.masked.var(torch.tensor([1., 9., 3.]), 0, mask=torch.tensor([True, False, True]))
    tensor(2.)
    """
    return _variance(input, dim, unbiased, correction, bool(keepdim), dtype, mask)


def std(
    input: Tensor, dim: Dims = None, unbiased: bool | None = None, *, correction: float | None = None,
    keepdim: bool | None = False, dtype: DType | None = None, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The standard deviation of the elements that are not masked, along `dim`; NaN where there are none.

    >>> import retrograd as torch
    >>> torch.masked.std(torch.tensor([1., 9., 3.]), 0, False, mask=torch.tensor([True, False, True]))
    tensor(1.)
    """
    return ops.sqrt(_variance(input, dim, unbiased, correction, bool(keepdim), dtype, mask))


# ------------------------------------------------------------------------------------------------------- normalizations


def cumsum(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """The running sum along `dim`, to which masked elements add nothing.

    >>> import retrograd as torch
    >>> torch.masked.cumsum(torch.tensor([1., 2., 3.]), 0, mask=torch.tensor([True, False, True]))
    tensor([1., 1., 4.])
    """
    _check_layout("cumsum", input)
    found = _combine_input_and_mask("sum", input, mask)
    return ops.cumsum(found, _canonical_dim(dim, input.ndim)[0], dtype=dtype or input.dtype)


def cumprod(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """The running product along `dim`, in which masked elements are 1.

    >>> import retrograd as torch
    >>> torch.masked.cumprod(torch.tensor([1., 2., 3.]), 0, mask=torch.tensor([True, False, True]))
    tensor([1., 1., 3.])
    """
    _check_layout("cumprod", input)
    found = _combine_input_and_mask("prod", input, mask)
    return ops.cumprod(found, _canonical_dim(dim, input.ndim)[0], dtype=dtype or input.dtype)


def softmax(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """The softmax along `dim` of the elements that are not masked; 0 for the others, NaN where all are masked.

    >>> import retrograd as torch
    >>> torch.masked.softmax(torch.tensor([1., 5., 1.]), 0, mask=torch.tensor([True, False, True]))
    tensor([0.5000, 0.0000, 0.5000])
    """
    _check_layout("softmax", input)
    found = _combine_input_and_mask("amax", input, mask)
    return F.softmax(found, _canonical_dim(dim, input.ndim)[0], dtype=dtype or input.dtype)


def log_softmax(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """The logarithm of the softmax along `dim` of the elements that are not masked; -inf for the others.

    >>> import retrograd as torch
    >>> torch.masked.log_softmax(torch.tensor([1., 5.]), 0, mask=torch.tensor([True, False]))
    tensor([0., -inf])
    """
    _check_layout("log_softmax", input)
    found = _combine_input_and_mask("amax", input, mask)
    return F.log_softmax(found, _canonical_dim(dim, input.ndim)[0], dtype=dtype or input.dtype)


def softmin(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """The softmax along `dim` of what is not masked with the other sign; 0 for the others, NaN where all are masked.

    >>> import retrograd as torch
    >>> torch.masked.softmin(torch.tensor([1., 0., 1.]), 0, mask=torch.tensor([True, False, True]))
    tensor([0.5000, 0.0000, 0.5000])
    """
    _check_layout("softmin", input)
    found = _combine_input_and_mask("amin", input, mask)
    return F.softmin(found, _canonical_dim(dim, input.ndim)[0], dtype=dtype or input.dtype)


def normalize(
    input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """The elements that are not masked, divided by their norm along `dim` (by `eps` at least); 0 for the others.

    >>> import retrograd as torch
    >>> torch.masked.normalize(torch.tensor([3., 9., 4.]), 2., 0, mask=torch.tensor([True, False, True]))
    tensor([0.6000, 0.0000, 0.8000])
    """
    _check_layout("normalize", input)
    found = _combine_input_and_mask("sum", input, mask)
    size: Any = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return ops.div(found, ops.maximum(size, size.new_full([], eps)))


def logaddexp(
    input: Tensor, other: Tensor, *, dtype: DType | None = None, input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """``log(exp(input) + exp(other))``, to which masked elements add nothing.

    >>> import retrograd as torch
    >>> mask = torch.tensor([True, False])
    >>> torch.masked.logaddexp(torch.zeros(2), torch.zeros(2), input_mask=mask)
    tensor([0.6931, 0.0000])
    """
    for t in (input, other):
        if str(t.layout) != "torch.strided":
            raise ValueError(
                f"masked logaddexp expects strided tensors (got {input.layout} tensor for input, {other.layout} for "
                "other)"
            )
    dtype = input.dtype if dtype is None else dtype
    one, one_mask = _zeros_where_masked(input, input_mask)
    two, two_mask = _zeros_where_masked(other, other_mask)
    result = ops.logaddexp(one, two)
    # Not by adding exp(-inf): its second derivatives are no numbers.
    if two_mask is not None:
        result = ops.where(two_mask, result, one)
    if one_mask is not None:
        alone = two if two_mask is None else ops.where(two_mask, two, -math.inf)
        result = ops.where(one_mask, result, alone)
    return _to(result, dtype)


def _zeros_where_masked(input: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor | None]:
    input, mask = _plain(input, mask)
    if mask is None:
        return input, None
    mask = _input_mask(input, mask=mask)
    return ops.where(mask, input, 0.0), mask


