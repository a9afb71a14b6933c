"""``torch._custom_op``: an older way to define operators, which `torch.library` took the place of."""

from __future__ import annotations

from . import autograd, impl

__all__ = ["autograd", "impl"]
