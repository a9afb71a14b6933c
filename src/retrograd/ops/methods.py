"""Where a pickle finds a method of tensors that has the name of a function: ``retrograd.Tensor.mul``."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor


def __getattr__(name: str) -> Any:
    return getattr(Tensor, name)
