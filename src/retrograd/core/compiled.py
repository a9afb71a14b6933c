"""The compiled core of `retrograd[fast]`, where it is installed: operators, formulas and the engine's loop in C.

Everything that it does is written in Python in this package, which is what runs without it, and what it calls for all
that is not plain: see Note [The compiled core] in ops/compiled_core.py.  RETROGRAD_CORE=python in the environment
turns it off (so that a breakpoint in an operator or in the loop is reached), and RETROGRAD_FAST=0 all of the extra.
"""

from __future__ import annotations

import os
from typing import Any

#: Of what the core is told and asked. This package does not use another than the one it was written for.
VERSION = 1


def _load() -> Any:
    if os.environ.get("RETROGRAD_FAST") == "0" or os.environ.get("RETROGRAD_CORE", "compiled") != "compiled":
        return None
    try:
        from retrograd_fast import _core
    except ImportError:  # not installed, or for another Python, or one without the global lock
        return None
    return _core if _core.VERSION == VERSION else None


#: The extension module, or None.
library: Any = _load()
