"""What cannot be captured, and where."""

from __future__ import annotations

from ..core.where import user_location


class CaptureError(RuntimeError):
    """Something that a captured program cannot repeat; the message names the operation and the line."""


def refuse(what: str, instead: str) -> CaptureError:
    """The error for `what`, with the line of the user's code that is running and what to write instead."""
    return CaptureError(f"cannot capture {what} at {user_location(2)}: {instead}")


class OtherPath(Exception):
    """A value that a program was recorded for is another one now."""
