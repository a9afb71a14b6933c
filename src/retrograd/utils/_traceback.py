"""``torch.utils._traceback``: where a program is, kept to be shown later.

>>> from retrograd.utils._traceback import CapturedTraceback
>>> def here():
...     return CapturedTraceback.extract()
>>> "in here" in "".join(here().format())
True
"""

from __future__ import annotations

import contextlib
import linecache
import sys
import traceback
from collections.abc import Iterator, Sequence
from types import FrameType, TracebackType
from typing import Any

__all__ = ["CapturedTraceback", "format_traceback_short", "report_compile_source_on_error", "shorten_filename"]


class CapturedTraceback:
    """The calls that led somewhere: files, lines and functions, read when they are asked for."""

    __slots__ = ("_calls", "_summary")

    def __init__(self, calls: list[tuple[Any, int]]) -> None:
        self._calls = calls
        self._summary: traceback.StackSummary | None = None

    @staticmethod
    def extract(*, script: bool = False, cpp: bool = False, skip: int = 0) -> CapturedTraceback:
        """Where the caller is; `skip` leaves out so many of the innermost calls."""
        if script or cpp:
            raise RuntimeError("CapturedTraceback.extract(): there are no calls but those of Python, leave it out")
        frame: FrameType | None = sys._getframe(1 + skip)
        calls = []
        while frame is not None:
            calls.append((frame.f_code, frame.f_lineno))
            frame = frame.f_back
        return CapturedTraceback(calls[::-1])

    def summary(self) -> traceback.StackSummary:
        """The calls, outermost first, with their lines."""
        if self._summary is None:
            self._summary = traceback.StackSummary.from_list([
                (code.co_filename, line, code.co_name, linecache.getline(code.co_filename, line).strip())
                for code, line in self._calls
            ])  # fmt: skip
        return self._summary

    def format(self) -> list[str]:
        """The calls as Python shows them."""
        return traceback.format_list(self.summary())

    @staticmethod
    def format_all(tbs: Sequence[CapturedTraceback | None]) -> list[list[str]]:
        """Several at once."""
        return [[] if one is None else one.format() for one in tbs]

    def cleanup(self) -> None:
        """Let go of what it refers to."""
        self._calls, self._summary = [], None


def shorten_filename(filename: str, *, base: str | None = None) -> str:
    """A path from where the package is, if it is of it."""
    base = base or __file__.rpartition("/utils/")[0].rpartition("/")[0]
    return filename.removeprefix(base).removeprefix("/") if filename.startswith(base) else filename


def format_traceback_short(tb: TracebackType | None) -> str:
    """The innermost call of a traceback: ``file.py:3 in f``.

    >>> import sys
    >>> try:
    ...     1 / 0
    ... except ZeroDivisionError:
    ...     format_traceback_short(sys.exc_info()[2]).endswith(":2 in <module>")
    True
    """
    last = traceback.extract_tb(tb)[-1]
    return f"{shorten_filename(last.filename)}:{last.lineno} in {last.name}"


@contextlib.contextmanager
def report_compile_source_on_error() -> Iterator[None]:
    """Have tracebacks of code from ``exec`` show its lines, if ``__compile_source__`` is among its names."""
    try:
        yield
    except Exception as error:
        tb = error.__traceback__
        while tb is not None:
            source, name = tb.tb_frame.f_globals.get("__compile_source__"), tb.tb_frame.f_code.co_filename
            if isinstance(source, str) and name.startswith("<"):
                # Without a time of change, the lines stay until they are replaced.
                linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
            tb = tb.tb_next
        raise
