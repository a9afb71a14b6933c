"""``torch.save`` and ``torch.load``: objects with tensors in them, in a file.

Note [The file format]
A magic line, a header, a pickle, the memory of the tensors (each piece once and as it is, little-endian) and a
checksum of that memory.  In the pickle a tensor is a call of `_tensor` with a piece of memory (by number), an offset, a
shape and strides, so tensors that share memory share it again when they are loaded.  The pickle comes first and says
how long the pieces are; they are read straight into new arrays after it.  The header says how long the pickle and the
memory are and has checksums of the pickle and of itself, so that nothing is believed, or made room for, before it is
known to be what was written.

Checksums are against accidents.  Against people there is Note [Loading what one does not trust] in `safe_unpickler.py`;
`_tensor` checks that a tensor stays within its memory.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import struct
import sys
from binascii import crc32
from collections.abc import Iterator
from typing import IO, Any

import numpy as np

from .core import dtypes
from .core.devices import as_device, device
from .core.size import Size
from .kernels import as_strided, contiguous_strides, storage_offset, storage_root, strides
from .nn.parameter import Parameter
from .safe_unpickler import (
    LoadError,
    SafeUnpickler,
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    safe_globals,
)
from .tensor import Tensor, new, wrap
from .tensor.lazy_conjugation import bits_of, set_bits
from .write_aside import replacing

_MAGIC = b"retrograd tensors 2\n"
_HEADER = struct.Struct("<QQI")  # bytes of the pickle, bytes of the memory, checksum of the pickle
_CHECKSUM = struct.Struct("<I")
_CHUNK = 1 << 20  # bytes of memory that are read, checked and written at a time

__all__ = [
    "LoadError", "add_safe_globals", "clear_safe_globals", "get_safe_globals", "load", "safe_globals", "save",
]  # fmt: skip


# ------------------------------------------------------------------------------------------------------------- saving


def save(obj: Any, f: Any, pickle_module: Any = None, pickle_protocol: int = 4, **unused: Any) -> None:
    """Write `obj` to a path or to a file that is open for writing bytes.

    A file at that path is replaced as a whole, when everything has been written: if saving fails, it is as it was.

    >>> import io, retrograd as torch
    >>> file = io.BytesIO()
    >>> torch.save({"w": torch.tensor([1., 2.])}, file)
    >>> torch.load(io.BytesIO(file.getvalue()))
    {'w': tensor([1., 2.])}
    """
    buffer = io.BytesIO()
    pickler = _Pickler(buffer, protocol=max(pickle_protocol, 4))
    pickler.dump(obj)
    body = buffer.getvalue()
    header = _MAGIC + _HEADER.pack(len(body), sum(memory.nbytes for memory in pickler.pieces.values()), crc32(body))
    with replacing(f) if isinstance(f, (str, os.PathLike)) else _given(f, "write") as file:
        _write(file, header + _CHECKSUM.pack(crc32(header)))
        _write(file, body)
        checksum = 0
        for memory in pickler.pieces.values():
            octets = _bytes_of(memory if sys.byteorder == "little" else memory.byteswap())
            for start in range(0, len(octets), _CHUNK):
                # A copy, so that it is what was checked that is written, whatever another thread does meanwhile.
                chunk = bytes(octets[start : start + _CHUNK])
                checksum = crc32(chunk, checksum)
                _write(file, chunk)
        _write(file, _CHECKSUM.pack(checksum))


def _write(file: Any, data: Any) -> None:
    """All of it: a file without a buffer may take less at a time, and says how much."""
    data = memoryview(data)
    while data:
        written = file.write(data)
        if not isinstance(written, int):
            return
        data = data[written:]


def _bytes_of(memory: np.ndarray) -> memoryview:
    return memory.view(np.uint8).data if memory.size else memoryview(b"")


class _Pickler(pickle.Pickler):
    """Pickles tensors as calls of `_tensor`, and remembers the memory that is to follow."""

    def __init__(self, file: Any, protocol: int) -> None:
        super().__init__(file, protocol=protocol)
        #: By address, dtype and length: the memory to write, and its number.
        self.pieces: dict[tuple[int, str, int], np.ndarray] = {}
        self.numbers: dict[tuple[int, str, int], int] = {}

    def persistent_id(self, obj: Any) -> Any:
        if obj.__class__ is _Piece:
            return "piece", obj.number, obj.dtype, obj.length
        return None

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Tensor):
            return _tensor, self._describe(obj)
        if isinstance(obj, dtypes.dtype):
            return _dtype, (obj.name,)
        if isinstance(obj, device):
            return _device, (str(obj),)
        if isinstance(obj, Size):
            return _size, (tuple(obj),)
        return NotImplemented

    def _describe(self, tensor: Tensor) -> tuple:
        if not tensor.is_leaf and _kind(tensor) != "Tensor":
            raise RuntimeError("a tensor of a subclass that is the result of an operation cannot be saved: detach() it")
        array = tensor._memory
        whole = storage_root(array)
        if not (whole.flags.c_contiguous and whole.dtype == array.dtype):
            whole = array = np.ascontiguousarray(array).reshape(array.shape)  # memory of another kind: a copy
        key = (whole.__array_interface__["data"][0], whole.dtype.name, whole.size)
        if key not in self.pieces:
            self.numbers[key] = len(self.pieces)
            self.pieces[key] = whole.reshape(-1)
        piece = _Piece(self.numbers[key], whole.dtype.name, whole.size)
        attributes = tensor.__dict__ or None
        where = storage_offset(array) if array is not whole else 0
        layout = array.shape, strides(array)
        return _kind(tensor), piece, where, *layout, tensor.requires_grad, attributes, bits_of(tensor)


class _Piece:
    """Stands in the pickle for a piece of memory that follows it."""

    def __init__(self, number: int, dtype: str, length: int) -> None:
        self.number = number
        self.dtype = dtype
        self.length = length


def _kind(tensor: Tensor) -> Any:
    cls = type(tensor)
    return "Tensor" if any(bits_of(tensor)) else {Tensor: "Tensor", Parameter: "Parameter"}.get(cls, cls)


# ------------------------------------------------------------------------------------------- what the pickle may call


def _tensor(
    kind: Any,
    memory: Any,
    offset: int,
    shape: tuple,
    stride: tuple,
    requires_grad: bool,
    attributes: Any,
    bits: tuple[bool, bool] = (False, False),
) -> Tensor:
    """A tensor on a piece of memory, within its bounds."""
    if type(memory) is not np.ndarray:
        raise LoadError(f"a tensor in the file lies in a {type(memory).__name__} instead of a piece of memory")
    described = tuple(type(part) for part in (offset, shape, stride, requires_grad, bits))
    if described != (int, tuple, tuple, bool, tuple) or type(attributes) not in (dict, type(None)):
        raise LoadError("a tensor in the file is described in a way that makes no sense")
    if not all(type(n) is int and n >= 0 for n in (offset, *shape, *stride)) or len(shape) != len(stride):
        raise LoadError("the sizes and strides of a tensor in the file are none")
    if 0 in shape:
        array = np.empty(shape, memory.dtype)
    else:
        last = offset + sum((n - 1) * s for n, s in zip(shape, stride))
        if last >= memory.size:
            raise LoadError(f"a tensor in the file reaches to element {last} of a memory of {memory.size}")
        array = as_strided(memory, shape, stride, offset)
        if stride == contiguous_strides(shape) and array.size == memory.size:
            array = memory.reshape(shape)
    if kind == "Tensor":
        result = wrap(array)
    elif kind == "Parameter":
        result = Parameter(wrap(array), requires_grad=False)
    elif isinstance(kind, type) and issubclass(kind, Tensor):
        result = new(kind)
        result._data, result._vc, result._meta, result._edge = array, None, None, None
    else:
        what = kind[:50] if type(kind) is str else type(kind).__name__
        raise LoadError(f"a tensor in the file is of a kind that is not known: {what!r}")
    if any(bits):
        if bits[0] and not np.iscomplexobj(array):
            raise LoadError(f"a tensor in the file is conjugated and {array.dtype}")
        set_bits(result, bits)
    if requires_grad:
        result.requires_grad_()
    if attributes:
        if not all(type(name) is str for name in attributes):
            raise LoadError("the attributes of a tensor in the file have no names")
        result.__dict__.update(attributes)
    return result


def _dtype(name: str) -> dtypes.dtype:
    return dtypes.by_name(_text(name))


def _device(name: str) -> device:
    return device(_text(name))


def _size(sizes: tuple) -> Size:
    if type(sizes) is not tuple:
        raise LoadError(f"a size in the file is a {type(sizes).__name__}")
    return Size(sizes)


def _text(name: Any) -> str:
    if type(name) is not str:
        raise LoadError(f"a name in the file is a {type(name).__name__}")
    return name


_OURS = {f"{__name__}.{f.__name__}": f for f in (_tensor, _dtype, _device, _size)}


# ------------------------------------------------------------------------------------------------------------ loading


def load(
    f: Any, map_location: Any = None, pickle_module: Any = None, *, weights_only: bool | None = None, **unused: Any
) -> Any:
    """Read what `save` wrote, from a path or a file that is open for reading bytes.

    By default only tensors and plain Python values are loaded: the file may come from anybody.
    ``weights_only=False`` loads everything, and runs whatever the file says: only for files that you trust.
    `map_location` is the device that tensors are to be on, a dictionary of devices, or a function of
    (memory, device).

    A file that is damaged, or not written by `save`, raises `LoadError`, which is both a RuntimeError and a
    pickle.UnpicklingError.
    """
    with open(f, "rb") if isinstance(f, (str, os.PathLike)) else _given(f, "read") as file:
        try:
            result = _load(file, weights_only is not False)
        except LoadError as error:
            name = os.fspath(f) if isinstance(f, (str, os.PathLike)) else repr(f)
            raise LoadError(f"{error} ({name})") from error.__cause__
    _check_location(map_location)
    return result


def _load(file: Any, safe: bool) -> Any:
    magic = _read(file, len(_MAGIC))
    if magic != _MAGIC:
        raise LoadError(_what_it_is(magic))
    header = _read(file, _HEADER.size + _CHECKSUM.size)
    if len(header) < _HEADER.size + _CHECKSUM.size:
        raise LoadError("the file ends in its header: it was not written to its end")
    if _CHECKSUM.unpack(header[_HEADER.size :])[0] != crc32(magic + header[: _HEADER.size]):
        raise LoadError("the file is damaged: the checksum of its header is wrong")
    size, memory_size, checksum = _HEADER.unpack(header[: _HEADER.size])
    body = _read(file, size)
    if len(body) < size:
        raise _early(size - len(body) + memory_size + _CHECKSUM.size)
    if crc32(body) != checksum:
        raise LoadError("the file is damaged: the checksum of what describes its objects is wrong")

    pieces = _Pieces(memory_size)
    if not safe:
        unpickler = _Unpickler(io.BytesIO(body))
        unpickler.pieces = pieces
        result = unpickler.load()  # it is what was written: what it raises is the objects' own
    else:
        try:
            result = SafeUnpickler(body, _OURS, pieces.get).load()
        except LoadError:
            raise
        except Exception as error:
            raise LoadError(
                f"the file is damaged: what describes its objects makes no sense ({type(error).__name__}: {error})"
            ) from error
    pieces.fill(file)
    return result


def _read(file: Any, size: int) -> bytes:
    """So many bytes, or what there is: piece by piece, since it may be much less than the file says."""
    chunks = []
    while size > 0:
        chunk = file.read(min(size, _CHUNK))
        if not chunk:
            break
        if isinstance(chunk, str):
            raise TypeError("expected a file that is open for reading bytes, got one that is open for reading text")
        chunks.append(chunk)
        size -= len(chunk)
    return b"".join(chunks)


def _early(missing: int) -> LoadError:
    return LoadError(f"the file ends {missing} bytes early: it was not written to its end")


def _what_it_is(magic: bytes) -> str:
    """What to say of a file that does not begin as it should."""
    if not magic:
        return "the file is empty, or has been read to its end"
    if _MAGIC.startswith(magic):
        return "the file ends in its first line: it was not written to its end"
    if magic == b"retrograd tensors 1\n":
        return (
            "the file was written by an early version of retrograd, whose files have no checksums. Load it with that "
            "version and save it with this one"
        )
    if magic.startswith(_MAGIC[:18]):
        return f"the file is damaged, or was written by a later version of retrograd (it begins with {magic!r})"
    return (
        f"the file was not written by retrograd.save (it does not begin with {_MAGIC!r}). Files of torch.save can be "
        "converted by saving NumPy arrays from torch: numpy.savez(path, **{name: t.numpy() ...})"
    )


class _Pieces:
    """The memory that a pickle refers to: made when it does, and filled from what follows the pickle."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.left = size
        self.pieces: list[tuple[tuple, np.ndarray]] = []

    def get(self, pid: Any) -> np.ndarray:
        """For a reference in the pickle."""
        kinds = (str, int, str, int)
        if type(pid) is not tuple or tuple(type(part) for part in pid) != kinds or pid[0] != "piece":
            raise LoadError("there is a reference in the file that is none to a piece of memory")
        _, number, name, length = pid
        if number == len(self.pieces):
            dtype = dtypes.by_name(name).np
            if not 0 <= length * dtype.itemsize <= self.left:
                raise LoadError(f"a piece of memory in the file has {length} elements, which are not there")
            self.left -= length * dtype.itemsize
            self.pieces.append((pid, np.empty(length, dtype)))
        elif not 0 <= number < len(self.pieces) or self.pieces[number][0] != pid:
            raise LoadError(f"piece {number} of the memory in the file is out of order")
        return self.pieces[number][1]

    def fill(self, file: Any) -> None:
        """Read it all."""
        if self.left:
            raise LoadError(f"the file has {self.left} bytes of memory that nothing refers to")
        done = checksum = 0
        for _, memory in self.pieces:
            octets = _bytes_of(memory)
            for start in range(0, len(octets), _CHUNK):
                wanted = min(_CHUNK, len(octets) - start)
                chunk = _read(file, wanted)
                done += len(chunk)
                if len(chunk) < wanted:
                    raise _early(self.size - done + _CHECKSUM.size)
                checksum = crc32(chunk, checksum)
                octets[start : start + wanted] = chunk
        written = _read(file, _CHECKSUM.size)
        if len(written) < _CHECKSUM.size:
            raise _early(_CHECKSUM.size - len(written))
        if written != _CHECKSUM.pack(checksum):
            raise LoadError("the file is damaged: the checksum of its memory is wrong")
        for _, memory in self.pieces:
            if sys.byteorder == "big":
                memory.byteswap(inplace=True)
            if memory.dtype == np.bool_ and memory.size and memory.view(np.uint8).max() > 1:
                raise LoadError("the file has a truth value that is neither 0 nor 1")


class _Unpickler(pickle.Unpickler):
    """Unpickles anything."""

    pieces: _Pieces

    def persistent_load(self, pid: Any) -> Any:
        return self.pieces.get(pid)


def _check_location(map_location: Any) -> None:
    """All memory is on the CPU; was it asked for elsewhere?"""
    if isinstance(map_location, dict):
        map_location = map_location.get("cpu")
    if callable(map_location) and not isinstance(map_location, device):
        return  # it chooses among places where memory can be, and there is one
    as_device(map_location)


@contextlib.contextmanager
def _given(f: Any, needed: str) -> Iterator[IO[bytes]]:
    """A file that somebody else has opened, and closes."""
    if not hasattr(f, needed):
        raise AttributeError(
            f"expected 'f' to be string, path, or a file-like object with a '{needed}' attribute, "
            f"got {type(f).__name__}"
        )
    yield f
