"""The compiled core of `retrograd[fast]`, where it is installed: operators, formulas and the engine's loop in C.

Everything that it does is written in Python in this package, which is what runs without it, and what it calls for all
that is not plain: see Note [The compiled core] in ops/compiled_core.py.  RETROGRAD_CORE=python in the environment
turns it off (so that a breakpoint in an operator or in the loop is reached), and RETROGRAD_FAST=0 all of the extra,
whatever RETROGRAD_CORE says; RETROGRAD_CORE=compiled makes it an error that it is not there.
``retrograd.__config__.show()`` says which is in use.
"""

from __future__ import annotations

import os
import sys
from typing import Any

#: Of what the core is told and asked. This package does not use another than the one it was written for.
VERSION = 5


def _load() -> tuple[Any, str]:
    """The extension module, or None; and why, in words."""
    asked = os.environ.get("RETROGRAD_CORE", "")
    if asked not in ("", "compiled", "python"):
        raise ImportError(f"RETROGRAD_CORE={asked} in the environment: it may be 'compiled' or 'python'")
    if asked == "python":
        return None, "RETROGRAD_CORE=python is in the environment"
    if os.environ.get("RETROGRAD_FAST") == "0":
        return None, "RETROGRAD_FAST=0 is in the environment"
    reason = "retrograd[fast] is not installed"
    try:
        if "free-threading" in sys.version:
            reason = "a free-threaded Python has no lock that would keep others from the slots it reads"
            raise ImportError(f"no compiled core: {reason}")
        from retrograd_fast import _core

        if _core.VERSION != VERSION:
            reason = f"retrograd_fast has version {_core.VERSION} of the core, not {VERSION}"
            raise ImportError(reason)
    except ImportError:
        if asked:
            raise
        return None, reason
    return _core, ""


#: The extension module, or None; and if None, why.
library: Any
library, reason = _load()
