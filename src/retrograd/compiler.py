"""``torch.compiler``: what code asks that may run under ``torch.compile``. Nothing is compiled here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .core.said_once import say_once

__all__ = ["compile", "disable", "is_compiling", "is_dynamo_compiling", "is_exporting", "reset"]


def is_compiling() -> bool:
    """Is this code being compiled? Never.

    >>> is_compiling()
    False
    """
    return False


def is_dynamo_compiling() -> bool:
    """Is this code being traced, to be compiled? Never."""
    return False


def is_exporting() -> bool:
    """Is this code being exported? Never."""
    return False


def disable(fn: Callable | None = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """A function that is not to be compiled: itself. Also as a decorator with arguments."""
    return (lambda function: function) if fn is None else fn


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = "inductor",
    mode: str | None = None,
    options: dict | None = None,
    disable: bool = False,
) -> Any:
    """``torch.compile``: the function or module itself, which runs as Python; the first call says so.

    The options say how to compile, which nothing does. Without a model, a decorator.

    >>> import warnings; warnings.simplefilter("ignore")
    >>> compile(len) is len
    True
    """
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if not disable:
        say_once("torch.compile compiles nothing in retrograd: it gives back what it is given, which runs as Python")
    return (lambda function: function) if model is None else model


def reset() -> None:
    """Forget what was compiled: nothing was."""
