"""The layers of docs/ARCHITECTURE.md hold: its table is this test's table."""

from __future__ import annotations

import ast
import functools
import re
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "retrograd"
#: Imports inside functions that the whole package may have.
MOST_DEFERRED = 40


class Import(NamedTuple):
    """One import of one module of the package by another."""

    importer: str
    imported: str
    line: int
    deferred: bool
    reason: str


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def read_layers() -> list[list[str]]:
    """The modules of each layer, from the table in the documentation."""
    text = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = text.partition("| layer | modules |")[2].partition("\n\n")[0]
    return [re.findall(r"`([\w.]+)`", row.split("|")[2]) for row in table.splitlines()[2:]]


def read_modules() -> dict[str, Path]:
    """Every module. (The generator stands alone.)"""
    paths = [p for p in sorted(PACKAGE.rglob("*.py")) if "codegen" not in p.parts]
    return {module_name(path): path for path in paths}


@functools.cache
def imports() -> list[Import]:
    """Every import among the modules but those for type checkers: read when a test asks, not wherever tests are
    collected."""
    found = []
    for name, path in MODULES.items():
        source = path.read_text(encoding="utf-8")
        lines = source.splitlines()
        package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
        waiting: list[tuple[ast.AST, bool]] = [(ast.parse(source), False)]
        while waiting:
            node, deferred = waiting.pop()
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                waiting += [(child, deferred) for child in node.orelse]
                continue
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                reason = lines[node.end_lineno - 1].partition("#")[2].strip()
                for target in targets(node, package, MODULES):
                    found.append(Import(name, target, node.lineno, deferred, reason))
            inside = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            waiting += [(child, deferred or inside) for child in ast.iter_child_nodes(node)]
    return found


def targets(node: ast.Import | ast.ImportFrom, package: list[str], modules: dict[str, Path]) -> set[str]:
    """The modules of the package that a statement imports."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    else:
        base = package[: len(package) - node.level + 1] if node.level else []
        start = ".".join([*base, *([node.module] if node.module else [])])
        names = [f"{start}.{alias.name}" if f"{start}.{alias.name}" in modules else start for alias in node.names]
    return {name for name in names if name in modules}


LAYERS = read_layers()
MODULES = read_modules()


@functools.cache
def layer(module: str) -> int:
    """The number of a module's layer: that of the longest name in the table that it falls under."""
    if module == "retrograd":
        return len(LAYERS) - 1
    inner = module.removeprefix("retrograd.")
    fits = [
        (len(name), number)
        for number, names in enumerate(LAYERS)
        for name in names
        if inner == name or inner.startswith(name + ".")
    ]
    assert fits, f"{module} is in no layer of docs/ARCHITECTURE.md"
    return max(fits)[1]


def test_the_table_is_read() -> None:
    assert len(LAYERS) >= 8 and LAYERS[0] == ["core"] and len(imports()) > 500
    for names in LAYERS[:-1]:
        for name in names:
            assert any(m == f"retrograd.{name}" or m.startswith(f"retrograd.{name}.") for m in MODULES), name


@pytest.mark.parametrize("module", sorted(MODULES))
def test_imports_go_down(module: str) -> None:
    wrong = [
        f"line {i.line}: {i.imported}"
        for i in imports()
        if i.importer == module and not i.deferred and layer(i.imported) > layer(module)
    ]
    assert not wrong, f"{module} imports from a layer above its own: {wrong}"


def test_no_cycle() -> None:
    edges = defaultdict(set)
    for i in imports():
        if not i.deferred:
            edges[i.importer].add(i.imported)
    remaining = set(MODULES)
    while True:  # take away what imports nothing that remains
        done = {m for m in remaining if not (edges[m] & remaining) - {m}}
        if not done:
            break
        remaining -= done
    while True:  # and what nothing that remains imports: a cycle is left
        done = {m for m in remaining if not any(m in edges[other] for other in remaining - {m})}
        if not done:
            break
        remaining -= done
    assert not remaining, f"these import each other: {sorted(remaining)}"


def test_deferred_imports_are_few_and_have_reasons() -> None:
    deferred = {(i.importer, i.line): i for i in imports() if i.deferred}
    bare = [f"{i.importer}:{i.line} ({i.imported})" for i in deferred.values() if not i.reason]
    assert not bare, f"say why, in a comment on the line: {bare}"
    assert len(deferred) <= MOST_DEFERRED, f"{len(deferred)}: {sorted(deferred)}"
