"""What cannot be captured, and where."""

from __future__ import annotations

import os
from sys import _getframe
from types import FrameType

import numpy as np

from ..core.where import Location, is_user_code

_LIBRARY = os.path.dirname(os.__file__) + os.sep
_NUMPY = os.path.dirname(np.__file__) + os.sep


def is_the_users(filename: str) -> bool:
    """Is a file a program's, and not one of Python's own library or NumPy's?"""
    if "site-packages" in filename:
        return not filename.startswith(_NUMPY)
    return not filename.startswith((_LIBRARY, "<frozen", _NUMPY))


def users_line(skip: int = 1) -> Location | None:
    """The innermost line that is neither of this package nor of Python's library."""
    frame: FrameType | None = _getframe(skip)
    while frame is not None:
        if is_user_code(frame.f_code) and is_the_users(frame.f_code.co_filename):
            return Location(frame.f_code, frame.f_lasti)
        frame = frame.f_back
    return None


class CaptureError(RuntimeError):
    """Something that a captured program cannot repeat; the message names the operation and the line."""


def refuse(what: str, instead: str) -> CaptureError:
    """The error for `what`, with the line of the user's code that is running and what to write instead."""
    return CaptureError(f"cannot capture {what} at {users_line(2)}: {instead}")


class OtherPath(Exception):
    """A value that a program was recorded for is another one now."""
