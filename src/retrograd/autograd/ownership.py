"""Who else can see an array: may a gradient be kept as it is, or must it be copied?

Note [Ownership]
A gradient that reaches a leaf becomes its ``.grad``. Later passes add to that in place, so it must be memory that
nobody else can see: no hook that was handed it, no result of ``grad()``, no saved tensor, no other leaf. Node formulas
give away what they like (``x + b`` hands one array to both of its inputs, custom functions whatever the user returns),
so it is the array itself that is asked: who holds it?

CPython counts references to objects. How often a *frame* counts differs from version to version (3.14 borrows where
earlier ones counted), and a compiler of traces may change it in mid-run. So no frame holds what is counted here. The
array lies in a tuple, and ``getrefcount(*holder)`` hands over the tuple's own items: the one reference that is ours
is the tuple's. No count can be less, and any other object that holds the array makes it more, as does a frame, or the
one that it borrows from. It can be too high (a decrement still under way in another thread): then the gradient is
copied, which is always right.

That an interpreter counts so is proved when this module is imported, with every way to hold an array; where
the proof fails, or nothing is counted, every gradient is copied.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from ..kernels import ndarray

Count = Callable[..., int]


def held_alone(holder: Sequence[Any]) -> bool:
    """Is `holder`, a tuple or list of one array, all that can see the array's memory?

    The caller holds the array by nothing else, no local variable either.

    >>> from numpy import ndarray
    >>> held_alone((ndarray(3),)), held_alone((ndarray(3)[1:],))
    (True, True)
    >>> array = ndarray(3)
    >>> held_alone((array,)), held_alone((array[1:],))
    (False, False)
    """
    if count(*holder) != (1 if holder.__class__ is tuple else 2):  # a list's items are put into a tuple first
        return False
    base = holder[0].base
    if base is None:
        return True
    # The memory belongs to another array. That must be held by the view alone, and have its memory of no third one.
    if base.__class__ is not holder[0].__class__ or base.base is not None:
        return False
    del base
    return count(*[array.base for array in holder]) == 2  # the view, and the tuple made from the list


def special_held_alone(holder: Sequence[Any]) -> bool:
    """The same for what stands for an array of a special tensor: for itself, and for each array that it has."""
    if count(*holder) != (1 if holder.__class__ is tuple else 2):
        return False
    for name in holder[0].parts:
        if count(*[getattr(one, name) for one in holder]) != 2:  # its slot, and the tuple made from the list
            return False
        if not getattr(holder[0], name).flags.c_contiguous:
            return False
        if getattr(holder[0], name).base is not None and (
            getattr(holder[0], name).base.base is not None
            or count(*[getattr(one, name).base for one in holder]) != 2
        ):
            return False
    return True


def counts_references(count: Count) -> bool:
    """Does `count`, said to be `sys.getrefcount`, count as Note [Ownership] needs it?"""

    class Slot:
        __slots__ = ("array",)
        array: Any

    def in_a_slot(array: Any) -> Slot:
        slot = Slot()
        slot.array = array
        return slot

    def running(array: Any) -> Any:
        yield
        yield array

    def in_a_generator(array: Any) -> Any:
        generator = running(array)
        next(generator)
        return generator

    ways = (
        lambda array: array, lambda array: [array], lambda array: (lambda: array), lambda array: array[:],
        in_a_slot, in_a_generator,
    )  # fmt: skip
    for hold in ways:
        holder, listed, view = (ndarray(1),), [ndarray(1)], (ndarray(2)[1:],)
        for _ in range(2):
            if count(*holder) != 1 or count(*listed) != 2 or count(*[array.base for array in view]) != 2:
                return False
            others = [hold(holder[0]), hold(listed[0]), hold(view[0].base)]
            if count(*holder) < 2 or count(*listed) < 3 or count(*[array.base for array in view]) < 3:
                return False
            del others
    return True


def _unknown(*values: Any) -> int:
    return -1


count: Count = getattr(sys, "getrefcount", _unknown)
if not counts_references(count):
    count = _unknown
