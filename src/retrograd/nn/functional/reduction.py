"""The reduction of a loss: its elements, their mean or their sum; part of ``functional``."""

from __future__ import annotations

import warnings

from ...core.where import users_level
from ...tensor import Tensor

_NUMBERS = {"none": 0, "mean": 1, "sum": 2}


def reduction_number(reduction: str, size_average: bool | None = None, reduce: bool | None = None) -> int:
    """Torch's number for a reduction; the two older arguments, where given, decide."""
    if size_average is not None or reduce is not None:
        average = True if size_average is None else size_average
        reduction = "none" if reduce is False else "mean" if average else "sum"
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.",
            UserWarning,
            stacklevel=users_level(),
        )
    number = _NUMBERS.get(reduction) if isinstance(reduction, str) else None
    if number is None:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return number


def reduced(values: Tensor, reduction: int) -> Tensor:
    """The elements, their mean or their sum, by torch's number."""
    return values if reduction == 0 else values.mean() if reduction == 1 else values.sum()
