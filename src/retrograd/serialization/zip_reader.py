"""Reading torch's kind of zip archive without believing it.  Called by `load`.

Only the table of contents at the end is parsed.  Members are stored, not compressed, lie within the file and do not
overlap: what is read is never more than the file has, whatever the table says.  Checksums are compared; a checksum of 0
says that none was computed (`set_crc32_options`).
"""

from __future__ import annotations

import os
import struct
from binascii import crc32
from typing import Any, NamedTuple

import numpy as np

from .load_error import LoadError

_LOCAL = struct.Struct("<4s5H3I2H")
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_END64 = struct.Struct("<4sQ2H2I4Q")
_LOCATOR = struct.Struct("<4sIQI")
_END = struct.Struct("<4s4H2IH")
_MOST = 0xFFFFFFFF
_CHUNK = 1 << 20
_ENCRYPTED = 0x1 | 0x40 | 0x2000


class Member(NamedTuple):
    """A member of an archive: where its local header is, and what the table of contents says of it."""

    name: str
    header: int
    size: int
    checksum: int


def begins_archive(file: Any) -> bool:
    """Does an archive begin where the file stands?"""
    start = file.tell()
    magic = file.read(4)
    file.seek(start)
    return magic == b"PK\3\4"


class ZipReader:
    """An archive that begins where the file stands.

    In a file with several archives, one after another, it is the first of them: its end is looked for.
    """

    def __init__(self, file: Any) -> None:
        self.file = file
        self.start: Any = file.tell()
        self.size: Any = file.seek(0, os.SEEK_END) - self.start
        entries, end = self._find_table()
        self.end: int = end
        self.members: dict[str, Member] = self._unique(entries)
        directories = {member.name.partition("/")[0] for member in entries}
        if len(directories) != 1:
            raise LoadError("the file is a zip archive, but none of torch.save: its members have no common directory")
        self.directory: str = directories.pop()

    # ------------------------------------------------------------------------------------------ the table of contents

    def _find_table(self) -> tuple[list[Member], int]:
        """The members, and where the archive ends."""
        tail = self._at(max(0, self.size - _END.size - 0xFFFF), _END.size + 0xFFFF)
        found = tail.rfind(b"PK\5\6")
        if found >= 0:
            entries = self._table_before(self.size - len(tail) + found)
            if entries is not None:
                return entries
        position = 0  # perhaps other archives follow
        overlap = b""
        while position < self.size:
            chunk = overlap + self._at(position, _CHUNK)
            base = position - len(overlap)
            found = chunk.find(b"PK\5\6")
            while found >= 0:
                entries = self._table_before(base + found)
                if entries is not None:
                    return entries
                found = chunk.find(b"PK\5\6", found + 1)
            overlap = chunk[-3:]
            position += _CHUNK
        raise LoadError(
            "PytorchStreamReader failed reading zip archive: failed finding central directory: the file was not "
            "written to its end, or is damaged"
        )

    def _table_before(self, end: int) -> tuple[list[Member], int] | None:
        """The members, if the record at `end` ends an archive that begins where we do."""
        record = self._at(end, _END.size)
        if len(record) < _END.size:
            return None
        _, disk, other_disk, _, count, size, start, comment = _END.unpack(record)
        table_end = end
        before = self._at(end - _LOCATOR.size, _LOCATOR.size) if end >= _LOCATOR.size else b""
        if before[:4] == b"PK\6\7":
            where = _LOCATOR.unpack(before)[2]
            if where + _END64.size + _LOCATOR.size != end:
                return None  # it ends another archive, whose positions are counted from somewhere else
            wide = self._at(where, _END64.size)
            if wide[:4] == b"PK\6\6":
                _, _, _, _, disk, other_disk, _, count, size, start = _END64.unpack(wide)
                table_end = where
        if disk or other_disk or start + size != table_end or size < count * _CENTRAL.size:
            return None
        table = self._at(start, size)
        entries, position = [], 0
        for _ in range(count):
            entry, position = _entry(table, position)
            entries.append(entry)
        if position != size:
            raise _damaged("its table of contents is longer than what it lists")
        if not entries:
            raise LoadError("the file is an empty zip archive")
        last = 0
        for entry in sorted(entries, key=lambda e: e.header):
            if entry.header < last:
                raise _damaged(f"its member {entry.name!r} overlaps another")
            last = entry.header + _LOCAL.size + entry.size
        if last > start:
            raise _damaged("its members reach into its table of contents")
        return entries, end + _END.size + comment

    def _unique(self, entries: list[Member]) -> dict[str, Member]:
        members = {entry.name: entry for entry in entries}
        if len(members) != len(entries):
            raise _damaged("it has two members of one name")
        return members

    # --------------------------------------------------------------------------------------------------------- members

    def __contains__(self, name: str) -> bool:
        return f"{self.directory}/{name}" in self.members

    def member(self, name: str) -> Member:
        """The member of that name, without its directory."""
        found = self.members.get(f"{self.directory}/{name}")
        if found is None:
            raise LoadError(f"PytorchStreamReader failed locating file {name}: file not found")
        return found

    def position(self, member: Member) -> int:
        """Where the first byte of a member lies, counted from where the archive begins."""
        header = self._at(member.header, _LOCAL.size)
        if len(header) < _LOCAL.size or header[:4] != b"PK\3\4":
            raise _damaged(f"its member {member.name!r} has no header")
        *_, name_size, extra_size = _LOCAL.unpack(header)
        if self._at(member.header + _LOCAL.size, name_size) != member.name.encode():
            raise _damaged(f"its member {member.name!r} has another name in its header")
        first = member.header + _LOCAL.size + name_size + extra_size
        if first + member.size > self.size:
            raise _damaged(f"its member {member.name!r} reaches beyond its end")
        return first

    def read(self, name: str, most: int | None = None) -> bytes:
        """All of a member."""
        member = self.member(name)
        if most is not None and member.size > most:
            raise _damaged(f"its member {name!r} has {member.size} bytes")
        data = np.empty(member.size, np.uint8)
        self.read_into(member, data)
        return data.tobytes()

    def read_into(self, member: Member, octets: np.ndarray) -> None:
        """All of a member, into an array of bytes of its size."""
        self.file.seek(self.start + self.position(member))
        view = octets.data
        checksum, done = 0, 0
        while done < member.size:
            chunk = self._read_some(view[done : done + _CHUNK])
            if not chunk:
                raise _damaged(f"it ends in its member {member.name!r}")
            checksum = crc32(view[done : done + chunk], checksum)
            done += chunk
        if member.checksum and checksum != member.checksum:
            raise _damaged(f"the checksum of its member {member.name!r} is wrong")

    def _read_some(self, into: memoryview) -> int:
        if hasattr(self.file, "readinto"):
            return self.file.readinto(into) or 0
        data = self.file.read(len(into))
        into[: len(data)] = data
        return len(data)

    def _at(self, position: int, size: int) -> bytes:
        """So many bytes from there on, or what there is: in pieces, since a file may give less than it is asked for."""
        self.file.seek(self.start + position)
        size = min(size, self.size - position)
        chunks = []
        while size > 0:
            chunk = self.file.read(size)
            if not chunk:
                break
            chunks.append(chunk)
            size -= len(chunk)
        return b"".join(chunks)


def _entry(table: bytes, position: int) -> tuple[Member, int]:
    """The member that the table of contents has at `position`, and where its next entry begins."""
    fields = table[position : position + _CENTRAL.size]
    if len(fields) < _CENTRAL.size or fields[:4] != b"PK\1\2":
        raise _damaged("its table of contents makes no sense")
    (_, _, _, flags, method, _, _, checksum, packed, size, name_size, extra_size, comment_size, disk, _, _, header) = (
        _CENTRAL.unpack(fields)
    )
    position += _CENTRAL.size
    raw = table[position : position + name_size]
    extra = table[position + name_size : position + name_size + extra_size]
    position += name_size + extra_size + comment_size
    if position > len(table):
        raise _damaged("its table of contents ends early")
    try:
        name = raw.decode()
    except UnicodeDecodeError:
        raise _damaged("a member has a name that is no text") from None
    if flags & _ENCRYPTED or method != 0 or disk:
        what = "encrypted" if flags & _ENCRYPTED else "compressed"
        raise LoadError(f"the member {name[:100]!r} of the file is {what}; torch.save stores its members as they are")
    if _MOST in (packed, size, header):
        wide = _wide(extra)
        try:
            size = next(wide) if size == _MOST else size
            packed = next(wide) if packed == _MOST else packed
            header = next(wide) if header == _MOST else header
        except StopIteration:
            raise _damaged(f"the size of its member {name[:100]!r} is missing") from None
    if packed != size:
        raise _damaged(f"its member {name[:100]!r} has two sizes")
    return Member(name, header, size, checksum), position


def _wide(extra: bytes) -> Any:
    """What needs 64 bits, in the order in which it is missing."""
    while len(extra) >= 4:
        kind, size = struct.unpack_from("<HH", extra)
        if kind == 1:
            return iter(struct.unpack_from(f"<{min(size, len(extra) - 4) // 8}Q", extra, 4))
        extra = extra[4 + size :]
    return iter(())


def _damaged(how: str) -> LoadError:
    return LoadError(f"the file is damaged: {how}")
