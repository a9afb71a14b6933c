"""``torch.load``: what ``save`` wrote, here or in torch.

The formats are in `archive.py` and `legacy.py`; what a pickle that nobody vouches for may do is in `safe_unpickler.py`.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import warnings
from collections.abc import Iterator
from typing import IO, Any

from ..utils.serialization import config
from .archive import load_archive, pickle_of_archive
from .legacy import load_legacy, may_be_legacy
from .load_error import LoadError
from .locations import restorer
from .safe_unpickler import unsafe_globals
from .unpicklers import Unpicklers
from .zip_reader import begins_archive

_TRUE = ("1", "y", "yes", "true")


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Read what `save` wrote, here or in torch, from a path or a file that is open for reading bytes.

    By default only tensors and plain Python values are loaded: the file may come from anybody.
    ``weights_only=False`` loads everything, and runs whatever the file says: only for files that you trust.
    `map_location` is the device that tensors are to be on, a dictionary of devices, or a function of
    (storage, location).  With ``mmap=True`` a file's memory is mapped, and read when it is used.  Further arguments
    (``encoding``) go to the unpickler.

    A file that is damaged, or not written by `save`, raises `LoadError`, which is both a RuntimeError and a
    pickle.UnpicklingError.
    """
    weights_only = _decide(weights_only, pickle_module)
    if weights_only and pickle_module is not None:
        raise RuntimeError(
            "Can not safely load weights when explicit pickle_module is specified: give it with weights_only=False"
        )
    mmap = config.load.mmap if mmap is None else mmap
    is_path = isinstance(f, (str, os.PathLike))
    if is_path and os.fsdecode(f).endswith(".safetensors"):
        return _load_safetensors(f, map_location)
    unpicklers = Unpicklers(weights_only, pickle_module or pickle, {"encoding": "utf-8", **pickle_load_args})
    restore = restorer(map_location)
    with _opened(f) if is_path else _given(f) as file:
        try:
            if begins_archive(file):
                if mmap and not is_path:
                    raise ValueError("f must be a file path in order to use the mmap argument")
                return load_archive(file, unpicklers, restore, os.fspath(f) if mmap else None)
            _check_magic(file, mmap)
            return load_legacy(file, unpicklers, restore)
        except LoadError as error:
            name = os.fspath(f) if is_path else repr(f)
            raise LoadError(f"{error} ({name})") from error.__cause__


def _decide(weights_only: bool | None, pickle_module: Any) -> bool:
    """Is the file loaded without trust? Two environment variables have a say, as in torch."""
    always = os.getenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "0").lower() in _TRUE
    never = os.getenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "0").lower() in _TRUE
    if always and never:
        raise RuntimeError(
            "Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` should be set, but both "
            "were set."
        )
    if always:
        return True
    if weights_only is not None:
        return bool(weights_only)
    if never:
        warnings.warn(
            "Environment variable TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected, since the `weights_only` argument was not "
            "explicitly passed to `torch.load`, forcing weights_only=False.",
            UserWarning,
            stacklevel=3,
        )
        return False
    return pickle_module is None


@contextlib.contextmanager
def _opened(path: Any) -> Iterator[IO[bytes]]:
    with open(path, "rb") as file:
        yield file if file.seekable() else io.BytesIO(file.read())  # a pipe


@contextlib.contextmanager
def _given(f: Any) -> Iterator[IO[bytes]]:
    """A file that somebody else has opened, and closes: it has to let us go back and forth."""
    for needed in ("read", "readline", "seek", "tell"):
        if not hasattr(f, needed):
            raise AttributeError(
                f"'{type(f).__name__}' object has no attribute '{needed}'. You can only torch.load from a file that is "
                "seekable. Please pre-load the data into a buffer like io.BytesIO and try to load from it instead; "
                "expected 'f' to be string, path, or a file-like object"
            )
    try:
        f.seek(f.tell())
    except io.UnsupportedOperation as error:
        raise io.UnsupportedOperation(
            f"{error}. You can only torch.load from a file that is seekable. Please pre-load the data into a buffer "
            "like io.BytesIO and try to load from it instead."
        ) from None
    if isinstance(f.read(0), str):
        raise TypeError("expected a file that is open for reading bytes, got one that is open for reading text")
    yield f


def _check_magic(file: Any, mmap: bool) -> None:
    """A file that is no archive: is it of the older format?"""
    start = file.tell()
    magic = file.read(64)
    file.seek(start)
    if not may_be_legacy(magic):
        raise LoadError(_what_it_is(magic))
    if mmap:
        raise RuntimeError(
            "mmap can only be used with files saved with `torch.save(_use_new_zipfile_serialization=True), please "
            "torch.save your checkpoint with this option in order to use mmap."
        )


def _what_it_is(magic: bytes) -> str:
    """What to say of a file that does not begin as it should."""
    if not magic:
        return "the file is empty, or has been read to its end"
    if b"PK\3\4".startswith(magic):
        return "the file ends in its first bytes: it was not written to its end"
    if magic.startswith(b"retrograd tensors "):
        return (
            "the file was written by an early version of retrograd, in a format of its own. Load it with that version, "
            "and save it with this one, which writes torch's format"
        )
    if magic.startswith(b"PK\5\6"):
        return "the file is an empty zip archive"
    if magic[0] == 0x80:
        return "the file is a pickle, but none of torch.save (Invalid magic number; corrupt file?)"
    return f"the file was not written by torch.save (Invalid magic number; corrupt file?): it begins {magic[:16]!r}"


def _load_safetensors(f: Any, map_location: Any) -> Any:
    from ..utils.safetensors import load_file  # another format

    if isinstance(map_location, dict) or (callable(map_location) and not hasattr(map_location, "type")):
        kind = "dict" if isinstance(map_location, dict) else "callable"
        raise RuntimeError(
            f"Loading safetensors file with {kind} map_location is not supported. Use a device string or torch.device "
            "instead."
        )
    return load_file(f, device="cpu" if map_location is None else str(map_location))


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """The names in a file that `load` refuses unless they are allowed or the file is trusted.

    >>> import io, retrograd as torch
    >>> file = io.BytesIO()
    >>> torch.save([torch.ones(1), print], file)
    >>> torch.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(file.getvalue()))
    ['builtins.print']
    """
    with _opened(f) if isinstance(f, (str, os.PathLike)) else _given(f) as file:
        if not begins_archive(file):
            raise ValueError("Expected input to be a checkpoint returned by torch.save")
        return unsafe_globals(pickle_of_archive(file))
