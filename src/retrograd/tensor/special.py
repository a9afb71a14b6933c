"""Tensors that are no strided array: sparse, nested, batched, wrapped.

Note [Special tensors]
A plain operator takes the arrays of its arguments, computes, and makes a Tensor of the result.  A *special* tensor has
no array that it could take.  Its class says instead what an operator means for it, in `operate`:

* ``_data`` and ``_array`` (the values, and the memory that views are taken of) raise `NoArray`.  Operators of the table
  read them in a ``try`` that they have anyway, for arguments that are no Tensors at all; so plain tensors pay nothing.
* The wrappers of all other functions (ops/checked.py) let plain arguments through by their classes, and ask here about
  the others.
* ``_memory`` is, as for any tensor, how it lies: a `Description` with shape, dtype and strides.  Functions composed of
  operators read no more than that, and so work for special tensors as soon as their parts do.

Both come to `operate_on_special`.  It asks the special tensors among the arguments, those of the highest rank
(`special`) first, as ``operate(function, args, kwargs)``; the first answer that is not NotImplemented is the result.
If there is none, a function composed of operators runs as it is, on its parts; an operator of the table is refused, in
the words of the class (`no_form`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, Self

from . import Tensor


class NoArray(AttributeError):
    """Somebody asked for the array of a tensor that has none."""


class Description:
    """What can be known of an array without having it; it stands where code asks an array how it lies."""

    __slots__ = ("dtype", "shape", "strides")

    def __init__(self, shape: tuple[int, ...], dtype: Any, strides: tuple[int, ...] | None = None) -> None:
        self.shape = tuple(shape)
        self.dtype = dtype
        if strides is None:
            strides = tuple([math.prod(self.shape[i + 1 :]) * dtype.itemsize for i in range(len(self.shape))])
        #: In bytes, as an array has them.
        self.strides = strides

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    @property
    def flags(self) -> _Flags:
        return _Flags(self)

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise NoArray("a tensor without an array of its own was used where an array is needed")

    #: NumPy's functions do not take it.
    __array_ufunc__ = None


class _Flags:
    def __init__(self, description: Description) -> None:
        steps, dense = [], description.itemsize
        for size in reversed(description.shape):
            steps.append(dense)
            dense *= size
        self.c_contiguous = description.size == 0 or all(
            size == 1 or step == own
            for size, step, own in zip(description.shape, reversed(steps), description.strides, strict=True)
        )
        self.writeable = True


class SpecialTensor(Tensor):
    """A Tensor without an array; see Note [Special tensors]."""

    __slots__ = ()

    #: Which class is asked first where several meet: the one with the highest rank.
    special: int = 1

    if not TYPE_CHECKING:

        @property
        def _data(self) -> NoReturn:
            """No operator finds an array here."""
            raise NoArray(f"a {self.kind} tensor has no strided array")

        _array = _data

        @property
        def _memory(self) -> Description:
            """How it lies."""
            raise NotImplementedError

    @property
    def kind(self) -> str:
        """The word for it in messages."""
        return type(self).__name__

    @classmethod
    def make(cls) -> Self:
        """A new one, without history; its class fills in what it holds."""
        result = object.__new__(cls)
        result._vc = result._meta = result._edge = None
        return result

    def operate(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What `function` gives for these arguments, of which this tensor is one; NotImplemented: not known here."""
        return NotImplemented

    def no_form(self, name: str) -> Exception:
        """The error for an operator that there is none of for such tensors."""
        return NotImplementedError(f"Could not run 'aten::{name}' with a {self.kind} tensor: there is no such operator")


def special_tensors(args: Any, kwargs: Any) -> list[SpecialTensor]:
    """The special tensors among arguments (and in lists of them), highest rank first, each class as they stand."""
    found: list[Any] = []
    for value in (*args, *kwargs.values()):
        if isinstance(value, Tensor):
            if value.special is not None:
                found.append(value)
        elif isinstance(value, (tuple, list)):
            found += [one for one in value if isinstance(one, Tensor) and one.special is not None]
    found.sort(key=lambda one: -one.special)
    return found


def operate_on_special(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What the special tensors among the arguments make of a call; NotImplemented if there is none, or none knows."""
    asked = set()
    for tensor in special_tensors(args, kwargs):
        if (type(tensor), tensor.special) not in asked:
            asked.add((type(tensor), tensor.special))
            result = tensor.operate(function, args, kwargs)
            if result is not NotImplemented:
                return result
    return NotImplemented
