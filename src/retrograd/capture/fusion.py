"""Which calls are written in C, and which of them become one loop.

A unit is a call, or a chain of elementwise calls of one shape that is one loop: what it reads at a place it has either
read or written at the same place in the same round.  Memory is planned by units: nothing that a loop reads lies where
the loop writes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .c_functions import IN_C
from .values import Call, Value

TYPES = {"f": "float", "d": "double", "?": "unsigned char", "l": "long", "q": "long long", "i": "int"}
INFIX = {np.add: "+", np.subtract: "-", np.multiply: "*", np.true_divide: "/"}
COMPARE = {
    np.greater: ">", np.greater_equal: ">=", np.less: "<", np.less_equal: "<=", np.equal: "==", np.not_equal: "!=",
}  # fmt: skip
LIBM = {
    np.exp: "exp", np.log: "log", np.sin: "sin", np.cos: "cos", np.tanh: "tanh", np.tan: "tan", np.expm1: "expm1",
    np.log1p: "log1p", np.arctan: "atan", np.sinh: "sinh", np.cosh: "cosh", np.power: "pow",
}  # fmt: skip
#: So many elements may an exponential in C have.
FEW = 64


class Unit:
    """Calls that run together: `kind` is "loop" or "single" (in C), or "python"."""

    __slots__ = ("calls", "kind")

    def __init__(self, kind: str, calls: list[Call]) -> None:
        self.kind: str = kind
        self.calls: list[Call] = calls


def _contiguous(value: Value) -> bool:
    return value.is_contiguous


def made_by(call: Call) -> Value | None:
    return next((value for value in (*call.results, *call.writes) if value is not None), None)


def why_not(call: Call) -> str | None:
    """Why a call is not written in C; None if it is."""
    out = made_by(call)
    if out is None or not out.size:
        return "it makes no array"
    if any(value.dtype.char not in TYPES for value in (*call.reads, out)):
        return "a dtype that C has no arithmetic for"
    for value in call.reads:
        if value.storage is out.storage and value.key != out.key:
            low, high = value.offset, out.offset
            if not (value.size == 1 and out.size == 1 and low != high):
                return "it reads and writes parts of the same memory"
    if call.kind == "ufunc":
        return _ufunc_why_not(call, out)
    if call.kind == "copy":
        source = call.reads[0]
        if source.dtype != out.dtype and not (source.dtype.char in "?fdlqi" and out.dtype.char in "fd"):
            return "a conversion that is left to NumPy"
        return None
    if call.kind == "reduce":
        return None if reduction(call) is not None else "a sum over dimensions that are not neighbours in memory"
    if call.name == "np.where" and len(call.args) == 3 and all(a.__class__ is Value for a in call.args):
        condition, a, b = call.args
        return None if condition.dtype.char == "?" and a.dtype == b.dtype == out.dtype else "where() of several dtypes"
    if call.name in ("np.zeros", "np.ones") and not call.reads:
        return None if _contiguous(out) else "zeros that are not contiguous"
    if call.kind == "product":
        return "a product, which is left to BLAS"
    return "a kernel that is called as a whole"


def _ufunc_why_not(call: Call, out: Value) -> str | None:
    function = call.function
    if call.kwargs:
        return "a ufunc with options"
    if any(arg.__class__ is not Value for arg in call.args):
        return "a ufunc of numbers and arrays of several dtypes"
    kinds = {value.dtype.char for value in call.reads}
    if function in COMPARE:
        return None if len(kinds) == 1 and out.dtype.char == "?" else "a comparison of several dtypes"
    if function in (np.logical_and, np.logical_or, np.logical_not, np.bitwise_and, np.bitwise_or, np.invert):
        return None if kinds == {"?"} and out.dtype.char == "?" else "logic of numbers"
    if kinds | {out.dtype.char} not in ({"f"}, {"d"}):
        return "arithmetic of several dtypes or of integers"
    if function in INFIX or (function in IN_C and out.dtype.char == "f") or function in (
        np.negative, np.square, np.sqrt, np.absolute, np.maximum, np.minimum, np.reciprocal, np.positive, np.conjugate,
        np.sign,
    ):  # fmt: skip
        return None
    if function in LIBM:
        return (
            None if out.size <= FEW else "an exponential or the like of many elements, which NumPy is faster at"
        )
    return f"np.{function.__name__} is not written in C"


def reduction(call: Call) -> tuple[str, int, int] | None:
    """("rows", rows, length) for sums over trailing dimensions, ("columns", length, columns) over leading ones."""
    a = call.reads[0]
    out = made_by(call)
    assert out is not None
    if (
        a.dtype.char not in "fd"
        or out.dtype != a.dtype
        or not _contiguous(a)
        or not _contiguous(out)
        or not a.size
    ):
        return None
    axis, ndim = call.kwargs["axis"], len(a.shape)
    axes = set(range(ndim)) if axis is None else {d % ndim for d in ((axis,) if isinstance(axis, int) else axis)}
    if axes == set(range(ndim - len(axes), ndim)):
        length = math.prod([a.shape[d] for d in axes])
        return "rows", a.size // length, length
    if axes == set(range(len(axes))):
        columns = math.prod(a.shape[len(axes) :])
        return "columns", a.size // columns, columns
    return None


def units(calls: list[Call], native: bool) -> list[Unit]:
    """The calls of a program as units."""
    if not native:
        return [Unit("python", [call]) for call in calls]
    found: list[Unit] = []
    position = 0
    while position < len(calls):
        if why_not(calls[position]) is not None:
            found.append(Unit("python", [calls[position]]))
            position += 1
            continue
        end = _fusible(calls, position)
        if end > position:
            found.append(Unit("loop", calls[position:end]))
            position = end
        else:
            found.append(Unit("single", [calls[position]]))
            position += 1
    return found


#: So many calls become one loop: longer ones take a compiler too long.
_LONGEST = 64


def row_length(value: Value, out: Value) -> int:
    """The size of an array that is repeated along the leading dimensions of `out`; 0 if it is none."""
    many = len(value.shape)
    if 0 < many <= len(out.shape) and value.shape == out.shape[len(out.shape) - many :] and _contiguous(value):
        return value.size if value.size > 1 else 0
    return 0


def _fusible(calls: list[Call], start: int) -> int:
    """Up to where calls from `start` on can be one loop."""
    shape: tuple[int, ...] | None = None
    row = 0
    written: dict[int, Any] = {}
    read: dict[int, set[Any]] = {}
    end = start
    for call in calls[start : start + _LONGEST]:
        if why_not(call) is not None:
            break
        out = made_by(call)
        assert out is not None
        pointwise = call.kind in ("ufunc", "copy") or call.name == "np.where"
        if not pointwise or not _contiguous(out) or (shape is not None and out.shape != shape):
            break
        good = True
        for value in call.reads:
            whole = value.shape == out.shape and _contiguous(value)
            length = row_length(value, out)
            if not whole and length and row in (0, length):
                row = length
                if value.storage.number not in written and value.storage is not out.storage:
                    continue
            before = written.get(value.storage.number)
            if not (whole or value.size == 1) or (before is not None and before != value.key):
                good = False
            if not whole and before is not None:
                good = False
        number = out.storage.number
        if not good or (number in written and written[number] != out.key):
            break
        if any(key != out.key for key in read.get(number, ())):
            break
        if any(v.storage is out.storage and v.key != out.key for v in call.reads):
            break
        shape = out.shape
        written[number] = out.key
        for value in call.reads:
            read.setdefault(value.storage.number, set()).add(value.key)
        end += 1
    return end
