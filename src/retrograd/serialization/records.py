"""The records of a file that `save` writes, one by one: what ``torch._C.PyTorchFileReader`` and its writer are.

>>> import io, retrograd as torch
>>> file = io.BytesIO()
>>> torch.save(torch.ones(2), file)
>>> reader = PyTorchFileReader(io.BytesIO(file.getvalue()))
>>> reader.has_record("byteorder"), reader.get_record_size("data/0")
(True, 8)
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..ops import namespace as ops
from ..storage import UntypedStorage
from ..tensor import Tensor
from ..utils.serialization import config
from .load_error import LoadError
from .write_aside import open_or_refuse
from .zip_reader import ZipReader
from .zip_writer import ZipWriter

#: The protocol that `save` pickles with.
DEFAULT_PROTOCOL = 2


def _is_path(name_or_buffer: Any) -> bool:
    return isinstance(name_or_buffer, (str, os.PathLike))


@contextlib.contextmanager
def _open_file_like(name_or_buffer: Any, mode: str) -> Iterator[Any]:
    """A file by its name, or one that somebody else has opened, and closes."""
    if not _is_path(name_or_buffer):
        yield name_or_buffer
        if "w" in mode and hasattr(name_or_buffer, "flush"):
            name_or_buffer.flush()
        return
    with open(name_or_buffer, mode) as file:
        yield file


class PyTorchFileReader:
    """What lies in an archive, by the names of its records."""

    #: The file, if it was opened here.
    _opened: Any = None

    def __init__(self, name_or_buffer: Any) -> None:
        file = name_or_buffer
        if _is_path(name_or_buffer):
            file = self._opened = open_or_refuse(os.fsdecode(name_or_buffer), "rb")
        try:
            self._archive = ZipReader(file)
        except LoadError as error:
            self.close()
            raise RuntimeError(str(error)) from error

    def close(self) -> None:
        """Let go of a file that it has opened."""
        if self._opened is not None:
            self._opened.close()

    __del__ = close

    def _member(self, name: str) -> Any:
        try:
            return self._archive.member(name)
        except LoadError as error:
            raise RuntimeError(str(error)) from None

    def get_all_records(self) -> list[str]:
        """The names of all records."""
        before = f"{self._archive.directory}/"
        return [name.removeprefix(before) for name in self._archive.members]

    def has_record(self, name: str) -> bool:
        return name in self._archive

    def get_record(self, name: str) -> bytes:
        """The bytes of a record."""
        self._member(name)
        return self._archive.read(name)

    def get_record_size(self, name: str) -> int:
        return self._member(name).size

    def get_record_offset(self, name: str) -> int:
        """Where the bytes of a record lie in the file."""
        return self._archive.position(self._member(name))

    def get_record_header_offset(self, name: str) -> int:
        return self._member(name).header

    def get_storage_from_record(self, name: str, numel: int, dtype: Any) -> Tensor:
        """A tensor without elements whose storage has those of a record."""
        member = self._member(name)
        if member.size != numel * dtype.itemsize:
            raise RuntimeError(f"the record {name} has {member.size} bytes, not {numel} elements of {dtype}")
        octets = np.empty(member.size, np.uint8)
        self._archive.read_into(member, octets)
        result = ops.empty(0, dtype=dtype)
        return result.set_(UntypedStorage._of(octets), 0, (0,), (1,))  # type: ignore[attr-defined]

    def serialization_id(self) -> str:
        """What tells the file from others, if it says so."""
        name = ".data/serialization_id"
        return self.get_record(name).decode() if self.has_record(name) else ""


class PyTorchFileWriter:
    """An archive in the making, record by record."""

    _opened: Any = None
    #: Has it no table of contents yet?
    _unfinished = False

    def __init__(self, name_or_buffer: Any, compute_crc32: bool = True, storage_alignment: int | None = None) -> None:
        if _is_path(name_or_buffer):
            self._opened = open_or_refuse(os.fsdecode(name_or_buffer), "wb")
        name = os.path.basename(os.fsdecode(name_or_buffer)) if self._opened is not None else "archive"
        self._name = name.rpartition(".")[0] or name
        alignment = config.save.storage_alignment if storage_alignment is None else storage_alignment
        file = name_or_buffer if self._opened is None else self._opened
        self._archive = ZipWriter(file, self._name, alignment, compute_crc32)
        self._written: list[str] = []
        self._unfinished = True

    def __del__(self) -> None:
        if self._unfinished:
            self.write_end_of_file()

    def archive_name(self) -> str:
        """The directory that all records are in."""
        return self._name

    def get_all_written_records(self) -> set[str]:
        return set(self._written)

    def _add(self, name: str, data: Any) -> None:
        self._check_unfinished()
        if name in self._written:
            raise RuntimeError(f"Tried to serialize file twice: {name}")
        self._archive.add(name, data)
        self._written.append(name)

    def _check_unfinished(self) -> None:
        if not self._unfinished:
            raise RuntimeError("write_record(): write_end_of_file() was called, behind which nothing is found")

    def write_record(self, name: str, data: Any, size: int) -> None:
        """A record of the first bytes of `data`: bytes, a string or a storage."""
        if isinstance(data, str):
            data = data.encode()
        elif not isinstance(data, (bytes, bytearray, memoryview)):
            data = bytes((data.untyped() if hasattr(data, "untyped") else data).tolist())
        if size > len(data):
            raise RuntimeError(f"write_record(): {size} bytes of {name}, which has {len(data)}")
        self._add(name, bytes(memoryview(data)[:size]))

    def write_record_metadata(self, name: str, size: int) -> None:
        """A record of so many bytes, which are left zero for who writes them later."""
        self._add(name, size)

    def write_end_of_file(self) -> None:
        """The table of contents; without it, it is written when nobody refers to the archive any more."""
        self._check_unfinished()
        for name, data in (("byteorder", sys.byteorder.encode()), ("version", b"3\n")):
            if name not in self._written:
                self._add(name, data)
        self._unfinished = False
        self._archive.finish()
        if self._opened is not None:
            self._opened.close()


@contextlib.contextmanager
def _open_zipfile_reader(name_or_buffer: Any) -> Iterator[PyTorchFileReader]:
    reader = PyTorchFileReader(name_or_buffer)
    try:
        yield reader
    finally:
        reader.close()


@contextlib.contextmanager
def _open_zipfile_writer(name_or_buffer: Any) -> Iterator[PyTorchFileWriter]:
    writer = PyTorchFileWriter(name_or_buffer)
    try:
        yield writer
    finally:
        writer.write_end_of_file()
    if not _is_path(name_or_buffer) and hasattr(name_or_buffer, "flush"):
        name_or_buffer.flush()
