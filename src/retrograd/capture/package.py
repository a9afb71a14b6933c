"""``retrograd.capture`` is a package and, when it is called, its function."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from . import api, errors


class CallablePackage(ModuleType):
    """The package; with the names that type checkers, who know of no module that can be called, look for in it."""

    CaptureError: type[errors.CaptureError]
    Captured: type[api.Captured]
    capture: Callable[..., Any]
    make_graphed_callables: Callable[..., Any]

    def __call__(
        self, function: Any = None, *, backend: str = "auto", check: bool = False, split: bool = False
    ) -> Any:
        return api.capture(function, backend=backend, check=check, split=split)


capture: CallablePackage = sys.modules[__package__ or "retrograd.capture"]  # type: ignore[assignment]
capture.__class__ = CallablePackage
