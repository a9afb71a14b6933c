"""``FloatStorage`` and its like: torch's older names for a TypedStorage of one dtype, which construct and recognise."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ..core import dtypes
from .typed import STORAGE_NAMES, TypedStorage
from .untyped import UntypedStorage


class StorageType(type):
    """The type of ``FloatStorage``: ``isinstance(s, FloatStorage)`` asks for the dtype of a TypedStorage.

    >>> import retrograd as torch
    >>> torch.FloatStorage([1, 2]).tolist(), isinstance(torch.ones(1).storage(), torch.FloatStorage)
    ([1.0, 2.0], True)
    """

    dtype_name: str

    @property
    def dtype(cls) -> dtypes.dtype:
        """The dtype of its elements."""
        return dtypes.by_name(cls.dtype_name)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, TypedStorage) and instance.dtype is cls.dtype

    @property
    def _dtype(cls) -> dtypes.dtype:
        return cls.dtype

    def __call__(
        cls, *args: Any, wrap_storage: Any = None, device: Any = None, _internal: bool = False
    ) -> TypedStorage:
        return TypedStorage(*args, wrap_storage=wrap_storage, dtype=cls.dtype, device=device)

    def from_file(cls, filename: Any, shared: bool = False, size: int = 0) -> TypedStorage:
        """The first elements of a file, mapped into memory."""
        memory = UntypedStorage.from_file(filename, shared, size * cls.dtype.itemsize)
        return TypedStorage(wrap_storage=memory, dtype=cls.dtype)

    def from_buffer(cls, buffer: Any, byte_order: str = "native", count: int = -1, offset: int = 0) -> TypedStorage:
        """A copy of the elements in a buffer of bytes."""
        if byte_order not in ("native", "little", "big"):
            raise ValueError(f"invalid byte_order '{byte_order}' (expected 'native', 'big', or 'little')")
        memory = UntypedStorage._of(np.frombuffer(buffer, cls.dtype.np, count, offset).copy())
        if byte_order not in ("native", sys.byteorder):
            memory.byteswap(cls.dtype)
        return TypedStorage(wrap_storage=memory, dtype=cls.dtype)

    def __repr__(cls) -> str:
        return f"<class 'torch.{cls.__name__}'>"


TYPES: dict[str, StorageType] = {
    word: StorageType(
        word, (), {"dtype_name": name, "__module__": __name__.partition(".")[0], "__doc__": f"A storage of {name}."}
    )
    for name, word in STORAGE_NAMES.items()
}
BoolStorage: StorageType = TYPES["BoolStorage"]
ByteStorage: StorageType = TYPES["ByteStorage"]
CharStorage: StorageType = TYPES["CharStorage"]
ShortStorage: StorageType = TYPES["ShortStorage"]
IntStorage: StorageType = TYPES["IntStorage"]
LongStorage: StorageType = TYPES["LongStorage"]
HalfStorage: StorageType = TYPES["HalfStorage"]
BFloat16Storage: StorageType = TYPES["BFloat16Storage"]
FloatStorage: StorageType = TYPES["FloatStorage"]
DoubleStorage: StorageType = TYPES["DoubleStorage"]
ComplexFloatStorage: StorageType = TYPES["ComplexFloatStorage"]
ComplexDoubleStorage: StorageType = TYPES["ComplexDoubleStorage"]
