"""Formula helpers of interpolation."""

from __future__ import annotations

from typing import Any


def last_sizes(ops: Any, shape: Any, dims: Any) -> tuple[int, ...]:
    """The sizes of the last dimensions, as many as `dims` is long."""
    return tuple(shape)[len(shape) - len(dims) :]
