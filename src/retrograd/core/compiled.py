"""The compiled core of `retrograd[fast]`, where it is installed: operators, formulas and the engine's loop in C.

Everything that it does is written in Python in this package, which is what runs without it, and what it calls for all
that is not plain: see Note [The compiled core] in ops/compiled_core.py.  RETROGRAD_CORE=python in the environment
turns it off (so that a breakpoint in an operator or in the loop is reached), and RETROGRAD_FAST=0 all of the extra,
whatever RETROGRAD_CORE says; RETROGRAD_CORE=compiled makes it an error that it is not there.
``retrograd.__config__.show()`` says which is in use.
"""

from __future__ import annotations

import os
from typing import Any

#: Of what the core is told and asked. This package does not use another than the one it was written for.
VERSION = 1


def _load() -> Any:
    asked = os.environ.get("RETROGRAD_CORE", "")
    if asked not in ("", "compiled", "python"):
        raise ImportError(f"RETROGRAD_CORE={asked} in the environment: it may be 'compiled' or 'python'")
    if asked == "python" or os.environ.get("RETROGRAD_FAST") == "0":
        return None
    try:
        from retrograd_fast import _core

        if _core.VERSION != VERSION:
            raise ImportError(f"retrograd_fast has version {_core.VERSION} of the core, not {VERSION}")
    except ImportError:  # not installed, or of another release, or for a Python without the global lock
        if asked:
            raise
        return None
    return _core


#: The extension module, or None.
library: Any = _load()
