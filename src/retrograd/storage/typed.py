"""``TypedStorage``: a piece of memory, in elements of a dtype."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from .. import kernels
from ..core import dtypes
from ..core.devices import as_device, device
from ..tensor import Tensor, wrap
from ..tensor.tensor import TYPE_NAMES
from .untyped import UntypedStorage, _octets

#: By the name of a dtype: FloatStorage, DoubleStorage, ...
STORAGE_NAMES = {name: word.replace("Tensor", "Storage") for name, word in TYPE_NAMES.items()}


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
        meta = as_device(device).type == "meta"
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
            self._untyped = UntypedStorage((args[0] if args else 0) * self.dtype.itemsize, device=device)
        elif meta:
            self._untyped = UntypedStorage(len(args[0]) * self.dtype.itemsize, device=device)
        else:
            values = wrap(np.asarray(list(args[0]))) if not isinstance(args[0], Tensor) else args[0]
            self._untyped = UntypedStorage._of(values._numbers_.astype(self.dtype.np))

    @property
    def _elements(self) -> np.ndarray:
        """The memory as numbers; bytes that are left over are left out."""
        octets = _octets(self._untyped._root)
        whole = octets.size - octets.size % self.dtype.itemsize
        return octets[:whole].view(self.dtype.np)

    def _elements_for(self, dtype: np.dtype | None, default: np.dtype) -> np.ndarray:
        """What ``torch.tensor(storage)`` shows of it: the dtype has to be its own."""
        wanted = default if dtype is None else dtype
        if self.dtype.np != wanted:
            raise RuntimeError(
                f"Expected a Storage of type {dtypes.SCALAR_NAMES[dtypes.from_numpy_dtype(wanted).name]} or an "
                f"UntypedStorage, but got {dtypes.SCALAR_NAMES[self.dtype.name]}"
            )
        return self._elements

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
        """How many bytes it has."""
        return self._untyped.nbytes()

    def element_size(self) -> int:
        """How many bytes an element takes."""
        return self.dtype.itemsize

    def size(self) -> int:
        """How many elements it has."""
        return self.nbytes() // self.element_size()

    __len__ = _size = size

    @property
    def device(self) -> device:
        """Where it is."""
        return self._untyped.device

    is_cuda = False
    is_hpu = False
    is_sparse = False

    def is_shared(self) -> bool:
        """Is it memory that forked processes share?"""
        return self.untyped().is_shared()

    def is_pinned(self, device: Any = "cuda") -> bool:
        """Does an accelerator read the memory by itself? `device` may say which kind: there is one."""
        return self._untyped.is_pinned(device)

    def pickle_storage_type(self) -> str:
        """The name that files have for it."""
        if self.dtype.name not in STORAGE_NAMES:
            raise KeyError(f"dtype {self.dtype} is not recognized: files have no name for such a storage")
        return STORAGE_NAMES[self.dtype.name]

    _pickle_storage_type = pickle_storage_type

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """``'torch.FloatStorage'``; of a dtype or such a name, a copy with elements of it."""
        if dtype is None:
            name = STORAGE_NAMES.get(self.dtype.name)
            return "torch.storage.TypedStorage" if name is None else f"torch.{name}"
        return self._to(_storage_dtype(dtype))

    def _to(self, dtype: dtypes.dtype) -> TypedStorage:
        return TypedStorage(wrap_storage=UntypedStorage._of(kernels.to_copy(self._elements, dtype.np)), dtype=dtype)

    def cpu(self) -> TypedStorage:
        """Itself, or a copy on the CPU."""
        memory = self._untyped.cpu()
        return self if memory is self._untyped else self._new_wrapped_storage(memory)

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
            if source._untyped._is_meta:
                raise NotImplementedError("Cannot copy out of meta tensor; no data!")
            if not self._untyped._is_meta:
                self._elements[...] = kernels.to_dtype(source._elements, self.dtype.np)
        return self

    def fill_(self, value: Any) -> TypedStorage:
        """Set every element."""
        if not self._untyped._is_meta:
            self._elements[...] = kernels.element(value, self.dtype.np)
        return self

    def resizable(self) -> bool:
        """Can it be resized?"""
        return self._untyped.resizable()

    def resize_(self, size: int) -> TypedStorage:
        """Make it larger or smaller, for all tensors on it: see `UntypedStorage.resize_`."""
        self._untyped.resize_(size * self.element_size())
        return self

    def share_memory_(self) -> TypedStorage:
        """See `UntypedStorage.share_memory_`."""
        self._untyped.share_memory_()
        return self

    @property
    def filename(self) -> str | None:
        """The file that it is mapped from, and written to with."""
        return self._untyped.filename

    def get_device(self) -> int | None:
        """The number of the device; None of the CPU, which has none."""
        return self.device.index

    def to(self, *, device: Any, non_blocking: bool = False) -> TypedStorage:
        """The storage on a device: itself, on the CPU."""
        as_device(device)
        return self

    def cuda(self, device: Any = None, non_blocking: bool = False) -> TypedStorage:
        """Refused: there is no such device."""
        raise AssertionError("Torch not compiled with CUDA enabled: there is no CUDA device here")

    def pin_memory(self, device: Any = "cuda") -> TypedStorage:
        """Refused: there is no accelerator to pin memory for."""
        raise RuntimeError("Cannot access accelerator device when none is available: memory is pinned for one")

    def _new_wrapped_storage(self, untyped_storage: UntypedStorage) -> TypedStorage:
        return TypedStorage(wrap_storage=untyped_storage, dtype=self.dtype)

    @classmethod
    def from_buffer(cls, *args: Any, **kwargs: Any) -> TypedStorage:
        """The older classes have it: ``FloatStorage.from_buffer``."""
        raise RuntimeError("from_buffer: only supported for subclasses of TypedStorage, such as torch.FloatStorage")

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, size: int = 0) -> TypedStorage:
        """The older classes have it: ``FloatStorage.from_file``."""
        raise RuntimeError("from_file can only be called on derived classes, such as torch.FloatStorage")

    def tolist(self) -> list[Any]:
        """All elements."""
        return self._elements.tolist()

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def __iter__(self) -> Any:
        return iter(self.tolist())

    def __getitem__(self, index: int) -> Any:
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        if not isinstance(index, int):
            raise TypeError(f"can't index a {type(self)} with {type(index)}")
        if not self._untyped._is_meta:
            self._check(index)
        return self._elements[index].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        if not isinstance(index, (int, slice)):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        if isinstance(index, int):
            self._check(index)
        if isinstance(value, TypedStorage):
            raise RuntimeError(f"cannot set item with value type {type(value)}")
        if not self._untyped._is_meta:
            self._elements[index] = kernels.element(value, self.dtype.np)

    def _check(self, index: int) -> None:
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} out of range for storage of size {len(self)}")

    # What torch calls these in its own code, which is not to warn of a deprecated class.
    _getitem, _setitem, _resize_, _share_memory_ = __getitem__, __setitem__, resize_, share_memory_
    _nbytes, _element_size, _is_shared = nbytes, element_size, is_shared

    def _share_fd_cpu_(self) -> Any:
        """See `UntypedStorage._share_fd_cpu_`."""
        return self._untyped._share_fd_cpu_()

    def _share_filename_cpu_(self) -> Any:
        """See `UntypedStorage._share_filename_cpu_`."""
        return self._untyped._share_filename_cpu_()

    def _write_file(self, *args: Any, **kwargs: Any) -> None:
        """See `UntypedStorage._write_file`."""
        self._untyped._write_file(*args, **kwargs)

    @property
    def _dtype(self) -> dtypes.dtype:
        return self.dtype

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedStorage) and self.dtype is other.dtype and self._untyped == other._untyped

    def __hash__(self) -> int:
        return hash(self._untyped)

    def __copy__(self) -> TypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict[Any, Any]) -> TypedStorage:
        if id(self) not in memo:
            memo[id(self)] = self._new_wrapped_storage(copy.deepcopy(self._untyped, memo))
        return memo[id(self)]

    _deepcopy = __deepcopy__

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self._untyped, self.dtype)

    def __repr__(self) -> str:
        lines = ["..."] if self._untyped._is_meta else [f" {element}" for element in self.tolist()]
        described = f"dtype={self.dtype}, device={self.device}"
        return "\n".join([*lines, f"[torch.storage.TypedStorage({described}) of size {len(self)}]"])


def _rebuild(untyped: UntypedStorage, dtype: dtypes.dtype) -> TypedStorage:
    return TypedStorage(wrap_storage=untyped, dtype=dtype)


def _storage_dtype(dtype: Any) -> dtypes.dtype:
    """What a caller of ``type`` means: a dtype, ``torch.FloatStorage`` or its name."""
    if isinstance(dtype, str):
        found = [name for name, word in STORAGE_NAMES.items() if f"torch.{word}" == dtype]
        if not found:
            raise TypeError(f"invalid type: {dtype!r}")
        return dtypes.by_name(found[0])
    dtype = getattr(dtype, "dtype", dtype)
    if not isinstance(dtype, dtypes.dtype):
        raise TypeError(f"dtype must be torch.dtype, not {type(dtype).__name__}")
    return dtype


def _untyped_type(self: UntypedStorage, dtype: Any = None, non_blocking: bool = False) -> Any:
    """``'torch.storage.UntypedStorage'``; of a dtype, its bytes as numbers of it."""
    return "torch.storage.UntypedStorage" if dtype is None else _bytes_to(self, _storage_dtype(dtype))


def _bytes_to(self: UntypedStorage, dtype: dtypes.dtype) -> TypedStorage:
    return TypedStorage(wrap_storage=self, dtype=dtypes.uint8)._to(dtype)


UntypedStorage.type, UntypedStorage._to = _untyped_type, _bytes_to  # type: ignore[attr-defined]


def _conversion(name: str) -> Any:
    def convert(self: Any) -> TypedStorage:
        return self._to(dtypes.by_name(name))

    convert.__doc__ = f"A copy with elements of {name}."
    return convert


for _word, _name in {
    "bool": "bool", "byte": "uint8", "char": "int8", "short": "int16", "int": "int32", "long": "int64",
    "half": "float16", "bfloat16": "bfloat16", "float": "float32", "double": "float64",
    "complex_float": "complex64", "complex_double": "complex128", "float8_e4m3fn": "float8_e4m3fn",
    "float8_e5m2": "float8_e5m2", "float8_e4m3fnuz": "float8_e4m3fnuz", "float8_e5m2fnuz": "float8_e5m2fnuz",
}.items():  # fmt: skip
    for _class in (TypedStorage, UntypedStorage):
        setattr(_class, _word, _conversion(_name))
