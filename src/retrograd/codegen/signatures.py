"""``ops/signatures/*.txt`` as the stubs read them; `ops/signatures/__init__.py` says what a line means.

At run time only the arguments are read, by the checks; what follows ``->`` is for type checkers alone:

    Tensor                                          what all lines say that say nothing
    Tensor[]                                        a tuple of tensors
    (Tensor values, Tensor indices)                 a class of `return_types`, with the operator's name
    (Tensor, Tensor)                                a plain tuple
    Tensor, or (Tensor, Tensor) if return_indices   what a flag decides
    bool, int[], dtype ...                          the other types
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .schema import Argument, split

OPTIONS = (
    "dtype? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool? requires_grad=False"
)


@dataclass
class Signature:
    """One line: how a function may be called, and what it returns then (empty: the line does not say)."""

    arguments: list[Argument]
    returns: str


def read_signatures(paths: list[Path]) -> dict[str, list[Signature]]:
    """The lines of each function, by its name and namespace (``max``, ``Tensor.to``, ``linalg.det``)."""
    found: dict[str, list[Signature]] = {}
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines():
            if line and not line.startswith("#"):
                call, _, returns = line.partition(") -> ")
                name, _, arguments = call.removesuffix(")").partition("(")
                found.setdefault(name, []).append(Signature(_arguments(arguments), returns))
    return found


def _arguments(text: str) -> list[Argument]:
    found: list[Argument] = []
    keyword_only = False
    for part in split(", ".join(OPTIONS if part == "options" else part for part in split(text))):
        if part == "*":
            keyword_only = True
            continue
        declaration, _, default = part.partition("=")
        type_, _, name = declaration.strip().rpartition(" ")
        found.append(Argument(type_, name, default.strip() or None, keyword_only))
    return found
