"""How public functions may be called: ``*.txt``, one line per overload, in the language of `codegen/schema.py`.

Operators of the table (`derivatives/`) are not here: the generator writes their checks from their own entries. A line
is for the function and for the Tensor method of its name; one that begins with ``Tensor.``, ``linalg.`` ... is for that
namespace alone. ``out=`` is not here: a function takes it if its implementation does. What a function returns is in
its source, or after ``->`` where overloads differ in it or the source cannot say it (`codegen/signatures.py` has the
language); type checkers alone read that, and ``unchecked.txt``. One word stands for what many lines share:

    options     dtype? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None,
                bool? requires_grad=False
"""

from __future__ import annotations

import functools
from pathlib import Path

from ...codegen.schema import split
from ..arguments import Type, type_of

_SHORT = {
    "options": "dtype? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
    "bool? requires_grad=False",
}


class Parameter:
    """One parameter of an overload."""

    __slots__ = ("keyword_only", "name", "required", "type")

    def __init__(self, text: str, keyword_only: bool) -> None:
        declaration, _, default = text.partition("=")
        type_, _, name = declaration.rpartition(" ")
        self.name: str = name
        self.type: Type = type_of(type_)
        self.required: bool = not default
        self.keyword_only: bool = keyword_only

    def __str__(self) -> str:
        return f"{self.type.word} {self.name}"


@functools.cache
def _parameters(text: str) -> tuple[Parameter, ...]:
    for short, long in _SHORT.items():
        if text.endswith((f", {short}", f"* {short}")) or f", {short}," in text:
            text = text.replace(f", {short}", f", {long}", 1)
    found, keyword_only = [], False
    for part in split(text):
        if part == "*":
            keyword_only = True
        else:
            found.append(Parameter(part, keyword_only))
    return tuple(found)


@functools.cache
def _overloads_of_composites() -> dict[str, tuple[str, ...]]:
    found = {}
    for line in (Path(__file__).parent / "overloads.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, *overloads = line.split()
            found[name] = tuple(overloads)
    return found


def overloads_of_composites(name: str, otherwise: tuple[str, ...] = ("default",)) -> tuple[str, ...]:
    """Torch's names for the forms of a function that is composed of others, if they are said."""
    return _overloads_of_composites().get(name, otherwise)


@functools.cache
def _lines() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for path in sorted(Path(__file__).parent.glob("*.txt")):
        if path.stem in ("overloads", "unchecked"):
            continue
        for line in path.read_text(encoding="utf-8").splitlines():
            if line and not line.startswith("#"):
                call, _, _returns = line.partition(") -> ")
                name, _, arguments = call.removesuffix(")").partition("(")
                found.setdefault(name, []).append(arguments)
    return found


def names() -> list[str]:
    """What the lines are for."""
    return list(_lines())


def has_overloads(name: str) -> bool:
    """Does the table have the function?"""
    return name in _lines()


@functools.cache
def overloads(name: str) -> tuple[tuple[Parameter, ...], ...]:
    """The overloads of a function; none, if the table does not have it."""
    return tuple(_parameters(text) for text in _lines().get(name, ()))
