"""Products with weights; part of ``functional``."""

from __future__ import annotations

from ...ops import namespace as ops
from ...ops.registry import composite
from ...ops.support import write_out
from ...tensor import Tensor


@composite(space="nn.functional", bare=True)
def linear(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Tensor | None = None
) -> Tensor:
    """``input @ weight.T + bias``."""
    if out is not None:
        return write_out(linear, out, (input, weight, bias), {})
    return ops.linear(input, weight, bias)


@composite(space="nn.functional")
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``input1 @ weight[k] @ input2`` for every k, plus `bias`."""
    return ops.bilinear(input1, input2, weight, bias)
