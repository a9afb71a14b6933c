"""Size: the tuple of ints that `Tensor.shape` and `Tensor.size()` give.

Of a nested tensor, the size that differs from component to component is a `SymInt`.

It is a tuple in every respect (hash, equality, unpacking); what makes a new one from it (slicing, adding,
repeating) gives a `Size` again, and it prints as torch prints it.

Code inside the package that already holds ints (an array's ``.shape``) writes ``tuple.__new__(Size, shape)``, which
leaves out the check of each item.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any, SupportsIndex, overload

from .sym_int import SymInt


class Size(tuple[int, ...]):
    """The sizes of a tensor's dimensions.

    >>> from retrograd import Size
    >>> shape = Size([2, 3])
    >>> shape
    torch.Size([2, 3])
    >>> shape.numel(), shape[:1], shape + (4,), shape == (2, 3)
    (6, torch.Size([2]), torch.Size([2, 3, 4]), True)
    """

    __slots__ = ()

    def __new__(cls, sizes: Iterable[Any] = (), /) -> Size:
        items = []
        for position, item in enumerate(sizes):
            try:
                items.append(operator.index(item))
            except TypeError:
                if isinstance(item, SymInt):
                    items.append(item)  # type: ignore[arg-type]
                    continue
                raise TypeError(
                    f"torch.Size() takes an iterable of 'int' (item {position} is '{type(item).__name__}')"
                ) from None
        return tuple.__new__(cls, items)

    def numel(self) -> int:
        """How many elements a tensor of this size has.

        >>> Size([2, 3]).numel(), Size([]).numel()
        (6, 1)
        """
        return math.prod(self)

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

    @overload
    def __getitem__(self, index: SupportsIndex, /) -> int: ...
    @overload
    def __getitem__(self, index: slice, /) -> Size: ...
    def __getitem__(self, index: SupportsIndex | slice, /) -> Any:
        found = tuple.__getitem__(self, index)
        return tuple.__new__(Size, found) if isinstance(found, tuple) else found

    def __add__(self, other: Any) -> Size:
        if not isinstance(other, tuple):
            if type(other).__module__ != "builtins" and hasattr(type(other), "__radd__"):
                return NotImplemented  # it may know
            raise TypeError(f"can only concatenate tuple (not {type(other).__name__}) to torch.Size")
        return Size((*self, *other))

    def __radd__(self, other: Any) -> Size:
        # A plain tuple on the left would otherwise answer itself, with a tuple.
        if not isinstance(other, tuple):
            return NotImplemented
        return Size((*other, *self))

    def __mul__(self, times: Any) -> Size:
        return tuple.__new__(Size, tuple(self) * times)

    def __rmul__(self, times: Any) -> Size:
        return self * times

    def __reduce__(self) -> tuple[type[Size], tuple[tuple[int, ...]]]:
        return Size, (tuple(self),)
