"""``torch.torch_version``: versions as strings that are compared by their numbers."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["TorchVersion"]


def _key(version: Any) -> tuple | None:
    """What is compared: the numbers, whether it is only on its way to them (2.0a0, 2.0rc1), what follows a plus."""
    if not isinstance(version, str):
        version = ".".join(map(str, version)) if isinstance(version, Iterable) else str(version)
    found = re.fullmatch(r"\s*v?(\d+(?:\.\d+)*)[._-]?((?:a|b|c|rc|alpha|beta|pre|dev)[.\d]*)?(?:\+(.*))?\s*", version)
    if found is None:
        return None
    numbers = [int(number) for number in found[1].split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers), found[2] is None, found[2] or "", found[3] or ""


class TorchVersion(str):
    """A version that is equal to, smaller or larger than another one, a string or a tuple of numbers.

    >>> version = TorchVersion("2.13.0+retrograd.0.1.0")
    >>> version >= "2.9", version < (2, 14), version.startswith("2.1")
    (True, True, True)
    """

    def _compare(self, other: Any, by: Callable[[Any, Any], bool]) -> bool:
        key = _key(other)
        return by(str(self), str(other)) if key is None else by(_key(str(self)), key)

    def __eq__(self, other: object) -> bool:
        return self._compare(other, operator.eq)

    def __ne__(self, other: object) -> bool:
        return self._compare(other, operator.ne)

    def __hash__(self) -> int:
        return str.__hash__(self)

    def __lt__(self, other: Any) -> bool:
        return self._compare(other, operator.lt)

    def __le__(self, other: Any) -> bool:
        return self._compare(other, operator.le)

    def __gt__(self, other: Any) -> bool:
        return self._compare(other, operator.gt)

    def __ge__(self, other: Any) -> bool:
        return self._compare(other, operator.ge)
