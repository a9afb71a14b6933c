"""``torch.save``: an object with tensors in it, to a file."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import IO, Any

from ..utils.serialization import config
from .legacy import write_legacy
from .options import data_is_skipped
from .pickler import pickle_aside
from .write_aside import replacing
from .zip_writer import ZipWriter


def save(
    obj: Any,
    f: Any,
    pickle_module: Any = None,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Write `obj` to a path or to a file that is open for writing bytes, in torch's format.

    A file at that path is replaced as a whole, when everything has been written: if saving fails, it is as it was.

    >>> import io, retrograd as torch
    >>> file = io.BytesIO()
    >>> torch.save({"w": torch.tensor([1., 2.])}, file)
    >>> torch.load(io.BytesIO(file.getvalue()))
    {'w': tensor([1., 2.])}
    """
    is_path = isinstance(f, (str, os.PathLike))
    if not is_path:
        _check_writable(f)
    if not _use_new_zipfile_serialization and data_is_skipped():
        raise RuntimeError("Cannot use skip_data=True with _use_new_zipfile_serialization=False")
    body, pieces = pickle_aside(obj, pickle_module, pickle_protocol, legacy=not _use_new_zipfile_serialization)
    with replacing(f) if is_path else _flushed(f) as file:
        if not _use_new_zipfile_serialization:
            write_legacy(file, body, pieces, pickle_protocol)
            return
        archive = ZipWriter(file, _directory(f), config.save.storage_alignment, config.save.compute_crc32)
        archive.add("data.pkl", body)
        archive.add(".format_version", b"1")
        archive.add(".storage_alignment", str(config.save.storage_alignment).encode())
        if not _disable_byteorder_record:
            archive.add("byteorder", sys.byteorder.encode())
        for piece in pieces:
            archive.add(f"data/{piece.key}", piece.octets.size if data_is_skipped() else piece.octets)
        archive.add("version", b"3\n")
        archive.finish()


def _directory(f: Any) -> str:
    """The directory that all members of the archive are in: the name of the file, where torch can spell it."""
    if not isinstance(f, (str, os.PathLike)):
        return "archive"
    name = os.path.basename(os.fsdecode(f))
    stem = name.rpartition(".")[0] or name
    return stem if stem.isascii() else "archive"


def _check_writable(f: Any) -> None:
    if not callable(getattr(f, "write", None)):
        raise (TypeError if hasattr(f, "write") else AttributeError)(
            "expected 'f' to be string, path, or a file-like object with a 'write' attribute, "
            f"got {type(f).__name__}"
        )


@contextlib.contextmanager
def _flushed(f: Any) -> Iterator[IO[bytes]]:
    """A file that somebody else has opened, and closes."""
    yield f
    if hasattr(f, "flush"):
        f.flush()
