"""Writes the type stubs: ``functions.pyi`` for the generated operators, ``composites.pyi`` for those that are made of
others, and ``tensor_operators.pyi`` for the Tensor methods of both.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

from .calls import has_out
from .schema import place
from .table import Entry

TYPES = {
    "Tensor": "Tensor",
    "Tensor?": "Tensor | None",
    "Tensor[]": "Sequence[Tensor]",
    "Tensor|Scalar": "Tensor | Number",
    "Scalar": "Number",
    "Scalar?": "Number | None",
    "int": "int",
    "int?": "int | None",
    "int[]": "int | Sequence[int]",
    "int[]?": "int | Sequence[int] | None",
    "int[]...": "int | Sequence[int]",
    "float": "float",
    "float?": "float | None",
    "bool": "bool",
    "bool?": "bool | None",
    "str": "str",
    "str?": "str | None",
    "any": "Any",
    "indices": "Any",
    "MemoryFormat?": "Any",
    "dtype?": "dtype | None",
}

HEADER = """# Generated from derivatives/*.yaml. Do not edit: change the table.
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from retrograd.core.dtypes import dtype
from retrograd.tensor import Tensor
from retrograd.types import Number
"""


def write_function_stubs(entries: list[Entry]) -> str:
    """``functions.pyi``."""
    parts = [HEADER]
    for entry in entries:
        if len(entry.schema.results) > 1:
            parts.append(f"\nclass {entry.name}_result(NamedTuple):\n")
            parts += [f"    {r}: Tensor\n" for r in entry.schema.results]
        parts.append(f"\ndef {entry.name}({_signature(entry, 'input: Tensor')}) -> {_result(entry)}: ...\n")
        if entry.inplace:
            parts.append(f"def {entry.name}_({_signature(entry, 'input: Tensor', out=False)}) -> Tensor: ...\n")
    parts.append("\nPUBLIC: dict[str, dict[str, Callable[..., Any]]]\n")
    return "".join(parts)


@dataclass
class Composite:
    """A function with a ``@composite`` decorator, as its source shows it."""

    #: What its module calls it.
    own: str
    #: namespace -> its names there
    places: dict[str, list[str]]
    #: None of one that a function makes: ``hsplit = composite()(...)``.
    arguments: ast.arguments | None
    returns: str
    attribute: bool
    out: bool

    @property
    def functions(self) -> list[str]:
        """The names that code of the package calls it by."""
        return [name for space in ("torch", "internal") for name in self.places.get(space, ())]

    @property
    def methods(self) -> list[str]:
        return self.places.get("Tensor", [])


#: Names that an annotation in a stub may use; any other becomes Any.
KNOWN = {"Any", "Tensor", "int", "float", "bool", "str", "complex", "None", "tuple", "list", "dict", "Sequence",
         "Callable", "dtype"}  # fmt: skip


def read_composites(paths: list[Path]) -> list[Composite]:
    """The composite operators of some modules, read without importing them."""
    found = []
    for path in paths:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef):
                own, calls, arguments, returns = node.name, node.decorator_list, node.args, _annotation(node.returns)
            elif isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(node.value, ast.Call):
                target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
                own, calls, arguments, returns = ast.unparse(target), [node.value.func], None, "Any"
            else:
                continue
            for call in calls:
                if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "composite":
                    names = [str(ast.literal_eval(a)) for a in call.args]
                    flags = {k.arg: ast.literal_eval(k.value) for k in call.keywords if k.arg != "setter"}
                    places = _places([flags.get("name", own), *names], flags)
                    found.append(
                        Composite(
                            own, places, arguments, returns, flags.get("property", False), flags.get("out", False)
                        )
                    )
    return found


def _places(names: list[str], flags: dict) -> dict[str, list[str]]:
    """Where a declaration puts a function: what `composite` of ops/registry.py does."""
    space, method = flags.get("space", "torch"), flags.get("method", True)
    found: dict[str, list[str]] = {}
    for name in names:
        where, own = place(name, space)
        found.setdefault(where, []).append(own)
        if where in ("linalg", "special") and "." not in name:
            found.setdefault("internal", []).append(name)
        if where == "torch" and "." not in name and (method or flags.get("property")):
            found.setdefault("Tensor", []).append(own)
    return found


def _annotation(node: ast.expr | None) -> str:
    if node is None:
        return "Any"
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    return ast.unparse(node) if names <= KNOWN else "Any"


def _composite_signature(composite: Composite, method: bool) -> str:
    assert composite.arguments is not None
    arguments = ast.parse(f"def f({ast.unparse(composite.arguments)}): ...").body[0].args  # type: ignore[attr-defined]
    for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]:
        if argument is not None:
            argument.annotation = ast.parse(_annotation(argument.annotation), mode="eval").body
    arguments.defaults = [ast.Constant(...) for _ in arguments.defaults]
    arguments.kw_defaults = [None if d is None else ast.Constant(...) for d in arguments.kw_defaults]
    if method and arguments.args:
        arguments.args[0] = ast.arg("self")
    elif method:
        arguments.args = [ast.arg("self")]
    elif composite.out:
        arguments.kwonlyargs.append(ast.arg("out", ast.Name("Any")))
        arguments.kw_defaults.append(ast.Constant(...))
    return ast.unparse(arguments)


def write_composite_stubs(composites: list[Composite]) -> str:
    """``composites.pyi``."""
    parts = [HEADER]
    for composite in composites:
        if composite.arguments is None:
            continue
        signature = _composite_signature(composite, method=False)
        parts += [f"def {name}({signature}) -> {composite.returns}: ...\n" for name in composite.functions]
    return "".join(parts)


def write_method_stubs(entries: list[Entry], composites: list[Composite]) -> str:
    """``tensor_operators.pyi``: a base class of Tensor that exists for type checkers only."""
    parts = [HEADER, "\nfrom . import functions\n", "\nclass TensorOperators:\n"]
    taken = {name for composite in composites for name in composite.methods}
    for composite in composites:
        for name in composite.methods:
            if composite.attribute:
                parts.append(f"    {name}: {composite.returns}\n")
            else:
                signature = _composite_signature(composite, method=True)
                parts.append(f"    def {name}({signature}) -> {composite.returns}: ...\n")
    for entry in entries:
        for space, name, inplace in entry.places():
            if space != "Tensor" or name in taken:
                continue
            result = "Tensor" if inplace else _result(entry, "functions.")
            parts.append(f"    def {name}({_signature(entry, 'self', out=False)}) -> {result}: ...\n")
        for operator in entry.operators:
            other = ", other: Any" if len(entry.schema.arguments) > 1 else ""
            ignore = "  # type: ignore[override]" if operator in ("__eq__", "__ne__") else ""
            parts.append(f"    def {operator}(self{other}) -> Tensor: ...{ignore}\n")
    # Methods that are made in other ways than by a decorated function.
    parts.append("    def __getattr__(self, name: str) -> Any: ...\n")
    return "".join(parts)


def _signature(entry: Entry, first: str, out: bool = True) -> str:
    parts, star = [], False
    for position, a in enumerate(entry.schema.arguments):
        if position == 0 and a.name == "self" and a.is_tensor:
            parts.append(first)
            continue
        if a.type == "int[]...":
            parts.append(f"*{a.parameter}: {TYPES[a.type]}")
            star = True
            continue
        if a.keyword_only and not star:
            parts.append("*")
            star = True
        parts.append(f"{a.parameter}: {TYPES[a.type]}" + ("" if a.default is None else " = ..."))
    if out and has_out(entry):
        kind = "Tensor" if len(entry.schema.results) == 1 else "Sequence[Tensor]"
        parts += (["*"] if not star else []) + [f"out: {kind} | None = ..."]
    if any(a.name in ("dim", "keepdim") for a in entry.schema.arguments):
        parts.append("**aliases: Any")
    return ", ".join(parts)


def _result(entry: Entry, prefix: str = "") -> str:
    if entry.schema.returns_list:
        return "tuple[Tensor, ...]"
    return "Tensor" if len(entry.schema.results) == 1 else f"{prefix}{entry.name}_result"
