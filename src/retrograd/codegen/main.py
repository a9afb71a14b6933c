"""The generator's entry point: ``generate(table_dir, out_dir, stubs_dir)``."""

from __future__ import annotations

import ast
from pathlib import Path

from .compiled import write_formulas, write_operators
from .dispatched import write_dispatched
from .formula import Names
from .functions import write_functions
from .jvps import write_jvps
from .nodes import write_nodes
from .public_places import read_sources
from .public_stubs import write_methods, write_stubs
from .records import write_records
from .stubs import read_composites, write_composite_stubs, write_function_stubs
from .table import load_table


def generate(table_dir: Path, out_dir: Path, stubs_dir: Path | None = None) -> list[Path]:
    """Read the tables in `table_dir` and write the generated modules into `out_dir`.

    With `stubs_dir`, the package itself, also the stubs of its public namespaces, each beside the module that it is of.
    """
    package = table_dir.parent
    names = Names(
        kernels=_top_level_names(sorted((package / "kernels").glob("*.py"))),
        ops=_top_level_names(
            [*sorted((package / "ops" / "composite").glob("*.py")), *sorted((package / "ops").glob("*factories.py"))]
        ),
        helpers=_top_level_names(sorted((table_dir / "formulas").glob("*.py"))),
    )
    entries = load_table(sorted(table_dir.glob("*.yaml")), names)
    composites = read_composites(sorted((package / "ops" / "composite").glob("*.py")))
    names.ops |= {entry.name for entry in entries}
    sources = read_sources(package, entries)
    out_dir.mkdir(parents=True, exist_ok=True)
    files = {
        "__init__.py": '"""Generated from derivatives/*.yaml. Do not edit."""\n',
        "nodes.py": write_nodes(entries, names),
        "functions.py": write_functions(entries),
        "dispatched.py": write_dispatched(entries),
        "jvps.py": write_jvps(entries, names),
        "compiled_operators.py": write_operators(entries),
        "compiled_formulas.py": write_formulas(entries, names),
        "records.py": write_records(entries),
        "functions.pyi": write_function_stubs(entries),
        "composites.pyi": write_composite_stubs(composites),
        "tensor_operators.pyi": write_methods(sources),
    }
    written = _write(out_dir, files)
    if stubs_dir is not None:
        stale = {path for path in stubs_dir.rglob("*.pyi") if out_dir not in path.parents}
        written += (stubs := _write(stubs_dir, write_stubs(package, sources)))
        for path in stale.difference(stubs):
            path.unlink()
    return written


def _write(directory: Path, files: dict[str, str]) -> list[Path]:
    """Write what has changed."""
    paths = []
    for name, text in files.items():
        path = directory / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        paths.append(path)
    return paths


def _top_level_names(paths: list[Path]) -> set[str]:
    """The public names that modules define, read without importing them."""
    names: set[str] = set()
    for path in paths:
        if not path.exists():
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef):
                names.add(node.name)
            elif isinstance(node, (ast.Assign, ast.AnnAssign)):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names |= {t.id for target in targets for t in ast.walk(target) if isinstance(t, ast.Name)}
    return {n for n in names if not n.startswith("_")}
