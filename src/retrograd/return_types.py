"""``torch.return_types``: the classes of several results, such as ``sort``'s values and indices.

Each is a tuple whose fields have names, made by `return_type` and found in this module under the operator's name.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any


def _repr(self: Any) -> str:
    fields = ",\n".join(f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
    return f"torch.return_types.{type(self).__name__}(\n{fields})"


def _new(cls: Any, *values: Any) -> Any:
    """From the values one by one, or as torch's from one sequence of them."""
    if len(values) != cls.n_fields:
        if len(values) == 1:
            values = tuple(values[0])
        if len(values) != cls.n_fields:
            raise TypeError(
                f"torch.return_types.{cls.__name__}() takes a {cls.n_fields}-sequence ({len(values)}-sequence given)"
            )
    return tuple.__new__(cls, values)


def return_type(name: str, *fields: str) -> Any:
    """The class of the results of an operator.

    >>> pair = return_type("pair", "first", "second")
    >>> pair(1, 2).second
    2
    """
    told = {"n_fields": len(fields), "n_sequence_fields": len(fields), "n_unnamed_fields": 0}  # as torch's classes do
    attributes = {"__slots__": (), "__new__": _new, "__repr__": _repr, "__module__": __name__, **told}
    made = type(name, (namedtuple(name, fields),), attributes)
    known = globals().setdefault(name, made)
    # Overloads share a name: of two with other fields, the first is the one that is found here.
    return known if known._fields == fields else made
