"""Memory that has no values yet, for who makes it: ``empty`` and its like, ``resize_``.

With deterministic algorithms it is filled, with NaN or with the largest integer, so that a program that reads what it
never wrote does the same in every run, and is found out.  `settings.py` and ``utils.deterministic`` switch it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..kernels.dtypes import convert


class Memory:
    """How memory is made: as NumPy makes it, or filled."""

    empty: Callable[..., np.ndarray] = staticmethod(np.empty)
    empty_like: Callable[..., np.ndarray] = staticmethod(np.empty_like)
    #: Is it to be filled where results have to be deterministic, and do they have to be?
    wanted = True
    deterministic = False

    def switch(self, *, wanted: bool | None = None, deterministic: bool | None = None) -> None:
        """Say what is wanted from now on."""
        self.wanted = self.wanted if wanted is None else wanted
        self.deterministic = self.deterministic if deterministic is None else deterministic
        if self.fills:
            self.empty, self.empty_like = _filled("empty"), _filled("empty_like")
        else:
            vars(self).pop("empty", None)
            vars(self).pop("empty_like", None)

    @property
    def fills(self) -> bool:
        """Is new memory filled?"""
        return self.wanted and self.deterministic


memory = Memory()


def _filled(name: str) -> Callable[..., Any]:
    def made(*args: Any, **kwargs: Any) -> Any:
        array = getattr(np, name)(*args, **kwargs)  # asked for now: while somebody records, `np` is another
        fill(array)
        return array

    return made


def fill(array: Any) -> None:
    """Fill an array with what stands for no value."""
    dtype = array.dtype
    if dtype.kind in "iu":
        array[...] = np.iinfo(dtype).max
    elif dtype.kind == "b":
        array[...] = True
    elif dtype.names is None:
        nothing: Any = complex(np.nan, np.nan) if dtype.kind in "cW" else np.nan
        array[...] = convert(np.array(nothing), dtype)
