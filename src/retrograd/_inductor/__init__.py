"""``torch._inductor``: torch's compiler of operators, which is not here; its settings are taken."""

from __future__ import annotations

from .._compiler_settings import Settings

__all__ = ["config"]

config = Settings("torch._inductor.config")
