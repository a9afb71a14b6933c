"""Every operator by name: those of the table with all their overloads, those that are made of others, the factories.

This is the "tensor namespace" of derivative formulas, and what code within the package calls. Users find what
`registry.py` says is theirs.
"""

from __future__ import annotations

from types import FunctionType as _FunctionType
from typing import TYPE_CHECKING, Any

from .._generated import functions as _functions
from ..core.late import operators as _operators
from . import composite as _composite  # noqa: F401  # (declares operators, as do the next two)
from . import factories as _factories  # noqa: F401
from . import random_factories as _random_factories  # noqa: F401
from .registry import SPACES as _SPACES

if TYPE_CHECKING:
    from .._generated.composites import *
    from .._generated.functions import *  # type: ignore[assignment]
    from .factories import *  # type: ignore[assignment]
    from .random_factories import *  # type: ignore[assignment]

    def __getattr__(name: str) -> Any: ...


for _name, _function in vars(_functions).items():
    if isinstance(_function, _FunctionType) and _function.__module__ == _functions.__name__:
        globals()[_name] = _function
globals().update(_SPACES["internal"])
globals().update(_SPACES["torch"])
vars(_operators).update(globals())
