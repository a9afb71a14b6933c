"""Storages: the memory that tensors are views of, as an object.

``x.untyped_storage()`` counts bytes, ``x.storage()`` elements.  Two tensors share memory if their storages are equal.
`FloatStorage` and its like are torch's older names for a TypedStorage of one dtype, which construct and recognise;
files name the dtype of a piece of memory by them.  See Note [Moving storages] in tensor/memory_moves.py.
"""

from __future__ import annotations

from typing import Any

from .. import kernels
from ..core import dtypes
from ..tensor import Tensor
from ..tensor.meta import MetaArray
from .older_names import (
    TYPES,
    BFloat16Storage,
    BoolStorage,
    ByteStorage,
    CharStorage,
    ComplexDoubleStorage,
    ComplexFloatStorage,
    DoubleStorage,
    FloatStorage,
    HalfStorage,
    IntStorage,
    LongStorage,
    ShortStorage,
    StorageType,
)
from .typed import STORAGE_NAMES, TypedStorage
from .untyped import UntypedStorage

__all__ = [
    "BFloat16Storage", "BoolStorage", "ByteStorage", "CharStorage", "ComplexDoubleStorage", "ComplexFloatStorage",
    "DoubleStorage", "FloatStorage", "HalfStorage", "IntStorage", "LongStorage", "ShortStorage", "TypedStorage",
    "UntypedStorage",
]  # fmt: skip


def untyped_storage(tensor: Tensor) -> UntypedStorage:
    """``x.untyped_storage()``."""
    memory: Any = tensor._memory_
    if memory.__class__ is MetaArray:  # as large as it would be, and the same for all views
        empty = not memory.size and memory.base.nbytes == memory.itemsize
        return UntypedStorage._of(MetaArray(memory.base[:0] if empty else memory.base))
    return UntypedStorage._of(kernels.storage_root(tensor._memory_))


def _dtype_to_storage_type_map() -> dict[dtypes.dtype, str]:
    """By dtype, the older name of a storage of it: for code that asks torch for the table."""
    return {dtypes.by_name(name): word for name, word in STORAGE_NAMES.items()}


def storage_class(tensor: Tensor) -> StorageType:
    """``x.storage_type()``: the older name of a storage of its dtype."""
    return TYPES[STORAGE_NAMES[tensor.dtype.name]]


def typed_storage(tensor: Tensor) -> TypedStorage:
    """``x.storage()``."""
    return TypedStorage(wrap_storage=untyped_storage(tensor), dtype=tensor.dtype)
