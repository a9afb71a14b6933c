"""One line makes a step fast: programs that are recorded once and replayed (docs/CAPTURE.md).

>>> import retrograd as torch
>>> double = torch.capture(lambda x: x + x)
>>> [double(torch.tensor([i])).item() for i in range(4)]
[0, 2, 4, 6]
"""

import sys
from types import ModuleType
from typing import Any

from .api import Captured, capture, make_graphed_callables
from .errors import CaptureError

__all__ = ["CaptureError", "Captured", "capture", "make_graphed_callables"]


class _Callable(ModuleType):
    """``retrograd.capture`` is the package and, when it is called, its function."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return capture(*args, **kwargs)


sys.modules[__name__ or "retrograd.capture"].__class__ = _Callable
