"""Where in the user's code something happened: cheap to remember, and put into words only when an error needs it."""

from __future__ import annotations

import os
from sys import _getframe
from types import CodeType, FrameType

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
#: Files of the package that were met on a stack: a backward pass asks for its caller each time, so this is to be quick.
_ours: set[str] = set()
#: Files that are not, from which something was written to or cut off: for what comes after.
theirs: set[str] = set()
#: Files of the package that stand between a user and a function that he calls (ops/override_switch.py).
between: set[str] = set()


class Location:
    """A code object and an instruction in it; the line is looked up when it is printed."""

    __slots__ = ("code", "instruction")

    def __init__(self, code: CodeType, instruction: int) -> None:
        self.code: CodeType = code
        self.instruction: int = instruction

    @property
    def line(self) -> int:
        line = self.code.co_firstlineno
        for start, end, number in self.code.co_lines():
            if start <= self.instruction < end and number is not None:
                return number
        return line

    def __str__(self) -> str:
        return f"{self.code.co_filename}:{self.line} in {self.code.co_name}"


def is_user_code(code: CodeType) -> bool:
    """Is this code not of this package?"""
    return not code.co_filename.startswith(_PACKAGE)


def is_theirs(filename: str) -> bool:
    """Is a file not of this package? For a file that is not in `theirs` (yet)."""
    if filename in _ours:
        return False
    if filename.startswith(_PACKAGE):
        _ours.add(filename)
        return False
    theirs.add(filename)
    return True


def user_call(skip: int = 1) -> tuple[CodeType, int] | None:
    """The innermost code that is not of this package, and the instruction that it is at: what a Location is made of.

    The caller may `skip` frames that it knows to be of this package.
    """
    frame: FrameType | None = _getframe(skip)
    while frame is not None:
        code = frame.f_code
        filename = code.co_filename
        if filename not in _ours:
            if not filename.startswith(_PACKAGE):
                return code, frame.f_lasti
            _ours.add(filename)
        frame = frame.f_back
    return None


def user_location(skip: int = 1) -> Location | None:
    """The innermost line that is not of this package; the caller may `skip` frames that it knows to be."""
    call = user_call(skip + 1)
    return None if call is None else Location(*call)


def users_level() -> int:
    """The ``stacklevel`` with which whoever asks has to warn, for the warning to name the user's line."""
    level = 1
    frame: FrameType | None = _getframe(1)
    while frame is not None and not is_user_code(frame.f_code):
        level, frame = level + 1, frame.f_back
    return level
