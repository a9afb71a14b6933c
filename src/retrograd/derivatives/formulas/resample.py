"""Formula helpers of interpolation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def last_sizes(ops: Any, shape: Any, dims: Any) -> tuple[int, ...]:
    """The sizes of the last dimensions, as many as `dims` is long."""
    return tuple(shape)[len(shape) - len(dims) :]


def padding_of(ops: Any, shape: Sequence[int], output_size: Sequence[int], before: Sequence[int]) -> tuple[int, ...]:
    """What was added on both sides of each dimension, the last one first, as `pad` takes it."""
    sizes = zip(shape[len(shape) - len(before) :], output_size, before, strict=True)
    return tuple(n for size, out, b in reversed(list(sizes)) for n in (b, out - size - b))
