"""Replacing a file as a whole: who is interrupted, or runs out of disk, has the old one still.  Called by `save`."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from typing import IO, Any


@contextlib.contextmanager
def replacing(path: Any) -> Iterator[IO[bytes]]:
    """A file to write to, which is at `path` once the block has ended well; otherwise `path` is as it was.

    It is written beside the file that it replaces, flushed to the disk and renamed.  A link stays a link, to the new
    file, and the new file may be read and written by whom the old one was.  What is no plain file (a pipe, /dev/null)
    is written to directly, and so is a file in a directory that takes no others.
    """
    target = os.path.realpath(os.fsdecode(path))
    directory = os.path.dirname(target)
    if not os.path.isdir(directory):
        raise RuntimeError(f"Parent directory {directory} does not exist.")
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and not stat.S_ISREG(mode):
        with open_or_refuse(target, "wb") as file:
            yield file
        return
    if mode is not None and not os.access(target, os.W_OK):
        raise RuntimeError(f"open file failed with strerror: Permission denied: {target}")
    if not os.access(directory, os.W_OK):
        with open_or_refuse(target, "wb") as file:
            yield file
        return
    aside = os.path.join(directory, f".{secrets.token_hex(16)}.tmp")
    try:
        with open_or_refuse(aside, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            os.chmod(aside, stat.S_IMODE(mode))
        os.replace(aside, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(aside)
        raise


def open_or_refuse(path: str, mode: str) -> IO[Any]:
    try:
        return open(path, mode)
    except OSError as error:  # torch's writer raises this
        raise RuntimeError(f"open file failed with strerror: {error.strerror}: {path}") from error
