"""What stands where an array would, for tensors that have none: sparse, nested and their like.

See Note [Special tensors] in tensor/special.py.
"""

from __future__ import annotations

import math
from typing import Any, NoReturn

from .devices import CPU, register_array_class


class NoArray(AttributeError):
    """Somebody asked for the array of a tensor that has none, or computed with what stands in its place."""


def _refuse(*args: Any, **kwargs: Any) -> NoReturn:
    raise NoArray("a tensor without an array of its own was used where an array is needed")


class Description:
    """What can be known of an array without having it; it stands where code asks an array how it lies.

    Kernels cannot compute with it: whatever they try raises `NoArray`.
    """

    __slots__ = ("dtype", "shape", "strides")

    shape: tuple[int, ...]
    dtype: Any
    #: In bytes, as an array has them.
    strides: tuple[int, ...]

    def __init__(self, shape: tuple[int, ...], dtype: Any, strides: tuple[int, ...] | None = None) -> None:
        self.shape = tuple(shape)
        self.dtype = dtype
        if strides is None:
            strides = tuple([math.prod(self.shape[i + 1 :]) * dtype.itemsize for i in range(len(self.shape))])
        self.strides = strides

    #: Torch's word for the layout, in messages.
    layout_name: str = ""
    #: Its attributes that are arrays.
    parts: tuple[str, ...] = ()

    def __init_subclass__(cls) -> None:
        register_array_class(cls, CPU)

    def as_tensor(self) -> Any:
        """A Tensor on this, without history: what `wrap` is for arrays."""
        raise NotImplementedError

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

    def __getattr__(self, name: str) -> NoReturn:
        raise NoArray(f"{type(self).__name__!r} object has no attribute {name!r}")


#: NumPy's functions do not take it, and neither do Python's operators.
_REFUSED = (
    "__array__", "__array_ufunc__", "__array_function__", "__getitem__", "__setitem__", "__neg__", "__pos__",
    "__abs__", "__invert__", "__bool__", "__len__", "__iter__", "__add__", "__radd__", "__iadd__", "__sub__",
    "__rsub__", "__isub__", "__mul__", "__rmul__", "__imul__", "__truediv__", "__rtruediv__", "__itruediv__",
    "__floordiv__", "__rfloordiv__", "__mod__", "__rmod__", "__pow__", "__rpow__", "__matmul__", "__rmatmul__",
    "__and__", "__rand__", "__or__", "__ror__", "__lt__", "__le__", "__gt__", "__ge__",
)  # fmt: skip
for _name in _REFUSED:
    setattr(Description, _name, _refuse)
register_array_class(Description, CPU)


class _Flags:
    def __init__(self, description: Description) -> None:
        steps, dense = [], description.itemsize
        for size in reversed(description.shape):
            steps.append(dense)
            dense *= size
        self.c_contiguous: bool = description.size == 0 or all(
            size == 1 or step == own
            for size, step, own in zip(description.shape, reversed(steps), description.strides, strict=True)
        )
        self.writeable: bool = True
