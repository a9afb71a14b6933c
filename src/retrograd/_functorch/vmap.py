"""`func.vmap` at its other address."""

from __future__ import annotations

from ..func.vmap import chunk_vmap, restore_vmap, vmap

__all__ = ["chunk_vmap", "restore_vmap", "vmap"]
