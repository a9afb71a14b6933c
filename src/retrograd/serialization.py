"""``torch.save`` and ``torch.load``: objects with tensors in them, in a file.

Note [The file format]
A magic line, then a pickle, then the memory of the tensors, each piece once and as it is, little-endian.  In the
pickle a tensor is a call of `_tensor` with a piece of memory (by number), an offset, a shape and strides, so tensors
that share memory share it again when they are loaded.  The pickle comes first and says how long the pieces are; they
are read straight into new arrays after it.

Note [Loading what one does not trust]
A pickle can call anything that it can name.  `load` by default (``weights_only=True``) lets it name only what is in
`_SAFE` and what the user has added with `add_safe_globals`, and refuses to set attributes on anything else;
`_tensor` checks that a tensor stays within its memory.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import sys
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from typing import IO, Any

import numpy as np

from . import dtypes
from .devices import as_device, device
from .kernels import as_strided, contiguous_strides, storage_offset, storage_root, strides
from .lazy_conjugation import bits_of, set_bits
from .nn.parameter import Parameter
from .size import Size
from .tensor import Tensor, new, wrap

_MAGIC = b"retrograd tensors 1\n"

__all__ = ["add_safe_globals", "clear_safe_globals", "get_safe_globals", "load", "safe_globals", "save"]


# ------------------------------------------------------------------------------------------------------------- saving


def save(obj: Any, f: Any, pickle_module: Any = None, pickle_protocol: int = 4, **unused: Any) -> None:
    """Write `obj` to a path or to a file that is open for writing bytes.

    >>> import io, retrograd as torch
    >>> file = io.BytesIO()
    >>> torch.save({"w": torch.tensor([1., 2.])}, file)
    >>> torch.load(io.BytesIO(file.getvalue()))
    {'w': tensor([1., 2.])}
    """
    with _opened(f, "wb") as file:
        file.write(_MAGIC)
        pickler = _Pickler(file, protocol=max(pickle_protocol, 4))
        pickler.dump(obj)
        for memory in pickler.pieces.values():
            little = memory if sys.byteorder == "little" else memory.byteswap()
            file.write(little.view(np.uint8).data if little.size else b"")


class _Pickler(pickle.Pickler):
    """Pickles tensors as calls of `_tensor`, and remembers the memory that is to follow."""

    def __init__(self, file: Any, protocol: int) -> None:
        super().__init__(file, protocol=protocol)
        #: By address and dtype: the memory to write, and its number.
        self.pieces: dict[tuple[int, str], np.ndarray] = {}
        self.numbers: dict[tuple[int, str], int] = {}

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
        key = (whole.__array_interface__["data"][0], whole.dtype.name)
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
        raise pickle.UnpicklingError(f"not a piece of memory: {type(memory).__name__}")
    array = as_strided(memory, shape, stride, offset) if 0 not in shape else np.empty(shape, memory.dtype)
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
        raise pickle.UnpicklingError(f"not a kind of tensor: {kind!r}")
    if any(bits):
        set_bits(result, bits)
    if requires_grad:
        result.requires_grad_()
    if attributes:
        result.__dict__.update(attributes)
    return result


def _dtype(name: str) -> dtypes.dtype:
    return dtypes.by_name(name)


def _device(name: str) -> device:
    return device(name)


def _size(sizes: tuple) -> Size:
    return Size(sizes)


_SAFE: dict[tuple[str, str], Any] = {
    **{(__name__, f.__name__): f for f in (_tensor, _dtype, _device, _size)},
    **{("builtins", cls.__name__): cls for cls in (set, frozenset, complex, bytearray)},
    ("collections", "OrderedDict"): OrderedDict,
    ("collections", "Counter"): Counter,
}


# ------------------------------------------------------------------------------------------------------------ loading


def load(
    f: Any, map_location: Any = None, pickle_module: Any = None, *, weights_only: bool | None = None, **unused: Any
) -> Any:
    """Read what `save` wrote, from a path or a file that is open for reading bytes.

    By default only tensors and plain Python values are loaded: the file may come from anybody.
    ``weights_only=False`` loads everything, and runs whatever the file says: only for files that you trust.
    `map_location` is the device that tensors are to be on, a dictionary of devices, or a function of
    (memory, device).
    """
    with _opened(f, "rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise pickle.UnpicklingError(
                f"{f!r} was not written by retrograd.save (it does not begin with {_MAGIC!r}). Files of torch.save can "
                "be converted by saving NumPy arrays from torch: numpy.savez(path, **{name: t.numpy() ...})"
            )
        safe = weights_only is not False
        unpickler: Any = _SafeUnpickler(file) if safe else _Unpickler(file)
        unpickler.pieces = {}
        result = unpickler.load()
        for memory in unpickler.pieces.values():
            _read_into(file, memory)
    _check_location(map_location)
    return result


def _read_into(file: Any, memory: np.ndarray) -> None:
    view = memory.view(np.uint8).data if memory.size else memoryview(b"")
    done = 0
    while done < len(view):
        chunk = file.read(min(len(view) - done, 1 << 26))
        if not chunk:
            raise RuntimeError(f"the file ends {len(view) - done} bytes early: it was not written to its end")
        view[done : done + len(chunk)] = chunk
        done += len(chunk)
    if sys.byteorder == "big":
        memory.byteswap(inplace=True)


def _piece(unpickler: Any, pid: Any) -> np.ndarray:
    """The memory that a pickle refers to, not filled yet."""
    if not (isinstance(pid, tuple) and len(pid) == 4 and pid[0] == "piece"):
        raise pickle.UnpicklingError(f"unknown reference in the pickle: {pid!r}")
    _, number, dtype, length = pid
    pieces = unpickler.pieces
    if number not in pieces:
        if number != len(pieces) or not isinstance(length, int) or length < 0:
            raise pickle.UnpicklingError(f"a piece of memory is out of order: {pid!r}")
        pieces[number] = np.empty(length, _dtype(dtype).np)
    return pieces[number]


class _Unpickler(pickle.Unpickler):
    """Unpickles anything."""

    def persistent_load(self, pid: Any) -> Any:
        return _piece(self, pid)


# The unpickler that is written in Python: only there can the instruction that sets attributes be restricted.
_PythonUnpickler: Any = pickle._Unpickler  # type: ignore[attr-defined]


class _SafeUnpickler(_PythonUnpickler):
    """Unpickles tensors and plain values; see Note [Loading what one does not trust]."""

    def persistent_load(self, pid: Any) -> Any:
        return _piece(self, pid)

    def find_class(self, module: str, name: str) -> Any:
        found = _SAFE.get((module, name)) or _user_safe().get(f"{module}.{name}")
        if found is None:
            raise pickle.UnpicklingError(
                f"Weights only load failed: the file refers to {module}.{name}, which is not among the things that are "
                "safe to load from a file of unknown origin. If you trust the file, load it with weights_only=False; "
                f"if you know that {name} is harmless, allow it: torch.serialization.add_safe_globals([{name}])"
            )
        return found

    def load_build(self) -> None:
        target = self.stack[-2]
        if type(target) is OrderedDict:  # a state dict carries its metadata as an attribute
            state = self.stack.pop()
            if not isinstance(state, dict):
                raise pickle.UnpicklingError("Weights only load failed: an OrderedDict with a state of another kind")
            target.__dict__.update(state)
        elif type(target) in _user_safe().values():
            super().load_build()
        else:
            raise pickle.UnpicklingError(
                f"Weights only load failed: the file sets attributes of a {type(target).__name__}, which is not among "
                "the things that are safe to load from a file of unknown origin."
            )

    dispatch = {**_PythonUnpickler.dispatch, pickle.BUILD[0]: load_build}


def _check_location(map_location: Any) -> None:
    """All memory is on the CPU; was it asked for elsewhere?"""
    if isinstance(map_location, dict):
        map_location = map_location.get("cpu")
    if callable(map_location) and not isinstance(map_location, device):
        return  # it chooses among places where memory can be, and there is one
    as_device(map_location)


# ------------------------------------------------------------------------------------------------- what users add to it

_added: list[Any] = []


def _user_safe() -> dict[str, Any]:
    return {f"{thing.__module__}.{thing.__qualname__}": thing for thing in _added}


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Let `load` make instances of these classes, and call these functions, whatever file asks for it."""
    _added.extend(thing for thing in safe_globals if thing not in _added)


def get_safe_globals() -> list[Any]:
    """What `add_safe_globals` has added."""
    return list(_added)


def clear_safe_globals() -> None:
    """Take back everything that `add_safe_globals` has added."""
    _added.clear()


class safe_globals:
    """``with safe_globals([MyClass]):``: `add_safe_globals` for a while."""

    def __init__(self, safe_globals: list[Any]) -> None:
        self.given = safe_globals

    def __enter__(self) -> None:
        self.before = get_safe_globals()
        add_safe_globals(self.given)

    def __exit__(self, *exc_info: object) -> None:
        _added[:] = self.before


# --------------------------------------------------------------------------------------------------------------- files


@contextlib.contextmanager
def _opened(f: Any, mode: str) -> Iterator[IO[bytes]]:
    if isinstance(f, (str, os.PathLike)):
        with open(f, mode) as file:
            yield file  # type: ignore[misc]
        return
    needed: Callable | None = getattr(f, "write" if mode == "wb" else "read", None)
    if needed is None:
        raise AttributeError(
            f"expected 'f' to be string, path, or a file-like object with a "
            f"'{'write' if mode == 'wb' else 'read'}' attribute, got {type(f).__name__}"
        )
    if mode == "rb" and not hasattr(f, "readline"):
        f = io.BufferedReader(f)
    yield f
