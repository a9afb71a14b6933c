"""Views and rearrangements of strided nested tensors: all but the last are other sizes and strides for one buffer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...core.late import operators as ops
from ...kernels.dims import normalize_dim
from ...tensor import Tensor
from .strided import Places, Sizes, StridedNestedTensor
from .strided_ops import _view, strided


def _ints(values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(values[0]) if len(values) == 1 and isinstance(values[0], (tuple, list)) else tuple(values)


@strided("transpose")
def transpose(function: Any, input: Any, dim0: int, dim1: int) -> Any:
    a, b = normalize_dim(dim0, input.dim()), normalize_dim(dim1, input.dim())
    if a == b:
        return input
    if 0 in (a, b):
        raise RuntimeError("Nested tensor dimension 0 cannot be transposed")

    def swapped(values: Sizes) -> Sizes:
        found = list(values)
        found[a - 1], found[b - 1] = found[b - 1], found[a - 1]
        return tuple(found)

    places = input.places.changed(lambda size, stride: (swapped(size), swapped(stride)))
    return _view(input, places, lambda other: transpose(function, other, a, b))


@strided("permute")
def permute(function: Any, input: Any, *dims: Any) -> Any:
    order = [normalize_dim(d, input.dim()) for d in _ints(dims)]
    if sorted(order) != list(range(input.dim())):
        raise RuntimeError(f"permute(dims): dims {order} are no order of {input.dim()} dimensions")
    if order[0] != 0:
        raise RuntimeError("Nested tensor dimension 0 cannot be transposed")

    def ordered(values: Sizes) -> Sizes:
        return tuple(values[d - 1] for d in order[1:])

    places = input.places.changed(lambda size, stride: (ordered(size), ordered(stride)))
    return _view(input, places, lambda other: permute(function, other, *order))


@strided("unsqueeze")
def unsqueeze(function: Any, input: Any, dim: int) -> Any:
    at = normalize_dim(dim, input.dim() + 1)
    if at == 0:
        raise RuntimeError("For nested tensors, unsqueezing dimension 0 is not supported")

    def longer(size: Sizes, stride: Sizes) -> tuple[Sizes, Sizes]:
        step = stride[at - 1] * size[at - 1] if at - 1 < len(size) else 1
        return (*size[: at - 1], 1, *size[at - 1 :]), (*stride[: at - 1], step, *stride[at - 1 :])

    return _view(input, input.places.changed(longer), lambda other: unsqueeze(function, other, at))


@strided("squeeze")
def squeeze_all(function: Any, input: Any, dim: Any = None) -> Any:
    if dim is not None:
        return NotImplemented
    raise RuntimeError(
        "For nested tensors, squeeze without the dim argument is not supported at the moment: the components differ"
    )


@strided("squeeze_dim")
def squeeze(function: Any, input: Any, dim: int) -> Any:
    at = normalize_dim(dim, input.dim())
    if at == 0:
        raise RuntimeError("For nested tensors, squeezing dimension 0 is not supported at the moment")
    if input.dim() == 2:
        raise RuntimeError("For nested tensors, squeezing a nested tensor of singleton tensors is not supported")
    if input.places.regular(at - 1) != 1:
        return input

    def shorter(values: Sizes) -> Sizes:
        return (*values[: at - 1], *values[at:])

    places = input.places.changed(lambda size, stride: (shorter(size), shorter(stride)))
    return _view(input, places, lambda other: squeeze(function, other, at))


def _sizes_of(input: StridedNestedTensor, given: Sequence[int], name: str) -> list[Sizes]:
    """The sizes of the components in another shape; -1 keeps a size, or, once, is what is left."""
    if not len(given):
        raise RuntimeError("shape '[]' is invalid for a nested tensor")
    if not len(input):
        raise RuntimeError("empty nested tensor cannot be reshaped")
    if given[0] != len(input):
        raise RuntimeError(
            f"{name}: For now nested {name} cannot change or infer the implicit batch dimension, which is {len(input)}"
        )
    asked = tuple(given[1:])
    if asked.count(-1) > 1:
        raise RuntimeError("only one dimension can be inferred")
    found = []
    for size in input.places.sizes:
        new, old = list(asked), size
        if -1 in new:
            at = new.index(-1)
            known = math.prod(n for n in new if n != -1)
            new[at] = old[at] if at < len(old) and known * old[at] == math.prod(old) else math.prod(old) // (known or 1)
        if math.prod(new) != math.prod(old):
            raise RuntimeError(f"shape '{list(asked)}' is invalid for input of size {math.prod(old)}")
        found.append(tuple(new))
    return found


@strided("view")
def view(function: Any, input: Any, *size: Any) -> Any:
    given = _ints(size)
    sizes = _sizes_of(input, given, "view")
    if not input.is_packed():
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one component spans across "
            "memory that is not contiguous). Use .reshape(...) instead."
        )
    return _view(input, Places.packed(sizes), lambda other: view(function, other, *given))


@strided("reshape")
def reshape(function: Any, input: Any, *shape: Any) -> Any:
    sizes = _sizes_of(input, _ints(shape), "reshape")
    packed = input.packed()
    return _view(packed, Places.packed(sizes), lambda other: other.reshape(*shape))


@strided("view_as", "reshape_as")
def view_as(function: Any, input: Any, other: Any) -> Any:
    if not isinstance(input, StridedNestedTensor) or not isinstance(other, StridedNestedTensor):
        return NotImplemented
    if input.places.sizes == other.places.sizes:
        return ops.alias(input)
    if [math.prod(s) for s in input.places.sizes] != [math.prod(s) for s in other.places.sizes]:
        raise RuntimeError("view_as(): the components have other numbers of elements")
    return _view(input.packed(), Places.packed(other.places.sizes), lambda new: new.view_as(other))


@strided("unbind")
def unbind(function: Any, input: Any, dim: int = 0) -> Any:
    if normalize_dim(dim, input.dim()) != 0:
        raise RuntimeError(f"NestedTensor can only be unbound along dimension 0 got dimension {dim} instead.")
    return tuple(input.components())


@strided("select")
def select(function: Any, input: Any, dim: int, index: int) -> Any:
    at = normalize_dim(dim, input.dim())
    if at == 0:
        n = len(input)
        if not -n <= index < n:
            raise IndexError(f"index {index} is out of bounds for dimension 0 with size {n}")
        return _component(input, index % n)
    starts, sizes, strides = [], [], []
    for size, stride, start in zip(input.places.sizes, input.places.strides, input.places.offsets):
        n = size[at - 1]
        if not -n <= index < n:
            raise IndexError(f"index {index} is out of bounds for dimension {at} with size {n}")
        starts.append(start + (index % n) * stride[at - 1])
        sizes.append((*size[: at - 1], *size[at:]))
        strides.append((*stride[: at - 1], *stride[at:]))
    return _view(input, Places(sizes, strides, starts), lambda other: select(function, other, at, index))


def _component(input: StridedNestedTensor, index: int) -> Tensor:
    """One of the parts, without a node for the others."""
    places = input.places
    first = input._values.storage_offset()
    return ops.as_strided(
        input._values, places.sizes[index], places.strides[index], places.offsets[index] + first
    )


@strided("__getitem__")
def index(input: StridedNestedTensor, key: Any) -> Tensor:
    """``input[i]`` and ``input[i, ...]``: the batch takes an int, a component whatever a plain tensor takes."""
    if key is Ellipsis:
        return ops.alias(input)
    first, rest = (key[0], key[1:]) if isinstance(key, tuple) and key else (key, ())
    if first is Ellipsis and not rest:
        return ops.alias(input)
    if isinstance(first, Tensor) and first.dim() == 0 and not first.is_floating_point():
        first = int(first)
    if not isinstance(first, int) or isinstance(first, bool):
        raise NotImplementedError(
            "a nested tensor takes an int in its first dimension, as in nt[0] or nt[0, :, 1]: its components differ. "
            "Use nt.unbind()"
        )
    component = select(ops.select, input, 0, first)
    return component[rest] if rest else component  # type: ignore[index]


@strided("narrow")
def narrow(function: Any, input: Any, dim: int, start: int, length: int) -> Any:
    if normalize_dim(dim, input.dim()) != 0:
        raise RuntimeError("narrow(): only dim=0 supported for nested tensors, but got: " + str(dim))
    if not input.is_packed():
        raise RuntimeError("narrow(): only contiguous nested tensors supported")
    n = len(input)
    start = start + n if start < 0 else start
    if not (0 <= start <= n and 0 <= length <= n - start):
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({n}).")
    chosen = input.places.sizes[start : start + length]
    begin = sum(math.prod(size) for size in input.places.sizes[:start])
    buffer = ops.narrow(input._values, 0, begin, sum(math.prod(size) for size in chosen))
    return _view(input, Places.packed(chosen), lambda other: narrow(function, other, 0, start, length), buffer)


@strided("chunk")
def chunk(function: Any, input: Any, chunks: int, dim: int = 0) -> Any:
    if normalize_dim(dim, input.dim()) != input.dim() - 1 or input.dim() == 1:
        raise RuntimeError("Chunk for nested tensors is currently only supported for the last dimension.")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    if not input.is_packed():
        raise RuntimeError("chunk expects `self` to be contiguous.")
    width = input.places.regular(input.dim() - 2)
    if width is None or width % chunks:
        raise RuntimeError(
            "Chunk for nested tensors is only supported for nested tensors with trailing dimension divisible by chunks."
        )
    return _split_last(input, [width // chunks] * chunks)


@strided("split_with_sizes")
def split_with_sizes(function: Any, input: Any, split_sizes: Sequence[int], dim: int = 0) -> Any:
    if normalize_dim(dim, input.dim()) != input.dim() - 1 or input.dim() == 1:
        raise RuntimeError("split_with_sizes for nested tensors is currently only supported for the last dimension.")
    if not input.is_packed():
        raise RuntimeError("split_with_sizes expects `self` to be contiguous.")
    width = input.places.regular(input.dim() - 2)
    if width is None or sum(split_sizes) != width:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {width} (input tensor's size at dimension -1), "
            f"but got split_sizes={list(split_sizes)}"
        )
    return _split_last(input, list(split_sizes))


def _split_last(input: StridedNestedTensor, widths: list[int]) -> tuple[StridedNestedTensor, ...]:
    found, begin = [], 0
    for i, width in enumerate(widths):
        places = Places(
            [(*size[:-1], width) for size in input.places.sizes],
            input.places.strides,
            [start + begin * stride[-1] for start, stride in zip(input.places.offsets, input.places.strides)],
        )
        found.append(_view(input, places, lambda other, i=i: _split_last(other, widths)[i]))  # type: ignore[misc]
        begin += width
    return tuple(found)


@strided("cat")
def cat(function: Any, tensors: Sequence[Any], dim: int = 0) -> Any:
    nested = [t for t in tensors if isinstance(t, StridedNestedTensor)]
    if len(nested) != len(tensors):
        raise RuntimeError("cat(): expected each tensor in given list to be nested")
    first = nested[0]
    at = normalize_dim(dim, first.dim())
    if any(not t.is_packed() for t in nested):
        raise RuntimeError("cat(): only contiguous nested tensors are supported")
    if at == 0:
        sizes = [size for t in nested for size in t.places.sizes]
        return StridedNestedTensor.of(function([t._values for t in nested], 0), Places.packed(sizes))
    for t in nested:
        if t.dim() != first.dim() or len(t) != len(first):
            raise _other_structure()
    for t in nested:
        if any(t.places.regular(d) is None for d in range(1, t.dim() - 1)):
            raise RuntimeError(
                "cat(): only nested tensors with a single ragged dim next to the batch dim are supported"
            )
        for mine, other in zip(t.places.sizes, first.places.sizes):
            if any(n != m for d, (n, m) in enumerate(zip(mine, other)) if d != at - 1):
                raise _other_structure()
    return StridedNestedTensor.pack([function(list(parts), at - 1) for parts in zip(*[t.components() for t in nested])])


def _other_structure() -> RuntimeError:
    return RuntimeError(
        "cat(): expected all nested tensors to have matching ragged structures outside of the concatenated dim"
    )
