"""Formulas: Python expressions over an operator's arguments, read with `ast`.

A formula is written once, as one would write it with Tensors: ``grad * other.conj()``.  `reads` tells what it needs
of the forward pass: the values of a tensor, or only its shape, dtype or strides.  `lower` writes it for a namespace:

* tensors: as it stands, with functions looked up in ``ops``;
* arrays: methods become kernels, ``grad.sum(dim)`` -> ``kernels.sum(grad, dim)``; operators and
  ``.shape`` are the same on arrays.

A helper of ``derivatives/formulas/`` gets the namespace as its first argument.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

#: What can be read of a tensor without its values.
ATTRIBUTES = ("shape", "dtype", "ndim", "strides", "shapes", "dtypes")
BUILTINS = {"len", "tuple", "list", "int", "float", "bool", "range", "zip", "None", "True", "False", "isinstance"}


class FormulaError(ValueError):
    """A formula that cannot be used."""


@dataclass
class Names:
    """The functions that formulas may call."""

    kernels: set[str] = field(default_factory=set)
    ops: set[str] = field(default_factory=set)
    helpers: set[str] = field(default_factory=set)


@dataclass
class Reads:
    """What a formula reads of each name: ``{"self": {"value"}, "other": {"shape"}}``."""

    of: dict[str, set[str]] = field(default_factory=dict)

    def value(self, name: str) -> bool:
        return "value" in self.of.get(name, ())


def parse(text: str) -> ast.expr:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise FormulaError(f"not a Python expression: {text!r} ({error.msg})") from None


def reads(tree: ast.expr, known: set[str], names: Names) -> Reads:
    """What `tree` reads; FormulaError for a name that is neither in `known` nor a function."""
    found = Reads()
    bound: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.comprehension):
            bound |= {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
    _collect(tree, known | bound, bound, names, found)
    return found


def _collect(node: ast.AST, known: set[str], bound: set[str], names: Names, found: Reads) -> None:
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in ATTRIBUTES:
        name = node.value.id
        if name in known:
            if name not in bound:
                found.of.setdefault(name, set()).add(node.attr)
            return
    if isinstance(node, ast.Call):
        function = node.func
        if isinstance(function, ast.Name):
            _check_function(function.id, names)
        elif isinstance(function, ast.Attribute):
            _check_method(function.attr, names)
            _collect(function.value, known, bound, names, found)
        else:
            raise FormulaError(f"cannot call {ast.unparse(function)}")
        for child in [*node.args, *(k.value for k in node.keywords)]:
            _collect(child, known, bound, names, found)
        return
    if isinstance(node, ast.Name):
        if node.id not in known and node.id not in BUILTINS:
            raise FormulaError(f"unknown name {node.id!r}; the formula may use {', '.join(sorted(known))}")
        if node.id in known and node.id not in bound:
            found.of.setdefault(node.id, set()).add("value")
        return
    for part in ast.iter_child_nodes(node):
        _collect(part, known, bound, names, found)


def _check_function(name: str, names: Names) -> None:
    if name in names.helpers or name in BUILTINS:
        return
    if name not in names.kernels:
        raise FormulaError(f"unknown function {name!r}: neither a helper in formulas/ nor a kernel")
    if name not in names.ops:
        raise FormulaError(f"function {name!r} is a kernel but not an operator, so it cannot be differentiated")


def _check_method(name: str, names: Names) -> None:
    if name not in names.kernels:
        raise FormulaError(f"unknown method {name!r}: there is no kernel of that name")


class _Lower(ast.NodeTransformer):
    """Rewrites a formula for one namespace."""

    def __init__(self, arrays: bool, names: Names, rename: dict[str, str]) -> None:
        self.space = "kernels" if arrays else "ops"
        self.arrays = arrays
        self.names = names
        self.rename = rename

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if isinstance(node.value, ast.Name) and f"{node.value.id}.{node.attr}" in self.rename:
            return ast.Name(self.rename[f"{node.value.id}.{node.attr}"], ast.Load())
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Name(self.rename.get(node.id, node.id), node.ctx)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        args = [self.visit(a) for a in node.args]
        keywords = [ast.keyword(k.arg, self.visit(k.value)) for k in node.keywords]
        function = node.func
        if isinstance(function, ast.Name):
            name = function.id
            if name in self.names.helpers:
                return ast.Call(_dotted("formulas", name), [ast.Name(self.space, ast.Load()), *args], keywords)
            if name in BUILTINS:
                return ast.Call(function, args, keywords)
            return ast.Call(_dotted(self.space, name), args, keywords)
        assert isinstance(function, ast.Attribute)
        value = self.visit(function.value)
        if function.attr == "conj" and not args:
            # Arrays, Tensors and Python numbers all have it, and it is free for what is not complex.
            return ast.Call(ast.Attribute(value, "conjugate", ast.Load()), [], [])
        if not self.arrays:
            return ast.Call(ast.Attribute(value, function.attr, ast.Load()), args, keywords)
        return ast.Call(_dotted("kernels", function.attr), [value, *args], keywords)


def _dotted(module: str, name: str) -> ast.Attribute:
    return ast.Attribute(ast.Name(module, ast.Load()), name, ast.Load())


def lower(tree: ast.expr, arrays: bool, names: Names, rename: dict[str, str] | None = None) -> str:
    """The formula as source for one namespace; `rename` maps names (``"self"``) and attributes (``"self.shape"``)."""
    copied = ast.parse(ast.unparse(tree), mode="eval").body
    return ast.unparse(ast.fix_missing_locations(_Lower(arrays, names, rename or {}).visit(copied)))
