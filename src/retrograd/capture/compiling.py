"""Compiled C: which compiler there is, and a cache of what it made.

Note [The cache of compiled programs]
A library is named by a hash of its text, the compiler, its options and the processor.  It is made under another name in
the same folder and then renamed, so that processes that want the same one never see a half-written file.  Beside it
lies the hash of its bytes: a file that does not fit it, or that lacks the mark of its own name, is made again.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
import warnings
from pathlib import Path

_OPTIONS = (
    "-O2", "-ftree-vectorize", "-fno-math-errno", "-ffp-contract=off", "-march=native", "-pthread", "-shared", "-fPIC",
)  # fmt: skip


@functools.cache
def compiler() -> tuple[str, str] | None:
    """The C compiler and its version."""
    named = os.environ.get("CC")
    for name in [named] if named else ["cc", "gcc", "clang"]:
        path = shutil.which(name)
        if path is not None:
            with contextlib.suppress(OSError, subprocess.SubprocessError):
                found = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20, check=True)
                return path, found.stdout.partition("\n")[0]
    return None


_said: list[bool] = []


def has_compiler(wanted: bool) -> bool:
    """Is there one? If not, and it was asked for, that is said once."""
    if compiler() is not None:
        return True
    if wanted and not _said:
        _said.append(True)
        warnings.warn("no C compiler was found (cc, gcc, clang or CC): captured programs run on NumPy", stacklevel=4)
    return False


@functools.cache
def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(("flags", "Features")):
                return line
    return platform.processor() or platform.machine()


def cache_folder() -> Path:
    """Where compiled programs are kept: $RETROGRAD_CAPTURE_CACHE, or in the user's cache folder."""
    given = os.environ.get("RETROGRAD_CAPTURE_CACHE")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "retrograd" / "capture"


def compiled(text: str) -> ctypes.CDLL:
    """The library that a text in C becomes."""
    found = compiler()
    assert found is not None
    path, version = found
    key = hashlib.sha256("\0".join((text, version, *_OPTIONS, platform.machine(), _processor())).encode()).hexdigest()[
        :40
    ]
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    library, mark = folder / f"{key}.so", folder / f"{key}.sum"
    loaded = _load(library, mark, key)
    if loaded is not None:
        return loaded
    with tempfile.TemporaryDirectory(dir=folder) as place:
        source, made = Path(place) / "program.c", Path(place) / "program.so"
        source.write_text(text + f'\nconst char retrograd_key[] = "{key}";\n')
        done = subprocess.run([path, *_OPTIONS, str(source), "-o", str(made), "-lm"], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{path} could not compile a captured program: {done.stderr[:2000]}")
        new_mark = Path(place) / "program.sum"
        new_mark.write_text(hashlib.sha256(made.read_bytes()).hexdigest())
        os.replace(made, library)
        os.replace(new_mark, mark)
    loaded = _load(library, mark, key)
    if loaded is None:
        raise RuntimeError(f"the compiled program {library} could not be loaded")
    return loaded


def _load(library: Path, mark: Path, key: str) -> ctypes.CDLL | None:
    """A library of the cache, if it is there and whole."""
    try:
        if hashlib.sha256(library.read_bytes()).hexdigest() != mark.read_text().strip():
            return None
        loaded = ctypes.CDLL(str(library))
        return (
            loaded
            if ctypes.string_at(ctypes.addressof(ctypes.c_char.in_dll(loaded, "retrograd_key"))) == key.encode()
            else None
        )
    except (OSError, ValueError):
        return None
