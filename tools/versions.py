"""Runs the tests on every Python that pyproject.toml names and this machine has: ``make test-versions``.

pyproject.toml says what is supported, and is read here: the classifiers name the versions of Python (free-threaded
ones too), the dependencies the oldest NumPy, SciPy and ml_dtypes. Each Python gets an environment of its own with the
newest of these packages; the oldest Python gets a second one with the oldest packages.

Pythons are looked for on PATH, among pyenv's, and where `tools/debian-python` unpacks them (`.venvs`). What cannot be
found is said and does not fail; a test that fails does.

    make test-versions                            all of them
    make test-versions VERSIONS='3.14 3.14t'      these
    make test-versions VERSIONS='oldest newest'   the oldest Python with the oldest packages, the newest with the newest
    make test-versions VERSIONS=3.14 ARGS='tests/autograd -x'       some of the tests

With PIP_PRE=1 in the environment, pre-releases of the packages count as well.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / ".venvs"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PACKAGES = ("numpy", "scipy", "ml_dtypes")


def pythons() -> list[str]:
    """The supported versions of Python, oldest first, and then free-threaded builds, with a ``t``."""
    classifiers = "\n".join(PROJECT["classifiers"])
    versions = re.findall(r"^Programming Language :: Python :: (3\.\d+)$", classifiers, re.MULTILINE)
    versions.sort(key=lambda version: int(version[2:]))
    if "Free Threading" in classifiers:
        versions += [f"{version}t" for version in versions if int(version[2:]) >= 13]
    return versions


def oldest_packages() -> list[str]:
    """What pip is told in order to install the oldest packages that the dependencies allow."""
    return [requirement.replace(">=", "==") for requirement in PROJECT["dependencies"]]


def about(python: str) -> str | None:
    """The version of an interpreter, with a ``t`` if it is free-threaded; None if it does not run."""
    code = "import sys, sysconfig as s; print(*sys.version_info[:2], s.get_config_var('Py_GIL_DISABLED') or 0)"
    result = subprocess.run([python, "-c", code], capture_output=True, text=True)
    if result.returncode != 0:
        return None
    major, minor, free_threaded = result.stdout.split()
    return f"{major}.{minor}" + "t" * int(free_threaded)


def find(version: str) -> str | None:
    """An interpreter of that version."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for folder in (*os.get_exec_path(), *pyenv.glob("versions/*/bin"), *PLACE.glob("python*/**/bin")):
        python = shutil.which(f"python{version}", path=str(folder))
        if python and about(python) == version:
            return python
    return None


def count(output: str, word: str) -> int:
    """How many tests passed, failed …, by the last lines of pytest's runs."""
    ends = re.findall(r"^.*\d+ \w+.* in [\d.]+s\b.*$", output, re.MULTILINE)
    return sum(int(number) for end in ends for number in re.findall(rf"(\d+) {word}", end))


def run(name: str, version: str, python: str, arguments: list[str]) -> list[str]:
    """Runs the tests in the environment of that name; a row of the table, whose last column is "ok" or "FAILED"."""
    venv = PLACE / name
    # Wheels before anything newer that would have to be compiled. Without PYTHON_GIL=0, a free-threaded Python takes
    # the lock as soon as some test imports a library that has not said that it can do without it.
    environment = os.environ | {"PIP_PREFER_BINARY": "1"} | ({"PYTHON_GIL": "0"} if version.endswith("t") else {})
    if name.endswith("-oldest"):
        PLACE.mkdir(exist_ok=True)
        constraints = PLACE / "oldest.txt"
        constraints.write_text("\n".join(oldest_packages()))
        environment["PIP_CONSTRAINT"] = str(constraints)
    print(f"\n--- {name}: {python}", flush=True)
    start = time.monotonic()
    command = ["make", "test", f"PYTHON={python}", f"VENV={venv.relative_to(ROOT)}", f"ARGS={' '.join(arguments)}"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=pipe, stderr=subprocess.STDOUT, text=True)
    lines = []
    for line in process.stdout:  # type: ignore[union-attr]
        lines.append(line)
        if not line.startswith("SKIPPED"):
            print(line, end="", flush=True)
    failed = process.wait() != 0
    code = f"import importlib.metadata as m, platform as p; print(p.python_version(), *map(m.version, {PACKAGES}))"
    shown = subprocess.run([venv / "bin/python", "-c", code], capture_output=True, text=True)
    versions = shown.stdout.split() if shown.returncode == 0 else ["?"] * 4
    output = "".join(lines)
    counts = [str(count(output, word)) for word in ("passed", "failed", "skipped")]
    # Most cases run by the dozen in one test: tests/bundles.py.
    counts.append(str(sum(map(int, re.findall(r"^(\d+) cases ran in bundles", output, re.MULTILINE)))))
    return [name, *versions, *counts, f"{time.monotonic() - start:.0f} s", "FAILED" if failed else "ok"]


def main(wanted: list[str], arguments: list[str]) -> int:
    supported = pythons()
    oldest, newest = supported[0], [version for version in supported if not version.endswith("t")][-1]
    words = {"oldest": f"{oldest}-oldest", "newest": newest}
    rows = [["", "Python", *PACKAGES, "passed", "failed", "skipped", "cases", "time", ""]]
    for name in [words.get(word, word) for word in wanted] or [words["oldest"], *supported]:
        version = name.removesuffix("-oldest")
        python = find(version)
        if python is None:
            print(f"\n!!! Python {version} is not on this machine: NOT TESTED", flush=True)
        rows.append(run(name, version, python, arguments) if python else [name, *["-"] * 9, "NOT TESTED"])
    widths = [max(map(len, column)) for column in zip(*rows)]
    print()
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
    return any(row[-1] == "FAILED" for row in rows)


if __name__ == "__main__":
    sys.exit(main(os.environ.get("VERSIONS", "").split(), sys.argv[1:]))
