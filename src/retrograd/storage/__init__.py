"""Storages: the memory that tensors are views of, as an object.

``x.untyped_storage()`` counts bytes, ``x.storage()`` elements.  Two tensors share memory if their storages are equal.
`FloatStorage` and its like are torch's older names for a TypedStorage of one dtype, which construct and recognise;
files name the dtype of a piece of memory by them.  See Note [Moving storages] in tensor/memory_moves.py.
"""

from __future__ import annotations

from .. import kernels
from ..tensor import Tensor
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
    return UntypedStorage._of(kernels.storage_root(tensor._memory_))


def typed_storage(tensor: Tensor) -> TypedStorage:
    """``x.storage()``."""
    return TypedStorage(wrap_storage=untyped_storage(tensor), dtype=tensor.dtype)
