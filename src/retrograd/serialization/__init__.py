"""``torch.serialization``: objects with tensors in them, in files of torch's formats.

`saving.py` and `loading.py` are `save` and `load`.  Between them and the file: `pickler.py` and `unpicklers.py` (what
describes the objects; `rebuild.py` and `names.py` are what a pickle calls, and by which name), `zip_writer.py`,
`zip_reader.py` and `archive.py` (the format), `legacy.py` (the older one).  `safe_unpickler.py` has
Note [Loading what one does not trust], `write_aside.py` writes files whole or not at all.
"""

from __future__ import annotations

from .load_error import LoadError, SourceChangeWarning
from .loading import get_unsafe_globals_in_checkpoint, load
from .locations import default_restore_location, location_tag, register_package, validate_cuda_device
from .names import normalize_storage_type, storage_to_tensor_type
from .options import (
    LoadEndianness,
    get_crc32_options,
    get_default_load_endianness,
    get_default_mmap_options,
    set_crc32_options,
    set_default_load_endianness,
    set_default_mmap_options,
    skip_data,
)
from .records import DEFAULT_PROTOCOL, _open_file_like, _open_zipfile_reader, _open_zipfile_writer
from .safe_globals import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals
from .saving import save
from .zip_reader import begins_archive as _is_zipfile

__all__ = [
    "DEFAULT_PROTOCOL", "_open_file_like", "_open_zipfile_reader", "_open_zipfile_writer",
    "LoadEndianness", "LoadError", "SourceChangeWarning", "_is_zipfile", "add_safe_globals", "clear_safe_globals",
    "default_restore_location", "get_crc32_options", "get_default_load_endianness", "get_default_mmap_options",
    "get_safe_globals", "get_unsafe_globals_in_checkpoint", "load", "location_tag", "normalize_storage_type",
    "register_package", "safe_globals", "save", "set_crc32_options", "set_default_load_endianness",
    "set_default_mmap_options", "skip_data", "storage_to_tensor_type", "validate_cuda_device",
]  # fmt: skip
