"""The documented examples as programs for type checkers: those of README and those of docstrings.

An example becomes a function, in a module with the names that the example's module has. What is meant to fail when it
runs is left out.
"""

from __future__ import annotations

import ast
import doctest
import re
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "retrograd"
README = PACKAGE.parents[1] / "README.md"


def _statements(examples: list[doctest.Example]) -> list[str]:
    """The lines of an example, without the steps that raise."""
    found: list[str] = []
    for example in examples:
        if example.exc_msg is None:
            found += example.source.splitlines()
    return found


def _docstrings(tree: ast.Module) -> list[tuple[str, str]]:
    nodes = [node for node in ast.walk(tree) if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))]
    named = [("module" if isinstance(node, ast.Module) else node.name, ast.get_docstring(node)) for node in nodes]
    return [(name, text) for name, text in named if text and ">>>" in text]


def _imports(tree: ast.Module, used: set[str]) -> list[str]:
    """The imports of other packages that examples rely on."""
    return [
        ast.unparse(node)
        for node in tree.body
        if isinstance(node, ast.Import) and {alias.asname or alias.name for alias in node.names} & used
    ]


def _names(tree: ast.Module) -> set[str]:
    """What a module defines at its top."""
    found: set[str] = set()
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
    return found


def _program(parts: list[tuple[str, list[str]]], imports: str = "") -> str:
    """One function per example."""
    lines = [imports] if imports else []
    for number, (name, body) in enumerate(parts):
        lines += [f"def example_{number}_{name}() -> None:", *[f"    {line}" for line in body], ""]
    return "\n".join(lines) + "\n"


def _own_examples(path: Path) -> str:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    parser = doctest.DocTestParser()
    parts = []
    for name, text in _docstrings(tree):
        body = _statements(parser.get_examples(text))
        if body:
            parts.append((re.sub(r"\W", "_", name), body))
    if not parts:
        return ""
    used = {
        node.id
        for _, body in parts
        for node in ast.walk(ast.parse("\n".join(body)))
        if isinstance(node, ast.Name)
    }
    module = ".".join(("retrograd", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
    own = sorted(used & _names(tree))
    imports = [*_imports(tree, used), *([f"from {module} import {', '.join(own)}"] if own else [])]
    return _program(parts, "\n".join(imports))


def programs() -> dict[str, str]:
    """The programs, by the name of a file for each."""
    parts = _statements(doctest.DocTestParser().get_examples(README.read_text(encoding="utf-8")))
    found = {"README.py": _program([("readme", parts)])}
    for path in sorted(PACKAGE.rglob("*.py")):
        if "_generated" not in path.parts and "codegen" not in path.parts:
            text = _own_examples(path)
            if text:
                found["_".join(path.relative_to(PACKAGE).with_suffix("").parts) + ".py"] = text
    return found
