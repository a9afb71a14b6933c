"""The jagged layout: components that differ in one size, one behind the other along it.

A tensor of shape ``(B, j1, D)`` has values of shape ``(total, D)``: component `i` is rows ``offsets[i]`` to
``offsets[i + 1]``, or the first ``lengths[i]`` of these if there are holes between the components.  The *ragged index*
is the dimension that differs, 1 unless dimensions were swapped; it is the dimension before that of the values.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from ...core.late import operators as ops
from ...core.layout import jagged
from ...core.locks import graph_lock
from ...core.sym_int import NestedIntNode, SymInt
from ...core.version_counter import INFERENCE
from ...kernels import alias as alias_kernel
from ...serialization.rebuild import _rebuild_njt
from ...tensor import Tensor, wrap
from .base import Handler, NestedBase, NestedDescription, View

# ----------------------------------------------------------------------------------------------------- the ragged sizes

_numbers: dict[int, tuple[weakref.ref[Tensor], int]] = {}
_tensor_id_counter = 1


def get_tensor_symint(tensor: Tensor, *, coeff: int = 1) -> SymInt:
    """The ragged size that belongs to a tensor of offsets (or lengths): the same while that lives."""
    global _tensor_id_counter
    with graph_lock:
        known = _numbers.get(id(tensor))
        if known is None or known[0]() is not tensor:
            key, number = id(tensor), _tensor_id_counter
            _tensor_id_counter += 1

            def gone(reference: Any) -> None:
                if _numbers.get(key, (None,))[0] is reference:
                    del _numbers[key]

            known = _numbers[key] = (weakref.ref(tensor, gone), number)
    return SymInt(NestedIntNode(known[1], coeff))


class Ragged:
    """Where the components of a jagged tensor lie: all of it but the values."""

    __slots__ = ("_places", "cache", "idx", "lengths", "offsets")

    def __init__(self, offsets: Tensor, lengths: Tensor | None, idx: int, cache: dict[str, int] | None) -> None:
        self.offsets = offsets
        self.lengths = lengths
        self.idx = idx
        #: The shortest and longest component, if known.
        self.cache: dict[str, int] = {} if cache is None else cache
        self._places: tuple[np.ndarray, np.ndarray] | None = None

    def at(self, idx: int) -> Ragged:
        """The same structure along another dimension."""
        return Ragged(self.offsets, self.lengths, idx, self.cache)

    @property
    def size(self) -> SymInt:
        return get_tensor_symint(self.offsets if self.lengths is None else self.lengths)

    @property
    def places(self) -> tuple[np.ndarray, np.ndarray]:
        """Where each component starts, and how long it is."""
        if self._places is None:
            offsets = np.asarray(self.offsets.detach()._numbers_, np.int64)
            given = self.lengths
            lengths = np.diff(offsets) if given is None else np.asarray(given.detach()._numbers_, np.int64)
            self._places = offsets[: len(lengths)], lengths
        return self._places

    @property
    def batch(self) -> int:
        return self.offsets._memory_.shape[0] - 1

    @property
    def longest(self) -> int:
        if "max_seqlen" not in self.cache:
            self.cache["max_seqlen"] = int(self.places[1].max(initial=0))
        return self.cache["max_seqlen"]

    @property
    def shortest(self) -> int:
        if "min_seqlen" not in self.cache:
            lengths = self.places[1]
            self.cache["min_seqlen"] = int(lengths.min()) if lengths.size else 0
        return self.cache["min_seqlen"]

    def owners(self) -> Tensor:
        """For each row of the components: which one it belongs to."""
        return wrap(np.repeat(np.arange(self.batch), self.places[1]))

    def within(self) -> np.ndarray:
        """For each row of the components: which row of its component it is."""
        lengths = self.places[1]
        return np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)

    def rows(self) -> Tensor:
        """Where the rows of the components lie in the values."""
        starts, lengths = self.places
        return wrap(np.repeat(starts, lengths) + self.within())

    def packed(self) -> Ragged:
        """The same components without holes."""
        if self.lengths is None:
            return self
        ends = np.concatenate([[0], np.cumsum(self.places[1])])
        return Ragged(wrap(ends), None, self.idx, dict(self.cache))


def is_packed(structure: Ragged, rows: int) -> bool:
    """Do the components lie one behind the other, from the first row to the last?"""
    if structure.lengths is not None:
        return False
    starts, lengths = structure.places
    return not lengths.size or (int(starts[0]) == 0 and int(starts[-1] + lengths[-1]) == rows)


# ------------------------------------------------------------------------------------------------------------ the class


class NestedTensor(NestedBase):
    """A nested tensor of the jagged layout.

    >>> import retrograd as torch
    >>> nt = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], layout=torch.jagged)
    >>> [component.shape for component in nt.unbind()]
    [torch.Size([2, 3]), torch.Size([4, 3])]
    >>> nt.sum(dim=1)[:, 0]
    tensor([2., 4.])
    """

    operators: ClassVar[dict[str, Handler]] = {}

    ragged: Ragged

    def __new__(
        cls,
        values: Tensor,
        offsets: Tensor,
        *,
        lengths: Tensor | None = None,
        requires_grad: bool = False,
        _ragged_idx: int = 1,
        _metadata_cache: dict[str, int] | None = None,
    ) -> Self:
        if not isinstance(offsets, Tensor) or offsets.is_nested or offsets.dim() != 1 or len(offsets) == 0:
            raise RuntimeError("the offsets of a nested tensor are a tensor of one dimension, one more than components")
        structure = Ragged(offsets, lengths, _ragged_idx, dict(_metadata_cache or {}))
        result = cls.of(_alias(values), structure)
        if requires_grad:
            result.requires_grad_()
        return result

    @classmethod
    def of(cls, values: Tensor, structure: Ragged, view: View | None = None) -> Self:
        """A nested tensor on `values`, which are its own."""
        result = object.__new__(cls)
        result.ragged = structure
        result._init(values, view)
        return result

    def maker(self) -> Callable[[Tensor], Self]:
        return functools.partial(self.of, structure=self.ragged)

    def of_values(self, values: Tensor) -> NestedTensor:
        """A view of other values in the structure of this tensor."""
        return view_of_values(values, self.ragged)

    def values_like(self, other: Tensor, what: str) -> Tensor:
        if not isinstance(other, NestedTensor) or not same_raggedness(self, other) or (
            other._values._memory_.shape != self._values._memory_.shape
        ):
            shape = "no size" if isinstance(other, NestedBase) and not isinstance(other, NestedTensor) else other.shape
            raise RuntimeError(
                f"Mismatch in shape: {what} has a shape of {shape} and the nested tensor it belongs to has a shape of "
                f"{self.shape}. (Nested tensors are alike only if they have the same offsets: torch.ones_like(nt))"
            )
        return other._values

    # -------------------------------------------------------------------------------------------------------- its parts

    _offsets = property(lambda self: self.ragged.offsets)
    _lengths = property(lambda self: self.ragged.lengths)
    _ragged_idx = property(lambda self: self.ragged.idx)
    _metadata_cache = property(lambda self: self.ragged.cache)
    _max_seqlen = property(lambda self: self.ragged.longest)
    _min_seqlen = property(lambda self: self.ragged.shortest)
    _maybe_max_seqlen = property(lambda self: self.ragged.cache.get("max_seqlen"))
    _maybe_min_seqlen = property(lambda self: self.ragged.cache.get("min_seqlen"))

    def _get_max_seqlen(self) -> int:
        return self.ragged.longest

    def _get_min_seqlen(self) -> int:
        return self.ragged.shortest

    def values(self) -> Tensor:
        """All rows of all components, as a plain tensor: a view."""
        return nested_get_values(self)

    def offsets(self) -> Tensor:
        """Where each component begins and the last one ends."""
        return self.ragged.offsets

    def lengths(self) -> Tensor | None:
        """How many rows each component has, if there are holes between them; else None."""
        return self.ragged.lengths

    def components(self) -> list[Tensor]:
        dim, structure = self.ragged.idx - 1, self.ragged
        rows = self._values._memory_.shape
        starts, lengths = structure.places
        if not 0 <= dim < len(rows):
            raise RuntimeError(f"unbind(): nested tensor ragged_idx out of bounds (should be >= 1, got {dim + 1})")
        if lengths.size and int((starts + lengths).max()) > rows[dim]:
            raise RuntimeError(
                "unbind(): nested tensor offsets and lengths do not match ragged_idx dimension: they reach to row "
                f"{int((starts + lengths).max())} of {rows[dim]}"
            )
        if is_packed(structure, rows[dim]):
            return list(ops.split_with_sizes(self._values, lengths.tolist(), dim)) if lengths.size else []
        return [ops.narrow(self._values, dim, start, n) for start, n in zip(starts.tolist(), lengths.tolist())]

    def packed(self) -> NestedTensor:
        """The same tensor without holes between the components."""
        rows = self._values._memory_.shape[self.ragged.idx - 1]
        if is_packed(self.ragged, rows):
            return self
        structure = self.ragged.packed()
        if structure is self.ragged:  # the values have rows before or behind that belong to nobody
            ends = np.concatenate([[0], np.cumsum(structure.places[1])])
            structure = Ragged(wrap(ends), None, structure.idx, structure.cache)
        return self.of(ops.index_select(self._values, self.ragged.idx - 1, self.ragged.rows()), structure)

    # ------------------------------------------------------------------------------------------------------- what it is

    @property
    def layout(self) -> Any:
        return jagged

    @property
    def _memory_(self) -> NestedDescription:  # type: ignore[override]
        values, structure = self._values._memory_, self.ragged
        size, inner = structure.size, values.shape
        at = structure.idx
        shape = (structure.batch, *inner[: at - 1], size, *inner[at:])
        steps = tuple(values.strides)
        each = steps[0] * inner[0] if at > 1 else steps[0]
        strides = (size * each, *steps)
        numel = values.size
        if structure.lengths is not None and inner[at - 1]:
            numel = values.size // inner[at - 1] * int(structure.places[1].sum())
        return NestedDescription(shape, values.dtype, strides, numel, self._is_contiguous())

    def _is_contiguous(self) -> bool:
        values = self._values._memory_
        starts = self.ragged.places[0]
        first = int(starts[0]) if starts.size else 0
        return values.flags.c_contiguous and self.ragged.lengths is None and first == 0

    def is_contiguous(self, memory_format: Any = None) -> bool:
        return self._is_contiguous()

    @property
    def shape(self) -> Any:
        return super().shape

    def stride(self, dim: int | None = None) -> Any:
        """Steps between neighbours, in elements; of the first dimension it is as ragged as the components are."""
        steps = self._values.stride()
        inner, at = self._values._memory_.shape, self.ragged.idx
        first = self.ragged.size * (steps[0] * inner[0] if at > 1 else steps[0])
        every = (first, *steps)
        return every if dim is None else every[dim]

    def __len__(self) -> int:
        return self.ragged.batch

    def __repr__(self, *, tensor_contents: str | None = None) -> str:  # type: ignore[override]
        parts = [f"size={tuple(self.shape)}", f"offsets={self.ragged.offsets}"]
        if self.ragged.lengths is not None:
            parts.append(f"lengths={self.ragged.lengths}")
        if self.grad_fn is not None:
            parts.append(f"grad_fn={self.grad_fn}")
        elif self.requires_grad:
            parts.append("requires_grad=True")
        return f"NestedTensor({', '.join(parts)}, contiguous={self._is_contiguous()})"

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        if not self.is_leaf:
            raise RuntimeError("a nested tensor that is the result of an operation cannot be saved: detach() it")
        given = {
            "values": self._values.detach(), "offsets": self.ragged.offsets, "lengths": self.ragged.lengths,
            "_ragged_idx": self.ragged.idx,
            # As torch has it: a length is the first size of a tensor without elements.
            "_metadata_cache": {name: ops.zeros((n, 0)) for name, n in self.ragged.cache.items()},
            "requires_grad": self.requires_grad,
        }  # fmt: skip
        return _rebuild_njt, (given,)


def same_raggedness(a: NestedTensor, b: NestedTensor) -> bool:
    return a.ragged.idx == b.ragged.idx and a.ragged.batch == b.ragged.batch and a.ragged.size == b.ragged.size


def _alias(tensor: Tensor) -> Tensor:
    """A view of all of `tensor`: the same memory and history, another tensor."""
    if not isinstance(tensor, Tensor) or tensor._special_ is not None:
        raise TypeError(f"the values of a nested tensor are a plain tensor, not {type(tensor).__name__}")
    return ops.alias(tensor)


# ---------------------------------------------------------------------------------------------- to values and from them


def nested_get_values(tensor: Tensor) -> Tensor:
    """``nt.values()``, a view of `nt`; of a plain tensor, which stands for its values, a view of all of it."""
    source = tensor._values if isinstance(tensor, NestedTensor) else tensor
    result = ops.alias(source)
    if result._grad_meta_ is not None and result._vc_ is not INFERENCE:
        # On this way the view is taken of another nested tensor (autograd/view_func.py).
        result._grad_meta_.step = (alias_kernel, nested_get_values, (), None)
    return result


def nested_view_from_values_offsets(
    values: Tensor, offsets: Tensor, ragged_idx: int = 1, min_seqlen: int | None = None, max_seqlen: int | None = None
) -> NestedTensor:
    """A view of `values` as a nested tensor."""
    return nested_view_from_values_offsets_lengths(values, offsets, None, ragged_idx, min_seqlen, max_seqlen)


def nested_view_from_values_offsets_lengths(
    values: Tensor, offsets: Tensor, lengths: Tensor | None, ragged_idx: int = 1, min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> NestedTensor:  # fmt: skip
    """The same with holes: component `i` has ``lengths[i]`` rows from ``offsets[i]`` on."""
    cache = {name: n for name, n in (("min_seqlen", min_seqlen), ("max_seqlen", max_seqlen)) if n is not None}
    return view_of_values(values, Ragged(offsets, lengths, ragged_idx, cache))


def view_of_values(values: Tensor, structure: Ragged) -> NestedTensor:
    """A nested tensor that is a view of a plain one."""
    return NestedTensor.of(_alias(values), structure, (values, lambda other: view_of_values(other, structure)))


def nested_from_padded(
    padded: Tensor, offsets: Tensor, ragged_idx: int = 1, min_seqlen: int | None = None,
    max_seqlen: int | None = None, sum_S: int | None = None,
) -> NestedTensor:  # fmt: skip
    """The rows of a padded tensor that `offsets` speaks of, as a nested tensor."""
    if ragged_idx != 1:
        raise RuntimeError("nested_from_padded(): only ragged_idx == 1 supported for jagged layout")
    cache = {name: n for name, n in (("min_seqlen", min_seqlen), ("max_seqlen", max_seqlen)) if n is not None}
    return from_padded(padded, Ragged(offsets, None, 1, cache))


def from_padded(padded: Tensor, structure: Ragged) -> NestedTensor:
    """What is no padding in ``padded``, of shape (B, longest, ...), as a nested tensor of that structure."""
    structure = structure.packed()
    shape = padded._memory_.shape
    if int(structure.places[1].max(initial=0)) > shape[1]:
        raise RuntimeError(f"found batch item of length {structure.longest} in a padded tensor of length {shape[1]}")
    flat = ops.reshape(padded, (shape[0] * shape[1], *shape[2:]))
    values = ops.index_select(flat, 0, wrap(_padded_rows(structure, shape[1])))
    at = structure.idx - 1
    return NestedTensor.of(values if at == 0 else ops.movedim(values, 0, at), structure)


def to_padded(nested: NestedTensor, padding: Any, length: int | None = None) -> Tensor:
    """A plain tensor (B, length, ...): the ragged dimension comes second, whatever it was."""
    nested = nested.packed()
    structure, values = nested.ragged, nested._values
    if structure.idx > 1:
        values = ops.movedim(values, structure.idx - 1, 0)
    length = structure.longest if length is None else length
    rest = values._memory_.shape[1:]
    full = ops.full((structure.batch * length, *rest), padding, dtype=values.dtype, device=values.device)
    if values._memory_.shape[0]:
        full = ops.index_copy(full, 0, wrap(_padded_rows(structure, length)), values)
    return ops.view(full, (structure.batch, length, *rest))


def _padded_rows(structure: Ragged, length: int) -> np.ndarray:
    return np.repeat(np.arange(structure.batch) * length, structure.places[1]) + structure.within()


# ---------------------------------------------------------------------------------------------------------- from others


def jagged_from_list(
    tensors: Sequence[Tensor], offsets: Tensor | None, dtype: Any = None, device: Any = None
) -> tuple[NestedTensor, Tensor]:
    """Tensors that differ in one size at most, one behind the other; and the offsets, those given if there are."""
    if not len(tensors):
        raise RuntimeError("Cannot construct a nested tensor from an empty tensor list")
    for what, kinds in (
        ("have the same dtype", {t.dtype for t in tensors}),
        ("be on the same device", {str(t.device) for t in tensors}),
        ("have the same dim", {t.dim() for t in tensors}),
    ):
        if len(kinds) != 1:
            raise RuntimeError(
                f"When constructing a nested tensor, all tensors in list must {what}, but these have "
                f"{', '.join(sorted(map(str, kinds)))}"
            )
    if tensors[0].dim() == 0:
        raise RuntimeError("Cannot construct a nested tensor from a list of zero-dim tensors")
    shapes = [t._memory_.shape for t in tensors]
    differing = [d for d in range(len(shapes[0])) if len({shape[d] for shape in shapes}) > 1]
    if len(differing) > 1:
        raise RuntimeError(
            "Cannot represent given tensor list as a nested tensor with the jagged layout. Note that the jagged layout "
            "only allows for a single ragged dimension. For example: (B, *, D_0, D_1, ..., D_N), where * indicates "
            f"the ragged dimension; these tensors differ in dimensions {differing}: use layout=torch.strided"
        )
    dim = differing[0] if differing else 0
    values = ops.cat(list(tensors), dim)
    if dtype is not None or device is not None:
        values = values.to(device=device, dtype=dtype)  # type: ignore[attr-defined]
    lengths = [shape[dim] for shape in shapes]
    if offsets is None:
        offsets = wrap(np.concatenate([[0], np.cumsum(np.asarray(lengths, np.int64))]))
        if values.device != offsets.device:
            offsets = offsets.to(values.device)  # type: ignore[attr-defined]
    cache = {"min_seqlen": min(lengths), "max_seqlen": max(lengths)}
    return NestedTensor.of(values, Ragged(offsets, None, dim + 1, cache)), offsets


def jagged_from_tensor_and_lengths(
    tensor: Tensor, starts: Tensor, lengths: Tensor
) -> tuple[NestedTensor, Tensor, Tensor | None]:
    """From each of ``tensor[i]``, ``lengths[i]`` rows from ``starts[i]`` on: a view."""
    batch, length = tensor._memory_.shape[:2]
    first = np.broadcast_to(np.asarray(starts._numbers_, np.int64), (batch,))
    count = np.ascontiguousarray(np.broadcast_to(np.asarray(lengths._numbers_, np.int64), (batch,)))
    values = ops.view(tensor, (batch * length, *tensor._memory_.shape[2:]))
    begin = first + np.arange(batch) * length
    cache = {"min_seqlen": int(count.min()), "max_seqlen": int(count.max())} if batch else {}
    end = begin + count
    if batch and (begin[1:] == end[:-1]).all():
        offsets = wrap(np.append(begin, end[-1]) - begin[0])
        structure = Ragged(offsets, None, 1, cache)
        return view_of_values(ops.narrow(values, 0, int(begin[0]), int(count.sum())), structure), offsets, None
    offsets, kept = wrap(np.append(begin, batch * length)), wrap(count)
    return view_of_values(values, Ragged(offsets, kept, 1, cache)), offsets, kept


# -------------------------------------------------------------------------------------------------- torch's older names


class ViewNestedFromBuffer:
    """``ViewNestedFromBuffer.apply(values, offsets, metadata_cache)``: torch's older way to make a nested tensor."""

    @staticmethod
    def apply(values: Tensor, offsets: Tensor, metadata_cache: dict[str, int] | None = None) -> NestedTensor:
        return view_of_values(values, Ragged(offsets, None, 1, dict(metadata_cache or {})))


def buffer_from_jagged(nested: NestedTensor) -> Tensor:
    """``nested.values()``."""
    return nested.values()
