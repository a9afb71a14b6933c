"""Softmax and its logarithm."""

from __future__ import annotations

from typing import Any

from ...tensor import Tensor
from ..registry import composite


@composite("special.softmax", out=True)
def softmax(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """`nn.functional.softmax` as a function and method."""
    from ...nn.functional import softmax as function

    return function(input, dim, dtype=dtype)


@composite("special.log_softmax", out=True)
def log_softmax(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """`nn.functional.log_softmax` as a function and method."""
    from ...nn.functional import log_softmax as function

    return function(input, dim, dtype=dtype)
