"""Compiled kernels for retrograd, in one build for each kind of processor.

retrograd finds and loads it by itself; see ``retrograd.backends.fast``.
"""

import importlib
import os
from types import ModuleType

#: Of the kernels' names and arguments. retrograd does not load another than the one it was written for.
VERSION = 6

#: The kinds of processors, the best first.
LEVELS = ("avx512", "avx2", "plain")


def load() -> ModuleType:
    """The build for this processor, or the best one it can run that was built."""
    from . import _levels

    asked = os.environ.get("RETROGRAD_FAST_LEVEL")
    best = LEVELS.index(_levels.best())
    if asked is not None and asked not in LEVELS[best:]:
        raise ImportError(f"RETROGRAD_FAST_LEVEL={asked}: this processor has {', '.join(LEVELS[best:])}")
    for level in LEVELS[best:] if asked is None else (asked,):
        try:
            return importlib.import_module(f"retrograd_fast._kernels_{level}")
        except ModuleNotFoundError:
            continue
    raise ImportError("retrograd_fast was installed without its library")
