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

@pytest.mark.xfail(strict=True)
@pytest.mark.parametrize("n", range(12))
def test_none_passes(n):
    print("ran", n)
    assert n < 0
'''

OUTCOMES = '''
import pytest

@pytest.mark.parametrize("n", range(12))
def test_outcomes(n):
    if n == 3:
        pytest.xfail("not yet")
    if n == 8:
        pytest.exit("enough", returncode=7)
'''


def run(folder: Path, *arguments: str, text: str = CASES) -> str:
    (folder / "test_cases.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-p", "bundles", "-rfs", *arguments]
    # (With CI in the environment, pytest says everything twice.)
    environment = {name: text for name, text in os.environ.items() if not name.startswith(("PYTEST", "CI", "BUILD"))}
    environment["PYTHONPATH"] = str(Path(__file__).parent)
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True).stdout


def test_every_case_runs_and_each_failure_is_named(tmp_path: Path) -> None:
    output = run(tmp_path, "-s")
    assert len(re.findall(r"ran \d+", output)) == 120 + 20 + 31 + 3 + 12
    named = re.findall(r"^--- test_cases.py::test_many\[(\d+)\]$", output, re.MULTILINE)
    assert named == ["3", "53", "103"] and output.count("AssertionError: threes") >= 3
    # Three bundles of `test_many`, one of the plain cases of `test_with_a_mark`, and all others one by one.
    assert re.search(r"6 failed, 21 passed, 13 xfailed", output), output
    assert "150 cases ran in bundles, of which 1 were skipped\n  1: no sevens" in output


def test_one_case_alone(tmp_path: Path) -> None:
    assert "1 failed in" in run(tmp_path, "test_cases.py::test_many[53]")
    assert "1 skipped in" in run(tmp_path, "test_cases.py::test_many[7]")


def test_each_case_by_itself(tmp_path: Path) -> None:
    assert "6 failed, 166 passed, 1 skipped, 13 xfailed" in run(tmp_path, "--each")


def test_it_stops_as_it_is_told(tmp_path: Path) -> None:
    output = run(tmp_path, "-s", "-x")
    assert "1 failed in" in output and re.findall(r"ran (\d+)", output) == ["0", "1", "2", "3"]


def test_those_that_failed_alone(tmp_path: Path) -> None:
    run(tmp_path)
    assert "6 failed in" in (output := run(tmp_path, "--lf", "-s")), output
    assert sorted(re.findall(r"ran (\d+)", output), key=int) == ["3", "10", "11", "12", "53", "103"]
    mended = CASES.replace("n % 50 != 3", "n != 53")
    output = run(tmp_path, "-s", text=mended)
    output = run(tmp_path, "--lf", "-s", text=mended)
    assert sorted(re.findall(r"ran (\d+)", output), key=int) == ["10", "11", "12", "53"], output


def test_other_outcomes(tmp_path: Path) -> None:
    output = run(tmp_path, text=OUTCOMES)
    assert "Exit: enough" in output and "failed" not in output
    output = run(tmp_path, text=OUTCOMES.replace("n == 8", "n > 12"))
    assert "1 passed" in output and "of which 1 were skipped\n  1: not yet" in output
