"""The format itself, without torch: files written by hand are read, and what is written is what the format says."""

from __future__ import annotations

import io
import mmap
import os
import pickle
import pickletools
import struct
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd as torch
from retrograd.serialization import LoadEndianness, LoadError
from retrograd.utils.serialization import config

# A pickle of protocol 2 as torch writes it, by hand: [x, x.t(), {"step": 3}] for x = [[1, 2, 3], [4, 5, 6]] in float32.
OPEN = b"(X\7\0\0\0storageq\2ctorch\nFloatStorage\nq\3X\1\0\0\0000q\4X\3\0\0\0cpuq\5K\6tq\6Q"
PICKLE = (
    b"\x80\2]q\0(ctorch._utils\n_rebuild_tensor_v2\nq\1(" + OPEN + b"K\0K\2K\3\x86q\7K\3K\1\x86q\x08\x89"
    b"ccollections\nOrderedDict\nq\t)Rq\ntq\x0bRq\x0ch\1(" + OPEN + b"K\0K\3K\2\x86q\rK\1K\3\x86q\x0e\x89"
    b"h\t)Rq\x0ftq\x10Rq\x11}q\x12X\4\0\0\0stepq\x13K\3se."
)
NUMBERS = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


def archive(order: str | None = "little", memory_order: str | None = None, **members: bytes) -> bytes:
    numbers = np.array(NUMBERS, ("<" if (memory_order or order) == "little" else ">") + "f4")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as out:
        for name, data in {"data.pkl": PICKLE, "data/0": numbers.tobytes(), "version": b"3\n", **members}.items():
            out.writestr(f"weights/{name}", data)
        if order:
            out.writestr("weights/byteorder", order)
    return buffer.getvalue()


def check(found: Any) -> None:
    x, y, rest = found
    assert x.dtype is torch.float32 and x.tolist() == NUMBERS and rest == {"step": 3}
    assert y.tolist() == np.transpose(NUMBERS).tolist() and y.stride() == (1, 3)
    assert x.untyped_storage() == y.untyped_storage()


def saved(thing: Any, **how: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(thing, buffer, **how)
    return buffer.getvalue()


@pytest.mark.parametrize("weights_only", [True, False])
def test_a_file_written_by_hand(weights_only: bool) -> None:
    check(torch.load(io.BytesIO(archive()), weights_only=weights_only))


def test_byte_orders() -> None:
    check(torch.load(io.BytesIO(archive("big"))))
    assert torch.serialization.get_default_load_endianness() is None
    check(torch.load(io.BytesIO(archive(None, "little"))))
    try:
        torch.serialization.set_default_load_endianness(LoadEndianness.BIG)
        check(torch.load(io.BytesIO(archive(None, "big"))))
        check(torch.load(io.BytesIO(archive("little"))))  # what the file says goes first
        torch.serialization.set_default_load_endianness(LoadEndianness.NATIVE)
        check(torch.load(io.BytesIO(archive(None, sys.byteorder))))
    finally:
        torch.serialization.set_default_load_endianness(None)
    with pytest.raises(TypeError, match="Invalid argument type in function set_default_load_endianness"):
        torch.serialization.set_default_load_endianness("big")  # type: ignore[arg-type]


def test_swapped_complex_numbers() -> None:
    z = torch.tensor([1 + 2j, 3 - 4j])
    storage = z.clone().untyped_storage()
    storage.byteswap(torch.complex64)
    assert np.frombuffer(bytes(storage.tolist()), ">c8").tolist() == z.tolist()


def test_the_older_format_written_by_hand() -> None:
    head = [0x1950A86A20F9469CFC6C, 1001, {"protocol_version": 1001, "little_endian": True, "type_sizes": {}}]
    body = PICKLE.replace(b"K\6tq\6Q", b"K\6Ntq\6Q")  # references have one more part
    raw = b"".join(pickle.dumps(part, 2) for part in head) + body + pickle.dumps(["0"], 2)
    raw += struct.pack("<q", 6) + np.array(NUMBERS, "<f4").tobytes()
    for weights_only in (True, False):
        file = io.BytesIO(raw + b"more")
        check(torch.load(file, weights_only=weights_only))
        assert file.read() == b"more"


def test_strings_of_python_2() -> None:
    body = b"\x80\2]q\0(U\2\xc3\xa4T\3\0\0\0abce."
    for weights_only in (True, False):
        raw = archive(**{"data.pkl": body})
        assert torch.load(io.BytesIO(raw), weights_only=weights_only) == ["ä", "abc"]
        assert torch.load(io.BytesIO(raw), weights_only=weights_only, encoding="bytes") == ["ä".encode(), b"abc"]


def test_what_is_written(tmp_path: Path) -> None:
    x = torch.arange(6.0).reshape(2, 3)
    path = tmp_path / "my.weights.pt"
    torch.save({"x": x, "bias": torch.ones(3, dtype=torch.int16), "again": x[1]}, path)
    raw = path.read_bytes()
    with zipfile.ZipFile(path) as found:
        assert found.testzip() is None
        names = [info.filename for info in found.infolist()]
        members = "data.pkl .format_version .storage_alignment byteorder data/0 data/1 version".split()
        assert names == [f"my.weights/{name}" for name in members]
        assert found.read("my.weights/data/0") == x.numpy().tobytes()
        assert found.read("my.weights/byteorder") == sys.byteorder.encode()
        body = found.read("my.weights/data.pkl")
        for info in found.infolist():
            assert info.compress_type == zipfile.ZIP_STORED
            header = struct.unpack_from("<4s5H3I2H", raw, info.header_offset)
            assert (info.header_offset + 30 + header[-2] + header[-1]) % 64 == 0
    asked = [argument for code, argument, _ in pickletools.genops(body) if code.name == "GLOBAL"]
    assert asked == [
        "torch._utils _rebuild_tensor_v2", "torch FloatStorage", "collections OrderedDict", "torch ShortStorage",
    ]  # fmt: skip


def test_sizes_beyond_32_bits() -> None:
    from retrograd.serialization.zip_reader import ZipReader
    from retrograd.serialization.zip_writer import ZipWriter

    class Sparse:
        """A file of gigabytes, of which only what is no zeros is kept."""

        def __init__(self) -> None:
            self.size = self.at = 0
            self.parts: list[tuple[int, bytes]] = []

        def write(self, data: Any) -> int:
            if bytes(data[:64]).strip(b"\0"):
                self.parts.append((self.size, bytes(data)))
            self.size += len(data)
            return len(data)

        def tell(self) -> int:
            return self.at

        def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
            self.at = offset + (self.size if whence == os.SEEK_END else 0)
            return self.at

        def read(self, size: int = -1) -> bytes:
            left = self.size - self.at
            out = bytearray(left if size < 0 else min(size, left))
            for place, part in self.parts:
                start, end = max(place, self.at), min(place + len(part), self.at + len(out))
                if start < end:
                    out[start - self.at : end - self.at] = part[start - place : end - place]
            self.at += len(out)
            return bytes(out)

    file = Sparse()
    writer = ZipWriter(file, "d", 64, checksums=False)
    writer.add("large", (1 << 32) + 5)
    writer.add("after", b"what comes after")
    writer.finish()
    file.seek(0)
    reader = ZipReader(file)
    assert reader.member("large").size == (1 << 32) + 5
    assert reader.member("after").header > 1 << 32 and reader.read("after") == b"what comes after"
    with zipfile.ZipFile(file) as theirs:  # type: ignore[call-overload]
        assert theirs.getinfo("d/large").file_size == (1 << 32) + 5
        assert theirs.getinfo("d/after").header_offset == reader.member("after").header


# -------------------------------------------------------------------------------------------------------------- options


def test_checksums() -> None:
    raw = saved(torch.arange(8))
    place = raw.index(np.arange(8).tobytes()) + 8
    damaged = raw[:place] + b"\x63" + raw[place + 1 :]
    with pytest.raises(LoadError, match="checksum"):
        torch.load(io.BytesIO(damaged))
    torch.serialization.set_crc32_options(False)
    try:
        assert not torch.serialization.get_crc32_options()
        unchecked = saved(torch.arange(8))
    finally:
        torch.serialization.set_crc32_options(True)
    place = unchecked.index(np.arange(8).tobytes()) + 8
    damaged = unchecked[:place] + b"\x63" + unchecked[place + 1 :]
    assert torch.load(io.BytesIO(damaged))[1] == 0x63  # that is what it is for
    with pytest.raises(TypeError):
        torch.serialization.set_crc32_options(1)  # type: ignore[arg-type]


def test_mapped_files(tmp_path: Path) -> None:
    path = tmp_path / "w"
    torch.save([torch.arange(10.0), torch.zeros(0), torch.tensor([True, False])], path)
    before = path.read_bytes()
    x, empty, flags = torch.load(path, mmap=True)
    assert x.tolist() == list(range(10)) and empty.shape == (0,) and flags.tolist() == [True, False]
    x.add_(1)
    assert path.read_bytes() == before and torch.load(path)[0][0] == 0
    if not hasattr(mmap, "MAP_SHARED"):
        return
    with torch.serialization.set_default_mmap_options(mmap.MAP_SHARED):
        torch.load(path, mmap=True)[0].add_(5)
    assert torch.serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
    with pytest.raises(LoadError, match="checksum"):  # the file is not what was saved any more
        torch.load(path)
    assert torch.load(path, mmap=True)[0][0] == 5
    with pytest.raises(ValueError, match=r"expected mmap\.MAP_PRIVATE or mmap\.MAP_SHARED"):
        torch.serialization.set_default_mmap_options(17)
    with pytest.raises(ValueError, match="f must be a file path in order to use the mmap argument"):
        torch.load(io.BytesIO(before), mmap=True)
    old = tmp_path / "old"
    torch.save(1, old, _use_new_zipfile_serialization=False)
    with pytest.raises(RuntimeError, match="mmap can only be used with files saved with"):
        torch.load(old, mmap=True)
    with config.patch({"load.mmap": True}):
        assert torch.load(path)[0][0] == 5
    assert config.load.mmap is False
    with pytest.raises(AttributeError, match="no setting"), config.patch({"load.speed": 1}):
        pass


def test_data_can_be_left_out() -> None:
    x = torch.ones(5)
    with torch.serialization.skip_data():
        raw = saved([x, x[1:]])
        with pytest.raises(RuntimeError, match="skip_data"):
            saved(x, _use_new_zipfile_serialization=False)
    a, b = torch.load(io.BytesIO(raw))
    assert a.tolist() == [0] * 5 and a.untyped_storage() == b.untyped_storage() and len(raw) == len(saved([x, x[1:]]))
    with torch.serialization.skip_data():
        assert torch.load(io.BytesIO(saved(x))).shape == (5,)
    y = torch.arange(1e6) + 0.5
    file = io.BytesIO(saved(y, _use_new_zipfile_serialization=False) + saved(x, _use_new_zipfile_serialization=False))
    with torch.serialization.skip_data():
        left = torch.load(file)
    assert left.shape == y.shape and (left != y).any()
    assert torch.load(file).tolist() == [1] * 5


def test_alignment() -> None:
    with config.patch({"save.storage_alignment": 4096}):
        raw = saved(torch.ones(3))
    assert raw.index(torch.ones(3).numpy().tobytes()) % 4096 == 0 and torch.load(io.BytesIO(raw)).tolist() == [1, 1, 1]


class Mine:
    def __eq__(self, other: object) -> bool:
        return type(other) is Mine and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]


def test_what_users_allow() -> None:
    thing = Mine()
    thing.x = 1  # type: ignore[attr-defined]
    raw = saved(thing)
    name = f"{Mine.__module__}.Mine"
    assert torch.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(raw)) == [name]
    with pytest.raises(pickle.UnpicklingError, match=rf"GLOBAL {name} was not an allowed global by default"):
        torch.load(io.BytesIO(raw))
    with torch.serialization.safe_globals([Mine]):
        assert torch.load(io.BytesIO(raw)) == thing
        assert torch.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(raw)) == []
    with torch.serialization.safe_globals([(Mine, "elsewhere.Theirs")]):
        renamed = archive(**{"data.pkl": b"\x80\2celsewhere\nTheirs\n)\x81}X\1\0\0\0xK\1sb."})
        assert torch.load(io.BytesIO(renamed)) == thing
    for wrong in ((Mine,), (Mine, 1)):
        with torch.serialization.safe_globals([wrong]), pytest.raises((ValueError, TypeError)):
            torch.load(io.BytesIO(raw))
    evil = archive(**{"data.pkl": b"\x80\2cos\nsystem\nX\4\0\0\0true\x85R."})
    with torch.serialization.safe_globals([os.system, (os.system, "os.system")]):
        with pytest.raises(LoadError, match=r"unsupported GLOBAL os\.system whose module os is blocked"):
            torch.load(io.BytesIO(evil))


def test_the_environment_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = saved(Mine())
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    with pytest.warns(UserWarning, match="TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected"):
        assert torch.load(io.BytesIO(raw)) == Mine()
    with pytest.raises(LoadError):
        torch.load(io.BytesIO(raw), weights_only=True)
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "yes")
    with pytest.raises(RuntimeError, match="Only one of"):
        torch.load(io.BytesIO(raw))
    monkeypatch.delenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    with pytest.raises(LoadError):
        torch.load(io.BytesIO(raw), weights_only=False)


def test_other_pickle_modules() -> None:
    assert torch.load(io.BytesIO(saved([1])), pickle_module=pickle) == [1]
    with pytest.raises(RuntimeError, match="Can not safely load weights when explicit pickle_module is specified"):
        torch.load(io.BytesIO(saved([1])), pickle_module=pickle, weights_only=True)

    class Fast:
        Pickler = pickle.Pickler

    with pytest.raises(TypeError, match=r"Fast\.Pickler, which lets nobody choose the names"):
        saved([1], pickle_module=Fast)

    class Python:
        Pickler = pickle._Pickler  # type: ignore[attr-defined]

    assert saved(torch.ones(2), pickle_module=Python) == saved(torch.ones(2))


def test_subclasses_and_attributes() -> None:
    class Named(torch.Tensor):
        pass

    Named.__module__, Named.__qualname__ = Mine.__module__, "Named"
    sys.modules[Mine.__module__].Named = Named  # type: ignore[attr-defined]
    x = torch.ones(2)
    x.tag = {"a": 1}  # type: ignore[attr-defined]
    y = torch.load(io.BytesIO(saved(x)))
    assert y.tag == {"a": 1} and type(y) is torch.Tensor
    named = torch.ones(2).as_subclass(Named) if hasattr(torch.Tensor, "as_subclass") else Named([1.0, 1.0])
    named.tag = "b"
    for options in ({"weights_only": False}, {}):
        with torch.serialization.safe_globals([Named]):
            found = torch.load(io.BytesIO(saved(named)), **options)  # type: ignore[arg-type]
        assert type(found) is Named and found.tag == "b" and found.tolist() == [1, 1]
    with pytest.raises(LoadError, match=r"GLOBAL .*Named was not an allowed global"):
        torch.load(io.BytesIO(saved(named)))
