"""The name under which torch has kept `vmap` from before `torch.func`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .func import vmap
from .func.vmap import vmap_impl

__all__ = ["vmap"]


def _vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0) -> Callable[..., Any]:
    """`vmap` as the engine uses it: random numbers are refused, and custom functions need no rules for it."""

    @functools.wraps(func)
    def mapped(*args: Any) -> Any:
        return vmap_impl(func, in_dims, out_dims, "error", None, args, {}, by_user=False)

    return mapped
