"""`vmap` and `grad` at their other address."""

from __future__ import annotations

from ..func import chunk_vmap, grad, grad_and_value, vmap

__all__ = ["chunk_vmap", "grad", "grad_and_value", "vmap"]
