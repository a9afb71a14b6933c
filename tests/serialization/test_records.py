"""The records of saved files, beside torch where it is installed."""

from __future__ import annotations

import gc
import io
import sys

import pytest


def test_they_are_written_and_read(torch, tmp_path):
    records = {"a": b"120", "c/d": b"", "e": b"9" * 100}
    for target in (str(tmp_path / "f.pt"), io.BytesIO()):
        with torch.serialization._open_zipfile_writer(target) as writer:
            for name, data in records.items():
                writer.write_record(name, data, len(data))
            with pytest.raises(RuntimeError, match="twice"):
                writer.write_record("a", b"x", 1)
            assert writer.get_all_written_records() == {"a", "c/d", "e"}
            assert writer.archive_name() == ("archive" if isinstance(target, io.BytesIO) else "f")
        if isinstance(target, io.BytesIO):
            target.seek(0)
        with torch.serialization._open_zipfile_reader(target) as reader:
            assert {name: reader.get_record(name) for name in records} == records
            assert reader.has_record("version") and not reader.has_record("b")
            assert reader.get_record("byteorder").decode() == sys.byteorder
            with pytest.raises(RuntimeError, match="failed locating file b"):
                reader.get_record("b")


def test_those_of_a_saved_tensor(torch, tmp_path):
    path = tmp_path / "x.pt"
    torch.save({"x": torch.arange(3.0)}, path)
    reader = torch._C.PyTorchFileReader(str(path))
    assert {"data.pkl", "byteorder", "data/0", "version"} <= set(reader.get_all_records())
    assert reader.get_record_size("data/0") == 12 and reader.get_record(".format_version") == b"1"
    at = reader.get_record_offset("data/0")
    assert path.read_bytes()[at : at + 12] == reader.get_record("data/0")
    assert reader.get_storage_from_record("data/0", 3, torch.float32).untyped_storage().nbytes() == 12
    with torch.serialization._open_file_like(path, "rb") as file:
        assert file.read(2) == b"PK"


def test_records_for_values_that_come_later(torch):
    file, other = io.BytesIO(), io.BytesIO()
    torch.save(torch.ones(3), file)
    file.seek(0)
    with torch.serialization._open_zipfile_reader(file) as reader:
        body = reader.get_record("data.pkl")
    with torch.serialization._open_zipfile_writer(other) as writer:
        writer.write_record("data.pkl", body, len(body))
        writer.write_record("byteorder", sys.byteorder, len(sys.byteorder))
        writer.write_record_metadata("data/0", 12)
    other.seek(0)
    with torch.serialization._open_zipfile_reader(other) as reader:
        at = reader.get_record_offset("data/0")
    other.seek(at)
    other.write(torch.arange(3.0).numpy().tobytes())
    other.seek(0)
    assert torch.load(other).tolist() == [0.0, 1.0, 2.0]


def test_what_is_not_saved_without_its_values(torch):
    with torch.serialization.skip_data():
        with pytest.raises(RuntimeError, match="Cannot serialize nested tensor under skip_data"):
            torch.save(torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), io.BytesIO())
        with pytest.warns(UserWarning, match="meta device under skip_data context manager is a no-op"):
            torch.save(torch.ones(2, device="meta"), io.BytesIO())
    assert torch.serialization.DEFAULT_PROTOCOL == 2


@pytest.mark.filterwarnings("error")
def test_what_is_no_archive(torch, tmp_path):
    empty = tmp_path / "empty"
    empty.write_bytes(b"")
    for wrong in (str(tmp_path / "none"), str(empty), io.BytesIO(b"some text" * 50)):
        with pytest.raises(RuntimeError, match=r"open file failed|failed reading zip archive") as caught:
            torch._C.PyTorchFileReader(wrong)
        assert str(caught.value).count("PytorchStreamReader") <= 1
    with pytest.raises(RuntimeError, match=r"does not exist|No such file"):
        torch._C.PyTorchFileWriter(str(tmp_path / "none" / "f.pt"))
    gc.collect()  # nothing is wrong with what was not opened


@pytest.mark.filterwarnings("error")
def test_archives_end(torch, tmp_path):
    path = str(tmp_path / "f.pt")
    writer = torch._C.PyTorchFileWriter(path)
    writer.write_record("a", b"1", 1)
    del writer
    gc.collect()
    assert torch._C.PyTorchFileReader(path).get_record("a") == b"1"
    with pytest.raises(ZeroDivisionError), torch.serialization._open_zipfile_writer(path) as writer:
        writer.write_record("b", b"2", 1)
        1 / 0
    assert torch._C.PyTorchFileReader(path).get_record("b") == b"2"
    for call in (lambda: writer.write_record("c", b"3", 1), writer.write_end_of_file):
        with pytest.raises(RuntimeError):
            call()
