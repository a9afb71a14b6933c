"""What is made above and called below: the operators, as autograd and its formulas know them.

Operators stand on autograd, and autograd calls operators: a recorded pass runs its formulas on Tensors, a view whose
base was written to is taken again, gradients of a batch are stacked. So `operators` is here from the start, empty, and
``ops/namespace.py`` fills it once the operators are made. Nothing looks into it while the package is imported.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

#: Every operator by name.
operators: Any = ModuleType("operators")


@cache
def transforms(module: str) -> Any:
    """A module of `func`, which is imported when somebody first needs it: it stands above all operators."""
    return import_module(f"...func.{module}", __name__)


@cache
def extension(module: str) -> Any:
    """A module of `ops` that few programs need, such as those with classes of tensors or modes of their own."""
    return import_module(f"...ops.{module}", __name__)
