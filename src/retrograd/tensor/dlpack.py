"""DLPack: memory shared with other array libraries, without a copy.

``torch.from_dlpack(array)`` takes what any library's array offers through ``__dlpack__``; Tensors offer the same.
NumPy does the exchange. It does not know bfloat16: that is exchanged as the integers of its bits, with the type
written into the capsule, or read from it, here. What else it does not know cannot be exchanged.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from ..core import dtypes
from ..core.devices import as_device, places_of
from ..core.layout import strided
from ..core.state import local
from . import Tensor, wrap

__all__ = ["from_dlpack", "to_dlpack"]


class _Capsule:
    """A bare capsule, dressed as the array that it was made of."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


class _DLTensor(ctypes.Structure):
    """The beginning of what DLPack says of an array."""

    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
    ]  # fmt: skip


class _Versioned(ctypes.Structure):
    """The same with what came before it since version 1."""

    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", _DLTensor),
    ]  # fmt: skip


#: Codes of kinds of numbers.
_UNSIGNED, _BFLOAT = 1, 4
#: The number of CUDA devices.
_CUDA = 2


def _header(capsule: Any) -> _DLTensor:
    """What a capsule says of its array, to read and to write to."""
    versioned = "dltensor_versioned" in repr(capsule)
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address = pointer(capsule, b"dltensor_versioned" if versioned else b"dltensor")
    return _Versioned.from_address(address).tensor if versioned else _DLTensor.from_address(address)


def _from_capsule(capsule: Any) -> np.ndarray:
    header = _header(capsule)
    if (header.code, header.bits, header.lanes) != (_BFLOAT, 16, 1):
        return _writeable(np.from_dlpack(_Capsule(capsule)))
    header.code = _UNSIGNED
    return _writeable(np.from_dlpack(_Capsule(capsule))).view(dtypes.bfloat16.np)


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor on the memory of another library's array, or of a DLPack capsule.

    >>> import numpy, retrograd as torch
    >>> a = numpy.zeros(2)
    >>> torch.from_dlpack(a)[0] = 5
    >>> a
    array([5., 0.])
    """
    as_device(device)
    if hasattr(ext_tensor, "__dlpack_device__") and ext_tensor.__dlpack_device__()[0] == _CUDA:
        array: Any = places_of("cuda").from_dlpack(ext_tensor)
        return wrap(array.copy() if copy else array, local.state.new_vc)
    if hasattr(ext_tensor, "__dlpack__"):
        try:
            array = np.from_dlpack(ext_tensor)
        except (BufferError, RuntimeError, TypeError):  # of a type that NumPy does not know, or of another device
            capsule = ext_tensor.__dlpack__()
            if _header(capsule).code != _BFLOAT:
                raise
            array = _from_capsule(capsule)
    elif "dltensor" in repr(ext_tensor):
        array = _from_capsule(ext_tensor)
    else:
        raise RuntimeError(
            f"from_dlpack received an invalid capsule ({type(ext_tensor).__name__}): it takes an array with __dlpack__ "
            "or a capsule. Note that DLTensor capsules can be consumed only once, so you might have already "
            "constructed a tensor from it once."
        )
    return wrap(array.copy() if copy else array, local.state.new_vc)


def lends_memory(obj: Any) -> bool:
    """Is it an array of another library, or a capsule of one, that `from_dlpack` takes?"""
    kind = type(obj)
    return kind not in _PLAIN and (hasattr(kind, "__dlpack__") or kind.__name__ == "PyCapsule")


#: Kinds of data that are asked for often.
_PLAIN = frozenset((list, tuple, int, float, bool, complex, str, bytes))


class _Memory:
    """The memory of an array, kept alive, in the form that `np.asarray` takes it."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.__array_interface__ = {**array.__array_interface__, "data": (array.ctypes.data, False)}


def _writeable(array: np.ndarray) -> np.ndarray:
    """A capsule does not say whether its memory may be written to, and NumPy then says no; torch says yes."""
    return array if array.flags.writeable else np.asarray(_Memory(array))


def to_dlpack(tensor: Tensor) -> Any:
    """A capsule with the memory of a tensor, for libraries that take capsules; most take the tensor itself."""
    return dlpack(tensor)


def dlpack(
    tensor: Tensor, *, stream: Any = -1, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
) -> Any:
    """``x.__dlpack__()``."""
    if tensor.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if tensor.layout is not strided:
        raise BufferError(f"Can't export tensors with layout other than torch.strided, but it is {tensor.layout}")
    if tensor.is_conj():
        raise BufferError("Can't export tensors with the conjugate bit set: use tensor.resolve_conj()")
    if dl_device is not None:
        tensor = _on_device(tensor, dl_device, copy)
    bfloat16 = tensor._memory_.dtype.name == "bfloat16"
    if (tensor._memory_.dtype.num >= 256 and not bfloat16) or tensor._memory_.dtype.names:
        raise BufferError(f"{tensor.dtype} is not a type that NumPy can exchange: convert it first, x.float()")
    if stream is not None and not isinstance(stream, int):
        raise TypeError(f"stream must be ``int`` or ``none``, but it is a {type(stream).__name__}")
    if hasattr(tensor._memory_, "place"):
        data = tensor._numbers_.copy() if copy else tensor._numbers_
        return data.__dlpack__(stream=stream, max_version=max_version)
    if stream not in (-1, None):
        raise AssertionError(f"stream should be None on cpu. There are no streams, but stream={stream} was given")
    data = tensor._numbers_
    if copy:
        data = data.copy()
    if bfloat16:
        data = data.view(np.uint16)
    capsule = data.__dlpack__(max_version=max_version) if max_version is not None else data.__dlpack__()
    if bfloat16:
        _header(capsule).code = _BFLOAT
    return capsule


def _on_device(tensor: Tensor, wanted: Any, copy: bool | None) -> Tensor:
    """The tensor where somebody wants it: a kind of device, as DLPack numbers them, and which of them."""
    kind, number = (int(part) for part in wanted)
    here = dlpack_device(tensor)
    if kind == 1 == here[0] or (kind, number) == here:
        return tensor
    if kind not in (1, _CUDA):
        raise BufferError(f"dl_device={wanted} is of a kind that no tensor is on: (1, 0) is the CPU, (2, n) CUDA's n")
    if copy is False:
        raise BufferError(f"it lies on {tensor.device}: on dl_device={wanted} there can only be a copy of it")
    return tensor.to("cpu" if kind == 1 else f"cuda:{number}")


def dlpack_device(tensor: Tensor) -> tuple[Any, int]:
    """``x.__dlpack_device__()``: the kind of device and its number."""
    return tensor._memory_.__dlpack_device__()


Tensor.__dlpack__ = dlpack  # type: ignore[attr-defined]
Tensor.__dlpack_device__ = dlpack_device  # type: ignore[attr-defined]
