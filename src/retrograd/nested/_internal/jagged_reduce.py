"""Reductions of jagged tensors.

Over dimensions of the components, they are reductions of the values.  Over the ragged dimension, the components are
padded with what changes nothing (0 for a sum, -inf for a maximum), and the result is a plain tensor, as it is over the
batch and the ragged dimension together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.late import operators as ops
from ...core.records import record_of
from ...kernels.dims import normalize_dim
from ...tensor import Tensor, wrap
from .jagged_ops import jagged
from .nested_tensor import NestedTensor, to_padded


def _name(function: Any) -> str:
    record = record_of(function)
    return function.__name__ if record is None else record.base


def _dims(input: NestedTensor, dim: Any) -> list[int]:
    dims = [dim] if isinstance(dim, int) else list(dim)
    found = [normalize_dim(d, input.dim()) for d in dims]
    if len(set(found)) != len(found):
        twice = next(d for d in found if found.count(d) > 1)
        raise RuntimeError(f"dim {twice} appears multiple times in the list of dims")
    return found


def _padding(name: str, dtype: Any) -> Any:
    """What changes nothing in a reduction."""
    low: Any = -math.inf
    high: Any = math.inf
    if dtype.kind == "b":
        low, high = False, True
    elif dtype.kind in "iu":
        low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    return {
        "sum": 0, "nansum": 0, "count_nonzero": 0, "linalg_vector_norm": 0, "prod": 1, "any": False, "all": True,
        "amax": low, "max": low, "argmax": low, "amin": high, "min": high, "argmin": high,
        "logsumexp": -math.inf,
    }[name]  # fmt: skip


def _check(input: NestedTensor, dims: Sequence[int], name: str) -> None:
    ragged = input.ragged.idx
    if 0 in dims and ragged not in dims:
        raise RuntimeError(
            f"{name}(): reducing along the batch dimension but not the ragged dimension is not supported for "
            "NestedTensor"
        )
    if ragged in dims and 0 not in dims and len(dims) > 1:
        raise RuntimeError(
            f"{name}(): reducing along a ragged and non-batch dimension is not supported for NestedTensor"
        )
    if ragged in dims and input.ragged.lengths is not None:
        raise RuntimeError(
            f"{name}(): reducing across the ragged dimension is not supported for non-contiguous nested tensors with "
            "holes"
        )


def _without(input: NestedTensor, dims: Sequence[int], keepdim: bool) -> Any:
    """The structure that is left when dimensions of the components are gone."""
    idx = input.ragged.idx
    return input.ragged if keepdim else input.ragged.at(idx - sum(d < idx for d in dims))


def _wrap(result: Any, make: Any) -> Any:
    if isinstance(result, tuple):
        return type(result)(*map(make, result)) if hasattr(result, "_fields") else tuple(map(make, result))
    return make(result)


@jagged("sum", "mean", "prod", "max", "min")
def over_all(function: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    if args or record_of(function) is None:
        return NotImplemented  # another form of it
    return function(input.packed()._values, **kwargs)


@jagged("sum_dim_IntList", "nansum", "prod_dim_int", "amax", "amin", "max_dim", "min_dim", "argmax", "argmin", "any",
        "all", "logsumexp")  # fmt: skip
def over_dims(function: Any, input: Any, dim: Any = None, keepdim: bool = False, **kwargs: Any) -> Any:
    if record_of(function) is None:
        return NotImplemented
    return _reduce(function, input, dim, keepdim, kwargs, lambda x, d, k: function(x, d, k, **kwargs))


@jagged("linalg_vector_norm")
def norm(function: Any, input: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, **kwargs: Any) -> Any:
    return _reduce(function, input, dim, keepdim, kwargs, lambda x, d, k: function(x, ord, d, k, **kwargs))


def _reduce(function: Any, input: NestedTensor, dim: Any, keepdim: bool, kwargs: Any, run: Any) -> Any:
    name = _name(function)
    if dim is None or dim == ():
        result = run(input.packed()._values, dim, False)
        shape = (1,) * input.dim()
        return _wrap(result, lambda r: ops.view(r, shape)) if keepdim else result
    dims = _dims(input, dim)
    _check(input, dims, name)
    single = isinstance(dim, int)
    idx = input.ragged.idx
    if idx not in dims:
        inner = dims[0] - 1 if single else tuple(d - 1 for d in dims)
        structure = _without(input, dims, keepdim)
        return _wrap(run(input._values, inner, keepdim), lambda r: NestedTensor.of(r, structure))
    if 0 in dims:
        result = run(input.packed()._values, tuple(d - 1 for d in dims if d), keepdim)
        return _wrap(result, lambda r: ops.unsqueeze(r, 0)) if keepdim else result
    padded = to_padded(input, _padding(name, input._values._memory_.dtype))
    result = run(padded, 1 if single else (1,), False)
    return _wrap(result, lambda r: ops.unsqueeze(r, idx)) if keepdim else result


def _counts(input: NestedTensor, result: Tensor, keepdim: bool) -> Tensor:
    """How long the components are, to divide a sum over them by."""
    lengths = input.ragged.places[1].astype(result._memory_.dtype)
    return wrap(lengths.reshape((-1,) + (1,) * (result._memory_.ndim - 1)))


@jagged("mean_dim")
def mean(function: Any, input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    if dim is None or dim == ():
        return function(input.packed()._values, dim, keepdim, dtype=dtype)
    dims = _dims(input, dim)
    _check(input, dims, "mean")
    if input.ragged.idx in dims and 0 not in dims:
        total = ops.sum_dim_IntList(input, dims, keepdim, dtype=dtype)
        return total / _counts(input, total, keepdim)
    return _reduce(function, input, dim, keepdim, {}, lambda x, d, k: function(x, d, k, dtype=dtype))


@jagged("var_correction", "std_correction")
def variance(function: Any, input: Any, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    def run(x: Any, d: Any, k: bool) -> Any:
        return function(x, d, correction=correction, keepdim=k)

    if dim is None or dim == () or input.ragged.idx not in _dims(input, dim) or 0 in _dims(input, dim):
        return _reduce(function, input, dim, keepdim, {}, run)
    dims = _dims(input, dim)
    _check(input, dims, _name(function))
    centered: Any = input - ops.mean_dim(input, dims, True)
    total = ops.sum_dim_IntList(centered * centered, dims, keepdim)
    freedom = _counts(input, total, keepdim) - (1 if correction is None else correction)
    result: Any = total / ops.clamp_min(freedom, 0)
    return result.sqrt() if function.__name__ == "std_correction" else result


@jagged("count_nonzero")
def count_nonzero(function: Any, input: Any, dim: Any = None) -> Any:
    return _reduce(function, input, dim, False, {}, lambda x, d, k: function(x, d))
