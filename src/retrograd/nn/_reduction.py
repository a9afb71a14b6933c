"""``torch.nn._reduction``: what the older arguments of losses, ``size_average`` and ``reduce``, mean."""

from __future__ import annotations

import warnings

__all__ = ["get_enum", "legacy_get_enum", "legacy_get_string"]


def get_enum(reduction: str) -> int:
    """The number that torch's operators have for a way to reduce.

    >>> [get_enum(way) for way in ("none", "mean", "sum")]
    [0, 1, 2]
    """
    try:
        return {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}[reduction]
    except KeyError:
        raise ValueError(f"{reduction} is not a valid value for reduction") from None


def legacy_get_string(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
    """The `reduction` that stands for the two older arguments."""
    size_average = True if size_average is None else size_average
    reduce = True if reduce is None else reduce
    found = ("mean" if size_average else "sum") if reduce else "none"
    if emit_warning:
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{found}' instead.", stacklevel=3
        )
    return found


def legacy_get_enum(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> int:
    """The number of the `reduction` that stands for the two older arguments."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
