"""safetensors files: named tensors and nothing that could run.

The functions have the names of the package ``safetensors.torch``, which is not needed: the format is a number (how long
the header is), a header in JSON (name, dtype, shape and place of each tensor), and their memory, in C order and
little-endian.  Files are exchanged with that package both ways, for whichever library it reads them.  What shares
memory is refused or copied, since the format has no word for it.
"""

from __future__ import annotations

import json
import math
import os
import struct
import sys
from collections.abc import Iterator, Mapping
from typing import IO, Any

import numpy as np

from ..core import dtypes
from ..core.devices import as_device
from ..kernels import storage_root
from ..serialization.load_error import LoadError
from ..serialization.write_aside import replacing
from ..serialization.zip_writer import CHUNK, write_all
from ..tensor import Tensor, wrap

__all__ = ["load", "load_file", "load_model", "safe_open", "save", "save_file", "save_model"]

#: The format's names of dtypes.
_DTYPES = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "I16": "int16", "I32": "int32", "I64": "int64", "F16": "float16",
    "BF16": "bfloat16", "F32": "float32", "F64": "float64", "C64": "complex64",
    "U16": "uint16", "U32": "uint32", "U64": "uint64", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2",
    "F8_E8M0": "float8_e8m0fnu",
}  # fmt: skip
_WORDS = {name: word for word, name in _DTYPES.items()}
_LARGEST_HEADER = 100_000_000  # bytes, as the format has it


# ------------------------------------------------------------------------------------------------------------- writing


def save_file(tensors: Mapping[str, Tensor], filename: Any, metadata: Mapping[str, str] | None = None) -> None:
    """Write named tensors to a file, which is replaced as a whole when everything has been written.

    >>> import os, tempfile, retrograd as torch
    >>> from retrograd.utils import safetensors
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "weights.safetensors")
    ...     safetensors.save_file({"w": torch.tensor([1., 2.])}, path, metadata={"format": "pt"})
    ...     safetensors.load_file(path)
    {'w': tensor([1., 2.])}
    """
    header, arrays = _prepare(tensors, metadata)
    with replacing(filename) as file:
        _write(file, header, arrays)


def save(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> bytes:
    """The bytes of such a file.

    >>> import retrograd as torch
    >>> from retrograd.utils import safetensors
    >>> safetensors.load(safetensors.save({"n": torch.tensor(7)}))
    {'n': tensor(7)}
    """
    import io

    buffer = io.BytesIO()
    _write(buffer, *_prepare(tensors, metadata))
    return buffer.getvalue()


def _prepare(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None) -> tuple[bytes, list[np.ndarray]]:
    if not isinstance(tensors, Mapping):
        raise ValueError(f"Expected a dict of [str, torch.Tensor] but received {type(tensors).__name__}")
    for name, tensor in tensors.items():
        if not isinstance(name, str):
            raise ValueError(f"the name of a tensor must be str, not {type(name).__name__}: {name!r}")
        if not isinstance(tensor, Tensor):
            raise ValueError(f"Key `{name}` is invalid, expected torch.Tensor but received {type(tensor).__name__}")
        if tensor.dtype.name not in _WORDS:
            raise ValueError(f"the tensor {name!r} is of {tensor.dtype}, which the format does not have")
    _refuse_sharing(tensors)
    entries: dict[str, Any] = {}
    if metadata is not None:
        if not all(isinstance(part, str) for pair in metadata.items() for part in pair):
            raise ValueError("metadata is a dict of str to str: json.dumps() what is not")
        entries["__metadata__"] = dict(metadata)
    if "__metadata__" in tensors:
        raise ValueError("a tensor cannot be called '__metadata__' in such a file")
    # Large elements first: so every tensor is aligned.
    order = sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))
    arrays, position = [], 0
    for name in order:
        array = np.ascontiguousarray(tensors[name].detach()._numbers_)
        entries[name] = {
            "dtype": _WORDS[tensors[name].dtype.name],
            "shape": list(tensors[name].shape),
            "data_offsets": [position, position + array.nbytes],
        }
        position += array.nbytes
        arrays.append(array)
    header = json.dumps(entries, separators=(",", ":"), ensure_ascii=False).encode()
    header += b" " * (-len(header) % 8)
    if len(header) > _LARGEST_HEADER:
        raise ValueError(f"the header would have {len(header)} bytes; the format allows {_LARGEST_HEADER}")
    return header, arrays


def _refuse_sharing(tensors: Mapping[str, Tensor]) -> None:
    owners: dict[int, list[str]] = {}
    for name, tensor in tensors.items():
        if tensor.numel():
            owners.setdefault(id(storage_root(tensor._memory_)), []).append(name)
    shared = [names for names in owners.values() if len(names) > 1]
    if shared:
        raise RuntimeError(
            f"Some tensors share memory, this will lead to duplicate memory on disk and potential differences when "
            f"loading them again: {shared}. Use save_model(), which leaves one of each, or clone() them"
        )


def _write(file: Any, header: bytes, arrays: list[np.ndarray]) -> None:
    write_all(file, struct.pack("<Q", len(header)) + header)
    for array in arrays:
        octets = _octets(array if sys.byteorder == "little" else array.byteswap())
        for start in range(0, octets.size, CHUNK):
            write_all(file, octets[start : start + CHUNK].tobytes())


def _octets(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1).view(np.uint8)


# ------------------------------------------------------------------------------------------------------------- reading


def load_file(filename: Any, device: Any = "cpu") -> dict[str, Tensor]:
    """The tensors of a file, by name."""
    as_device(device)
    with open(filename, "rb") as file:
        return _read_all(file, os.fspath(filename))


def load(data: bytes) -> dict[str, Tensor]:
    """The tensors of the bytes of a file."""
    import io

    return _read_all(io.BytesIO(data), "bytes")


def _read_all(file: IO[bytes], name: str) -> dict[str, Tensor]:
    try:
        header = _Header(file)
        return {key: header.read(file, key) for key in header.entries}
    except LoadError as error:
        raise LoadError(f"{error} ({name})") from error.__cause__


class _Header:
    """What a file has, checked: tensors fill what follows the header, without gaps, and one after the other."""

    def __init__(self, file: IO[bytes]) -> None:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        if size < 8:
            raise LoadError("Error while deserializing header: the file is too small for one")
        (length,) = struct.unpack("<Q", file.read(8))
        if length > _LARGEST_HEADER:
            raise LoadError("Error while deserializing header: header too large")
        if length > size - 8:
            raise LoadError("Error while deserializing header: the file ends within it")
        self.start = 8 + length
        self.size = size - self.start
        try:
            parsed = json.loads(file.read(length).decode(), object_pairs_hook=_unique)
        except (ValueError, RecursionError) as error:
            raise LoadError(f"Error while deserializing header: it is no JSON ({error})") from error
        if type(parsed) is not dict:
            raise LoadError("Error while deserializing header: it is no object of JSON")
        self.metadata = parsed.pop("__metadata__", None)
        if self.metadata is not None and not (
            type(self.metadata) is dict and all(type(value) is str for value in self.metadata.values())
        ):
            raise LoadError("Error while deserializing header: its metadata is no dict of text")
        self.entries = {name: self._entry(name, entry) for name, entry in parsed.items()}
        position = 0
        for name, (_, _, start, end) in sorted(self.entries.items(), key=lambda item: item[1][2:]):
            if start != position:
                raise LoadError(f"Error while deserializing header: invalid offset for tensor `{name[:100]}`")
            position = end
        if position != self.size:
            raise LoadError(
                f"Error while deserializing header: incomplete metadata, file not fully covered: its tensors have "
                f"{position} bytes, the file {self.size}"
            )

    def _entry(self, name: str, entry: Any) -> tuple[dtypes.dtype, tuple[int, ...], int, int]:
        if type(entry) is not dict or set(entry) != {"dtype", "shape", "data_offsets"}:
            raise LoadError(f"Error while deserializing header: tensor `{name[:100]}` is described in another way")
        word, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
        if type(word) is not str or word not in _DTYPES:
            raise LoadError(f"the tensor `{name[:100]}` in the file is of {str(word)[:50]}, which is not here")
        numbers = type(shape) is list and type(offsets) is list and len(offsets) == 2
        if not numbers or not all(type(n) is int and n >= 0 for n in (*shape, *offsets)) or len(shape) > 64:
            raise LoadError(f"Error while deserializing header: the numbers of tensor `{name[:100]}` are none")
        dtype = dtypes.by_name(_DTYPES[word])
        if math.prod(shape) * dtype.itemsize != offsets[1] - offsets[0]:
            raise LoadError(f"the shape of tensor `{name[:100]}` and the number of its bytes do not go together")
        return dtype, tuple(shape), offsets[0], offsets[1]

    def read(self, file: IO[bytes], name: str) -> Tensor:
        """One of the tensors."""
        dtype, shape, start, end = self.entries[name]
        file.seek(self.start + start)
        octets = np.empty(end - start, np.uint8)
        done = 0
        while done < octets.size:
            got = file.readinto(octets[done:].data)  # type: ignore[attr-defined]
            if not got:
                raise LoadError(f"the file ends within tensor `{name[:100]}`")
            done += got
        if dtype is dtypes.bool_ and octets.size and octets.max() > 1:
            raise LoadError("the file has a truth value that is neither 0 nor 1")
        array = octets.view(dtype.np).reshape(shape)
        return wrap(array if sys.byteorder == "little" else array.byteswap())


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name twice")
    return found


class safe_open:
    """A file of which some tensors are read: ``with safe_open(path) as f: f.get_tensor("w")``.

    The second argument, the framework, is that of the package safetensors and may be left out.
    """

    def __init__(self, filename: Any, framework: str = "pt", device: Any = "cpu") -> None:
        if framework not in ("pt", "torch", "pytorch", "np", "numpy"):
            raise ValueError(f"framework {framework!r} is not here: 'pt' gives tensors, 'np' gives arrays")
        as_device(device)
        self._numpy = framework in ("np", "numpy")
        self._file = open(filename, "rb")
        try:
            self._header = _Header(self._file)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> safe_open:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._file.close()

    def metadata(self) -> dict[str, str] | None:
        """What the writer said about the file."""
        return self._header.metadata

    def keys(self) -> list[str]:
        """The names of the tensors."""
        return sorted(self._header.entries)

    offset_keys = keys

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def get_tensor(self, name: str) -> Any:
        """The tensor of that name."""
        if name not in self._header.entries:
            raise LoadError(f"File does not contain tensor {name}")
        tensor = self._header.read(self._file, name)
        return tensor.numpy() if self._numpy else tensor


# --------------------------------------------------------------------------------------------------------------- models


def save_model(model: Any, filename: Any, metadata: Mapping[str, str] | None = None) -> None:
    """The state of a model; of tensors that are tied, one is written, and the metadata names the others."""
    state = model.state_dict()
    kept: dict[str, Tensor] = {}
    seen: dict[tuple, str] = {}
    notes = dict(metadata or {})
    for name in sorted(state):
        tensor = state[name]
        place = (tensor.data_ptr(), tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype)
        if tensor.numel() and place in seen:
            notes[name] = seen[place]
        else:
            seen[place] = name
            kept[name] = tensor
    save_file(kept, filename, notes or None)


def load_model(model: Any, filename: Any, strict: bool = True, device: Any = "cpu") -> tuple[list[str], list[str]]:
    """Load what `save_model` wrote into a model: (names that were missing, names that are not the model's)."""
    state = load_file(filename, device)
    with safe_open(filename) as file:
        notes = file.metadata() or {}
    state.update({name: state[other] for name, other in notes.items() if other in state and name not in state})
    found = model.load_state_dict(state, strict=strict)
    return found.missing_keys, found.unexpected_keys
