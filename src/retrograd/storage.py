"""Storages: the memory that tensors are views of, as an object.

``x.untyped_storage()`` counts bytes, ``x.storage()`` elements.  Two tensors share memory if their storages are equal.
"""

from __future__ import annotations

from typing import Any

from . import kernels
from .core import dtypes
from .core.devices import device, device_of_array_class
from .tensor import Tensor, wrap


class UntypedStorage:
    """A piece of memory, in bytes.

    >>> import retrograd as torch
    >>> x = torch.zeros(4)
    >>> x[2:].untyped_storage() == x.untyped_storage(), x.untyped_storage().nbytes()
    (True, 16)
    """

    def __init__(self, root: Any) -> None:
        self._root = root  # the array that owns the memory

    def data_ptr(self) -> int:
        """The address of the first byte."""
        return wrap(self._root).data_ptr()

    def nbytes(self) -> int:
        return self._root.nbytes

    size = __len__ = nbytes

    @property
    def device(self) -> device:
        return device_of_array_class(self._root.__class__)

    def tolist(self) -> list[int]:
        """All bytes."""
        return list(self._root.tobytes("A"))

    def __getitem__(self, index: int) -> int:
        return self.tolist()[index]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, UntypedStorage):
            return NotImplemented
        return self.data_ptr() == other.data_ptr() and self.nbytes() == other.nbytes()

    def __hash__(self) -> int:
        return hash(self.data_ptr())


class TypedStorage:
    """A piece of memory, in elements of a dtype.

    >>> import retrograd as torch
    >>> s = torch.tensor([1., 2., 3.])[1:].storage()
    >>> len(s), s[0], s.tolist()
    (3, 1.0, [1.0, 2.0, 3.0])
    """

    def __init__(self, root: Any, dtype: dtypes.dtype) -> None:
        self._untyped = UntypedStorage(root)
        self._elements = root.ravel("K").view(dtype.np)  # the memory itself, where it has no gaps
        self.dtype = dtype

    def untyped(self) -> UntypedStorage:
        """The same memory in bytes."""
        return self._untyped

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self._untyped.data_ptr()

    def nbytes(self) -> int:
        return self._untyped.nbytes()

    def element_size(self) -> int:
        return self.dtype.itemsize

    def size(self) -> int:
        return self.nbytes() // self.element_size()

    __len__ = size

    @property
    def device(self) -> device:
        return self._untyped.device

    def tolist(self) -> list:
        """All elements."""
        return self._elements.tolist()

    def __getitem__(self, index: int) -> Any:
        return self._elements[index].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._elements[index] = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedStorage) and self.dtype is other.dtype and self._untyped == other._untyped

    def __hash__(self) -> int:
        return hash(self._untyped)


def untyped_storage(tensor: Tensor) -> UntypedStorage:
    """``x.untyped_storage()``."""
    return UntypedStorage(kernels.storage_root(tensor._memory))


def typed_storage(tensor: Tensor) -> TypedStorage:
    """``x.storage()``."""
    return TypedStorage(kernels.storage_root(tensor._memory), tensor.dtype)
