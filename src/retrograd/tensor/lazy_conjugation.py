"""Lazily conjugated and negated tensors: views whose values are not what lies in memory.

Note [Lazy conjugation]
``x.conj()`` of a complex tensor computes nothing.  It is a view of `x` with the *conj bit*: the same memory, to be read
as its conjugate.  ``x.conj().imag`` is a real view with the *neg bit*: to be read with the other sign.  A product with
such a view pays for one conjugation, a transpose of it for none, and ``x.conj().conj()`` is `x` again.

The bits are the class.  `LazyTensor` has one subclass a combination (conj, neg, both); a tensor without bits is a plain
`Tensor`, which knows nothing of this.  Everything rests on two names for the one slot that holds the array:

* ``_numbers_`` is **the values**.  A lazy tensor computes them anew whenever it is asked, so whoever only reads (every
  kernel, printing, ``==``) need not know about lazy tensors.
* ``_memory_`` is **how they lie**: the array that is shared with others.  Views are taken of it, strides, addresses and
  storages are read from it, and what is kept to alias it is taken from it.

For a plain tensor both are the slot itself, and reading it costs the same under either name.  What remains to be done
for lazy tensors is little, and nobody else pays for it:

* **A view of a lazy tensor** has the same bits: `as_view` asks `inherit_bits` when the source is no plain Tensor.
* **An in-place operator** gets the values to write to, as any array; `end_inplace` finds that this is not the memory
  of the tensor, and calls `write_back`, which conjugates them into it.  So the base holds the conjugate of what
  was written through the view.
* **The operators that flip a bit** are `_conj` and `_neg_view` of the table (column ``flips``).  They are views that
  no ``as_strided`` can stand for, so a view that is regenerated takes these steps again (Note [Views and in-place]).
* **Forward mode**: a tangent has the bits of its primal (`has_same_meta`), as it has its strides.

Copies (``clone``, results of operators, ``deepcopy``) have no bits.  ``detach()``, ``.data`` and saved files keep them.
"""

from __future__ import annotations

from typing import Any

from .. import kernels
from ..core.meta import materialize_autograd_meta
from ..core.records import record_of
from ..core.version_counter import INFERENCE
from . import Tensor
from .conversion import _rebuild as rebuild_plain
from .overriding import disabled_torch_function

NO_BITS = (False, False)


class LazyTensor(Tensor):
    """A tensor whose memory is to be read as the conjugate, or with the other sign, or both."""

    __slots__ = ()

    bits: tuple[bool, bool]
    __torch_function__ = disabled_torch_function  # type: ignore[assignment]

    @property
    def _numbers_(self) -> Any:  # type: ignore[override]
        """The values, in an array of their own."""
        return apply_bits(self.bits, self._memory_)

    def is_conj(self) -> bool:
        return self.bits[0]

    def is_neg(self) -> bool:
        return self.bits[1]

    def numpy(self, *, force: bool = False) -> Any:
        """With `force` only: memory that is shared with NumPy cannot have another sign there."""
        if not force:
            bit, name = ("conjugate", "conj") if self.bits[0] else ("negative", "neg")
            raise RuntimeError(
                f"Can't call numpy() on Tensor that has {bit} bit set. Use tensor.resolve_{name}().numpy() instead."
            )
        return self.detach().clone().numpy(force=True)  # type: ignore[attr-defined]

    def __deepcopy__(self, memo: dict[Any, Any]) -> Any:
        result = super().__deepcopy__(memo)
        if isinstance(result, LazyTensor):
            values = result._numbers_
            set_bits(result, NO_BITS)
            result._memory_ = values
        return result

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return _rebuild, (self.bits, self._memory_, self.requires_grad, self.__dict__)


class _Conjugated(LazyTensor):
    __slots__ = ()
    bits = (True, False)


class _Negated(LazyTensor):
    __slots__ = ()
    bits = (False, True)


class _ConjugatedNegated(LazyTensor):
    __slots__ = ()
    bits = (True, True)


_CLASSES: dict[tuple[bool, bool], type[Tensor]] = {
    NO_BITS: Tensor, **{cls.bits: cls for cls in (_Conjugated, _Negated, _ConjugatedNegated)}
}  # fmt: skip

_FLIPPED = {
    "conj": {cls: _CLASSES[not conj, neg] for (conj, neg), cls in _CLASSES.items()},
    "neg": {cls: _CLASSES[conj, not neg] for (conj, neg), cls in _CLASSES.items()},
}

for _class in _CLASSES.values():
    # Users know one class of tensors.
    _class.__name__, _class.__qualname__, _class.__module__ = Tensor.__name__, Tensor.__qualname__, Tensor.__module__


def apply_bits(bits: tuple[bool, bool], array: Any, out: Any = None) -> Any:
    """What the bits say, done to an array: from memory to values, and from values to memory."""
    if bits[0]:
        array = kernels.conj_physical(array, out)
    return kernels.neg(array, out) if bits[1] else array


# ------------------------------------------------------------------------------------------------------------- the bits


def bits_of(tensor: Tensor) -> tuple[bool, bool]:
    """(conj, neg)."""
    return tensor.bits if isinstance(tensor, LazyTensor) else NO_BITS


def relative_bits(view: Tensor, base: Tensor) -> tuple[bool, bool]:
    """The bits that were flipped on the way from `base` to `view`."""
    mine, theirs = bits_of(view), bits_of(base)
    return mine[0] != theirs[0], mine[1] != theirs[1]


def set_bits(tensor: Tensor, bits: tuple[bool, bool]) -> None:
    """Make `tensor`, whose memory stays as it is, one to be read in this way."""
    tensor.__class__ = _CLASSES[bits]
    if any(bits) and tensor._vc_ is not INFERENCE:
        # Generated wrappers make views of tensors without a meta on a path that does not ask about bits.
        materialize_autograd_meta(tensor)


def keep_bits(source: Tensor, alias: Tensor) -> None:
    """Have `alias`, a plain tensor on the memory of `source`, read it as `source` does."""
    bits = bits_of(source)
    if bits == bits_of(alias):
        return
    if type(alias) in _CLASSES.values():
        set_bits(alias, bits)
    else:
        alias._numbers_ = source._numbers_  # a Parameter has no bits: it gets the values


def class_with_flipped_bit(tensor: Tensor, bit: str) -> type[Tensor]:
    """The class of ``tensor._conj()`` (`bit`: ``"conj"``) or ``tensor._neg_view()`` (``"neg"``)."""
    if bit == "conj" and tensor._memory_.dtype.kind not in "cW":
        raise RuntimeError(f"only a complex tensor can have the conj bit, not one of dtype {tensor.dtype}")
    flipped = _FLIPPED[bit]
    return flipped.get(tensor.__class__) or flipped[Tensor]


def inherit_bits(source: Tensor, view: Tensor, operator: Any) -> None:
    """Give `view`, fresh from a view operator on `source`, the bits of `source`."""
    if not isinstance(source, LazyTensor):
        return
    record = record_of(operator)
    if record is not None and record.flips:
        return  # its wrapper has done it
    if record is not None and record.refuses == "conj" and source.bits[0]:
        raise RuntimeError(
            f"{record.base} doesn't work on unresolved conjugated tensors.  To resolve the conjugate tensor so you can "
            "view it as real, use self.resolve_conj(); however, be warned that the resulting tensor will NOT alias the "
            "original."
        )
    view.__class__ = type(source)


def check_view_dtype(tensor: Tensor) -> None:
    """Memory can be read as another dtype only if it is to be read as it lies."""
    conj, neg = bits_of(tensor)
    if conj or neg:
        kind = "conjugate view tensors" if conj else "tensors with negative bit set"
        raise RuntimeError(
            f"torch.Tensor.view is not supported for {kind} when converting to a different dtype. Use "
            f"x.resolve_{'conj' if conj else 'neg'}().view(dtype), which is a view of a copy"
        )


# ----------------------------------------------------------------------------------------------------- values to memory


def write_back(tensor: Tensor, values: Any) -> None:
    """`values`, which ``tensor._numbers_`` gave, have been written to: the memory of a lazy tensor is to follow."""
    if values is not tensor._memory_:
        apply_bits(bits_of(tensor), values, tensor._memory_)


def _rebuild(bits: tuple[bool, bool], memory: Any, requires_grad: bool, attributes: dict[Any, Any]) -> Tensor:
    result = rebuild_plain(Tensor, memory, requires_grad, attributes)
    set_bits(result, bits)
    return result
