"""``torch._dynamo``: torch's compiler of Python, which is not here. Functions run as they are; settings are taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._compiler_settings import Settings
from ..compiler import compile

__all__ = [
    "allow_in_graph", "config", "disable", "disallow_in_graph", "explain", "graph_break", "is_compiling",
    "list_backends", "mark_dynamic", "mark_static", "mark_static_address", "maybe_mark_dynamic", "optimize",
    "reset", "run",
]  # fmt: skip

config = Settings("torch._dynamo.config")


def reset() -> None:
    """Forget what was compiled: nothing was."""


def is_compiling() -> bool:
    """Is this being compiled?"""
    return False


def graph_break(msg: str = "") -> None:
    """Where the compiler is to leave a gap: there is none."""


def _as_it_is(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """The function as it is; without one, what leaves a function as it is.

    >>> from retrograd import _dynamo
    >>> _dynamo.disable(max)(1, 2)
    2
    """
    return fn if fn is not None else lambda fn: fn


disable = run = _as_it_is


def allow_in_graph(fn: Any) -> Any:
    """The function as it is."""
    return fn


disallow_in_graph = allow_in_graph


def mark_dynamic(t: Any, index: Any, **bounds: Any) -> None:
    """Say that a size will change: nothing was compiled for the one that it has."""


mark_static = mark_static_address = maybe_mark_dynamic = mark_dynamic


def optimize(backend: Any = "inductor", **options: Any) -> Callable[[Any], Any]:
    """The older way to write `torch.compile`, which runs the function as it is and says so once."""
    return compile


def list_backends(exclude_tags: Any = ()) -> list[str]:
    """The compilers that there are."""
    return []


def explain(f: Any, *args: Any, **kwargs: Any) -> Any:
    """What would be compiled, and what not: refused, nothing is."""
    raise RuntimeError("torch._dynamo.explain(): retrograd compiles nothing, every function runs as it is")
