"""Signatures: ``mul(Tensor self, Tensor|Scalar other) -> Tensor``, parsed.

The types that an argument can have:

    Tensor  Tensor?  Tensor[]      differentiable if the entry has a formula for it
    Tensor|Scalar                  a Tensor or a Python number
    Scalar  Scalar?  int  int?  int[]  int[]?  float  float?  bool  str  any
    int[]...                       a tuple of ints, or the ints themselves: view(2, 3)
    indices                        a list of index arrays and None; kept and released like a saved tensor
    MemoryFormat?                  or its name, from within
    dtype?                         becomes a NumPy dtype on the way to the kernel

Results: ``Tensor``, ``Tensor[]`` (a tuple of unknown length), or ``(Tensor values, Tensor indices)``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

ARGUMENT_TYPES = {
    "Tensor", "Tensor?", "Tensor[]", "Tensor|Scalar", "Scalar", "Scalar?", "int", "int?", "int[]", "int[]?",
    "int[]...", "float", "float?", "bool", "bool?", "str", "str?", "any", "dtype?", "indices", "MemoryFormat?",
}  # fmt: skip


class SchemaError(ValueError):
    """A signature that cannot be read."""


@dataclass
class Argument:
    """One argument of an operator."""

    type: str
    name: str
    default: str | None = None
    keyword_only: bool = False

    @property
    def is_tensor(self) -> bool:
        return self.type.startswith("Tensor")

    @property
    def is_list(self) -> bool:
        return self.type == "Tensor[]"

    @property
    def parameter(self) -> str:
        """Its name in the Python signature: torch's functions call their first tensor ``input``."""
        return "input" if self.name == "self" else self.name


@dataclass
class Schema:
    """A parsed signature."""

    base: str
    overload: str
    arguments: list[Argument]
    #: As it stands in the table.
    text: str = ""
    results: list[str] = field(default_factory=list)
    #: A tuple of tensors whose length is known only when the operator runs.
    returns_list: bool = False

    @property
    def name(self) -> str:
        """The name of the Python function."""
        return f"{self.base}_{self.overload}" if self.overload else self.base

    def argument(self, name: str) -> Argument | None:
        return next((a for a in self.arguments if a.name == name), None)


_SCHEMA = re.compile(r"^(?P<base>\w+)(?:\.(?P<overload>\w+))?\((?P<args>.*)\) -> (?P<returns>.+)$")


def parse_schema(text: str) -> Schema:
    """Parse one signature; SchemaError says what is wrong with it."""
    match = _SCHEMA.match(text.strip())
    if match is None:
        raise SchemaError(f"not a signature: {text!r} (expected 'name(Type arg, ...) -> Type')")
    arguments: list[Argument] = []
    keyword_only = False
    for part in split(match["args"]):
        if part == "*":
            keyword_only = True
            continue
        declaration, _, default = part.partition("=")
        type_, _, name = declaration.strip().rpartition(" ")
        if type_ not in ARGUMENT_TYPES:
            raise SchemaError(
                f"unknown type {type_!r} of argument {name!r}; one of {', '.join(sorted(ARGUMENT_TYPES))}"
            )
        if any(a.name == name for a in arguments):
            raise SchemaError(f"argument {name!r} appears twice")
        arguments.append(Argument(type_, name, default.strip() or None, keyword_only))
    returns = match["returns"].strip()
    schema = Schema(match["base"], match["overload"] or "", arguments, text.strip())
    if returns == "Tensor":
        schema.results = ["result"]
    elif returns == "Tensor[]":
        schema.results, schema.returns_list = ["result"], True
    elif returns.startswith("("):
        for part in split(returns[1:-1]):
            type_, _, name = part.partition(" ")
            if type_ != "Tensor" or not name:
                raise SchemaError(f"result {part!r} must be 'Tensor name'")
            schema.results.append(name)
    else:
        raise SchemaError(f"unknown result {returns!r}")
    return schema


def split(text: str) -> list[str]:
    """Split at commas outside brackets."""
    parts, depth, current = [], 0, ""
    for char in text:
        depth += (char in "([") - (char in ")]")
        if char == "," and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += char
    return [*parts, current.strip()] if current.strip() else parts


# --------------------------------------------------------------------------------------------------------------- spaces

#: The namespaces that operators are in. What is "internal" is called by formulas and by other operators alone; what is
#: in "aten" is found under ``torch.ops.aten`` alone.
SPACES = ("torch", "Tensor", "nn.functional", "linalg", "special", "fft", "aten", "internal")


def place(name: str, space: str) -> tuple[str, str]:
    """Where an operator declared in `space` stands under `name`, and what it is called there.

    >>> place("mul", "torch"), place("special.expit", "torch"), place("linalg_det", "torch")
    (('torch', 'mul'), ('special', 'expit'), ('linalg', 'det'))
    """
    for prefix in ("linalg", "special"):  # as aten calls them
        if name.startswith(f"{prefix}_") and space in ("torch", prefix):
            return prefix, name.removeprefix(f"{prefix}_")
    qualifier, _, own = name.rpartition(".")
    return qualifier or space, own
