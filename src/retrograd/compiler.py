"""``torch.compiler``: what code asks that may run under ``torch.compile``. Nothing is compiled here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["disable", "is_compiling", "is_dynamo_compiling", "is_exporting"]


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
