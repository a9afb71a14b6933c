"""The strided layout: components of any sizes, each at its own place in one buffer.

The values are the buffer, a vector.  A component is described by its sizes, its strides and where it starts, so that
dimensions can be swapped and parts taken without a copy; most tensors are *packed*: one component behind the other,
each contiguous.
"""

from __future__ import annotations

import functools
import itertools
import math
import textwrap
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NoReturn, Self

import numpy as np

from ...core.late import operators as ops
from ...core.layout import strided
from ...kernels import contiguous_strides
from ...kernels.dims import normalize_dim
from ...serialization.rebuild import _rebuild_nested_tensor
from ...tensor import Tensor, wrap
from ...tensor.printing import tensor_str
from .base import Handler, NestedBase, NestedDescription, View

Sizes = tuple[int, ...]


class Places:
    """Where the components of a strided nested tensor lie."""

    __slots__ = ("offsets", "sizes", "strides")

    def __init__(self, sizes: Sequence[Sizes], strides: Sequence[Sizes], offsets: Sequence[int]) -> None:
        self.sizes = list(sizes)
        self.strides = list(strides)
        self.offsets = list(offsets)

    @classmethod
    def packed(cls, sizes: Sequence[Sizes]) -> Places:
        """One behind the other."""
        counts = [math.prod(size) for size in sizes]
        offsets = list(itertools.accumulate(counts, initial=0))[:-1]
        return cls(sizes, [contiguous_strides(size) for size in sizes], offsets)

    @property
    def numel(self) -> int:
        return sum(math.prod(size) for size in self.sizes)

    def is_packed(self) -> bool:
        packed = Places.packed(self.sizes)
        return self.offsets == packed.offsets and self.strides == packed.strides

    def same(self, other: Places) -> bool:
        return (self.sizes, self.strides, self.offsets) == (other.sizes, other.strides, other.offsets)

    def regular(self, dim: int) -> int | None:
        """The size that all components have in one of their dimensions; None if they differ."""
        found = {size[dim] for size in self.sizes}
        return found.pop() if len(found) == 1 else None

    def changed(self, change: Callable[[Sizes, Sizes], tuple[Sizes, Sizes]]) -> Places:
        """The same places with other sizes and strides."""
        made = [change(size, stride) for size, stride in zip(self.sizes, self.strides)]
        return Places([size for size, _ in made], [stride for _, stride in made], self.offsets)


def _order(size: Sizes, stride: Sizes) -> list[int] | None:
    """The order of dimensions in which a component is contiguous, if there is one."""
    order = sorted(range(len(size)), key=lambda d: (-stride[d], -size[d]))
    if tuple(stride[d] for d in order) == contiguous_strides(tuple(size[d] for d in order)):
        return order
    return None


class StridedNestedTensor(NestedBase):
    """A nested tensor of the strided layout, which is what ``torch.nested.nested_tensor`` makes unless told otherwise.

    >>> import retrograd as torch
    >>> nt = torch.nested.nested_tensor([torch.tensor([1., 2.]), torch.tensor([3.])])
    >>> nt * 2
    nested_tensor([
      tensor([2., 4.]),
      tensor([6.])
    ])
    """

    operators: ClassVar[dict[str, Handler]] = {}

    places: Places

    @classmethod
    def of(cls, buffer: Tensor, places: Places, view: View | None = None) -> Self:
        """A nested tensor on `buffer`, which is its own."""
        result = object.__new__(cls)
        result.places = places
        result._init(buffer, view)
        return result

    @classmethod
    def pack(cls, components: Sequence[Tensor]) -> Self:
        """A nested tensor of copies of these."""
        sizes = [tuple(t._memory_.shape) for t in components]
        return cls.of(ops.cat([ops.reshape(t, (-1,)) for t in components]), Places.packed(sizes))

    def maker(self) -> Callable[[Tensor], Self]:
        return functools.partial(self.of, places=self.places)

    def values_like(self, other: Tensor, what: str) -> Tensor:
        if not isinstance(other, StridedNestedTensor) or other.places.sizes != self.places.sizes:
            shown = other.places.sizes if isinstance(other, StridedNestedTensor) else list(other.shape)
            raise RuntimeError(
                f"Mismatch in shape: {what} has a shape of {shown} and the nested tensor it belongs to has components "
                f"of sizes {self.places.sizes}"
            )
        if other.places.same(self.places) and other._values.numel() == self._values.numel():
            return other._values
        if self.is_packed():
            return other.packed()._values
        spread = self.wrap_like(ops.zeros_like(self._values))
        for mine, given in zip(spread.components(), other.components()):
            mine.copy_(given)  # type: ignore[attr-defined]
        return spread._values

    # -------------------------------------------------------------------------------------------------------- its parts

    def is_packed(self) -> bool:
        return self.places.is_packed() and self.places.numel == self._values.numel()

    def packed(self) -> StridedNestedTensor:
        """This tensor, or a copy that lies without gaps."""
        return self if self.is_packed() else self.pack(self.components())

    def components(self) -> list[Tensor]:
        places = self.places
        if not places.sizes:
            return []
        orders = [_order(size, stride) for size, stride in zip(places.sizes, places.strides)]
        counts = [math.prod(size) for size in places.sizes]
        starts = list(itertools.accumulate(counts, initial=0))
        if None not in orders and places.offsets == starts[:-1] and starts[-1] == self._values.numel():
            # Each is a part of its own: one node for all of them.
            parts = ops.split_with_sizes(self._values, tuple(counts), 0)
            return [self._oriented(part, size, order) for part, size, order in zip(parts, places.sizes, orders)]
        first = self._values.storage_offset()
        return [
            ops.as_strided(self._values, size, stride, offset + first)
            for size, stride, offset in zip(places.sizes, places.strides, places.offsets)
        ]

    @staticmethod
    def _oriented(part: Tensor, size: Sizes, order: Any) -> Tensor:
        part = ops.view(part, tuple(size[d] for d in order))
        if order == list(range(len(size))):
            return part
        return ops.permute(part, tuple(order.index(d) for d in range(len(size))))

    def values(self) -> Tensor:
        """All elements of a packed tensor, as a vector."""
        if not self.is_packed():
            raise RuntimeError("NestedTensor must be contiguous to get buffer.: call nt.contiguous() first")
        return ops.alias(self._values)

    def _nested_tensor_size(self) -> Tensor:
        return self._table(self.places.sizes)

    def _nested_tensor_strides(self) -> Tensor:
        return self._table(self.places.strides)

    def _nested_tensor_storage_offsets(self) -> Tensor:
        return wrap(np.asarray(self.places.offsets, np.int64))

    def _table(self, rows: Sequence[Sizes]) -> Tensor:
        return wrap(np.asarray(rows, np.int64).reshape(len(rows), -1) if rows else np.zeros((0,), np.int64))

    # ------------------------------------------------------------------------------------------------------- what it is

    @property
    def layout(self) -> Any:
        return strided

    @property
    def _memory_(self) -> StridedDescription:  # type: ignore[override]
        return StridedDescription(self)

    def dim(self) -> int:
        return 1 + (len(self.places.sizes[0]) if self.places.sizes else 0)

    ndimension = dim
    ndim = property(dim)

    @property
    def shape(self) -> NoReturn:
        raise _no_sizes()

    def _shape_shown(self) -> Any:
        return self._nested_tensor_size()

    def size(self, dim: int | None = None) -> Any:
        """The size of a dimension in which the components agree."""
        if dim is None:
            raise _no_sizes()
        dim = normalize_dim(dim, self.dim())
        if dim == 0:
            return len(self.places.sizes)
        found = self.places.regular(dim - 1)
        if found is None:
            raise RuntimeError(f"Given dimension {dim} is irregular and does not have a size.")
        return found

    def stride(self, dim: int | None = None) -> NoReturn:
        raise RuntimeError("Internal error: NestedTensorImpl doesn't support strides. Use nt._nested_tensor_strides()")

    def numel(self) -> int:
        return self.places.numel

    nelement = numel

    def is_contiguous(self, memory_format: Any = None) -> bool:
        return self.is_packed()

    def __len__(self) -> int:
        return len(self.places.sizes)

    def __repr__(self, *, tensor_contents: str | None = None) -> str:  # type: ignore[override]
        with_grad = self.requires_grad
        parts = [component.detach().requires_grad_(with_grad) for component in self.detach().components()]  # type: ignore[attr-defined]
        inside = ",\n".join(textwrap.indent(tensor_str(part), "  ") for part in parts)
        if self.grad_fn is not None:
            suffix = f", grad_fn=<{self.grad_fn.name()}>"
        else:
            suffix = ", requires_grad=True" if with_grad else ""
        return f"nested_tensor([\n{inside}\n]{suffix})"

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        if not self.is_leaf:
            raise RuntimeError("a nested tensor that is the result of an operation cannot be saved: detach() it")
        where = self._nested_tensor_size(), self._nested_tensor_strides(), self._nested_tensor_storage_offsets()
        return _rebuild_nested_tensor, (self._values.detach().requires_grad_(self.requires_grad), *where)


class StridedDescription(NestedDescription):
    """How such a tensor lies; it has no shape."""

    __slots__ = ("dims",)

    def __init__(self, tensor: StridedNestedTensor) -> None:
        self.dtype = tensor._values._memory_.dtype
        self.numel = tensor.numel()
        self.contiguous = tensor.is_packed()
        self.dims = tensor.dim()

    shape = property(lambda self: _raise(_no_sizes()))  # type: ignore[assignment]
    strides = property(lambda self: _raise(_no_sizes()))  # type: ignore[assignment]

    @property
    def ndim(self) -> int:
        return self.dims


def _raise(error: Exception) -> NoReturn:
    raise error


def _no_sizes() -> RuntimeError:
    return RuntimeError(
        "Internal error: NestedTensorImpl doesn't support sizes. Its components differ: use nt.size(dim) where they "
        "agree, or nt._nested_tensor_size()"
    )


# --------------------------------------------------------------------------------------------------------- construction


def strided_from_list(tensors: Sequence[Tensor], dtype: Any = None, device: Any = None) -> StridedNestedTensor:
    """Copies of tensors, one behind the other, with their history."""
    if not len(tensors):
        buffer = ops.zeros((0,), dtype=dtype, device=device)
        return StridedNestedTensor.of(buffer, Places([], [], []))
    for i in range(1, len(tensors)):
        if tensors[i].dim() != tensors[i - 1].dim():
            raise RuntimeError(
                "All Tensors given to nested_tensor must have the same dimension. Found dimension "
                f"{tensors[i].dim()} for Tensor at index {i} and dimension {tensors[i - 1].dim()} for Tensor at index "
                f"{i - 1}."
            )
    result = StridedNestedTensor.pack(tensors)
    if dtype is None and device is None:
        return result
    values = result._values.to(device=device, dtype=dtype)  # type: ignore[attr-defined]
    return result if values is result._values else result.wrap_like(values)


def strided_view_of(tensor: Tensor) -> StridedNestedTensor:
    """A plain tensor, contiguous, as a nested one of components of one size: a view."""
    shape = tensor._memory_.shape
    places = Places.packed([tuple(shape[1:])] * shape[0])
    buffer = ops.view(tensor, (-1,)) if tensor.numel() else ops.view(tensor, (0,))
    return StridedNestedTensor.of(buffer, places, (tensor, strided_view_of))


def nested_view_from_buffer(buffer: Tensor, sizes: Tensor, strides: Tensor, offsets: Tensor) -> StridedNestedTensor:
    """A view of a vector as a nested tensor whose components lie at given places in it."""
    if buffer.dim() != 1:
        raise RuntimeError(f"_nested_view_from_buffer(): given buffer should be one dimensional, not {buffer.dim()}")
    table = [tuple(row) for row in sizes.tolist()] if sizes.dim() == 2 else [()] * offsets.numel()
    steps = [tuple(row) for row in strides.tolist()] if strides.dim() == 2 else [()] * offsets.numel()
    starts = [int(n) for n in offsets.reshape(-1).tolist()]  # type: ignore[attr-defined]
    if not sizes.numel() and sizes.dim() < 2:
        table, steps, starts = [], [], []
    for size, stride, start in zip(table, steps, starts, strict=True):
        last = start + sum((n - 1) * s for n, s in zip(size, stride))
        if last >= 2**63 or math.prod(size) >= 2**63:
            raise RuntimeError(
                f"Storage size calculation overflowed with sizes={list(size)} and strides={list(stride)}"
            )
        if 0 not in size and (min((start, *size, *stride)) < 0 or last >= buffer.numel()):
            raise RuntimeError(
                f"_nested_view_from_buffer(): a component of sizes {list(size)} at {start} does not lie in a buffer of "
                f"{buffer.numel()} elements"
            )
    places = Places(table, steps, starts)
    again: Any = lambda other: nested_view_from_buffer(other, sizes, strides, offsets)
    return StridedNestedTensor.of(ops.alias(buffer), places, (buffer, again))


def from_padded_sizes(padded: Tensor, sizes: Sequence[Sizes]) -> StridedNestedTensor:
    """What is no padding: component `i` is the corner of ``padded[i]`` that has the size ``sizes[i]``."""
    strides, positions = contiguous_strides(padded._memory_.shape), []
    for i, size in enumerate(sizes):
        if len(size) != padded.dim() - 1 or any(n > m for n, m in zip(size, padded._memory_.shape[1:])):
            raise RuntimeError(f"a component of sizes {list(size)} is not in a padded tensor of {list(padded.shape)}")
        positions.append(_corner(size, strides[1:]) + i * strides[0])
    rows = np.concatenate(positions) if positions else np.zeros(0, np.int64)
    values = ops.index_select(ops.reshape(padded, (-1,)), 0, wrap(rows))
    return StridedNestedTensor.of(values, Places.packed(sizes))


def to_padded_sizes(nested: StridedNestedTensor, padding: Any, size: Sizes) -> Tensor:
    """A plain tensor of shape `size`, with each component in the corner of its row."""
    strides = contiguous_strides(size)
    positions = [_corner(own, strides[1:]) + i * strides[0] for i, own in enumerate(nested.places.sizes)]
    values = nested.packed()._values
    full = ops.full((math.prod(size),), padding, dtype=values.dtype, device=values.device)
    if values.numel():
        full = ops.index_copy(full, 0, wrap(np.concatenate(positions)), values)
    return ops.view(full, size)


def _corner(size: Sizes, strides: Sizes) -> np.ndarray:
    """Where the elements of a component lie in a larger one."""
    result = np.zeros((1,), np.int64)
    for n, step in zip(size, strides):
        result = (result[:, None] + np.arange(n) * step).reshape(-1)
    return result
