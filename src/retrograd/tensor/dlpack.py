"""DLPack: memory shared with other array libraries, without a copy.

``torch.from_dlpack(array)`` takes what any library's array offers through ``__dlpack__``; Tensors offer the same.
NumPy does the exchange; what it does not know (bfloat16) cannot be exchanged.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.devices import as_device
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


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor on the memory of another library's array, or of a DLPack capsule.

    >>> import numpy, retrograd as torch
    >>> a = numpy.zeros(2)
    >>> torch.from_dlpack(a)[0] = 5
    >>> a
    array([5., 0.])
    """
    as_device(device)
    if hasattr(ext_tensor, "__dlpack__"):
        array = np.from_dlpack(ext_tensor)
    elif "dltensor" in repr(ext_tensor):
        array = _writeable(np.from_dlpack(_Capsule(ext_tensor)))
    else:
        raise RuntimeError(
            f"from_dlpack received an invalid capsule ({type(ext_tensor).__name__}): it takes an array with __dlpack__ "
            "or a capsule. Note that DLTensor capsules can be consumed only once, so you might have already "
            "constructed a tensor from it once."
        )
    return wrap(array.copy() if copy else array, local.state.new_vc)


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
    if tensor.is_conj():
        raise BufferError("Can't export tensors with the conjugate bit set: use tensor.resolve_conj()")
    if tensor._memory.dtype.num >= 256 or tensor._memory.dtype.names:
        raise BufferError(f"{tensor.dtype} is not a type that NumPy can exchange: convert it first, x.float()")
    if stream is not None and not isinstance(stream, int):
        raise TypeError(f"stream must be ``int`` or ``none``, but it is a {type(stream).__name__}")
    if stream not in (-1, None):
        raise AssertionError(f"stream should be None on cpu. There are no streams, but stream={stream} was given")
    data = tensor._data
    if copy:
        data = data.copy()
    return data.__dlpack__(max_version=max_version) if max_version is not None else data.__dlpack__()


def dlpack_device(tensor: Tensor) -> tuple[Any, int]:
    """``x.__dlpack_device__()``: the kind of device and its number."""
    return tensor._memory.__dlpack_device__()


Tensor.__dlpack__ = dlpack  # type: ignore[attr-defined]
Tensor.__dlpack_device__ = dlpack_device  # type: ignore[attr-defined]
