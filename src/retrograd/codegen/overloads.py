"""Overloads: how a function may be called, in the words of Python's type checkers.

A signature becomes one overload or several (``zeros(2, 3)`` beside ``zeros((2, 3))``, NumPy's ``axis`` beside ``dim``,
one for each result that a flag chooses); overloads that say the same are put together, since a type checker lists them
all when a call fits none.
"""

from __future__ import annotations

import ast
import keyword
import re
from dataclasses import dataclass, replace

from .schema import Argument, split

#: Types of the language of signatures. Words with an underscore are Python's own: Tensor has methods of their names.
TYPES = {
    "Tensor": "Tensor",
    "Tensor|Scalar": "Tensor | Number",
    "Scalar": "Number",
    "Scalar|str": "Number | str",
    "real": "_float",
    "int": "_int",
    "pyint": "_int",
    "float": "_float",
    "bool": "_bool",
    "truth": "_bool | None",
    "str": "str",
    "dtype": "_dtype",
    "Device": "Device",
    "Layout": "_layout",
    "MemoryFormat": "memory_format",
    "Generator": "Generator",
    "int[]": "Sequence[_int]",
    "pyint[]": "Sequence[_int]",
    "int?[]": "Sequence[_int | None]",
    "float[]": "Sequence[_float]",
    "bool[]": "Sequence[_bool]",
    "Scalar[]": "Sequence[Number]",
    "Tensor[]": "Sequence[Tensor]",
    "Tensor?[]": "Sequence[Tensor | None]",
    "Tensor|int[]": "Tensor | Sequence[_int]",
    "callable": "Callable[..., Any]",
    "dict": "dict[str, Any]",
    "any": "Any",
    "any[]": "Sequence[Any]",
    "indices": "Any",
    "Size": "Size",
}
#: What stands for an ``any`` of torch's that is checked nowhere, by the class of its default.
_BY_DEFAULT = {"str": "str", "bool": "_bool", "int": "Number", "float": "Number"}
#: The same for those whose default tells nothing, by their names.
_BY_NAME = {
    "compute_mode": "str | None", "device": "Device", "dims": "_int | Sequence[Sequence[_int]]",
    "distance_function": "Callable[[Tensor, Tensor], Tensor] | None",
    "driver": "str | None", "iK": "Tensor | None", "indices": "Sequence[Tensor | None]", "largest": "_bool | None",
    "memory_format": "memory_format | None", "method": "str | None", "output_ratio": "_float | Sequence[_float] | None",
    "output_size": "Sequence[_int] | None", "q": "_int | None", "recompute_scale_factor": "_bool | None",
    "rounding_mode": "str | None", "values": "Tensor | Sequence[Any]", "var": "Tensor | _float",
}  # fmt: skip
#: NumPy's names for arguments.
NUMPY_NAMES = {"dim": "axis", "keepdim": "keepdims"}

HEADER = """from builtins import bool as _bool, complex as _complex, float as _float, int as _int
from collections.abc import Callable, Sequence
from types import EllipsisType
from typing import Any, Literal, NamedTuple, Self, overload

from numpy import ndarray

from retrograd.core import devices, dtypes
from retrograd.core.constants import memory_format
from retrograd.core.dtypes import dtype
from retrograd.core.size import Size
from retrograd.random import Generator
from retrograd.core.layout import layout as _layout
from retrograd.storage import TypedStorage, UntypedStorage
from retrograd.tensor.tensor import Tensor
from retrograd.types import Device, Index, Number, _dtype
"""


@dataclass(frozen=True)
class Parameter:
    """A parameter: its kind is "positional", "star" (``*size: int``) or "keyword"."""

    name: str
    type: str
    default: str | None = None
    kind: str = "positional"

    def __str__(self) -> str:
        return f"{'*' * (self.kind == 'star')}{self.name}: {self.type}" + (f" = {self.default}" if self.default else "")


@dataclass(frozen=True)
class Overload:
    """One way to call a function."""

    parameters: tuple[Parameter, ...]
    returns: str

    def __str__(self) -> str:
        parts: list[str] = []
        starred = False
        for p in self.parameters:
            if p.kind == "keyword" and not starred:
                parts.append("*")
            starred = starred or p.kind != "positional"
            # A name that Python keeps for itself cannot be written by a caller either.
            reserved = keyword.iskeyword(p.name)
            parts += [str(replace(p, name=p.name + "_")), "/"] if reserved else [str(p)]
        return ", ".join(parts)


def type_of(text: str, default: str | None = None, name: str = "") -> str:
    """The type of an argument, in Python's words.

    >>> type_of("int[2]?"), type_of("Tensor|Scalar"), type_of("any", '"mean"')
    ('_int | Sequence[_int] | None', 'Tensor | Number', 'str')
    """
    text = text.removesuffix("...")
    base = text.removesuffix("?")
    listed = re.fullmatch(r"(\w+)(\??)\[\d+\]", base)  # one element may stand for all
    if base == "any" and default not in (None, "None") and name not in _BY_NAME:
        found = _BY_DEFAULT.get(type(ast.literal_eval(default)).__name__, "Any")
    elif listed:
        found = f"{TYPES[listed[1]]}{' | None' * bool(listed[2])} | {TYPES[f'{listed[1]}{listed[2]}[]']}"
    elif base in ("any", "indices"):
        found = _BY_NAME.get(name, "Any")
    else:
        found = TYPES[base]
    return f"{found} | None" if text.endswith("?") and "None" not in found else found


def _default(argument: Argument, type_: str) -> str | None:
    """The default as it is written in a stub: itself, where it is of the type."""
    if argument.default is None:
        return None
    try:
        value = ast.literal_eval(argument.default)
    except (ValueError, SyntaxError):
        return "..."
    word = type(value).__name__
    if isinstance(value, (list, tuple)):
        return repr(tuple(value)) if "Sequence[" in type_ else "..."
    fits = {"NoneType": "None", "bool": "_bool", "int": "_int", "float": "_float", "str": "str"}.get(word, "?")
    wider = {"_bool": "Number", "_int": "_float", "_float": "Number"}.get(fits, fits)
    parts = type_.split(" | ")
    return repr(value) if fits in parts or wider in parts or ("Number" in parts and word != "str") else "..."


def from_arguments(
    arguments: list[Argument], returns: str, *, method: bool = False, out: str = "", spread: bool = False,
    numpy_names: bool = False,
) -> list[Overload]:
    """The overloads of one signature.

    Of a `method`, the first argument is self. `out` is the type of ``out=``, if the function takes it. With `spread`, a
    list of ints that is the only argument may be written without brackets, as ``zeros(2, 3)``.
    """
    parameters = []
    for a in arguments[method:]:
        type_ = type_of(a.type, a.default, a.name)
        if a.default == "None" and "None" not in type_ and type_ not in ("Any", "Device"):
            type_ += " | None"
        parameters.append(
            Parameter(a.parameter, type_, _default(a, type_), "keyword" if a.keyword_only else "positional")
        )
    if out:
        parameters.append(Parameter("out", f"{out} | None", "None", "keyword"))
    made = [Overload(_in_order(parameters), returns)]
    positional = [a for a in arguments[method:] if not a.keyword_only]
    last = positional[-1].type if positional else ""
    if last.endswith("[]...") or (spread and len(positional) == 1 and last == "int[]"):
        star = Parameter(positional[-1].parameter, TYPES[last.removesuffix("[]...").removesuffix("[]")], None, "star")
        at = len(positional) - 1
        made.append(Overload((*parameters[:at], star, *_keywords(parameters[at + 1 :])), returns))
        # A list that may be left out is left out by the second form.
        parameters[at] = replace(parameters[at], default=None)
        made[0] = Overload(_in_order(parameters), returns)
    if numpy_names and any(p.name == "dim" for p in parameters):
        made += [_in_numpys_words(one) for one in made if not any(p.kind == "star" for p in one.parameters)]
    return made


def _keywords(parameters: list[Parameter]) -> list[Parameter]:
    return [replace(p, kind="keyword") for p in parameters]


def _in_order(parameters: list[Parameter]) -> tuple[Parameter, ...]:
    """The parameters, of which those that follow a default and have none can be given by keyword alone."""
    found: list[Parameter] = []
    for p in parameters:
        behind = p.kind == "positional" and p.default is None and any(q.default is not None for q in found)
        if behind or any(q.kind == "keyword" for q in found):
            p = replace(p, kind="keyword")
        found.append(p)
    return tuple(found)


def _in_numpys_words(overload: Overload) -> Overload:
    at = [p.name for p in overload.parameters].index("dim")
    renamed = [replace(p, name=NUMPY_NAMES.get(p.name, p.name)) for p in overload.parameters]
    renamed[at] = replace(renamed[at], default=None)
    return Overload((*renamed[:at], *_keywords(renamed[at:])), overload.returns)


# -------------------------------------------------------------------------------------------------------------- results


def by_flags(overload: Overload, alternatives: list[tuple[str, list[str]]]) -> list[Overload]:
    """The overloads of a function whose result is chosen by flags: [(result, flags that must be True)]."""
    flags = {flag for _, needed in alternatives for flag in needed}
    made = []
    for returns, needed in alternatives:
        parameters = []
        for p in overload.parameters:
            if p.name in needed:
                p = replace(p, type="Literal[True]", default=None, kind="keyword")
            elif p.name in flags:
                p = replace(p, type="Literal[False]", default="False")
            parameters.append(p)
        made.append(Overload(_in_order(parameters), returns))
        last = max((i for i, p in enumerate(overload.parameters) if p.name in needed), default=-1)
        if needed and overload.parameters[last].kind == "positional":  # all before it may be given without names too
            before = [replace(p, default=None, kind="positional") for p in parameters[: last + 1]]
            made.append(Overload((*before, *parameters[last + 1 :]), returns))
    return [*made, replace(overload, returns=" | ".join(dict.fromkeys(returns for returns, _ in alternatives)))]


def alternatives(text: str) -> list[tuple[str, list[str]]]:
    """``Tensor, or Tensor[] if as_tuple`` in its parts."""
    found = []
    for part in text.split(", or "):
        result, _, condition = part.partition(" if ")
        found.append((result.strip(), condition.split(" and ") if condition else []))
    return found


def fields_of(text: str) -> list[str]:
    """The names of ``(Tensor values, Tensor indices)``; none, if the parts have none."""
    if not text.startswith("("):
        return []
    return [part.rpartition(" ")[2] for part in split(text[1:-1]) if " " in part]


# -------------------------------------------------------------------------------------------------------- fewer of them


def simplify(overloads: list[Overload]) -> list[Overload]:
    """The same calls in as few overloads as can be."""
    found = list(dict.fromkeys(overloads))
    changed = True
    while changed:
        changed = False
        for i, a in enumerate(found):
            for j in range(i + 1, len(found)):
                merged = _together(a, found[j])
                if merged is not None:
                    found[i : j + 1] = [merged, *found[i + 1 : j]]
                    changed = True
                    break
            if changed:
                break
    return [a for a in found if not any(a is not b and _takes_all(b, a) for b in found)]


def _parts(type_: str) -> list[str]:
    parts, depth, current = [], 0, ""
    for word in type_.split(" | "):
        current = f"{current} | {word}" if current else word
        depth += word.count("[") - word.count("]")
        if not depth:
            parts.append(current)
            current = ""
    return parts


def _together(a: Overload, b: Overload) -> Overload | None:
    """One overload for both, if they differ in the type of one parameter alone."""
    if a.returns != b.returns or len(a.parameters) != len(b.parameters):
        return None
    different = [i for i, (p, q) in enumerate(zip(a.parameters, b.parameters, strict=True)) if p != q]
    if len(different) != 1:
        return None
    p, q = a.parameters[different[0]], b.parameters[different[0]]
    if (p.name, p.kind, p.default is None) != (q.name, q.kind, q.default is None):
        return None
    types = list(dict.fromkeys([*_parts(p.type), *_parts(q.type)]))
    types.sort(key=lambda t: t == "None")
    merged = replace(p, type=" | ".join(types), default=p.default if p.default == q.default else "...")
    return replace(a, parameters=tuple(merged if i == different[0] else r for i, r in enumerate(a.parameters)))


def _takes_all(a: Overload, b: Overload) -> bool:
    """Does `a` take every call that `b` takes, with the same result?"""
    if a.returns != b.returns or any(p.kind == "star" for p in (*a.parameters, *b.parameters)):
        return False
    mine = {p.name: (i, p) for i, p in enumerate(a.parameters)}
    for i, q in enumerate(b.parameters):
        if q.name not in mine:
            return False
        at, p = mine.pop(q.name)
        if q.kind == "positional" and (p.kind != "positional" or at != i):
            return False
        if q.default is not None and p.default is None:
            return False
        if p.type != "Any" and not {*_parts(q.type)} <= {*_parts(p.type)}:
            return False
    return all(p.default is not None for _, p in mine.values())


# ----------------------------------------------------------------------------------------------------------------- text


def write(name: str, overloads: list[Overload], doc: str = "", *, method: bool = False) -> str:
    """The declaration of a function, or of a method, in a stub."""
    indent = "    " * method
    lines = []
    for position, overload in enumerate(overloads):
        if len(overloads) > 1:
            lines.append(f"{indent}@overload")
        text = str(overload)
        signature = f"self, {text}".removesuffix(", ") if method else text
        body = f'\n{indent}    """{doc}"""' if doc and position == 0 else " ..."
        lines.append(f"{indent}def {name}({signature}) -> {overload.returns}:{body}")
    return "\n".join(lines) + "\n"
