"""``torch._utils``: exceptions that travel between threads and processes, and what the pickles in files call."""

from __future__ import annotations

import sys
import traceback
from typing import Any

__all__ = ["ExceptionWrapper"]


class ExceptionWrapper:
    """The exception that is being handled, as text and class: what it refers to stays where it was raised.

    >>> try:
    ...     1 / 0
    ... except ZeroDivisionError:
    ...     kept = ExceptionWrapper(where="in a thread")
    >>> try:
    ...     kept.reraise()
    ... except ZeroDivisionError as error:
    ...     print(str(error).splitlines()[0])
    Caught ZeroDivisionError in a thread.
    """

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        kind, error, trace = exc_info or sys.exc_info()
        self.exc_type: Any = kind
        self.exc_msg = "".join(traceback.format_exception(kind, error, trace))
        self.where = where

    def without_class(self) -> ExceptionWrapper:
        """The same for a class that cannot be sent."""
        self.exc_msg = f"(of the class {self.exc_type.__qualname__}, which cannot be pickled)\n{self.exc_msg}"
        self.exc_type = RuntimeError
        return self

    def reraise(self) -> None:
        """Raise it again, of its class, with the traceback in its text."""
        text: Any = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if issubclass(self.exc_type, KeyError):
            text = KeyErrorMessage(text)
        try:
            error = self.exc_type(text)
        except Exception:  # a class that wants other arguments
            error = RuntimeError(text)
        raise error


class KeyErrorMessage(str):
    """Text that a KeyError, which shows the repr of its argument, shows as it is."""

    def __repr__(self) -> str:
        return str(self)


def __getattr__(name: str) -> Any:
    from .serialization import rebuild  # files are read by few

    if name.startswith("_rebuild_") and hasattr(rebuild, name):
        return getattr(rebuild, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
