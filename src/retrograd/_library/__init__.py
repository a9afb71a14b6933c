"""``torch._library``: parts of `torch.library` that programs reach for where torch keeps them."""

from __future__ import annotations

from . import autograd, custom_ops, infer_schema, utils

__all__ = ["autograd", "custom_ops", "infer_schema", "utils"]
