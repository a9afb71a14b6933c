"""``torch.utils.hooks``: the handle that every ``register_…hook`` returns, and hooks of tensors that are pickled."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from ..autograd.hooks import RemovableHandle

__all__ = ["RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]

F = TypeVar("F", bound=Callable)


def unserializable_hook(f: F) -> F:
    """Mark a hook that may be left behind without a warning when its tensor is pickled."""
    f.__torch_unserializable__ = True  # type: ignore[attr-defined]
    return f


def warn_if_has_hooks(tensor: Any) -> None:
    """Warn of the tensor's hooks: pickling leaves them behind."""
    for hook in (tensor._backward_hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, you can decorate the "
                "function with @torch.utils.hooks.unserializable_hook to suppress this warning",
                stacklevel=2,
            )
