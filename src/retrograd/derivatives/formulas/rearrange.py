"""Formula helpers of joining, rolling and repeating."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...kernels.dims import normalize_dim


def cat_backward(ops: Any, grad: Any, shapes: Sequence[tuple[int, ...]], dim: int) -> list[Any]:
    """The part of `grad` that belongs to each of the tensors."""
    dim = normalize_dim(dim, grad.ndim)
    parts, start = [], 0
    for shape in shapes:
        if shape == (0,):  # joins with anything, whatever its number of dimensions
            parts.append(ops.new_zeros(grad, shape))
            continue
        parts.append(ops.narrow(grad, dim, start, shape[dim]))
        start += shape[dim]
    return parts


def roll_backward(ops: Any, grad: Any, shifts: int | Sequence[int], dims: int | Sequence[int] | None) -> Any:
    """Shifted back."""
    return ops.roll(grad, -shifts if isinstance(shifts, int) else negated(ops, shifts), dims)


def negated(ops: Any, numbers: Sequence[int]) -> list[int]:
    """Each number with the other sign."""
    return [-number for number in numbers]


def repeat_backward(ops: Any, grad: Any, repeats: Sequence[int], shape: Sequence[int]) -> Any:
    """The tiles added up."""
    lead = len(repeats) - len(shape)
    split: list[int] = []  # a dimension of `grad` is (tiles, size of one)
    tiles: list[int] = []
    for times, n in zip(repeats, (*(1,) * lead, *shape), strict=True):
        if times != 1:
            tiles.append(len(split))
            split.append(times)
        split.append(n)
    if tiles:
        grad = ops.sum(ops.reshape(grad, tuple(split)), tuple(tiles))
    return ops.reshape(grad, tuple(shape))


def block_diag_backward(ops: Any, grad: Any, shapes: Sequence[tuple[int, ...]]) -> list[Any]:
    """The block of `grad` that belongs to each of the tensors."""
    parts, row, column = [], 0, 0
    for shape in shapes:
        rows, columns = (1,) * (2 - len(shape)) + tuple(shape)
        block = ops.narrow(ops.narrow(grad, 0, row, rows), 1, column, columns)
        parts.append(ops.reshape(block, shape))
        row, column = row + rows, column + columns
    return parts
