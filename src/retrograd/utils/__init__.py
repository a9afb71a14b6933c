"""What people need around the autograd system: checkpointing, hook handles, dispatch modes."""

from __future__ import annotations

from . import checkpoint, dlpack, hooks

__all__ = ["checkpoint", "dlpack", "hooks"]
