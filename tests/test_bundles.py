"""Bundles of cases lose nothing: every case runs, each that fails is named, and what is no plain case is left alone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

CASES = '''
import pytest

@pytest.mark.parametrize("n", range(120))
def test_many(n):
    print("ran", n)
    if n == 7:
        pytest.skip("no sevens")
    assert n % 50 != 3, "threes"

@pytest.fixture
def ten():
    return 10

@pytest.mark.parametrize("n", range(20))
def test_with_a_fixture(n, ten):
    print("ran", n)
    assert n < ten or n > 12

@pytest.mark.parametrize("n", [*range(30), pytest.param(30, marks=pytest.mark.xfail)])
def test_with_a_mark(n):
    print("ran", n)
    assert n < 30

@pytest.mark.parametrize("n", range(3))
def test_few(n):
    print("ran", n)
'''


def run(folder: Path, *arguments: str) -> str:
    (folder / "test_cases.py").write_text(CASES)
    command = [sys.executable, "-m", "pytest", "-p", "bundles", "-p", "no:cacheprovider", "-rfs", *arguments]
    # (With CI in the environment, pytest says everything twice.)
    environment = {name: text for name, text in os.environ.items() if not name.startswith(("PYTEST", "CI", "BUILD"))}
    environment["PYTHONPATH"] = str(Path(__file__).parent)
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True).stdout


def test_every_case_runs_and_each_failure_is_named(tmp_path: Path) -> None:
    output = run(tmp_path, "-s")
    assert len(re.findall(r"ran \d+", output)) == 120 + 20 + 31 + 3
    named = re.findall(r"^--- test_cases.py::test_many\[(\d+)\]$", output, re.MULTILINE)
    assert named == ["3", "53", "103"] and output.count("AssertionError: threes") >= 3
    # Three bundles of `test_many`, one of the plain cases of `test_with_a_mark`, and all others one by one.
    assert re.search(r"6 failed, 21 passed, 1 xfailed", output), output
    assert "150 cases ran in bundles, of which 1 were skipped\n  1: no sevens" in output


def test_one_case_alone(tmp_path: Path) -> None:
    assert "1 failed in" in run(tmp_path, "test_cases.py::test_many[53]")
    assert "1 skipped in" in run(tmp_path, "test_cases.py::test_many[7]")


def test_each_case_by_itself(tmp_path: Path) -> None:
    assert "6 failed, 166 passed, 1 skipped, 1 xfailed" in run(tmp_path, "--each")


def test_it_stops_as_it_is_told(tmp_path: Path) -> None:
    output = run(tmp_path, "-s", "-x")
    assert "1 failed in" in output and re.findall(r"ran (\d+)", output) == ["0", "1", "2", "3"]
