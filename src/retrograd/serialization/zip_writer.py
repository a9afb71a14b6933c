"""Writing torch's kind of zip archive, front to back, to anything with a ``write``.  Called by `save`.

Note [The file format]
The file is what torch.save writes: a zip archive whose members are stored as they are.

* ``data.pkl``: a pickle of the object.  In it a tensor is a call of ``torch._utils._rebuild_tensor_v2`` with a
  reference to a storage, an offset, a shape and strides, so that tensors which share memory share it again when they
  are loaded.
* ``data/0``, ``data/1`` ...: the memory of the storages.
* ``version``, ``byteorder``, ``.format_version``, ``.storage_alignment``: what they say.

All members lie in one directory, named as the file.  A padding field in front of each member lets its first byte lie
at a multiple of 64, so that a mapped file is aligned memory.  Sizes and checksum follow a member, as an archive has it
that is written without going back.  None of this is free to choose: torch can compute positions from these rules.
"""

from __future__ import annotations

import struct
from binascii import crc32
from typing import Any

_LOCAL = struct.Struct("<4s5H3I2H")
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_END64 = struct.Struct("<4sQ2H2I4Q")
_LOCATOR = struct.Struct("<4sIQI")
_END = struct.Struct("<4s4H2IH")
_MOST = 0xFFFFFFFF  # what a field of 32 bits holds; what is more goes into a field of 64
_UTF8, _SIZES_FOLLOW = 0x800, 0x8
CHUNK = 1 << 20  # bytes of memory that are checked and written at a time


class ZipWriter:
    """An archive in the making: `add` the members, then `finish`."""

    def __init__(self, file: Any, directory: str, alignment: int, checksums: bool) -> None:
        self.file = file
        self.directory = directory
        self.alignment = alignment
        self.checksums = checksums
        self.position: int = 0
        self.members: list[tuple[bytes, int, int, int, int]] = []  # name, flags, checksum, size, position

    def add(self, name: str, data: Any) -> None:
        """A member; `data` is bytes, or an int: that many zeros."""
        full = f"{self.directory}/{name}".encode()
        size = data if isinstance(data, int) else memoryview(data).nbytes
        start = self.position
        flags = _UTF8 | (_SIZES_FOLLOW if size else 0)
        self._write(_LOCAL.pack(b"PK\3\4", 0, flags, 0, 0, 0, 0, 0, 0, len(full), self._extra_size(full, size)) + full)
        self._write(self._extra)
        checksum = self._write_zeros(size) if isinstance(data, int) else self._write_checked(memoryview(data))
        if size:
            layout = "<4sIQQ" if size >= _MOST or start >= _MOST else "<4sIII"
            self._write(struct.pack(layout, b"PK\7\x08", checksum, size, size))
        self.members.append((full, flags, checksum, size, start))

    def _extra_size(self, name: bytes, size: int) -> int:
        start = self.position
        self._extra = _wide(size, start)
        first = start + _LOCAL.size + len(name) + len(self._extra) + 4
        padding = -first % self.alignment
        self._extra += b"FB" + struct.pack("<H", padding) + b"Z" * padding
        return len(self._extra)

    def finish(self) -> None:
        """The table of contents."""
        start = self.position
        for name, flags, checksum, size, position in self.members:
            extra = _wide(size, position)
            narrow, where = min(size, _MOST), min(position, _MOST)
            fields = (0, 0, flags, 0, 0, 0, checksum, narrow, narrow, len(name), len(extra), 0, 0, 0, 0, where)
            self._write(_CENTRAL.pack(b"PK\1\2", *fields) + name + extra)
        end, count = self.position, len(self.members)
        self._write(_END64.pack(b"PK\6\6", 44, 0x31E, 0x2D, 0, 0, count, count, end - start, start))
        self._write(_LOCATOR.pack(b"PK\6\7", 0, end, 1))
        count = min(count, 0xFFFF)
        self._write(_END.pack(b"PK\5\6", 0, 0, count, count, min(end - start, _MOST), min(start, _MOST), 0))

    def _write(self, data: Any) -> None:
        write_all(self.file, data)
        self.position += len(data)

    def _write_zeros(self, size: int) -> int:
        """Room for what is written later; it has no checksum, which would be that of the zeros."""
        for start in range(0, size, CHUNK):
            self._write(bytes(min(CHUNK, size - start)))
        return 0

    def _write_checked(self, octets: memoryview) -> int:
        checksum = 0
        for start in range(0, len(octets), CHUNK):
            # A copy, so that it is what was checked that is written, whatever another thread does meanwhile.
            chunk = bytes(octets[start : start + CHUNK])
            checksum = crc32(chunk, checksum) if self.checksums else 0
            self._write(chunk)
        return checksum


def _wide(size: int, position: int) -> bytes:
    """The field with what needs 64 bits."""
    fields = [size, size] if size >= _MOST else []
    if position >= _MOST:
        fields.append(position)
    return struct.pack(f"<HH{len(fields)}Q", 1, 8 * len(fields), *fields) if fields else b""


def write_all(file: Any, data: Any) -> None:
    """All of it: a file without a buffer may take less at a time, and says how much."""
    data = memoryview(data)
    while data:
        written = file.write(data)
        if not isinstance(written, int):
            return
        data = data[written:]
