"""ReduceOp: how values of several processes become one."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

__all__ = ["ReduceOp", "reduce_op"]


class ReduceOp(enum.Enum):
    """How values of several processes become one."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8


#: The name that torch had for it first.
reduce_op = ReduceOp

_UFUNCS: dict[ReduceOp, Any] = {
    ReduceOp.SUM: np.add, ReduceOp.AVG: np.add, ReduceOp.PRODUCT: np.multiply, ReduceOp.MIN: np.minimum,
    ReduceOp.MAX: np.maximum, ReduceOp.BAND: np.bitwise_and, ReduceOp.BOR: np.bitwise_or,
    ReduceOp.BXOR: np.bitwise_xor,
}  # fmt: skip


def ufunc(op: ReduceOp) -> Any:
    """NumPy's function of two arrays. (A mean is a sum, which is divided when it has arrived.)"""
    return _UFUNCS[op]


def check(op: Any, dtype: np.dtype, name: str) -> None:
    """Raise unless arrays of this dtype can be reduced so."""
    if not isinstance(op, ReduceOp):
        raise TypeError(f"{name}(): argument 'op' must be a ReduceOp, not {type(op).__name__}")
    if op is ReduceOp.PREMUL_SUM:
        raise RuntimeError(f"{name}(): Cannot use ReduceOp.PREMUL_SUM: multiply the tensor, then take ReduceOp.SUM")
    if op in (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR) and dtype.kind not in "iub":
        raise RuntimeError(
            f"{name}(): Cannot use ReduceOp.{op.name} with tensors of dtype {dtype.name}: bits of integers"
        )
    if op is ReduceOp.AVG and dtype.kind in "iub":
        raise RuntimeError(f"{name}(): Cannot use ReduceOp.AVG with integers: the mean of {dtype.name} is a fraction")
    if dtype.kind == "c" and op not in (ReduceOp.SUM, ReduceOp.AVG, ReduceOp.PRODUCT):
        raise ValueError(f"{name} does not support {op} on complex tensors")
