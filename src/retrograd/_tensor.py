"""``torch._tensor``: where torch defines its Tensor."""

from __future__ import annotations

from .tensor import Tensor

__all__ = ["Tensor"]
