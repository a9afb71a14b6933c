"""``torch.utils.dlpack``: `from_dlpack` and `to_dlpack` by their older address."""

from __future__ import annotations

from ..tensor.dlpack import from_dlpack, to_dlpack

__all__ = ["from_dlpack", "to_dlpack"]
