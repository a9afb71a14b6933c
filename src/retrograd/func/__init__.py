"""Transforms of functions, as in ``torch.func``: `vmap` maps one over many examples, `grad` and others differentiate
it.

They compose to any depth: ``vmap(grad(f))`` has a gradient for each example, ``jacfwd(jacrev(f))`` is the Hessian.
"""

from __future__ import annotations

from .fallback import vmap_fallback
from .jacobians import hessian, jacfwd, jacrev
from .modules import (
    debug_unwrap,
    functional_call,
    functionalize,
    replace_all_batch_norm_modules_,
    stack_module_state,
)
from .rearranging import rearrange
from .transforms import grad, grad_and_value, jvp, linearize, vjp
from .vmap import chunk_vmap, vmap

__all__ = [
    "chunk_vmap", "debug_unwrap", "functional_call", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd",
    "jacrev", "jvp", "linearize", "rearrange", "replace_all_batch_norm_modules_", "stack_module_state", "vjp", "vmap",
    "vmap_fallback",
]  # fmt: skip
