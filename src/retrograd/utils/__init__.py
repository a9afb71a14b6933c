"""What people need around the autograd system: checkpointing, hook handles, dispatch modes."""

from __future__ import annotations

from . import checkpoint, dlpack, hooks
from .swap import swap_tensors

__all__ = ["checkpoint", "dlpack", "hooks", "swap_tensors"]
