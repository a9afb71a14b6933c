"""``torch.return_types``: the classes of several results, such as ``sort``'s values and indices.

Each is a tuple whose fields have names, made by `return_type` and found in this module under the operator's name.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any


def _repr(self: Any) -> str:
    fields = ",\n".join(f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
    return f"torch.return_types.{type(self).__name__}(\n{fields})"


def return_type(name: str, *fields: str) -> Any:
    """The class of the results of an operator.

    >>> pair = return_type("pair", "first", "second")
    >>> pair(1, 2).second
    2
    """
    made = type(name, (namedtuple(name, fields),), {"__slots__": (), "__repr__": _repr, "__module__": __name__})
    known = globals().setdefault(name, made)
    # Overloads share a name: of two with other fields, the first is the one that is found here.
    return known if known._fields == fields else made
