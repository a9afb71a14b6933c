"""What is shown of an array: its size as one number, and whether it holds NaN or infinities."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..core.description import Description
from ..tensor import Tensor

#: Bits of `flags_of`.
NAN, INF = 1, 2
WORDS = {0: "", NAN: "NaN", INF: "Inf", NAN | INF: "NaN and Inf"}


def arrays_of(value: Any) -> list[Any]:
    """The array of a tensor, or the arrays that a special tensor has its values in: none without values."""
    if isinstance(value, Tensor):
        value = value._memory_
    if isinstance(value, Description):
        found: list[Any] = []
        for name in value.parts:
            found += arrays_of(getattr(value, name))
        return [array for array in found if array.dtype.kind not in "iub"] or found  # not the indices of a sparse one
    return [value] if hasattr(value, "dtype") else []


def norm_and_flags(value: Any) -> tuple[float | None, int]:
    """The Euclidean norm of what is finite in `value`, and which of NaN and Inf are in it; None without a value.

    >>> import retrograd as torch
    >>> norm_and_flags(torch.tensor([3., 4.]))
    (5.0, 0)
    >>> norm_and_flags(torch.tensor([3., float("nan")]))[1] == NAN
    True
    """
    arrays = [] if value is None else arrays_of(value)
    if not arrays:
        return None, 0
    total, flags = 0.0, 0
    with np.errstate(all="ignore"):  # memory that was never written to holds anything
        for array in arrays:
            array = np.asarray(array.get() if hasattr(array, "get") else array)  # from an accelerator
            if array.dtype.kind in "OSU" or array.dtype.names is not None:
                continue
            wide = np.abs(array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)).ravel()
            largest = float(wide.max(initial=0.0))
            if not math.isfinite(largest):
                flags |= NAN if bool(np.isnan(wide).any()) else 0
                flags |= INF if bool(np.isinf(wide).any()) else 0
                wide = wide[np.isfinite(wide)]
                largest = float(wide.max(initial=0.0))
            if largest:
                scaled = wide / largest  # squares of what is near the largest number would be infinite
                total = math.hypot(total, largest * math.sqrt(float(scaled @ scaled)))
    return total, flags


def flags_of(value: Any) -> int:
    """Which of NaN and Inf are in a value."""
    return norm_and_flags(value)[1]


def shown(number: float | None) -> float | None:
    """A number with the digits that a page shows."""
    return None if number is None else float(f"{number:.4g}")
