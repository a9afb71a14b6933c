"""Composite operators: written in terms of other operators, so that they need neither kernel nor formula.

`@composite` makes a function one: public under its name and, by default, a Tensor method.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from .checked import checked
from .support import write_out

F = TypeVar("F", bound=Callable[..., Any])

#: Filled while the package is imported, read-only after that.
FUNCTIONS: dict[str, Callable[..., Any]] = {}
METHODS: dict[str, Callable[..., Any]] = {}


def composite(
    *names: str, function: bool = True, method: bool = True, out: bool = False, axis: bool = False
) -> Callable[[F], F]:
    """Register a function as an operator, under its own name and `names`.

    With `out`, the function takes ``out=``; with `axis`, function and method take NumPy's name for `dim` as well.
    What it may be called with is in `ops/signatures/`.
    """

    def register(f: F) -> F:
        for name in (f.__name__, *names):
            if function:
                FUNCTIONS[name] = _public(f, name, out, axis)
            if method:
                METHODS[name] = _public(f, name, False, axis, method=True)
        return f

    return register


def _public(f: F, name: str, out: bool, axis: bool, method: bool = False) -> Callable[..., Any]:
    made: Callable[..., Any] = checked(f, name, out=out, method=method)
    if made is not f:
        return made
    own = with_axis(f) if axis else f
    return with_out(own, name) if out else own


def with_out(f: Callable[..., Any], name: str) -> Callable[..., Any]:
    """`f` with ``out=``: a Tensor, or one for each result."""

    @functools.wraps(f)
    def public(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        return f(*args, **kwargs) if out is None else write_out(f, out, args, kwargs)

    public.__name__ = public.__qualname__ = name
    return public


def with_axis(f: Callable[..., Any]) -> Callable[..., Any]:
    """The function with ``axis`` for ``dim``."""

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        if "axis" in kwargs:
            if "dim" in kwargs:
                raise TypeError(f"{f.__name__}() got an unexpected keyword argument 'axis'")
            kwargs["dim"] = kwargs.pop("axis")
        return f(*args, **kwargs)

    return call
