"""The name under which torch has kept `vmap` from before `torch.func`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .func import vmap

__all__ = ["vmap"]


def _vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0) -> Callable[..., Any]:
    """`vmap`; random numbers are refused."""
    return vmap(func, in_dims, out_dims)
