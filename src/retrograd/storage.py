"""Storages: the memory that tensors are views of, as an object.

``x.untyped_storage()`` counts bytes, ``x.storage()`` elements.  Two tensors share memory if their storages are equal.
`FloatStorage` and its like are torch's older names for a TypedStorage of one dtype, which construct and recognise;
files name the dtype of a piece of memory by them.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np

from . import kernels
from .core import dtypes
from .core.devices import as_device, device, device_of_array_class
from .core.shared_memory import is_shared
from .tensor import Tensor, wrap
from .tensor.tensor import TYPE_NAMES


def _octets(root: Any) -> Any:
    """The bytes of an array's memory, as an array (a copy, where the memory has gaps)."""
    return root.reshape(-1).view(np.uint8) if root.flags.c_contiguous else root.ravel("K").view(np.uint8)


class UntypedStorage:
    """A piece of memory, in bytes.

    >>> import retrograd as torch
    >>> x = torch.zeros(4)
    >>> x[2:].untyped_storage() == x.untyped_storage(), x.untyped_storage().nbytes()
    (True, 16)
    >>> torch.UntypedStorage([1, 2, 255])[2]
    255
    """

    def __init__(self, *args: Any, device: Any = None) -> None:
        as_device(device)
        if len(args) > 1:
            raise TypeError(f"UntypedStorage() takes one positional argument, a size or a sequence, got {len(args)}")
        self._root: Any  # the array that owns the memory
        if not args:
            self._root = np.empty(0, np.uint8)
        elif isinstance(args[0], int) and not isinstance(args[0], bool):
            if args[0] < 0:
                raise RuntimeError(f"Storage size must not be negative, got {args[0]}")
            self._root = np.empty(args[0], np.uint8)
        else:
            try:
                self._root = np.frombuffer(bytearray(args[0]), np.uint8)
            except (TypeError, ValueError) as error:
                raise TypeError(f"UntypedStorage() takes a size or a sequence of bytes: {error}") from None

    @classmethod
    def _of(cls, root: Any) -> UntypedStorage:
        """The storage of an array that owns its memory."""
        result = cls.__new__(cls)
        result._root = root
        return result

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """The first bytes of a file, mapped into memory: written to where `shared`, else copied when written to."""
        import mmap

        path = os.fspath(filename)
        with open(path, "a+b" if shared else "rb") as file:
            if shared and os.fstat(file.fileno()).st_size < nbytes:
                file.truncate(nbytes)
            size = os.fstat(file.fileno()).st_size
            if nbytes > size:
                raise RuntimeError(f"the file {path} has {size} bytes, of which {nbytes} were to be mapped")
            if nbytes == 0:
                return cls()
            access = mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY
            return cls._of(np.frombuffer(mmap.mmap(file.fileno(), nbytes, access=access), np.uint8))

    def data_ptr(self) -> int:
        """The address of the first byte."""
        return wrap(self._root).data_ptr()

    @property
    def _cdata(self) -> int:
        """A number that two storages share if they are one."""
        return self.data_ptr() if self._root.nbytes else id(self._root)

    def nbytes(self) -> int:
        return self._root.nbytes

    def __len__(self) -> int:
        return self._root.nbytes

    size = nbytes

    def element_size(self) -> int:
        return 1

    @property
    def device(self) -> device:
        return device_of_array_class(self._root.__class__)

    is_cuda = False
    is_sparse = False

    def untyped(self) -> UntypedStorage:
        return self

    def cpu(self) -> UntypedStorage:
        return self

    def is_shared(self) -> bool:
        """Is it memory that forked processes share?"""
        return is_shared(self._root)

    def is_pinned(self, device: Any = "cuda") -> bool:
        """Memory that an accelerator reads directly: there is none here."""
        return False

    def tolist(self) -> list[int]:
        """All bytes."""
        return list(self._root.tobytes("A"))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            if index.step not in (None, 1):
                raise RuntimeError(f"Trying to slice with a step of {index.step}, but only a step of 1 is supported")
            return UntypedStorage._of(_octets(self._root)[index])
        return int(_octets(self._root)[index])

    def __setitem__(self, index: Any, value: Any) -> None:
        _octets(self._root)[index] = value._root if isinstance(value, UntypedStorage) else value

    def fill_(self, value: int) -> UntypedStorage:
        """Set every byte."""
        _octets(self._root)[...] = value
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> UntypedStorage:
        """Take the bytes of a storage of the same size."""
        root = source.untyped()._root
        if root.nbytes != self.nbytes():
            raise RuntimeError(f"size does not match, self was {self.nbytes()} bytes but src was {root.nbytes} bytes")
        _octets(self._root)[...] = _octets(root)
        return self

    def clone(self) -> UntypedStorage:
        """The same bytes in memory of their own."""
        return UntypedStorage._of(_octets(self._root).copy())

    def byteswap(self, dtype: dtypes.dtype) -> None:
        """Turn the bytes of every element of `dtype` around, in place."""
        part = dtype.to_real().np if dtype.is_complex else dtype.np
        elements = _octets(self._root).view(f"u{part.itemsize}")
        elements.byteswap(inplace=True)

    def resize_(self, size: int) -> UntypedStorage:
        """Refused, but for the size that it has: arrays cannot follow memory that moves."""
        if size != self.nbytes():
            raise RuntimeError(
                f"Trying to resize storage that is not resizable: it has {self.nbytes()} bytes, which tensors show. "
                "Resize a tensor, x.resize_(...), which moves to other memory"
            )
        return self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, UntypedStorage):
            return NotImplemented
        return self.data_ptr() == other.data_ptr() and self.nbytes() == other.nbytes()

    def __hash__(self) -> int:
        return hash(self.data_ptr())

    def __copy__(self) -> UntypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict[Any, Any]) -> UntypedStorage:
        if id(self) not in memo:
            memo[id(self)] = self.clone()
        return memo[id(self)]

    def __reduce__(self) -> tuple[Any, ...]:
        return UntypedStorage, (self._root.tobytes("A"),)

    def __repr__(self) -> str:
        lines = [f" {octet}" for octet in self.tolist()]
        return "\n".join([*lines, f"[torch.storage.UntypedStorage(device={self.device}) of size {len(self)}]"])


class TypedStorage:
    """A piece of memory, in elements of a dtype.

    >>> import retrograd as torch
    >>> s = torch.tensor([1., 2., 3.])[1:].storage()
    >>> len(s), s[0], s.tolist()
    (3, 1.0, [1.0, 2.0, 3.0])
    """

    def __init__(
        self, *args: Any, wrap_storage: Any = None, dtype: Any = None, device: Any = None, _internal: bool = False
    ) -> None:
        as_device(device)
        self.dtype: dtypes.dtype = dtype if dtype is not None else dtypes.get_default_dtype()
        self._untyped: UntypedStorage
        if wrap_storage is not None:
            if args:
                raise RuntimeError("TypedStorage() takes either a size or a sequence, or wrap_storage=, not both")
            if not isinstance(wrap_storage, UntypedStorage):
                raise TypeError(
                    "Argument 'wrap_storage' must be UntypedStorage, but got " + type(wrap_storage).__name__
                )
            self._untyped = wrap_storage
        elif not args or (isinstance(args[0], int) and not isinstance(args[0], bool)):
            self._untyped = UntypedStorage((args[0] if args else 0) * self.dtype.itemsize)
        else:
            values = wrap(np.asarray(list(args[0]))) if not isinstance(args[0], Tensor) else args[0]
            self._untyped = UntypedStorage._of(values._data.astype(self.dtype.np))
        octets = _octets(self._untyped._root)
        whole = octets.size - octets.size % self.dtype.itemsize
        self._elements = octets[:whole].view(self.dtype.np)

    @property
    def _untyped_storage(self) -> UntypedStorage:
        return self._untyped

    def untyped(self) -> UntypedStorage:
        """The same memory in bytes."""
        return self._untyped

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self._untyped.data_ptr()

    _data_ptr = data_ptr

    @property
    def _cdata(self) -> int:
        return self._untyped._cdata

    def nbytes(self) -> int:
        return self._untyped.nbytes()

    def element_size(self) -> int:
        return self.dtype.itemsize

    def size(self) -> int:
        return self.nbytes() // self.element_size()

    __len__ = _size = size

    @property
    def device(self) -> device:
        return self._untyped.device

    is_cuda = False
    is_sparse = False

    def is_shared(self) -> bool:
        """Is it memory that forked processes share?"""
        return self.untyped().is_shared()

    def is_pinned(self, device: Any = "cuda") -> bool:
        """Memory that an accelerator reads directly: there is none here."""
        return False

    def pickle_storage_type(self) -> str:
        """The name that files have for it."""
        return STORAGE_NAMES[self.dtype.name]

    _pickle_storage_type = pickle_storage_type

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """``'torch.FloatStorage'``; of a dtype or such a name, a copy with elements of it."""
        if dtype is None:
            return f"torch.{self.pickle_storage_type()}"
        if isinstance(dtype, str):
            dtype = TYPES[dtype.removeprefix("torch.")]
        return self._to(dtype.dtype if isinstance(dtype, StorageType) else dtype)

    def _to(self, dtype: dtypes.dtype) -> TypedStorage:
        return TypedStorage(wrap_storage=UntypedStorage._of(self._elements.astype(dtype.np)), dtype=dtype)

    def cpu(self) -> TypedStorage:
        return self

    def clone(self) -> TypedStorage:
        """The same elements in memory of their own."""
        return TypedStorage(wrap_storage=self._untyped.clone(), dtype=self.dtype)

    def copy_(self, source: Any, non_blocking: bool | None = None) -> TypedStorage:
        """Take the elements of a storage of the same length."""
        if isinstance(source, UntypedStorage):
            self._untyped.copy_(source)
        elif len(source) != len(self):
            raise RuntimeError(f"size does not match, self was {len(self)} elements but src was {len(source)} elements")
        else:
            self._elements[...] = source._elements
        return self

    def fill_(self, value: Any) -> TypedStorage:
        """Set every element."""
        self._elements[...] = value
        return self

    def resize_(self, size: int) -> TypedStorage:
        """Refused, but for the size that it has: see `UntypedStorage.resize_`."""
        self._untyped.resize_(size * self.element_size())
        return self

    def tolist(self) -> list[Any]:
        """All elements."""
        return self._elements.tolist()

    def __iter__(self) -> Any:
        return iter(self.tolist())

    def __getitem__(self, index: int) -> Any:
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        return self._elements[index].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._elements[index] = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedStorage) and self.dtype is other.dtype and self._untyped == other._untyped

    def __hash__(self) -> int:
        return hash(self._untyped)

    def __copy__(self) -> TypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict[Any, Any]) -> TypedStorage:
        if id(self) not in memo:
            memo[id(self)] = self.clone()
        return memo[id(self)]

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self._untyped, self.dtype)

    def __repr__(self) -> str:
        lines = [f" {element}" for element in self.tolist()]
        described = f"dtype={self.dtype}, device={self.device}"
        return "\n".join([*lines, f"[torch.storage.TypedStorage({described}) of size {len(self)}]"])


def _rebuild(untyped: UntypedStorage, dtype: dtypes.dtype) -> TypedStorage:
    return TypedStorage(wrap_storage=untyped, dtype=dtype)


def _conversion(name: str) -> Any:
    def convert(self: TypedStorage) -> TypedStorage:
        return self._to(dtypes.by_name(name))

    convert.__doc__ = f"A copy with elements of {name}."
    return convert


for _word, _name in {
    "bool": "bool", "byte": "uint8", "char": "int8", "short": "int16", "int": "int32", "long": "int64",
    "half": "float16", "bfloat16": "bfloat16", "float": "float32", "double": "float64",
    "complex_float": "complex64", "complex_double": "complex128",
}.items():  # fmt: skip
    setattr(TypedStorage, _word, _conversion(_name))


# --------------------------------------------------------------------------------------------------------- older names

#: By the name of a dtype: FloatStorage, DoubleStorage, ...
STORAGE_NAMES = {name: word.replace("Tensor", "Storage") for name, word in TYPE_NAMES.items()}


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

    def __call__(cls, *args: Any, wrap_storage: Any = None, device: Any = None) -> TypedStorage:
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
    word: StorageType(word, (), {"dtype_name": name, "__module__": __name__.partition(".")[0]})
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

__all__ = [
    "BFloat16Storage", "BoolStorage", "ByteStorage", "CharStorage", "ComplexDoubleStorage", "ComplexFloatStorage",
    "DoubleStorage", "FloatStorage", "HalfStorage", "IntStorage", "LongStorage", "ShortStorage", "TypedStorage",
    "UntypedStorage",
]  # fmt: skip


# --------------------------------------------------------------------------------------------------- of a given tensor


def untyped_storage(tensor: Tensor) -> UntypedStorage:
    """``x.untyped_storage()``."""
    return UntypedStorage._of(kernels.storage_root(tensor._memory))


def typed_storage(tensor: Tensor) -> TypedStorage:
    """``x.storage()``."""
    return TypedStorage(wrap_storage=untyped_storage(tensor), dtype=tensor.dtype)
