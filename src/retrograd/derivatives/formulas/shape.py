"""Formula helpers of views and shape operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...kernels.dims import normalize_dim


def permute_backward(ops: Any, grad: Any, dims: Sequence[int]) -> Any:
    """The dimensions back where they came from."""
    n = len(dims)
    inverse = [0] * n
    for place, d in enumerate(dims):
        inverse[d % n] = place
    return ops.permute(grad, tuple(inverse))


def unbind_backward(ops: Any, grads: Sequence, dim: int) -> Any:
    """The gradients of the parts side by side; zeros for a part that has none."""
    known = next(g for g in grads if g is not None)
    return ops.stack([ops.zeros_like(known) if g is None else g for g in grads], dim)


def split_backward(ops: Any, grads: Sequence, sizes: int | Sequence[int], dim: int, shape: Sequence[int]) -> Any:
    """The gradients of the parts one after the other; zeros for a part that has none."""
    dim = normalize_dim(dim, len(shape))
    n = shape[dim]
    if isinstance(sizes, int):
        sizes = [min(sizes, n - start) for start in range(0, n, sizes or 1)] or [0]
    known = next(g for g in grads if g is not None)
    parts = [
        ops.new_zeros(known, (*shape[:dim], size, *shape[dim + 1 :])) if g is None else g
        for g, size in zip(grads, sizes, strict=True)
    ]
    return ops.cat(parts, dim)


def cat_backward(ops: Any, grad: Any, shapes: Sequence[tuple[int, ...]], dim: int) -> list:
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
