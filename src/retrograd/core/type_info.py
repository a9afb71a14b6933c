"""``finfo`` and ``iinfo``: the limits of dtypes."""

from __future__ import annotations

import builtins

import numpy as np

from . import dtypes

__all__ = ["finfo", "iinfo"]


#: What Python's own types are as dtypes.
_PYTHON: dict[object, str] = {float: "float64", complex: "complex128", int: "int64", bool: "bool"}


def _dtype(name: str, type: object) -> np.dtype:
    if isinstance(type, builtins.type) and type in _PYTHON:
        return np.dtype(_PYTHON[type])
    if not isinstance(type, dtypes.dtype):
        raise TypeError(f"{name}(): argument 'type' (position 1) must be torch.dtype, not {type.__class__.__name__}")
    return type.np


class finfo:
    """The limits of a floating dtype, or of the parts of a complex one.

    >>> import retrograd as torch
    >>> torch.finfo(torch.float32).eps
    1.1920928955078125e-07
    """

    def __init__(self, type: dtypes.dtype | None = None) -> None:
        found = dtypes.default[0] if type is None else _dtype("finfo", type)
        if found.kind not in "fcVW":
            raise TypeError(f"torch.finfo() requires a floating point input type. Use torch.iinfo to handle '{type}'")
        if found.names:
            raise NotImplementedError(f"\"epsilon\" not implemented for '{dtypes.SCALAR_NAMES[type.name]}'")  # type: ignore[union-attr]
        info = dtypes.float_limits(found)
        self.bits: int = info.bits
        self.eps: float = float(info.eps)
        self.max: float = float(info.max)
        self.min: float = float(info.min)
        self.tiny: float = float(info.smallest_normal)
        self.smallest_normal: float = self.tiny
        # A byte has no decimal digit that is always right.
        self.resolution: float = 10.0**-info.precision if found.itemsize > 1 else 1.0
        self.dtype: str = info.dtype.name

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)


class iinfo:
    """The limits of an integer dtype.

    >>> import retrograd as torch
    >>> torch.iinfo(torch.int8)
    iinfo(min=-128, max=127, dtype=int8)
    """

    def __init__(self, type: dtypes.dtype) -> None:
        found = _dtype("iinfo", type)
        if found.kind == "b":
            raise TypeError("torch.bool is not supported by torch.iinfo")
        if found.kind not in "iu":
            raise TypeError(f"torch.iinfo() requires an integer input type. Use torch.finfo to handle '{type}'")
        info = np.iinfo(found)
        self.bits: int = info.bits
        self.min: int = int(info.min)
        self.max: int = int(info.max)
        self.dtype: str = info.dtype.name

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)


# So that Python's errors about calls name what was called.
finfo.__init__.__qualname__ = "finfo"
iinfo.__init__.__qualname__ = "iinfo"
