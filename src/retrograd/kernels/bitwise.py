"""Operators on the bits of integers; see `pointwise.py`."""

from __future__ import annotations

import numpy as np
from numpy import ndarray

from .pointwise import _binary
from .promotion import Kernel, apply_unary, unsupported

bitwise_and: Kernel = _binary("bitwise_and", np.bitwise_and, "fcVW", "bitwise_and_cpu", "a & b.")
bitwise_or: Kernel = _binary("bitwise_or", np.bitwise_or, "fcVW", "bitwise_or_cpu", "a | b.")
bitwise_xor: Kernel = _binary("bitwise_xor", np.bitwise_xor, "fcVW", "bitwise_xor_cpu", "a ^ b.")
bitwise_left_shift: Kernel = _binary("bitwise_left_shift", np.left_shift, "bfcVW", "lshift_cpu", "a << b.")
bitwise_right_shift: Kernel = _binary(
    "bitwise_right_shift", np.right_shift, "bfcVW", "rshift_cpu", "a >> b, with a's sign."
)


def bitwise_not(a: ndarray, out: ndarray | None = None) -> ndarray:
    """~a; of bools, logical not."""
    if a.dtype.kind in "fcVW":
        unsupported("bitwise_not_cpu", a.dtype)
    return apply_unary(np.invert, a, out)
