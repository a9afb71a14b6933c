"""save and load: what comes back, what is shared, what is refused."""

from __future__ import annotations

import io
import os
import pickle
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest

import retrograd as torch
from retrograd.serialization import zip_writer


class Plain:
    def __init__(self) -> None:
        self.x = torch.ones(2)


class Evil:
    def __reduce__(self) -> Any:
        return os.system, ("echo gotcha > /dev/null",)


def again(obj: Any, **kwargs: Any) -> Any:
    file = io.BytesIO()
    torch.save(obj, file)
    file.seek(0)
    result = torch.load(file, **kwargs)
    assert file.read() == b""
    return result


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize(
    "tensor",
    [
        torch.tensor(3.5),
        torch.arange(6).reshape(2, 3),
        torch.arange(6.0).reshape(2, 3).t(),
        torch.zeros(0, 3),
        torch.tensor([True, False]),
        torch.tensor([1 + 2j]),
        torch.ones(2, dtype=torch.float16),
        torch.arange(10)[2:8:2],
        torch.ones(1).expand(3),
    ],
)
def test_tensors(tensor: Any, weights_only: bool) -> None:
    other = again(tensor, weights_only=weights_only)
    assert other.dtype == tensor.dtype and other.shape == tensor.shape and other.stride() == tensor.stride()
    assert (other == tensor).all() and type(other) is torch.Tensor


def test_plain_values() -> None:
    obj = {"a": [1, 2.5, None, "text", b"bytes", (True, 1j), {3}], "b": torch.float64, "c": torch.Size([1, 2])}
    obj["d"] = torch.device("cpu")
    other = again(obj)
    assert other == obj and type(other["c"]) is torch.Size and other["b"] is torch.float64


def test_memory_is_shared_again() -> None:
    x = torch.arange(6.0)
    views = [x, x[2:4], x.reshape(2, 3), x]
    a, b, c, d = again(views)
    assert a is d
    a[2] = 50
    assert b[0] == 50 and c[0, 2] == 50


def test_requires_grad_and_parameters() -> None:
    x, p = again([torch.ones(1, requires_grad=True), torch.nn.Parameter(torch.ones(1), requires_grad=False)])
    assert x.requires_grad and x.is_leaf
    assert type(p) is torch.nn.Parameter and not p.requires_grad
    result = again(torch.ones(1, requires_grad=True) * 2)
    assert result.requires_grad and result.is_leaf


def test_state_dicts(tmp_path: Path) -> None:
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    optimizer = torch.optim.Adam(net.parameters())
    net(torch.ones(3, 2)).sum().backward()
    optimizer.step()
    path = tmp_path / "checkpoint"
    torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict()}, path)
    saved = torch.load(str(path))
    assert type(saved["net"]) is OrderedDict and "0" in saved["net"]._metadata
    other = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    other.load_state_dict(saved["net"])
    torch.optim.Adam(other.parameters()).load_state_dict(saved["optimizer"])
    assert (other[0].weight == net[0].weight).all()


@pytest.mark.parametrize("weights_only", [True, False])
def test_several_objects_in_one_file(tmp_path: Path, weights_only: bool) -> None:
    path = tmp_path / "several"
    with open(path, "wb") as file:
        for i in range(3):
            torch.save(torch.full((1000,), i), file)
    with open(path, "rb") as file:
        assert [torch.load(file, weights_only=weights_only)[0].item() for _ in range(3)] == [0, 1, 2]


def test_modules_only_when_trusted() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh())
    with pytest.raises(pickle.UnpicklingError, match=r"Weights only load failed.*GLOBAL torch.nn.Sequential was not"):
        again(net)
    other = again(net, weights_only=False)
    assert (other(torch.ones(1, 2)) == net(torch.ones(1, 2))).all()


def test_hostile_files() -> None:
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        again(Evil())
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        again(Plain())


def test_allowed_classes() -> None:
    with torch.serialization.safe_globals([Plain]):
        assert torch.serialization.get_safe_globals() == [Plain]
        assert again(Plain()).x.tolist() == [1, 1]
    assert torch.serialization.get_safe_globals() == []
    torch.serialization.add_safe_globals([Plain])
    torch.serialization.clear_safe_globals()
    with pytest.raises(pickle.UnpicklingError):
        again(Plain())


def test_broken_files() -> None:
    file = io.BytesIO()
    torch.save(torch.ones(100), file)
    raw = file.getvalue()
    for caught in (RuntimeError, pickle.UnpicklingError, torch.serialization.LoadError):
        with pytest.raises(caught, match="failed finding central directory"):
            torch.load(io.BytesIO(raw[:-8]))
    one = raw.index(bytes(torch.ones(2).untyped_storage().tolist()))
    with pytest.raises(torch.serialization.LoadError, match=r"checksum of its member 'archive/data/0' is wrong"):
        torch.load(io.BytesIO(raw[:one] + b"\x01" + raw[one + 1 :]))
    with pytest.raises(torch.serialization.LoadError, match="was not written by"):
        torch.load(io.BytesIO(b"something else altogether"))
    for version in (b"1", b"2"):
        with pytest.raises(torch.serialization.LoadError, match="early version of retrograd"):
            torch.load(io.BytesIO(b"retrograd tensors " + version + b"\n" + bytes(100)))
    with pytest.raises(AttributeError, match="a file-like object"):
        torch.save(1, 3)
    with pytest.raises(AttributeError, match="a file-like object"):
        torch.load(3)


def test_errors_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "broken"
    path.write_bytes(b"")
    with pytest.raises(torch.serialization.LoadError, match=r"empty.*broken"):
        torch.load(path)
    with pytest.raises(FileNotFoundError):
        torch.load(tmp_path / "nothing")


def test_what_objects_raise_when_trusted_is_their_own() -> None:
    # The checksum says that the file is as it was written.
    with pytest.raises(ZeroDivisionError):
        again(Fragile(), weights_only=False)
    with torch.serialization.safe_globals([Fragile]), pytest.raises(torch.serialization.LoadError) as caught:
        again(Fragile())
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


class Fragile:
    def __setstate__(self, state: Any) -> None:
        raise ZeroDivisionError

    def __getstate__(self) -> Any:
        return 1


# -------------------------------------------------------------------------------------------------------- writing files


class Unpicklable:
    def __reduce__(self) -> Any:
        raise ZeroDivisionError


def test_a_failing_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "weights"
    torch.save(torch.ones(3), path)
    before = path.read_bytes()
    with pytest.raises(ZeroDivisionError):
        torch.save([torch.zeros(3), Unpicklable()], path)
    for error in (OSError(28, "No space left on device"), KeyboardInterrupt()):
        for step in ("fsync", "replace", "chmod"):

            def fail(*args: Any, error: BaseException = error, **kwargs: Any) -> None:
                raise error

            with monkeypatch.context() as patch, pytest.raises(type(error)):
                patch.setattr(os, step, fail)
                torch.save(torch.zeros(1000), path)
            assert path.read_bytes() == before and os.listdir(tmp_path) == ["weights"], step
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(zip_writer, "write_all", fail)
        torch.save(torch.zeros(1000), path)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(zip_writer, "write_all", fail)
        torch.save(torch.zeros(1000), tmp_path / "new")
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["weights"]
    torch.save(torch.zeros(3), path)
    assert (torch.load(path) == 0).all() and os.listdir(tmp_path) == ["weights"]


@pytest.mark.skipif(os.name != "posix", reason="modes and links are POSIX's")
def test_modes_and_links_stay(tmp_path: Path) -> None:
    path, link = tmp_path / "weights", tmp_path / "link"
    torch.save(1, path)
    (tmp_path / "plain").write_bytes(b"")
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode  # as the umask says
    path.chmod(0o640)
    link.symlink_to("weights")
    torch.save(2, link)
    assert link.is_symlink() and torch.load(path) == 2 and path.stat().st_mode & 0o777 == 0o640
    dangling = tmp_path / "dangling"
    dangling.symlink_to("made")
    torch.save(3, str(dangling))
    assert dangling.is_symlink() and torch.load(tmp_path / "made") == 3


@pytest.mark.skipif(os.name != "posix", reason="/dev/null is POSIX's")
def test_what_is_no_plain_file_is_written_to(tmp_path: Path) -> None:
    torch.save(1, "/dev/null")
    assert not os.path.isfile("/dev/null")
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    read: list[Any] = []
    thread = threading.Thread(target=lambda: read.append(torch.load(fifo)))
    thread.start()
    torch.save([1, 2], fifo)
    thread.join(60)
    assert read == [[1, 2]]


def test_paths(torch: Any, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"Parent directory .* does not exist\."):
        torch.save(1, tmp_path / "no" / "such")
    with pytest.raises(RuntimeError, match=r"open file failed with strerror: Is a directory"):
        torch.save(1, tmp_path)
    with pytest.raises(AttributeError, match="expected 'f' to be string, path, or a file-like object"):
        torch.save(1, os.fsencode(tmp_path / "bytes"))


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_what_may_not_be_written_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    torch.save(1, path)
    path.chmod(0o400)
    with pytest.raises(RuntimeError, match="Permission denied"):
        torch.save(2, path)
    path.chmod(0o600)
    tmp_path.chmod(0o500)  # takes no other files
    try:
        torch.save(3, path)
    finally:
        tmp_path.chmod(0o700)
    assert torch.load(path) == 3


class Trickle(io.RawIOBase):
    """Takes and gives a few bytes at a time."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.at = 0

    def write(self, data: Any) -> int:
        self.data += bytes(data)[:7]
        return min(len(data), 7)

    def read(self, size: int = -1) -> bytes:
        chunk = bytes(self.data[self.at : self.at + min(size, 5)])
        self.at += len(chunk)
        return chunk

    def readinto(self, buffer: Any) -> int:
        chunk = self.read(len(buffer))
        buffer[: len(chunk)] = chunk
        return len(chunk)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self.at = offset if whence == os.SEEK_SET else len(self.data) + offset
        return self.at

    def tell(self) -> int:
        return self.at


def test_files_that_take_little_at_a_time() -> None:
    file = Trickle()
    torch.save(torch.arange(100), file)
    file.seek(0)
    assert (torch.load(file) == torch.arange(100)).all()


def test_text_files_are_refused() -> None:
    with pytest.raises(TypeError):
        torch.save(1, io.StringIO())
    with pytest.raises(TypeError, match="for reading bytes"):
        torch.load(io.StringIO("text"))


def test_buffers_of_one_address_and_several_lengths() -> None:
    memory = bytearray(16)
    short, long = torch.frombuffer(memory, dtype=torch.int32, count=2), torch.frombuffer(memory, dtype=torch.int32)
    a, b = again([short, long])
    assert a.shape == (2,) and b.shape == (4,)


def test_map_location() -> None:
    x = torch.ones(1)
    for location in ("cpu", b"cpu", torch.device("cpu"), {"cuda:0": "cpu"}, lambda storage, location: storage):
        assert again(x, map_location=location).device.type == "cpu"
    for location in ("cuda", "cuda:1", torch.device("cuda"), {"cpu": "cuda:0"}):
        with pytest.raises(RuntimeError, match=r"torch.cuda.is_available\(\) is False.*map_location"):
            again(x, map_location=location)
    with pytest.raises(RuntimeError, match=r"don't know how to restore data location of .*tagged with moon"):
        again(x, map_location="moon")
    with pytest.raises(TypeError, match="map_location must return a storage or None"):
        again(x, map_location=lambda storage, location: 1)
    asked = []

    def replaced(storage: Any, location: str) -> Any:
        asked.append((type(storage), storage.nbytes(), location))
        return torch.tensor([5.0]).untyped_storage()

    assert again([x, x[:]], map_location=replaced)[1].tolist() == [5]
    assert asked == [(torch.UntypedStorage, 4, "cpu")]


def test_packages_for_other_places(monkeypatch: pytest.MonkeyPatch) -> None:
    from retrograd.serialization import locations

    monkeypatch.setattr(locations, "_registry", list(locations._registry))
    torch.serialization.register_package(
        5,
        lambda storage: "attic" if storage.nbytes() > 100 else None,
        lambda storage, location: storage.fill_(0) if location == "attic" else None,
    )
    small, large = again([torch.ones(2), torch.ones(100)])
    assert small.tolist() == [1, 1] and not large.any()
    assert torch.serialization.location_tag(torch.ones(100).untyped_storage()) == "attic"
