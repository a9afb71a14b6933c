"""safetensors files: what is written is the format, what is no such file is refused."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd as torch
from retrograd.serialization import LoadError
from retrograd.utils import safetensors

# Written by hand, from the description of the format.
HEADER = (
    b'{"__metadata__":{"a":"b"},"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},'
    b'"n":{"dtype":"U8","shape":[],"data_offsets":[8,9]}}'
)
FILE = struct.pack("<Q", len(HEADER)) + HEADER + np.array([1.5, -2], "<f4").tobytes() + b"\x07"


def file_of(header: Any, memory: bytes = b"", length: int | None = None) -> bytes:
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(raw) if length is None else length) + raw + memory


def test_reading_what_others_write(tmp_path: Path) -> None:
    found = safetensors.load(FILE)
    assert found["x"].tolist() == [1.5, -2] and found["x"].dtype is torch.float32
    assert found["n"].item() == 7 and found["n"].shape == ()
    path = tmp_path / "x.safetensors"
    path.write_bytes(FILE)
    assert torch.load(path)["x"].tolist() == [1.5, -2]  # as torch does by the name
    assert safetensors.load_file(str(path), device="cpu")["n"] == 7
    with safetensors.safe_open(path) as file:
        assert file.keys() == ["n", "x"] and file.metadata() == {"a": "b"}
        assert file.get_tensor("x").tolist() == [1.5, -2]
        with pytest.raises(LoadError, match="does not contain tensor y"):
            file.get_tensor("y")
    with safetensors.safe_open(path, framework="np") as file:
        assert type(file.get_tensor("x")) is np.ndarray


def test_what_is_written() -> None:
    raw = safetensors.save({"b": torch.tensor([True]), "a": torch.arange(4.0).reshape(2, 2).t()}, {"format": "pt"})
    (length,) = struct.unpack("<Q", raw[:8])
    assert length % 8 == 0
    header = json.loads(raw[8 : 8 + length])
    assert header == {
        "__metadata__": {"format": "pt"},
        "a": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]},
        "b": {"dtype": "BOOL", "shape": [1], "data_offsets": [16, 17]},
    }
    assert raw[8 + length :] == np.array([0, 2, 1, 3], "<f4").tobytes() + b"\x01"


@pytest.mark.parametrize("dtype", sorted(safetensors._WORDS))
def test_every_dtype_comes_back(dtype: str, tmp_path: Path) -> None:
    octets = np.random.default_rng(0).integers(0, 2 if dtype == "bool" else 256, 64, dtype=np.uint8)
    x = torch.frombuffer(bytearray(octets), dtype=getattr(torch, dtype))
    path = tmp_path / "x.safetensors"
    safetensors.save_file({"x": x, "empty": x[:0], "0-d": x[0].clone()}, path)
    found = safetensors.load_file(path)
    assert found["x"].dtype is x.dtype and found["x"].untyped_storage().tolist() == octets.tolist()
    assert found["empty"].shape == (0,) and found["0-d"].shape == ()


def test_wrong_calls(tmp_path: Path) -> None:
    x = torch.ones(4)
    with pytest.raises(RuntimeError, match=r"share memory.*\[\['a', 'b'\]\]"):
        safetensors.save({"a": x, "b": x[:2]})
    with pytest.raises(ValueError, match="complex128"):
        safetensors.save({"a": torch.ones(1, dtype=torch.complex128)})
    for wrong in ([x], {1: x}, {"a": 1}):
        with pytest.raises(ValueError):
            safetensors.save(wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="metadata"):
        safetensors.save({"a": x}, {"a": 1})  # type: ignore[dict-item]
    path = tmp_path / "kept"
    safetensors.save_file({"x": x}, path)
    with pytest.raises(ValueError):
        safetensors.save_file({"x": 1}, path)  # type: ignore[dict-item]
    assert safetensors.load_file(path)["x"].tolist() == [1, 1, 1, 1]


def test_models_with_tied_weights(tmp_path: Path) -> None:
    class Tied(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
            self.b.weight = self.a.weight

    model, other = Tied(), Tied()
    safetensors.save_model(model, tmp_path / "m")
    assert safetensors.load_model(other, tmp_path / "m") == ([], [])
    assert (other.b.weight == model.a.weight).all() and other.b.weight is other.a.weight


X = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
BROKEN = {
    "nothing": b"", "seven bytes": bytes(7), "a header that is not there": struct.pack("<Q", 100) + b"{}",
    "a header of an exabyte": struct.pack("<Q", 1 << 60) + b"{}", "no JSON": file_of(b"{x}"), "no object": file_of([1]),
    "deep JSON": file_of(b"[" * 100_000), "no text": file_of(b'{"\xff": 1}'), "a number": file_of({"x": 1}, bytes(8)),
    "a name twice": file_of(b'{"x":%s,"x":%s}' % ((json.dumps(X).encode(),) * 2), bytes(8)),
    "more keys": file_of({"x": {**X, "more": 1}}, bytes(8)), "no dtype": file_of({"x": {"shape": [2]}}, bytes(8)),
    "an unknown dtype": file_of({"x": {**X, "dtype": "F8_E4M3"}}, bytes(8)),
    "a dtype of a list": file_of({"x": {**X, "dtype": ["F32"]}}, bytes(8)),
    "a shape of text": file_of({"x": {**X, "shape": "2"}}, bytes(8)),
    "a negative shape": file_of({"x": {**X, "shape": [-2]}}, bytes(8)),
    "a shape of floats": file_of({"x": {**X, "shape": [2.0]}}, bytes(8)),
    "another shape": file_of({"x": {**X, "shape": [3]}}, bytes(8)),
    "a huge shape": file_of({"x": {**X, "shape": [1 << 62, 1 << 62]}}, bytes(8)),
    "a shape of many": file_of({"x": {**X, "shape": [1] * 65 + [2]}}, bytes(8)),
    "a hole": file_of({"x": {**X, "data_offsets": [8, 16]}}, bytes(16)),
    "an end that is missing": file_of({"x": X}, bytes(7)),
    "more memory": file_of({"x": X}, bytes(9)), "an overlap": file_of({"x": X, "y": X}, bytes(8)),
    "offsets turned round": file_of({"x": {**X, "data_offsets": [8, 0]}}, bytes(8)),
    "three offsets": file_of({"x": {**X, "data_offsets": [0, 8, 8]}}, bytes(8)),
    "metadata of numbers": file_of({"__metadata__": {"a": 1}, "x": X}, bytes(8)),
    "a truth value of 2": file_of({"x": {"dtype": "BOOL", "shape": [1], "data_offsets": [0, 1]}}, b"\x02"),
    "a zip archive": b"PK\x03\x04" + bytes(100),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files(name: str, tmp_path: Path) -> None:
    with pytest.raises(LoadError):
        safetensors.load(BROKEN[name])
    path = tmp_path / "broken.safetensors"
    path.write_bytes(BROKEN[name])
    with pytest.raises(LoadError, match=r"broken\.safetensors"):
        torch.load(path)


def test_every_cut_and_every_bit() -> None:
    for end in range(len(FILE)):
        with pytest.raises(LoadError):
            safetensors.load(FILE[:end])
    for bit in range(8 * len(FILE)):
        flipped = bytearray(FILE)
        flipped[bit // 8] ^= 1 << bit % 8
        try:
            found = safetensors.load(bytes(flipped))
        except LoadError:
            continue
        assert all(isinstance(x, torch.Tensor) for x in found.values())  # the format has no checksums


def test_beside_the_package(tmp_path: Path) -> None:
    theirs = pytest.importorskip("safetensors.numpy")
    arrays = {"x": np.arange(6.0).reshape(2, 3), "n": np.array(3, np.int16)}
    safetensors.save_file({name: torch.from_numpy(array) for name, array in arrays.items()}, tmp_path / "ours")
    theirs.save_file(arrays, tmp_path / "theirs")
    for name, array in arrays.items():
        np.testing.assert_array_equal(theirs.load_file(tmp_path / "ours")[name], array)
        np.testing.assert_array_equal(safetensors.load_file(tmp_path / "theirs")[name].numpy(), array)


