"""Formula helpers of views."""

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


def unbind_backward(ops: Any, grads: Sequence[Any], dim: int) -> Any:
    """The gradients of the parts side by side; zeros for a part that has none."""
    known = next(g for g in grads if g is not None)
    return ops.stack([ops.zeros_like(known) if g is None else g for g in grads], dim)


def split_backward(ops: Any, grads: Sequence[Any], sizes: int | Sequence[int], dim: int, shape: Sequence[int]) -> Any:
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
