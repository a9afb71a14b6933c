"""What torch's modules call in its extension module."""

from __future__ import annotations

import warnings
from typing import Any

from ..autograd.function import Function
from ..core.state import local
from ..nn.modules.conversion import parse_to
from ..ops.overload import function_named
from ..tensor.overriding import handle


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """What ``module.to(...)`` was asked for: device, dtype, non_blocking, memory format."""
    if local.state.function_modes and local.state.functions_off < 2:
        return handle(_parse_to, [], args, kwargs)
    dtype, device, memory_format = parse_to(args, kwargs)
    return device, dtype, bool(kwargs.get("non_blocking", False)), memory_format


class _WarnsInBackward(Function):
    @staticmethod
    def forward(ctx: Any, input: Any) -> Any:
        return input.clone()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        warnings.warn("Warn from backward", stacklevel=2)
        return grad


def _test_warn_in_autograd(input: Any) -> Any:
    """A copy whose gradient comes with a warning, for tests of how such warnings arrive."""
    return _WarnsInBackward.apply(input)


def __getattr__(name: str) -> Any:
    """Functions of layers, under the names that they have in ``torch.ops.aten``."""
    found = None if name.startswith("__") else function_named(name)
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found
