"""What torch's modules call in its extension module."""

from __future__ import annotations

from typing import Any

from ..core.state import local
from ..nn.modules.conversion import parse_to
from ..tensor.overriding import handle


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """What ``module.to(...)`` was asked for: device, dtype, non_blocking, memory format."""
    if local.state.function_modes and local.state.functions_off < 2:
        return handle(_parse_to, [], args, kwargs)
    dtype, device, memory_format = parse_to(args, kwargs)
    return device, dtype, bool(kwargs.get("non_blocking", False)), memory_format
