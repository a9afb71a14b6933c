"""What modes of both kinds share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ops.dispatch import no_dispatch

__all__ = ["all_same_mode", "no_dispatch"]


def all_same_mode(modes: Sequence[Any]) -> bool:
    """Are these one and the same mode?

    >>> all_same_mode([None, None]), all_same_mode([1, None])
    (True, False)
    """
    return all(mode is modes[0] for mode in modes)
