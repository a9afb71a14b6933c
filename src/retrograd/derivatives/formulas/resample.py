"""Formula helpers of interpolation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import kernels
from ...tensor import wrap


def last_sizes(ops: Any, shape: Any, dims: Any) -> tuple[int, ...]:
    """The sizes of the last dimensions, as many as `dims` is long."""
    return tuple(shape)[len(shape) - len(dims) :]


def padding_of(ops: Any, shape: Sequence[int], output_size: Sequence[int], before: Sequence[int]) -> tuple[int, ...]:
    """What was added on both sides of each dimension, the last one first, as `pad` takes it."""
    sizes = zip(shape[len(shape) - len(before) :], output_size, before, strict=True)
    return tuple(n for size, out, b in reversed(list(sizes)) for n in (b, out - size - b))


def affine_grid_backward(ops: Any, grad: Any, size: Sequence[int], align_corners: bool) -> Any:
    """The gradient of the affine maps that made a grid."""
    dims = len(size) - 2
    base = kernels.affine_base(size, align_corners, getattr(grad, "_memory_", grad).dtype)
    places = base if ops is kernels else wrap(base)
    flat = ops.reshape(grad, (size[0], -1, dims))
    return ops.matmul(ops.transpose(flat, 1, 2), places)
