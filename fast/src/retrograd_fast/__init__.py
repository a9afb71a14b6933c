"""Compiled kernels for retrograd: a library of plain C functions, and where it lies.

retrograd finds and loads it by itself; see ``retrograd.backends.fast``.
"""

from pathlib import Path

#: Of the functions' names and arguments. retrograd does not load another than the one it was written for.
VERSION = 1


def path() -> str:
    """The file of the library."""
    found = sorted(Path(__file__).parent.glob("_kernels*.so")) or sorted(Path(__file__).parent.glob("_kernels*.pyd"))
    if not found:
        raise ImportError("retrograd_fast was installed without its library")
    return str(found[0])
