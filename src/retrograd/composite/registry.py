"""Composite operators: written in terms of other operators, so that they need neither kernel nor formula.

`@composite` makes a function one: public under its name and, by default, a Tensor method.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

#: Filled while the package is imported, read-only after that.
FUNCTIONS: dict[str, Callable[..., Any]] = {}
METHODS: dict[str, Callable[..., Any]] = {}


def composite(*names: str, function: bool = True, method: bool = True) -> Callable[[F], F]:
    """Register a function as an operator, under its own name and `names`."""

    def register(f: F) -> F:
        for name in (f.__name__, *names):
            if function:
                FUNCTIONS[name] = f
            if method:
                METHODS[name] = f
        return f

    return register
