"""What autograd does about an operator of a program's that has a kernel, but no formula.

Note [Operators without a formula]
The kernel runs as any function does: what it computes with operators is recorded. But nobody has said that this is its
derivative, and what it computes with NumPy has none. So where an argument requires grad, a warning waits in the graph:
as a hook of results that have a history, and as the history (`WarnNotImplemented`, which gives nothing back) of those
that have none. ``torch._C._set_autograd_fallback_mode("nothing")`` leaves both away. Called by ops/custom.py.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ..autograd.edge import collect_next_edges
from ..autograd.node import MultiOutputNode, init_node, set_history
from ..core.version_counter import INFERENCE
from ..core.where import users_level
from ..tensor import Tensor


class _Fallback:
    """The process's setting."""

    def __init__(self) -> None:
        self.mode = "warn"


fallback: _Fallback = _Fallback()


def get_mode() -> str:
    """``torch._C._get_autograd_fallback_mode``."""
    return fallback.mode


def set_mode(mode: str) -> None:
    """``torch._C._set_autograd_fallback_mode``: "warn", or "nothing"."""
    if mode not in ("warn", "nothing"):
        raise RuntimeError(f'Unsupported AutogradFallbackMode: {mode}. It is "warn" or "nothing"')
    fallback.mode = mode


def _warn(name: str) -> None:
    warnings.warn(
        f"{name}: an autograd kernel was not registered to the Autograd key(s) but we are trying to backprop through "
        "it. This may lead to silently incorrect behavior. If the operator is differentiable, give it a formula: "
        "torch.library.register_autograd(). If it is made of other operators, register its kernel for "
        "'CompositeImplicitAutograd'.",
        UserWarning, stacklevel=users_level(),
    )  # fmt: skip


class WarnNotImplemented(MultiOutputNode):
    """The history of a result of an operator without a formula: warns, and gives nothing back."""

    __slots__ = ("operator",)

    def __init__(self, operator: str, inputs: Sequence[Tensor]) -> None:
        init_node(self, collect_next_edges(*inputs))
        self.operator = operator

    def name(self) -> str:
        return "WarnNotImplemented"

    def apply(self, edges: tuple[Any, ...], grads: Sequence[Any]) -> tuple[Any, ...]:
        _warn(self.operator)
        return (None,) * len(edges)

    apply_tensors = apply


def mark(name: str, inputs: Sequence[Any], results: Sequence[Any]) -> None:
    """Have who differentiates results of an operator warned; one of `inputs` requires grad."""
    given = [one for one in inputs if isinstance(one, Tensor)]
    known = {id(one) for one in given}
    node: WarnNotImplemented | None = None
    for result in results:
        if not isinstance(result, Tensor):
            continue
        if result.requires_grad:
            result.register_hook(_hook(name))
            base = result._base
            if id(result) in known and base is not None and base.requires_grad:
                base.register_hook(_hook(name))  # it was written to as well
        elif id(result) not in known and result._base is None and _can_have_history(result):
            node = WarnNotImplemented(name, given) if node is None else node
            set_history(result, node)


def _can_have_history(result: Tensor) -> bool:
    return result._special_ is None and result._memory_.dtype.kind in "fcVW" and result._vc_ is not INFERENCE


def _hook(name: str) -> Callable[[Any], None]:
    return lambda grad: _warn(name)
