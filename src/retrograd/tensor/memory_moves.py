"""Storages that move: memory that is resized or shared lies elsewhere afterwards, and every tensor on it follows.

Note [Moving storages]
A tensor holds an array, and views of one piece of memory are NumPy's views of one array, its root.  They do not know
of each other, and a storage is a handle that is made when somebody asks for it.  When the memory moves
(``storage.resize_``, ``share_memory_``), those who show it are looked for among all objects that Python's garbage
collector knows: that takes milliseconds, and is paid by nobody else.

A tensor that reaches beyond memory that has shrunk keeps its sizes and strides, but has no elements: `Beyond` stands in
place of its array, and whatever would read or write it says so (torch reads what lies there).  It has its place again
once the storage has grown.
"""

from __future__ import annotations

import gc
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np

from ..core.description import Description
from ..kernels.storage import storage_root
from .tensor import Tensor

_SLOT = Tensor.__dict__["_numbers_"]


class Beyond(Description):
    """The array of a tensor that reaches beyond its storage."""

    __slots__ = ("base", "offset")

    def __init__(self, shape: tuple[int, ...], dtype: Any, strides: tuple[int, ...], base: Any, offset: int) -> None:
        super().__init__(shape, dtype, strides)
        #: The array that stands for the storage, and where in it the first element would lie, in bytes.
        self.base: Any = base
        self.offset: int = offset

    @property
    def data(self) -> Any:
        """Where its first element would lie, as arrays of other libraries say it."""
        return SimpleNamespace(ptr=_address(self.base) + self.offset)

    def refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        """What every use of elements comes to."""
        item = self.itemsize
        needed = _extent(self.shape, self.strides, self.offset, item)
        raise RuntimeError(
            f"setStorage: sizes {list(self.shape)}, strides {[s // item for s in self.strides]}, storage offset "
            f"{self.offset // item}, and itemsize {item} requiring a storage size of {needed} are out of bounds for "
            f"storage of size {self.base.nbytes}: the storage was resized; resize_() it again"
        )

    def __getattr__(self, name: str) -> NoReturn:
        self.refuse()


for _name, _value in list(vars(Description).items()):
    if getattr(_value, "__name__", "") == "_refuse":
        setattr(Beyond, _name, Beyond.refuse)


def _extent(shape: tuple[int, ...], strides: tuple[int, ...], offset: int, item: int) -> int:
    """How many bytes of a storage such an array needs."""
    if 0 in shape:
        return 0
    return offset + item + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))


def place(array: Any, root: np.ndarray) -> Any:
    """Where `array`, an array of the root that `root` replaces or a `Beyond`, lies in `root`."""
    shape, dtype, strides = array.shape, array.dtype, array.strides
    offset = array.offset if isinstance(array, Beyond) else _address(array) - _address(storage_root(array))
    if _extent(shape, strides, offset, dtype.itemsize) > root.nbytes:
        return Beyond(shape, dtype, strides, root, offset)
    if 0 in shape:
        offset = min(offset, root.nbytes)
    return np.ndarray(shape, dtype, root, offset, strides)


def _address(array: Any) -> int:
    return array.__array_interface__["data"][0]


def move(old: np.ndarray, new: np.ndarray, handle: type[Any], known: Tensor | None = None) -> None:
    """Have all tensors and all storages (`handle`) on the memory of `old` show that of `new`, an array of bytes.

    `known` is one that is certainly among them.
    """
    found = [known] if known is not None else []
    for one in gc.get_objects():
        kind = type(one)
        if issubclass(kind, Tensor):
            if one is not known:
                found.append(one)
        elif issubclass(kind, handle) and one.__dict__.get("_root") is old:
            one._hold(new)
    for tensor in found:
        try:
            array = _SLOT.__get__(tensor)
        except AttributeError:  # it is being made
            continue
        if isinstance(array, Beyond) or type(array) is np.ndarray:
            if (array.base if isinstance(array, Beyond) else storage_root(array)) is old:
                _SLOT.__set__(tensor, place(array, new))
