"""dtypes: torch's names for the element types of the array library.

A `dtype` is a name, its NumPy dtype and what autograd asks about it.  Kernels speak NumPy dtypes only;
`Tensor.dtype`, factories and `Tensor.to` speak these.

Note [bfloat16]
NumPy has no bfloat16; the package ml_dtypes adds one to it, and is imported when somebody first asks for the dtype.
NumPy counts it as one of the kind "V" (it has no other that tensors are made of), so a test for floats is
``dtype.kind in "fV"``, for what can have a gradient ``in "fcVW"``.  Its ufuncs compute in float32 and round once; what
NumPy does in several steps (sums, products of matrices, sorting) the kernels do in float32, as they do for float16
(`kernels.promotion.work_dtype`).

Note [Stored dtypes]
Some dtypes are made to be stored, converted, indexed and copied, and little else: the wider unsigned integers, the
float8 types and complex32.  NumPy has the first, ml_dtypes the others: float8 types are of the kind "V" (float8_e5m2 of
the kind "f"), complex32 is of the kind "W", which nothing else is.  ``float4_e2m1fn_x2`` has two numbers in a byte,
which nobody takes apart here (torch does not either): NumPy sees a record of one byte, which it copies and does not
compute with.  Conversions are in `kernels/dtypes.py`.  Which operators take such a dtype is in `ops/stored_dtypes.py`.
"""

from __future__ import annotations

from collections.abc import Callable
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
        self.is_complex = np_dtype.kind in "cW"
        self.is_signed = np_dtype.kind not in "bu" and name != "float8_e8m0fnu"
        self.itemsize = np_dtype.itemsize

    def __repr__(self) -> str:
        return "torch." + self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return by_name, (self.name,)

    def to_complex(self) -> dtype:
        """The complex dtype whose parts have this precision."""
        if self.is_complex:
            return self
        if self.name not in _COMPLEX:
            raise RuntimeError(f"Unknown Complex ScalarType for {SCALAR_NAMES[self.name]}")
        return by_name(_COMPLEX[self.name])

    def to_real(self) -> dtype:
        """The dtype of the real and the imaginary part."""
        return {"complex32": float16, "complex64": float32, "complex128": float64}.get(self.name, self)


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

#: NumPy's dtypes, of those that have been asked for.
by_numpy: dict[np.dtype, dtype] = {
    d.np: d
    for d in (
        bool_, uint8, int8, int16, int32, int64, float16, float32, float64, complex64, complex128,
    )
}  # fmt: skip

FLOAT8: tuple[str, ...] = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")
_COMPLEX = {"float16": "complex32", "bfloat16": "complex64", "float32": "complex64", "float64": "complex128"}

#: By name: torch's name for a dtype in its messages; that of a tensor is followed by Tensor.
SCALAR_NAMES: dict[str, str] = {
    "bool": "Bool", "uint8": "Byte", "int8": "Char", "int16": "Short", "int32": "Int", "int64": "Long",
    "float16": "Half", "bfloat16": "BFloat16", "float32": "Float", "float64": "Double",
    "complex64": "ComplexFloat", "complex128": "ComplexDouble",
    "uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64", "complex32": "ComplexHalf",
    **{name: name.capitalize() for name in (*FLOAT8, "float4_e2m1fn_x2")},
}  # fmt: skip

#: What messages call a dtype, as torch's do, by its C type.
C_NAMES: dict[str, str] = {
    "bool": "bool", "uint8": "unsigned char", "int8": "signed char", "int16": "short", "int32": "int",
    "int64": "long int", "float16": "c10::Half", "bfloat16": "c10::BFloat16", "float32": "float", "float64": "double",
    "complex64": "c10::complex<float>", "complex128": "c10::complex<double>", "uint16": "unsigned short",
    "uint32": "unsigned int", "uint64": "unsigned long", "complex32": "c10::complex<c10::Half>",
    **{name: f"c10::{SCALAR_NAMES[name]}" for name in (*FLOAT8, "float4_e2m1fn_x2")},
}  # fmt: skip


class _Stored(dtype):
    """A dtype for storing: NumPy's is asked for, and `on_first_stored` called, when the first tensor of it is made."""

    __slots__ = ("_made",)

    def __init__(self, name: str) -> None:
        self.name = name
        self._made: np.dtype | None = None
        self.is_floating_point = name.startswith("float")
        self.is_complex = name == "complex32"
        self.is_signed = not name.startswith("u") and name != "float8_e8m0fnu"
        self.itemsize = 1 if self.is_floating_point else 4 if self.is_complex else int(name.removeprefix("uint")) // 8

    @property
    def np(self) -> Any:  # type: ignore[override]
        if self._made is None:
            self._made = self._make()
            by_numpy[self._made] = self
            while on_first_stored:
                on_first_stored.pop()()
        return self._made

    def _make(self) -> Any:
        if self.name.startswith("u"):
            return np.dtype(self.name)
        if self.name == "float4_e2m1fn_x2":
            return np.dtype([(self.name, "u1")])
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, self.name))


#: What has to be done before a tensor of a dtype for storing can be computed with: see ops/stored_dtypes.py.
on_first_stored: list[Callable[[], None]] = []

uint16: dtype = _Stored("uint16")
uint32: dtype = _Stored("uint32")
uint64: dtype = _Stored("uint64")
float8_e4m3fn: dtype = _Stored("float8_e4m3fn")
float8_e5m2: dtype = _Stored("float8_e5m2")
float8_e4m3fnuz: dtype = _Stored("float8_e4m3fnuz")
float8_e5m2fnuz: dtype = _Stored("float8_e5m2fnuz")
float8_e8m0fnu: dtype = _Stored("float8_e8m0fnu")
float4_e2m1fn_x2: dtype = _Stored("float4_e2m1fn_x2")
complex32: dtype = _Stored("complex32")
chalf: dtype = complex32
STORED: dict[str, dtype] = {
    d.name: d
    for d in (
        uint16, uint32, uint64, float8_e4m3fn, float8_e5m2, float8_e4m3fnuz, float8_e5m2fnuz, float8_e8m0fnu,
        float4_e2m1fn_x2, complex32,
    )
}  # fmt: skip


def by_name(name: str) -> dtype:
    """The dtype of that name: how one is unpickled."""
    if name == "bfloat16":
        return _bfloat16()
    if name in STORED:
        return STORED[name]
    for found in by_numpy.values():
        if found.name == name:
            return found
    raise TypeError(f"there is no dtype {name!r}")


def _bfloat16() -> dtype:
    """See Note [bfloat16]."""
    import ml_dtypes

    found = np.dtype(ml_dtypes.bfloat16)
    return by_numpy.setdefault(found, dtype("bfloat16", found))


def __getattr__(name: str) -> dtype:
    if name == "bfloat16":
        return _bfloat16()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def float_limits(np_dtype: np.dtype) -> Any:
    """``np.finfo``, which knows NumPy's own alone."""
    if np_dtype.num < 256:
        return np.finfo(np_dtype)
    import ml_dtypes

    return ml_dtypes.finfo(np_dtype)


_PYTHON_TYPES: dict[type[Any], dtype] = {bool: bool_, int: int64, float: float64, complex: complex128}


def from_numpy_dtype(np_dtype: np.dtype) -> dtype:
    """The dtype of arrays of `np_dtype`; TypeError for what torch does not have."""
    found = by_numpy.get(np_dtype)
    if found is None and np_dtype.name == "bfloat16":
        return _bfloat16()
    if found is None and np_dtype.name in STORED and STORED[np_dtype.name].np == np_dtype:
        return STORED[np_dtype.name]
    if found is None:
        native = np_dtype.newbyteorder("=")
        found = by_numpy.get(native)
        if found is None:
            raise TypeError(
                f"can't convert np.ndarray of type {np_dtype}. The only supported types are: float64, float32, "
                "float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool."
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
    if d.name not in _COMPLEX:
        raise TypeError(f"couldn't find storage object {SCALAR_NAMES[d.name]}Storage: {d!r} is for storing numbers")
    default[:] = [d.np, d.to_complex().np]


def get_default_dtype() -> dtype:
    """The dtype that float factories give when none is asked for."""
    return by_numpy[default[0]]
