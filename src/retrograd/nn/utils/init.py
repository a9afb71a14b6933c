"""A module made without drawing its first values."""

from __future__ import annotations

import inspect
from typing import Any

from ..init import skipped
from ..modules.module import Module


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """``module_cls(*args, **kwargs)`` with parameters whose values nobody has set: for what is loaded afterwards.

    >>> import retrograd as torch
    >>> torch.nn.utils.skip_init(torch.nn.Linear, 2, 3).weight.shape
    torch.Size([3, 2])
    """
    if not (isinstance(module_cls, type) and issubclass(module_cls, Module)):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    with skipped():
        return module_cls(*args, **kwargs)
