"""Softmax and its logarithm."""

from __future__ import annotations

from typing import Any

from ..._generated import functions as generated
from ...tensor import Tensor
from ..registry import composite


@composite("special.softmax", out=True)
def softmax(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """`nn.functional.softmax` as a function and method."""
    return generated._softmax(input if dtype is None else input.to(dtype), dim)


@composite("special.log_softmax", out=True)
def log_softmax(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """`nn.functional.log_softmax` as a function and method."""
    return generated._log_softmax(input if dtype is None else input.to(dtype), dim)
