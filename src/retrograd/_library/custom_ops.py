"""``torch._library.custom_ops``: where torch defines ``custom_op``."""

from __future__ import annotations

from ..library import CustomOpDef, custom_op

__all__ = ["CustomOpDef", "custom_op"]
