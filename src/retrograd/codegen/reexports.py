"""What a package's ``__init__.py`` offers, for its stub: the names that it imports, written so that a type checker
takes them for public, and without its ``__getattr__``, which would pass for a promise of every name.
"""

from __future__ import annotations

import ast
from pathlib import Path


def read_reexports(path: Path, package: str) -> dict[str, str]:
    """name -> the import that brings it (``*`` and a module for those that bring all), as absolute imports.

    Imports under ``if TYPE_CHECKING`` count, and so do ``_FILES`` and ``_ON_DEMAND``: by one of them a package says
    what it imports when it is first asked for.
    """
    found: dict[str, str] = {}
    for node in _statements(ast.parse(path.read_text(encoding="utf-8")).body):
        assigned = getattr(node.targets[0], "id", "") if isinstance(node, ast.Assign) else ""
        if isinstance(node, ast.Assign) and assigned == "_FILES":
            found |= _late(ast.literal_eval(node.value), path.parent, package)
        elif isinstance(node, ast.Assign) and assigned == "_ON_DEMAND":
            parts = [name for name in ast.literal_eval(node.value) if _is_part(path.parent, name)]
            found |= {name: f"from . import {name} as {name}" for name in parts}
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            found[node.name] = _declaration(node)
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        base = ".".join([*package.split(".")[: len(package.split(".")) + 1 - node.level], *filter(None, [node.module])])
        part = node.module if node.level == 1 and node.module and "." not in node.module else ""
        if part and not part.startswith("_"):  # what has been imported is an attribute of its package
            found.setdefault(part, f"from . import {part} as {part}")
        for alias in node.names:
            name = alias.asname or alias.name
            if alias.name in ("*", "__all__"):
                found[f"* {base}"] = f"from {base} import *"
            elif not name.startswith("_"):
                # A package asks itself for its parts in the short form: it is not there yet.
                found[name] = f"from {'.' if base == package else base} import {alias.name} as {name}"
    return found


def _is_part(directory: Path, name: str) -> bool:
    return name.isidentifier() and not name.startswith("_") and (
        (directory / f"{name}.py").exists() or (directory / name).is_dir()
    )


def _late(files: dict[str, str], directory: Path, package: str) -> dict[str, str]:
    """What ``_FILES`` says: which names a file has (``{"linear": "Bilinear Linear"}``) or where a name is."""
    found = {}
    for key, value in files.items():
        if _is_part(directory, key):
            found[key] = f"from . import {key} as {key}"
            names, file = value.split(), key
        else:
            names, file = [key], value
        found |= {name: f"from {package}.{file} import {name} as {name}" for name in names if name != file}
    return found


def _declaration(node: ast.FunctionDef) -> str:
    """A function that is defined in the package's own file, whose types are Python's."""
    text = ast.unparse(ast.FunctionDef(node.name, node.args, [ast.Expr(ast.Constant(...))], [], node.returns, lineno=0))
    return f"from typing import Any as _Any\n{text}"


def _statements(body: list[ast.stmt]) -> list[ast.stmt]:
    found: list[ast.stmt] = []
    for node in body:
        checking = isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "_TYPE_CHECKING")
        found += node.body if isinstance(node, ast.If) and checking else [node]
    return found


def write_reexports(imports: dict[str, str], listed: bool = False) -> str:
    """The imports, in order; with `listed`, ``__all__`` too, of what is not a file."""
    names = [name for name, line in imports.items() if not line.startswith("from . ")]
    return "".join(f"{line}\n" for line in imports.values()) + f"__all__ = {names!r}\n" * listed
