"""dtypes: torch's names for the element types of the array library.

A `dtype` is a name, its NumPy dtype and what autograd asks about it.  Kernels speak NumPy dtypes only;
`Tensor.dtype`, factories and `Tensor.to` speak these.

Note [bfloat16]
NumPy has no bfloat16; the package ml_dtypes adds one to it, and is imported when somebody first asks for the dtype.
NumPy counts it as one of the kind "V" (it has no other that tensors are made of), so a test for floats is
``dtype.kind in "fV"``, for what can have a gradient ``in "fcV"``.  Its ufuncs compute in float32 and round once; what
NumPy does in several steps (sums, products of matrices, sorting) the kernels do in float32, as they do for float16
(`kernels.promotion.work_dtype`).
"""

from __future__ import annotations

from typing import Any

import numpy as np


class dtype:
    """An element type, such as ``retrograd.float32``.

    >>> import retrograd
    >>> retrograd.float32.is_floating_point, retrograd.int64.itemsize
    (True, 8)
    """

    __slots__ = ("name", "np", "is_floating_point", "is_complex", "is_signed", "itemsize")

    name: str
    np: Any  # the NumPy dtype
    is_floating_point: bool
    is_complex: bool
    is_signed: bool
    itemsize: int

    def __init__(self, name: str, np_dtype: Any) -> None:
        self.name = name
        self.np = np_dtype
        self.is_floating_point = np_dtype.kind in "fV"
        self.is_complex = np_dtype.kind == "c"
        self.is_signed = np_dtype.kind not in "bu"
        self.itemsize = np_dtype.itemsize

    def __repr__(self) -> str:
        return "torch." + self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return by_name, (self.name,)

    def to_complex(self) -> dtype:
        """The complex dtype whose parts have this precision."""
        if not self.is_floating_point:
            return self
        return complex128 if self.name == "float64" else complex64

    def to_real(self) -> dtype:
        """The dtype of the real and the imaginary part."""
        return {"complex64": float32, "complex128": float64}.get(self.name, self)


def _make(name: str, np_name: str | None = None) -> dtype:
    return dtype(name, np.dtype(np_name or name))


bool_: dtype = _make("bool")
uint8: dtype = _make("uint8")
int8: dtype = _make("int8")
int16: dtype = _make("int16")
int32: dtype = _make("int32")
int64: dtype = _make("int64")
float16: dtype = _make("float16")
float32: dtype = _make("float32")
float64: dtype = _make("float64")
complex64: dtype = _make("complex64")
complex128: dtype = _make("complex128")
# Further names of these.
short: dtype = int16
int_: dtype = int32
long: dtype = int64
half: dtype = float16
float_: dtype = float32
double: dtype = float64
cfloat: dtype = complex64
cdouble: dtype = complex128

_BY_NUMPY: dict[np.dtype, dtype] = {
    d.np: d
    for d in (
        bool_, uint8, int8, int16, int32, int64, float16, float32, float64, complex64, complex128,
    )
}  # fmt: skip

def by_name(name: str) -> dtype:
    """The dtype of that name: how one is unpickled."""
    if name == "bfloat16":
        return _bfloat16()
    for found in _BY_NUMPY.values():
        if found.name == name:
            return found
    raise TypeError(f"there is no dtype {name!r}")


def _bfloat16() -> dtype:
    """See Note [bfloat16]."""
    import ml_dtypes

    found = np.dtype(ml_dtypes.bfloat16)
    return _BY_NUMPY.setdefault(found, dtype("bfloat16", found))


def __getattr__(name: str) -> dtype:
    if name == "bfloat16":
        return _bfloat16()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def float_limits(np_dtype: np.dtype) -> Any:
    """``np.finfo``, which knows nothing of bfloat16."""
    if np_dtype.kind != "V":
        return np.finfo(np_dtype)
    import ml_dtypes

    return ml_dtypes.finfo(np_dtype)


_PYTHON_TYPES: dict[type[Any], dtype] = {bool: bool_, int: int64, float: float64, complex: complex128}


def from_numpy_dtype(np_dtype: np.dtype) -> dtype:
    """The dtype of arrays of `np_dtype`; TypeError for what torch does not have."""
    found = _BY_NUMPY.get(np_dtype)
    if found is None and np_dtype.name == "bfloat16":
        return _bfloat16()
    if found is None:
        native = np_dtype.newbyteorder("=")
        found = _BY_NUMPY.get(native)
        if found is None:
            raise TypeError(
                f"can't convert np.ndarray of type {np_dtype}. The only supported types are: float64, float32, "
                "float16, complex64, complex128, int64, int32, int16, int8, uint8, and bool."
            )
    return found


def as_numpy_dtype(value: Any) -> np.dtype | None:
    """What a caller gave for a ``dtype`` argument, as the NumPy dtype a kernel takes (None stays None)."""
    if value is None:
        return None
    if isinstance(value, dtype):
        return value.np
    if isinstance(value, np.dtype):
        return value
    if isinstance(value, type) and value in _PYTHON_TYPES:
        return _PYTHON_TYPES[value].np
    raise TypeError(f"argument 'dtype' must be torch.dtype, not {type(value).__name__}")


# ---------------------------------------------------------------------------------------------- the default dtype
# Process-wide, as torch has it: one cell, so that kernels can read it without a call.

default: list[Any] = [float32.np, complex64.np]


def set_default_dtype(d: dtype) -> None:
    """Make `d` (a floating dtype) what float factories and int-to-float promotion give.

    >>> import retrograd
    >>> retrograd.set_default_dtype(retrograd.float64); retrograd.tensor(1.5).dtype
    torch.float64
    >>> retrograd.set_default_dtype(retrograd.float32)
    """
    if not isinstance(d, dtype):
        raise TypeError(f"invalid dtype object: only floating-point types are supported as the default type, got {d!r}")
    if not d.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    default[:] = [d.np, d.to_complex().np]


def get_default_dtype() -> dtype:
    """The dtype that float factories give when none is asked for."""
    return _BY_NUMPY[default[0]]
