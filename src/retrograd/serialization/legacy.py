"""The format of torch before 1.6, and of ``save(..., _use_new_zipfile_serialization=False)``: pickles, then memory.

A magic number, a version and a few facts about the machine, each as a pickle; the object; the names of its storages;
and for each of them, in that order, the number of its elements and its memory.
"""

from __future__ import annotations

import os
import pickle
import struct
import sys
from collections.abc import Callable
from typing import Any

from ..core import dtypes
from ..storage import TypedStorage, UntypedStorage
from .archive import check_reference, check_values, dtype_of, put, text
from .load_error import LoadError
from .options import data_is_skipped
from .pickler import Piece
from .unpicklers import Unpicklers
from .zip_writer import CHUNK, write_all

MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001
_COUNT = struct.Struct("<q")


def write_legacy(file: Any, body: bytes, pieces: list[Piece], protocol: int) -> None:
    """The file; `body` is the pickle of the object."""
    facts = {
        "protocol_version": PROTOCOL_VERSION,
        "little_endian": sys.byteorder == "little",
        "type_sizes": {"short": 2, "int": 4, "long": struct.calcsize("l")},
    }
    for fact in (MAGIC_NUMBER, PROTOCOL_VERSION, facts):
        write_all(file, pickle.dumps(fact, protocol))
    write_all(file, body)
    write_all(file, pickle.dumps([piece.key for piece in pieces], protocol))
    for piece in pieces:
        element_size = 1 if piece.kind is UntypedStorage else piece.kind.dtype.itemsize
        write_all(file, _COUNT.pack(piece.octets.size // element_size))
        for start in range(0, piece.octets.size, CHUNK):
            write_all(file, piece.octets[start : start + CHUNK].data)


def may_be_legacy(magic: bytes) -> bool:
    """Does a file that begins like this begin with the magic number, in a pickle of any protocol?"""
    number = MAGIC_NUMBER.to_bytes(10, "little")
    return (magic[:1] == b"\x80" and number in magic) or magic.startswith(b"L%d" % MAGIC_NUMBER)


# ------------------------------------------------------------------------------------------------------------- reading


def load_legacy(file: Any, unpicklers: Unpicklers, restore: Callable) -> Any:
    """The object of the file."""
    bounded = _Bounded(file)

    def next_pickle(get: Callable = _refuse) -> Any:
        return unpicklers.load(bounded, bounded.size, get)

    if next_pickle() != MAGIC_NUMBER:
        raise LoadError("Invalid magic number; corrupt file?")
    version = next_pickle()
    if version != PROTOCOL_VERSION:
        raise LoadError(f"Invalid protocol version: {str(version)[:50]}")
    next_pickle()  # facts about the machine, which say nothing: memory is little-endian on all of them
    storages = _Storages(bounded, restore)
    result = next_pickle(storages.get)
    storages.fill(next_pickle())
    return result


def _refuse(pid: Any) -> Any:
    raise LoadError("there is a reference in the file where none can be")


class _Bounded:
    """A file that is never asked for more than it has: it might make room for that first."""

    def __init__(self, file: Any) -> None:
        self.file = file
        start = file.tell()
        self.end = file.seek(0, os.SEEK_END)
        self.size = self.end - start
        file.seek(start)

    def left(self) -> int:
        return self.end - self.file.tell()

    def read(self, size: int) -> bytes:
        if not 0 <= size <= self.left():
            raise LoadError("the file ends early: it was not written to its end")
        chunks = []
        while size:
            chunk = self.file.read(size)
            if not chunk:
                raise LoadError("the file ends early: it was not written to its end")
            chunks.append(chunk)
            size -= len(chunk)
        return b"".join(chunks)

    def read_into(self, view: memoryview) -> None:
        while view:
            if hasattr(self.file, "readinto"):
                got = self.file.readinto(view) or 0
            else:
                data = self.file.read(len(view))
                got = len(data)
                view[:got] = data
            if not got:
                raise LoadError("the file ends early: it was not written to its end")
            view = view[got:]

    def readline(self) -> bytes:
        return self.file.readline()


class _Storages:
    """The storages of a file: made when the pickle refers to them, and filled from what follows it."""

    def __init__(self, file: _Bounded, restore: Callable) -> None:
        self.file = file
        self.restore = restore
        self.room = file.size
        self.found: dict[str, tuple[Any, Any, UntypedStorage]] = {}  # the class, what the pickle gets, its memory
        self.views: dict[str, Any] = {}

    def get(self, pid: Any) -> Any:
        """For a reference in the pickle: ("storage", FloatStorage, "93824", "cpu", 4, None)."""
        if type(pid) is tuple and pid and pid[0] in ("module", b"module") and len(pid) == 4:
            return pid[1]  # a class, and the source that it had: what counts is what it is now
        kind, key, location, count, view = check_reference(pid, 6)
        dtype = dtype_of(kind)
        if key not in self.found:
            size = count * dtype.itemsize
            if not 0 <= size <= self.room:
                raise LoadError(f"storage {key!r} of the file has {count} elements, which are not there")
            self.room -= size
            memory = UntypedStorage(size)
            moved = put(self.restore, memory, location)
            made = moved if kind is UntypedStorage else TypedStorage(wrap_storage=moved, dtype=dtype)
            self.found[key] = kind, made, memory
        known, made, _ = self.found[key]
        if known is not kind:
            raise LoadError(f"storage {key!r} of the file is of two kinds")
        return made if view is None else self._view(made, dtype, view)

    def _view(self, made: Any, dtype: dtypes.dtype, view: Any) -> Any:
        """A part of a storage, which files before 2017 have."""
        if type(view) is not tuple or len(view) != 3 or not all(type(n) is int and n >= 0 for n in view[1:]):
            raise LoadError("a part of a storage in the file is described in a way that makes no sense")
        key, offset, count = view
        if key not in self.views:
            start = offset * dtype.itemsize
            part = made.untyped()[start : start + count * dtype.itemsize]
            self.views[key] = TypedStorage(wrap_storage=part, dtype=dtype)
        return self.views[key]

    def fill(self, keys: Any) -> None:
        """Read it all."""
        if type(keys) is not list or sorted(map(text, keys)) != sorted(self.found):
            raise LoadError("the file does not have the storages that its objects refer to")
        for key in keys:
            kind, _, memory = self.found[text(key)]
            dtype = dtype_of(kind)
            (count,) = _COUNT.unpack(self.file.read(_COUNT.size))
            if count * dtype.itemsize != memory.nbytes():
                raise LoadError(f"storage {key!r} of the file has {count} elements, and others are referred to")
            octets = memory._root
            for start in range(0, octets.size, CHUNK):
                piece = octets[start : start + CHUNK]
                if data_is_skipped():
                    self.file.read(piece.size)
                else:
                    self.file.read_into(piece.data)
            if sys.byteorder == "big":
                memory.byteswap(dtype)
            check_values(memory, dtype)
