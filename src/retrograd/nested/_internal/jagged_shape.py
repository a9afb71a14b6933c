"""Views and rearrangements of jagged tensors: other shapes and orders of dimensions, parts, several made one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.late import operators as ops
from ...core.sym_int import SymInt
from ...kernels.dims import normalize_dim
from ...tensor import Tensor, wrap
from .jagged_ops import inner_dim, jagged, spread_over, view
from .nested_tensor import NestedTensor, Ragged, same_raggedness


def _ints(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """``f(1, 2)`` and ``f((1, 2))`` alike."""
    return tuple(values[0]) if len(values) == 1 and isinstance(values[0], (tuple, list)) else tuple(values)


def _view(source: NestedTensor, structure: Ragged, function: Any, *args: Any) -> NestedTensor:
    """What a view operator on the values makes, and how it is made of another tensor."""
    values = function(source._values, *args)

    def again(other: Tensor) -> NestedTensor:
        inside = other._values if isinstance(other, NestedTensor) else other
        return NestedTensor.of(function(inside, *args), structure)

    return view(source, values, structure, again)


# --------------------------------------------------------------------------------------------------------------- orders


@jagged("transpose")
def transpose(function: Any, input: Any, dim0: int, dim1: int) -> Any:
    a, b = normalize_dim(dim0, input.dim()), normalize_dim(dim1, input.dim())
    if 0 in (a, b) and a != b:
        raise ValueError("Transpose is not supported on the batch dimension for jagged NT")
    if a == b:
        return ops.alias(input)
    idx = {a: b, b: a}.get(input.ragged.idx, input.ragged.idx)
    return _view(input, input.ragged.at(idx), function, a - 1, b - 1)


@jagged("permute")
def permute(function: Any, input: Any, *dims: Any) -> Any:
    given, n = _ints(dims), input.dim()
    if len(given) != n:
        raise ValueError(
            f"permute(): number of dimensions in the tensor input ({n}) does not match the length of the desired "
            f"ordering of dimensions ({len(given)})."
        )
    order = [normalize_dim(d, n) for d in given]
    if len(set(order)) != n:
        raise ValueError("permute(): duplicate dims are not allowed.")
    if order[0] != 0:
        raise ValueError("Permute is not supported on the batch dimension for jagged NT")
    return _view(input, input.ragged.at(order.index(input.ragged.idx)), function, tuple(d - 1 for d in order[1:]))


@jagged("unsqueeze")
def unsqueeze(function: Any, input: Any, dim: int) -> Any:
    dim = normalize_dim(dim, input.dim() + 1)
    if dim == 0:
        raise RuntimeError("unsqueeze(): not supported for NestedTensor on dim=0")
    idx = input.ragged.idx
    return _view(input, input.ragged.at(idx + 1 if dim <= idx else idx), function, dim - 1)


@jagged("squeeze_dim", "squeeze_dims")
def squeeze(function: Any, input: Any, dim: Any) -> Any:
    dims = [dim] if isinstance(dim, int) else list(dim)
    inner = [inner_dim(input, d, "squeeze") for d in dims]
    gone = [d for d in inner if input._values._memory_.shape[d] == 1]
    idx = input.ragged.idx - sum(d < input.ragged.idx - 1 for d in gone)
    return _view(input, input.ragged.at(idx), ops.squeeze_dims, tuple(inner))


# --------------------------------------------------------------------------------------------------------------- shapes


def viewed_sizes(input: NestedTensor, size: Sequence[Any], name: str) -> tuple[Any, ...]:
    """The shape of the values for a shape of the nested tensor; -1 keeps the batch and the ragged size."""
    idx, inner = input.ragged.idx, input._values._memory_.shape
    own = tuple(input.shape)
    error = RuntimeError(f"{name}(): cannot view shape {own} as {list(size)}")
    if len(size) <= idx:
        raise error
    for d in range(idx + 1):
        if size[d] != own[d] and not (size[d] == -1 and (d in (0, idx))):
            raise error
    if any(isinstance(n, SymInt) for n in size[idx + 1 :]):
        raise error
    return (*inner[:idx], *size[idx + 1 :])


@jagged("view", "_unsafe_view", "_reshape_alias")
def reshape_as_view(function: Any, input: Any, *size: Any) -> Any:
    given = _ints(size)
    inner = viewed_sizes(input, given, "view")
    if function.__name__ == "_unsafe_view":
        return NestedTensor.of(function(input._values, inner), input.ragged)
    return _view(input, input.ragged, function, inner)


@jagged("reshape")
def reshape(function: Any, input: Any, *shape: Any) -> Any:
    inner = viewed_sizes(input, _ints(shape), "view")
    try:
        return _view(input, input.ragged, ops.view, inner)
    except RuntimeError:
        return NestedTensor.of(ops.reshape(input._values, inner), input.ragged)


@jagged("flatten")
def flatten(function: Any, input: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    start, end = normalize_dim(start_dim, input.dim()), normalize_dim(end_dim, input.dim())
    if start == end:
        return input
    if start <= input.ragged.idx <= end or start == 0:
        raise RuntimeError("flatten(): not supported for NestedTensor over the batch or the ragged dimension")
    idx = input.ragged.idx if start > input.ragged.idx else input.ragged.idx - (end - start)
    values = function(input._values, start - 1, end - 1)
    return view(input, values, input.ragged.at(idx), lambda other: flatten(function, other, start, end))


@jagged("unflatten")
def unflatten(function: Any, input: Any, dim: int, sizes: Sequence[int]) -> Any:
    inner = inner_dim(input, dim, "unflatten")
    idx = input.ragged.idx + (len(sizes) - 1 if inner < input.ragged.idx - 1 else 0)
    values = function(input._values, inner, sizes)
    return view(input, values, input.ragged.at(idx), lambda other: unflatten(function, other, dim, sizes))


@jagged("expand")
def expand(function: Any, input: Any, *size: Any) -> Any:
    given, own = _ints(size), tuple(input.shape)
    if len(given) != len(own) or any(given[d] not in (-1, own[d]) for d in (0, input.ragged.idx)):
        raise RuntimeError(f"expand(): cannot expand shape {own} -> {list(given)}")
    idx = input.ragged.idx
    inner = tuple(-1 if d == idx else n for d, n in enumerate(given))[1:]
    return _view(input, input.ragged, function, inner)


@jagged("expand_as")
def expand_as(function: Any, input: Any, other: Any) -> Any:
    if isinstance(input, NestedTensor):
        return ops.expand(input, tuple(other.shape))
    values = spread_over(other, input)
    if values is None:
        raise RuntimeError(f"expand(): cannot expand shape {tuple(input.shape)} -> {tuple(other.shape)}")
    return other.wrap_like(ops.expand(values, other._values._memory_.shape))


@jagged("view_as", "reshape_as")
def view_as(function: Any, input: Any, other: Any) -> Any:
    if not isinstance(input, NestedTensor):
        return NotImplemented
    return input.view(*other.shape) if function.__name__ == "view_as" else input.reshape(*other.shape)


# ---------------------------------------------------------------------------------------------------------------- parts


@jagged("unbind")
def unbind(function: Any, input: Any, dim: int = 0) -> Any:
    if normalize_dim(dim, input.dim()) != 0:
        raise RuntimeError("unbind(): only supported for NestedTensor on dim=0")
    return tuple(input.components())


@jagged("select")
def select(function: Any, input: Any, dim: int, index: int) -> Any:
    if normalize_dim(dim, input.dim()) == 0:
        starts, lengths = input.ragged.places
        n = len(lengths)
        if not -n <= index < n:
            raise IndexError(
                f"select(): index {index} out of range for tensor of size {tuple(input.shape)} at dimension 0"
            )
        index %= n
        return ops.narrow(input._values, input.ragged.idx - 1, int(starts[index]), int(lengths[index]))
    inner = inner_dim(input, dim, "select")
    idx = input.ragged.idx
    return _view(input, input.ragged.at(idx - 1 if inner < idx - 1 else idx), function, inner, index)


@jagged("slice")
def take_slice(
    function: Any, input: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Any:  # fmt: skip
    if normalize_dim(dim, input.dim()) == input.ragged.idx and start in (None, 0) and end is None and step == 1:
        return ops.alias(input)
    return _view(input, input.ragged, function, inner_dim(input, dim, "slice"), start, end, step)


@jagged("narrow")
def narrow(function: Any, input: Any, dim: int, start: Any, length: int) -> Any:
    return _view(input, input.ragged, function, inner_dim(input, dim, "narrow"), start, length)


@jagged("split_Tensor", "split_with_sizes")
def split(function: Any, input: Any, size: Any, dim: int = 0) -> Any:
    name = "split" if function.__name__ == "split_Tensor" else "split_with_sizes"
    parts = function(input._values, size, inner_dim(input, dim, name))
    return tuple(
        _part(input, values, i, lambda other: split(function, other, size, dim)) for i, values in enumerate(parts)
    )


def _part(input: NestedTensor, values: Tensor, i: int, again: Callable[[Tensor], Any]) -> NestedTensor:
    return view(input, values, input.ragged, lambda other: again(other)[i])


@jagged("chunk")
def chunk(function: Any, input: Any, chunks: int, dim: int = 0) -> Any:
    if normalize_dim(dim, input.dim()) == 0:
        return _chunks_of_batch(input, chunks)
    parts = function(input._values, chunks, inner_dim(input, dim, "chunk"))
    return tuple(
        _part(input, values, i, lambda other: chunk(function, other, chunks, dim)) for i, values in enumerate(parts)
    )


def _chunks_of_batch(input: NestedTensor, chunks: int) -> tuple[NestedTensor, ...]:
    """Some components each."""
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    if input.ragged.lengths is not None:
        raise RuntimeError("chunk(): not supported along the batch for nested tensors with holes: use nt.contiguous()")
    starts, lengths = input.ragged.places
    each = max(math.ceil(len(lengths) / chunks), 1)
    found = []
    for first in range(0, len(lengths), each):
        last = min(first + each, len(lengths))
        begin, count = int(starts[first]), lengths[first:last]
        offsets = wrap(np.concatenate([[0], np.cumsum(count)]))
        values = ops.narrow(input._values, input.ragged.idx - 1, begin, int(count.sum()))
        found.append(NestedTensor.of(values, Ragged(offsets, None, input.ragged.idx, None)))
    return tuple(found)


@jagged("__getitem__")
def index(input: NestedTensor, key: Any) -> Tensor:
    """``input[key]`` of ints, slices, None and one ellipsis; behind the ragged dimension also of plain tensors."""
    keys = list(key) if isinstance(key, tuple) else [key]
    n = sum(k is not None and k is not Ellipsis for k in keys)
    if keys.count(Ellipsis) if all(not isinstance(k, Tensor) for k in keys) else any(k is Ellipsis for k in keys):
        at = next(i for i, k in enumerate(keys) if k is Ellipsis)
        keys[at : at + 1] = [slice(None)] * (input.dim() - n)
    result: Any = input
    dim = 0
    for k in keys:
        if k is None:
            result = ops.unsqueeze(result, dim)
            dim += 1
        elif isinstance(k, slice):
            if (k.start, k.stop, k.step) != (None, None, None):
                result = ops.slice(result, dim, k.start, k.stop, 1 if k.step is None else k.step)
            dim += 1
        elif isinstance(k, Tensor) or isinstance(k, (list, np.ndarray)):
            raise NotImplementedError(
                "a nested tensor is not indexed with tensors or lists: use its components, nt.unbind(), or nt.values()"
            )
        else:
            result = ops.select(result, dim, k.__index__())
    return result


# ------------------------------------------------------------------------------------------------------------- together


@jagged("cat")
def cat(function: Any, tensors: Sequence[Any], dim: int = 0) -> Any:
    first = next(t for t in tensors if isinstance(t, NestedTensor))
    inner = inner_dim(first, dim, "cat")
    for t in tensors:
        if not isinstance(t, NestedTensor) or not same_raggedness(first, t):
            raise RuntimeError(
                "cat(): expected each tensor in given list to be nested, with the same ragged structure, but got "
                f"shapes {', '.join(str(tuple(t.shape)) for t in tensors)}"
            )
    return first.wrap_like(function([t._values for t in tensors], inner))


@jagged("stack")
def stack(function: Any, tensors: Sequence[Any], dim: int = 0) -> Any:
    first = next(t for t in tensors if isinstance(t, NestedTensor))
    at = normalize_dim(dim, first.dim() + 1)
    if at == 0:
        raise RuntimeError("stack(): not supported for NestedTensor on dim=0")
    if at == first.ragged.idx:
        raise RuntimeError("stack(): not supported for NestedTensor on ragged dim")
    return ops.cat([ops.unsqueeze(t, at) for t in tensors], at)
