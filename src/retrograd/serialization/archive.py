"""Loading from a zip archive of torch's: see Note [The file format] in `zip_writer.py`.  Called by `load`."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core import dtypes
from ..storage import StorageType, TypedStorage, UntypedStorage
from .load_error import LoadError
from .options import LoadEndianness, data_is_skipped, get_default_load_endianness, get_default_mmap_options
from .unpicklers import Outside, Unpicklers
from .zip_reader import Member, ZipReader

_LATEST_VERSION = 10


def load_archive(file: Any, unpicklers: Unpicklers, restore: Callable[..., Any], mapped: str | None) -> Any:
    """The object in the archive that begins where the file stands, which then stands at its end.

    `mapped` is the path of the file, if its memory is to be mapped.
    """
    archive = _open(file)
    storages = _Storages(archive, restore, mapped)
    body = archive.read("data.pkl")
    result = unpicklers.load(io.BytesIO(body), len(body), storages.get)
    file.seek(archive.start + archive.end)
    return result


def pickle_of_archive(file: Any) -> bytes:
    """The pickle in the archive that begins where the file stands."""
    return _open(file).read("data.pkl")


def _open(file: Any) -> ZipReader:
    archive = ZipReader(file)
    if "constants.pkl" in archive:
        raise LoadError(
            "the file is a TorchScript archive: Cannot use ``weights_only=True`` with TorchScript archives, and "
            "there is no torch.jit here to load them"
        )
    if "version" in archive:
        version = archive.read("version", 100).strip()
        if not version.isdigit() or int(version) > _LATEST_VERSION:
            raise LoadError(
                f"Attempted to read a PyTorch file with version {version.decode(errors='replace')}, but the maximum "
                f"supported version for reading is {_LATEST_VERSION}"
            )
    return archive


def _byte_order(archive: ZipReader) -> str:
    if "byteorder" in archive:
        order = archive.read("byteorder", 100)
        if order not in (b"little", b"big"):
            raise LoadError(f"Unknown endianness type: {order.decode(errors='replace')}")
        return order.decode()
    default = get_default_load_endianness()
    if default is LoadEndianness.NATIVE:
        return sys.byteorder
    return "big" if default is LoadEndianness.BIG else "little"


class _Storages:
    """The storages of an archive: read when the pickle first refers to them."""

    def __init__(self, archive: ZipReader, restore: Callable[..., Any], mapped: str | None) -> None:
        self.archive = archive
        self.restore = restore
        self.swapped = _byte_order(archive) != sys.byteorder
        self.found: dict[str, tuple[Any, Any]] = {}  # by name: the class in the pickle, and the storage
        self.map = None if mapped is None else _map(mapped, archive)

    def get(self, pid: Any) -> Any:
        """For a reference in the pickle: ("storage", FloatStorage, "0", "cpu", 4)."""
        kind, key, location, count = check_reference(pid, 5)
        if key in self.found:
            known, storage = self.found[key]
            if known is not kind:
                raise LoadError(f"storage {key!r} of the file is of two kinds")
            return storage
        dtype = dtype_of(kind)
        member = self.archive.member(f"data/{key}")
        if count < 0 or count != member.size // dtype.itemsize:
            raise LoadError(
                f"record size ({member.size} bytes) does not match expected size ({count * dtype.itemsize} bytes) of "
                f"storage {key!r}: {count} elements of {dtype}"
            )
        untyped = UntypedStorage._of(self._memory(member))
        if self.swapped:
            untyped.byteswap(dtype)
        check_values(untyped, dtype)
        untyped = put(self.restore, untyped, location)
        storage = untyped if kind is UntypedStorage else TypedStorage(wrap_storage=untyped, dtype=dtype)
        self.found[key] = kind, storage
        return storage

    def _memory(self, member: Member) -> np.ndarray:
        if self.map is not None:
            start = self.archive.start + self.archive.position(member)
            return np.frombuffer(self.map, np.uint8, member.size, start)
        if data_is_skipped():
            return np.empty(member.size, np.uint8)
        octets = np.empty(member.size, np.uint8)
        self.archive.read_into(member, octets)
        return octets


def _map(path: str, archive: ZipReader) -> Any:
    import mmap

    shared = get_default_mmap_options() == getattr(mmap, "MAP_SHARED", None)
    with open(path, "r+b" if shared else "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY)


# -------------------------------------------------------------------------------------------------- for both formats


def check_reference(pid: Any, length: int) -> tuple[Any, ...]:
    """The parts of a reference to a storage, if it is one."""
    if type(pid) is not tuple or len(pid) != length or pid[0] not in ("storage", b"storage"):
        what = type(pid[0] if type(pid) is tuple and pid else pid)
        raise LoadError(f"Only persistent_load of storage is allowed, but got {what}")
    _, kind, key, location, count, *rest = pid
    if not (isinstance(kind, StorageType) or kind is UntypedStorage) or type(count) is not int:
        raise LoadError("there is a reference in the file to a storage that cannot be")
    return (kind, text(key), text(location), count, *rest)


def put(restore: Callable[..., Any], storage: UntypedStorage, location: str) -> UntypedStorage:
    """The storage where it is to be."""
    try:
        return restore(storage, location)
    except LoadError:
        raise
    except Exception as error:
        raise Outside(error) from error


def text(value: Any) -> str:
    """A name in a pickle: Python 2 wrote bytes."""
    if type(value) is bytes:
        return value.decode("ascii")
    if type(value) is not str:
        raise LoadError(f"a name in the file is a {type(value).__name__}")
    return value


def dtype_of(kind: Any) -> dtypes.dtype:
    """What the elements of a storage of this class are."""
    return dtypes.uint8 if kind is UntypedStorage else kind.dtype


def check_values(storage: UntypedStorage, dtype: dtypes.dtype) -> None:
    """Truth values are 0 or 1: NumPy counts on it."""
    if dtype is dtypes.bool_ and storage.nbytes() and not data_is_skipped() and storage._root.max() > 1:
        raise LoadError("the file has a truth value that is neither 0 nor 1")
