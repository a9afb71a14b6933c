"""``torch.utils.hooks``: the handle that every ``register_…hook`` returns."""

from __future__ import annotations

from ..autograd.hooks import RemovableHandle

__all__ = ["RemovableHandle"]
