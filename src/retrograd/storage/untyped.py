"""``UntypedStorage``: a piece of memory, in bytes."""

from __future__ import annotations

import copy
import os
import weakref
from typing import Any

import numpy as np

from ..core import dtypes
from ..core.devices import as_device, device, device_of_array_class, is_pinned_array
from ..core.locks import graph_lock
from ..core.shared_memory import FileMap, file_of, is_shared, shared_array
from ..tensor import wrap
from ..tensor.memory_moves import move
from ..tensor.meta import MetaArray

#: By the identity of the array that owns its memory: the storage that somebody has.
_storages: weakref.WeakValueDictionary[int, UntypedStorage] = weakref.WeakValueDictionary()


def _octets(root: Any) -> Any:
    """The bytes of an array's memory, as an array (a copy, where the memory has gaps)."""
    if root.__class__ is MetaArray:
        raise NotImplementedError("Not available for 'meta' device type: there are no bytes")
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
        meta = as_device(device).type == "meta"
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
        if meta:
            self._root = MetaArray.fresh(self._root.shape, self._root.dtype)
        self._hold(self._root)

    @classmethod
    def _of(cls, root: Any) -> UntypedStorage:
        """The storage of an array that owns its memory: the same object for as long as somebody has it."""
        with graph_lock:
            known = _storages.get(id(root))
            if type(known) is cls and known._root is root:
                return known
            result = cls.__new__(cls)
            result._hold(root)
            return result

    def _hold(self, root: Any) -> None:
        """Be the storage of that array."""
        self._root = root
        _storages[id(root)] = self

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """The first bytes of a file, mapped into memory: written to where `shared`, else copied when written to."""
        import mmap

        path = os.fspath(filename)
        try:
            opened = open(path, "a+b" if shared else "rb")
        except OSError as error:
            mode = "read-write" if shared else "read-only"
            raise RuntimeError(
                f"unable to open file <{path}> in {mode} mode: {error.strerror} ({error.errno})"
            ) from None
        with opened as file:
            if shared and os.fstat(file.fileno()).st_size < nbytes:
                file.truncate(nbytes)
            size = os.fstat(file.fileno()).st_size
            if nbytes > size:
                raise RuntimeError(f"file <{path}> size <{size}> is smaller than the required mapping size <{nbytes}>")
            if nbytes == 0:
                return cls()
            if not shared:
                return cls._of(np.frombuffer(mmap.mmap(file.fileno(), nbytes, access=mmap.ACCESS_COPY), np.uint8))
            mapped = FileMap(file.fileno(), nbytes, access=mmap.ACCESS_WRITE)
            mapped.path = str(path)
            return cls._of(np.frombuffer(mapped, np.uint8))

    def data_ptr(self) -> int:
        """The address of the first byte."""
        return 0 if self._is_meta else wrap(self._root).data_ptr()

    @property
    def _is_meta(self) -> bool:
        """Is it memory that is not there, of the device ``meta``?"""
        return self._root.__class__ is MetaArray

    @property
    def _cdata(self) -> int:
        """A number that two storages share if they are one."""
        if self._is_meta:
            return id(self._root.ghost)
        return self.data_ptr() if self._root.nbytes else id(self._root)

    def nbytes(self) -> int:
        """How many bytes it has."""
        return self._root.nbytes

    def __len__(self) -> int:
        return self._root.nbytes

    size = nbytes

    def element_size(self) -> int:
        """How many bytes an element takes: one."""
        return 1

    @property
    def device(self) -> device:
        """Where it is."""
        return device_of_array_class(self._root.__class__)

    is_cuda: Any = property(lambda self: self.device.type == "cuda", doc="Is it on a CUDA device?")
    is_hpu = False
    is_sparse = False
    is_sparse_csr = False

    def _elements_for(self, dtype: np.dtype | None, default: np.dtype) -> np.ndarray:
        """What ``torch.tensor(storage)`` shows of it: its bytes as elements of the dtype, or as int64."""
        wanted = np.dtype(np.int64) if dtype is None else dtype
        octets = _octets(self._root)
        return octets[: octets.size - octets.size % wanted.itemsize].view(wanted)

    def untyped(self) -> UntypedStorage:
        """Itself."""
        return self

    def cpu(self) -> UntypedStorage:
        """Itself, or a copy on the CPU."""
        if self._is_meta:
            raise NotImplementedError("Cannot copy out of meta tensor; no data!")
        return self if self._root.__class__ is np.ndarray else UntypedStorage._of(self._root.get())

    def is_shared(self) -> bool:
        """Is it memory that forked processes share?"""
        return not self._is_meta and is_shared(self._root)

    def is_pinned(self, device: Any = "cuda") -> bool:
        """Does an accelerator read the memory by itself? `device` may say which kind: there is one."""
        as_device(device)
        return type(self._root) is np.ndarray and is_pinned_array(self._root)

    def tolist(self) -> list[int]:
        """All bytes."""
        return list(_octets(self._root).tobytes())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            if index.step not in (None, 1):
                raise RuntimeError(f"Trying to slice with a step of {index.step}, but only a step of 1 is supported")
            return UntypedStorage._of(_octets(self._root)[index])
        return int(_octets(self._root)[index])

    def __setitem__(self, index: Any, value: Any) -> None:
        if self._is_meta:
            return
        _octets(self._root)[index] = value._root if isinstance(value, UntypedStorage) else value

    def fill_(self, value: int) -> UntypedStorage:
        """Set every byte."""
        if not self._is_meta:
            _octets(self._root)[...] = value
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> UntypedStorage:
        """Take the bytes of a storage of the same size."""
        root = source.untyped()._root
        if root.nbytes != self.nbytes():
            raise RuntimeError(f"size does not match, self was {self.nbytes()} bytes but src was {root.nbytes} bytes")
        if self._is_meta:
            return self
        if root.__class__ is MetaArray:
            raise NotImplementedError("Cannot copy out of meta tensor; no data!")
        _octets(self._root)[...] = _octets(root)
        return self

    def clone(self) -> UntypedStorage:
        """The same bytes in memory of their own."""
        if self._is_meta:
            return UntypedStorage(self.nbytes(), device="meta")
        return UntypedStorage._of(_octets(self._root).copy())

    def byteswap(self, dtype: dtypes.dtype) -> None:
        """Turn the bytes of every element of `dtype` around, in place."""
        part = dtype.to_real().np if dtype.is_complex else dtype.np
        elements = _octets(self._root).view(f"u{part.itemsize}")
        elements.byteswap(inplace=True)

    def resizable(self) -> bool:
        """Can it be resized? Memory that is mapped from a file or shared, or that NumPy has lent, cannot."""
        return self._is_meta or bool(self._root.flags.owndata)

    def resize_(self, size: int) -> UntypedStorage:
        """Make it larger or smaller, for all tensors on it; what is added has no values yet.

        >>> import retrograd as torch
        >>> x = torch.tensor([1., 2.])
        >>> _ = x.untyped_storage().resize_(16)
        >>> x.resize_(4)[:2]
        tensor([1., 2.])
        """
        if not isinstance(size, int) or isinstance(size, bool):
            raise TypeError(f"resize_ expects an int, but got {type(size).__name__}")
        if size < 0:
            raise RuntimeError(f"Storage size must not be negative, got {size}")
        if size == self.nbytes():
            return self
        if not self.resizable():
            raise RuntimeError("Trying to resize storage that is not resizable: its memory is another's. clone() it")
        if self._is_meta:
            self._hold(MetaArray.fresh((size,), np.dtype(np.uint8)))
            return self
        grown = np.empty(size, np.uint8)
        count = min(size, self.nbytes())
        grown[:count] = _octets(self._root)[:count]
        move(self._root, grown, UntypedStorage)
        self._hold(grown)
        return self

    def new(self) -> UntypedStorage:
        """Another one, empty."""
        return UntypedStorage()

    def share_memory_(self) -> UntypedStorage:
        """Move the memory, for all tensors on it, to where processes that are forked from now on see it too."""
        if self._is_meta:
            raise RuntimeError("_share_fd_: only available on CPU")
        if not self.is_shared():
            shared = shared_array(self.nbytes())
            shared[...] = _octets(self._root)
            move(self._root, shared, UntypedStorage)
            self._hold(shared)
        return self

    def _swap_data_ptr_(self, other: UntypedStorage) -> None:
        """Exchange the memory of two storages, for all tensors on either; one of them may be empty."""
        if self.device != other.device:
            raise RuntimeError(f"_swap_data_ptr_: the same device is needed, not {self.device} and {other.device}")
        mine, theirs = self.nbytes(), other.nbytes()
        if mine and theirs and mine != theirs:
            raise RuntimeError(f"_swap_data_ptr_: the same nbytes are needed, or none, not {mine} and {theirs}")
        if self == other or self._is_meta:
            return
        roots = _octets(self._root).copy(), _octets(other._root).copy()
        for storage, root in ((self, roots[1]), (other, roots[0])):
            move(storage._root, root, UntypedStorage)
            storage._hold(root)

    def _share_fd_cpu_(self) -> Any:
        """What torch's own code calls to send the memory to another process."""
        return self.share_memory_()

    def _share_filename_cpu_(self) -> Any:
        """The same by the name of a file."""
        if self._is_meta:
            raise RuntimeError("_share_filename_: only available on CPU")
        return self.share_memory_()

    def _write_file(self, file: Any, is_real_file: bool, save_size: bool, element_size: int) -> None:
        """Write the bytes to a file, after the number of elements where `save_size`."""
        if self._is_meta:
            raise NotImplementedError("Cannot copy out of meta tensor; no data!")
        if save_size:
            file.write((self.nbytes() // element_size).to_bytes(8, "little"))
        file.write(_octets(self._root).tobytes())

    def _fix_weakref(self) -> None:
        """Nothing: a weak reference here is Python's own."""

    @property
    def filename(self) -> str | None:
        """The file that it is mapped from and written to with; none where memory is shared without one."""
        return None if self._is_meta else file_of(self._root)

    def get_device(self) -> int | None:
        """The number of the device; None of the CPU, which has none."""
        return self.device.index

    def to(self, *, device: Any, non_blocking: bool = False) -> UntypedStorage:
        """The bytes on another device: itself if they are there."""
        target = as_device(device)
        if target.type == "meta":
            raise AssertionError("META device module is not loaded: a storage there is made with UntypedStorage(size)")
        place = target.place
        return self.cpu() if place is None else UntypedStorage._of(place.take(self._root, non_blocking))

    def cuda(self, device: Any = None, non_blocking: bool = False) -> UntypedStorage:
        """The bytes in the memory of a CUDA device."""
        return self.to(device="cuda" if device is None else device, non_blocking=non_blocking)

    def pin_memory(self, device: Any = "cuda") -> UntypedStorage:
        """Refused: there is no accelerator to pin memory for."""
        raise RuntimeError("Cannot access accelerator device when none is available: memory is pinned for one")

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def __iter__(self) -> Any:
        return iter(self.tolist())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, UntypedStorage):
            return NotImplemented
        if self._is_meta or other._is_meta:
            return self._cdata == other._cdata
        return self.data_ptr() == other.data_ptr() and self.nbytes() == other.nbytes()

    def __hash__(self) -> int:
        return hash(self._cdata if self._is_meta else self.data_ptr())

    def __copy__(self) -> UntypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict[Any, Any]) -> UntypedStorage:
        if id(self) not in memo:  # by the array that owns the memory, as the tensors on it are copied
            same = self.clone() if self._is_meta else UntypedStorage._of(copy.deepcopy(self._root, memo))
            memo[id(self)] = same
        return memo[id(self)]

    def __reduce__(self) -> tuple[Any, ...]:
        return UntypedStorage, (self._root.tobytes("A"),)

    def __repr__(self) -> str:
        lines = ["..."] if self._is_meta else [f" {octet}" for octet in self.tolist()]
        return "\n".join([*lines, f"[torch.storage.UntypedStorage(device={self.device}) of size {len(self)}]"])
