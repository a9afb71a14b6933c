"""The checks of arguments that are written into operators; what they call is in ops/arguments.py."""

from __future__ import annotations

from .schema import Argument
from .table import Entry

_RANGE = "-0x8000000000000000 <= {p} <= 0xFFFFFFFFFFFFFFFF"
_NOT_INT = f"({{p}}.__class__ is not int or not {_RANGE})"
#: When an argument is not plainly what it should be, and `argument` has to look at it.
_PLAINLY = {
    "int": "{p}.__class__ is not int",
    "int?": "{p} is not None and {p}.__class__ is not int",
    "int[]": "{p}.__class__ is not int and not ({p}.__class__ is tuple and INT.issuperset(map(type, {p})))",
    "int[]?": "{p} is not None and {p}.__class__ is not int and "
    "not ({p}.__class__ is tuple and INT.issuperset(map(type, {p})))",
    "float": "{p}.__class__ is not float",
    "float?": "{p} is not None and {p}.__class__ is not float",
    "bool": "{p} is not False and {p} is not True",
    "bool?": "{p} is not None and {p} is not False and {p} is not True",
    "str": "{p}.__class__ is not str",
    "str?": "{p} is not None and {p}.__class__ is not str",
    "MemoryFormat?": "{p} is not None",
    "Scalar": f"{{p}}.__class__ is not float and {_NOT_INT}",
    "Scalar?": f"{{p}} is not None and {{p}}.__class__ is not float and {_NOT_INT}",
}
#: A list of ints may be one int, in the table.
_TYPES = {"int[]": "int[1]", "int[]?": "int[1]?"}


def is_plain_number(p: str) -> str:
    """The test that a Python number passes which needs no look."""
    return f"{p}.__class__ is float or {p}.__class__ is int and {_RANGE.format(p=p)}"


def not_plain(a: Argument) -> str | None:
    """The test that only what is not plainly of the argument's type passes; None where there is nothing to test."""
    if a.type not in _PLAINLY:
        return None
    p = a.parameter
    test = _PLAINLY[a.type].format(p=p)
    if a.type == "Scalar" and a.default and a.default.isdigit():  # the default passes by one comparison
        test = f"({p}.__class__ is not int or {p} != {a.default}) and {test}"
    return test


def argument_call(entry: Entry, a: Argument, position: int) -> str:
    """The call that converts or refuses what is not plain."""
    type_, p = _TYPES.get(a.type, a.type), a.parameter
    return f'argument("{type_}", "{entry.schema.base}", "{p}", {position}, {p})'


def watched(entry: Entry, name: str, lines: list[str]) -> list[str]:
    """The lines, and what is said if they meet with an accident: see ops/accidents.py."""
    given = "".join(f"{a.parameter}, " for a in entry.schema.arguments)
    return ["try:", *("    " + line for line in lines), "except Exception as error:",
            f'    raise unfit("{name}", error, ({given.strip()}))']  # fmt: skip
