"""Formula helpers of what chooses by a mask."""

from __future__ import annotations

from typing import Any

import numpy as np


def masked_select_backward(ops: Any, grad: Any, sizes: tuple[int, ...], mask: Any) -> Any:
    """`grad` at the places of `mask`, in the shape that it and the input were broadcast to."""
    shape = np.broadcast_shapes(tuple(sizes), tuple(mask.shape))
    return ops.masked_scatter(ops.new_zeros(grad, shape), mask, grad)


def masked_scatter_backward(ops: Any, grad: Any, mask: Any, sizes: tuple[int, ...]) -> Any:
    """The gradient of the elements that were used, which are the first ones, and zeros for the others."""
    used = ops.masked_select(grad, mask)
    unused = int(np.prod(sizes)) - used.shape[0]
    if unused:
        used = ops.cat([used, ops.new_zeros(grad, (unused,))], 0)
    return ops.reshape(used, tuple(sizes))
