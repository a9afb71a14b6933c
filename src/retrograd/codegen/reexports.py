"""What a package's ``__init__.py`` offers, for its stub: the names that it imports, written so that a type checker
takes them for public, and without its ``__getattr__``, which would pass for a promise of every name.
"""

from __future__ import annotations

import ast
from pathlib import Path


def read_reexports(path: Path, package: str) -> dict[str, str]:
    """name -> the import that brings it (``*`` and a module for those that bring all), as absolute imports.

    Imports under ``if TYPE_CHECKING`` count: a package that imports its parts when they are first used lists them so.
    """
    found: dict[str, str] = {}
    for node in _statements(ast.parse(path.read_text(encoding="utf-8")).body):
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        base = ".".join([*package.split(".")[: len(package.split(".")) + 1 - node.level], *filter(None, [node.module])])
        for alias in node.names:
            name = alias.asname or alias.name
            if alias.name == "*":
                found[f"* {base}"] = f"from {base} import *"
            elif not name.startswith("_"):
                # A package asks itself for its parts in the short form: it is not there yet.
                found[name] = f"from {'.' if base == package else base} import {alias.name} as {name}"
    return found


def _statements(body: list[ast.stmt]) -> list[ast.stmt]:
    found: list[ast.stmt] = []
    for node in body:
        checking = isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        found += node.body if isinstance(node, ast.If) and checking else [node]
    return found


def write_reexports(imports: dict[str, str]) -> str:
    """The imports, in order."""
    return "".join(f"{line}\n" for line in imports.values())
