"""Products with weights; part of ``functional``."""

from __future__ import annotations

from ...ops import namespace as ops
from ...ops.support import write_out
from ...tensor import Tensor


def linear(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Tensor | None = None
) -> Tensor:
    """``input @ weight.T + bias``."""
    if out is not None:
        return write_out(linear, out, (input, weight, bias), {})
    return ops.linear(input, weight, bias)


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``input1 @ weight[k] @ input2`` for every k, plus `bias`."""
    return ops.bilinear(input1, input2, weight, bias)
