"""A gradient's product, or sum, and its accumulation in one launch.

Note [Pending gradients]
The engine adds a gradient to another one (a leaf's ``.grad``, the sum that a node waits for) right after some node has
computed it: two launches, and memory for what lives no longer than that.  Where the next node is known to add
(`adding`, which passes of one stream without hooks make: `run_whole` of autograd/device_threads.py), three kinds of
results are therefore not computed at once: products of matrices, products of elements, and sums of columns.  They are
arrays without an address, with a `Pending` in the place of the library's array.  Whoever adds one to an array of the
same layout (`add_to`) has it computed into that array, by cuBLAS with beta = 1 or a kernel that adds; whoever asks for
its address has it computed then and there (``DeviceArray.__getattr__``).  Operands are held by it, so that nobody takes
them for memory of their own; and it never outlives the pass (unless that ran out of memory, when what is left of it is
kept): what becomes a ``.grad`` is computed before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .launching import TALL, contiguous, stored

if TYPE_CHECKING:
    from ..places import Place

PRODUCT, ELEMENTS, COLUMNS = range(3)


class Pending:
    """What is to be computed: of which kind, and of what. `turned`: the array is the transposed result."""

    __slots__ = ("a", "b", "kind", "turned")

    def __init__(self, kind: int, a: Any, b: Any, turned: bool = False) -> None:
        self.kind, self.a, self.b, self.turned = kind, a, b, turned


def is_wanted(place: Place, node: Any) -> bool:
    """Will what `node` gives be added to something?"""
    adding = place.thread.adding
    if adding is None:
        return False
    for edge in node.next_edges:
        if edge is not None and edge[0] in adding:
            return True
    return False


def make(place: Place, kind: int, shape: tuple[int, ...], a: Any, b: Any) -> Any:
    """An array that is yet to be computed."""
    made = object.__new__(place.class_now())
    made._raw, made.base = Pending(kind, a, b), None
    made.dtype, made.shape, made.strides = a.dtype, shape, contiguous(shape, a.dtype.itemsize)
    return made


def product(place: Place, a: Any, b: Any) -> Any:
    """A product of matrices that is yet to be computed; None if it is nothing for cuBLAS."""
    if len(a.shape) != 2 or len(b.shape) != 2 or a.dtype is not b.dtype or stored(a.dtype) is None:
        return None
    if a.place is not place or b.place is not place or a.shape[1] != b.shape[0] or 0 in a.shape or 0 in b.shape:
        return None
    return make(place, PRODUCT, (a.shape[0], b.shape[1]), a, b)


def columns(place: Place, a: Any, shape: tuple[int, ...]) -> Any:
    """Sums of the columns of a contiguous matrix, as an array of `shape`, that are yet to be computed."""
    rows = a.size
    for n in shape:
        rows //= n
    return make(place, COLUMNS, shape, a, rows) if 64 < rows <= TALL else None


def elements(place: Place, a: Any, b: Any) -> Any:
    """A product of elements of two arrays of one layout that is yet to be computed."""
    if a.shape != b.shape or a.strides != b.strides or a.strides != contiguous(a.shape, a.dtype.itemsize):
        return None
    return make(place, ELEMENTS, a.shape, a, b) if a.shape and 0 not in a.shape and stored(a.dtype) else None


def transposed(array: Any) -> Any:
    """The transposed matrix of one that is yet to be computed."""
    pending = array._raw
    made = object.__new__(array.__class__)
    made._raw, made.base = Pending(pending.kind, pending.a, pending.b, not pending.turned), None
    made.dtype, made.shape, made.strides = array.dtype, array.shape[::-1], array.strides[::-1]
    return made


def compute(array: Any) -> None:
    """Compute what is pending, as an array of its own."""
    pending, place = array._raw, array.place
    a, b = pending.a, pending.b
    if pending.kind == PRODUCT:
        made = place.product(a, b)
    elif pending.kind == ELEMENTS:
        made = place.numpy.multiply.own.pair(a, b)
    else:
        made = place.sums.columns(a, b, a.size // b, array.shape, a.dtype)
    array._raw = None
    array.block, array.ptr = made.block, made.ptr


def add_to(out: Any, array: Any) -> bool:
    """Add what is pending to `out`. False if `out` lies otherwise, and it is to be computed first."""
    pending, place = array._raw, array.place
    a, b = pending.a, pending.b
    if pending.turned or out.shape != array.shape or out.dtype != array.dtype or out.place is not place:
        return False
    if out.strides != array.strides or out._raw.__class__ is Pending:
        return False
    root = out if out.base is None else out.base
    if any(x is out or x is root or x.base is root for x in ((a,) if pending.kind == COLUMNS else (a, b))):
        return False
    if pending.kind == PRODUCT:
        return place.product(a, b, out, 1.0, 1.0) is not None
    if pending.kind == ELEMENTS:
        return place.formulas("added product", (out, a, b), out) is not None
    return place.sums.columns(a, b, a.size // b, array.shape, a.dtype, out, True) is not None


def plus(old: Any, array: Any) -> Any:
    """The sum of an array and pending products of elements, as a new array; None if it is to be computed first."""
    pending = array._raw
    if pending.kind != ELEMENTS or old._raw.__class__ is Pending or old.shape != array.shape:
        return None
    return array.place.formulas("added product", (old, pending.a, pending.b))
