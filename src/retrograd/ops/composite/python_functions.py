"""A Python function on every element, in place; tensors from bytes; draws and histograms that have no table entry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._generated import functions as table
from ...autograd.forward_operators import forbid_duals
from ...core import dtypes
from ...kernels.promotion import unsupported
from ...random import Generator
from ...tensor import Tensor, fresh
from ..factories import _finish, empty, empty_strided
from ..registry import composite
from .overwrite import overwrite
from .random_inplace import _generator


def _no_gradient(name: str, *tensors: Tensor) -> None:
    if any(tensor.requires_grad for tensor in tensors):
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")


@composite(space="Tensor", bare=True)
def apply_(input: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Replace every element by what the function gives for it.

    >>> import retrograd as torch
    >>> torch.tensor([1., 2.]).apply_(lambda x: x + 1)
    tensor([2., 3.])
    """
    _no_gradient("apply_", input)
    values = [callable(value) for value in input._data.reshape(-1).tolist()]
    return overwrite(input, np.array(values, input._data.dtype).reshape(input._data.shape))


@composite(space="Tensor", bare=True)
def map_(input: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Replace every element by what the function gives for it and that of `tensor`."""
    return _mapped("map_", callable, input, tensor)


@composite(space="Tensor", bare=True)
def map2_(input: Tensor, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
    """Replace every element by what the function gives for it and those of `x` and `y`."""
    return _mapped("map2_", callable, input, x, y)


def _mapped(name: str, function: Callable[..., Any], input: Tensor, *others: Tensor) -> Tensor:
    _no_gradient(name, input, *others)
    arrays = [np.broadcast_to(other._data, input._data.shape) for other in others]
    rows = zip(*(array.reshape(-1).tolist() for array in (input._data, *arrays)), strict=True)
    values = [function(*row) for row in rows]
    return overwrite(input, np.array(values, input._data.dtype).reshape(input._data.shape))


# ------------------------------------------------------------------------------------------------------------ factories


@composite(space="Tensor")
def new_empty_strided(
    input: Tensor, size: Sequence[int], stride: Sequence[int], dtype: Any = None, **options: Any
) -> Tensor:
    """A tensor of that size and stride, like this one otherwise."""
    return empty_strided(size, stride, dtype=input.dtype if dtype is None else dtype, **options)


@composite(method=False)
def empty_permuted(
    size: Sequence[int], physical_layout: Sequence[int], *, dtype: Any = None, requires_grad: bool = False,
    **options: Any,
) -> Tensor:  # fmt: skip
    """A tensor of that size whose dimensions lie in memory in the given order, outermost first."""
    if len(physical_layout) != len(size):
        raise RuntimeError(
            "Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = "
            f"{len(size)} is not equal to len(physical_layout) = {len(physical_layout)}"
        )
    for i, d in enumerate(physical_layout):
        if not 0 <= d < len(size):
            raise RuntimeError(
                f"Dimension out of range (expected to be between 0 and {len(size) - 1}, but got {d} at index {i}). NB: "
                "negative dims not currently supported"
            )
        if d in physical_layout[:i]:
            raise RuntimeError(f"Duplicate dim not allowed: {d} comes twice in physical_layout")
    dense: Any = empty([size[d] for d in physical_layout], dtype=dtype, **options)
    return table.permute(dense, *np.argsort(physical_layout).tolist()).requires_grad_(requires_grad)


@composite(method=False, bare=True)
def frombuffer(
    buffer: Any, *, dtype: dtypes.dtype, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Tensor:
    """A vector that shares the memory of a bytes-like object.

    >>> import retrograd as torch
    >>> torch.frombuffer(bytearray([1, 2]), dtype=torch.uint8)
    tensor([1, 2], dtype=torch.uint8)
    """
    size, item = memoryview(buffer).nbytes, dtype.itemsize
    if not size or count == 0:
        raise ValueError(f"both buffer length ({size}) and count ({count}) must not be 0")
    if not 0 <= offset < size:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({size} bytes)"
        )
    if count < 0 and (size - offset) % item:
        raise ValueError(
            f"buffer length ({size - offset} bytes) after offset ({offset} bytes) must be a multiple of element size "
            f"({item})"
        )
    if count > 0 and offset + count * item > size:
        raise ValueError(
            f"requested buffer length ({count} * {item} bytes) after offset ({offset} bytes) must not be greater than "
            f"actual buffer length ({size} bytes)"
        )
    return _finish(np.frombuffer(buffer, dtype.np, count, offset), requires_grad)


# ---------------------------------------------------------------------------------------------- draws and histograms


@composite(method=False)
def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """Numbers drawn from binomial distributions: how many of `count` trials succeed, each with probability `prob`."""
    if count._data.dtype.kind not in "fV" or count._data.dtype != prob._data.dtype:
        raise ValueError(
            f"binomial only supports floating-point dtypes for count, got: {count.dtype}"
            if count._data.dtype.kind not in "fV"
            else "expected count and prob to have the same dtype"
        )
    shape = np.broadcast_shapes(count._data.shape, prob._data.shape)
    trials = np.broadcast_to(count._data, shape)
    if (trials < 0).any() or ((prob._data < 0) | (prob._data > 1)).any():
        raise RuntimeError("binomial expects count >= 0 and probabilities in [0, 1]")
    g = _generator("binomial", generator)
    with g.lock:
        drawn = np.asarray(g.twister.binomial(trials.astype(np.int64), prob._data))
    return fresh(drawn.astype(count._data.dtype))


@composite(method=False)
def histogramdd(
    input: Tensor, bins: Any, *, range: Any = None, weight: Tensor | None = None, density: bool = False
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """(hist, edges): how many of the rows of `input`, which are points, lie in each box."""
    forbid_duals("histogramdd", input, weight)
    if input._data.ndim < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    if input._data.dtype not in (np.float32, np.float64):
        unsupported("histogramdd", input._data.dtype)
    points = input._data.reshape(-1, input._data.shape[-1])
    axes = points.shape[1]
    if isinstance(bins, int):
        bins = [bins] * axes
    if len(bins) != axes:
        raise RuntimeError("histogramdd: The size of bins must be equal to the innermost dimension of the input.")
    edges = [b._data if isinstance(b, Tensor) else b for b in bins]
    spans = None
    if range is not None:
        spans = list(zip(range[::2], range[1::2], strict=True))
    weights = None if weight is None else weight._data.reshape(-1)
    try:
        counts, found = np.histogramdd(points, edges, spans, density, weights)
    except ValueError as error:
        raise RuntimeError(f"torch.histogramdd: {error}") from None
    dtype = input._data.dtype
    return fresh(counts.astype(dtype)), tuple(fresh(edge.astype(dtype)) for edge in found)
