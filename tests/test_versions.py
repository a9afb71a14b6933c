"""What pyproject.toml says about versions, and what the matrix of versions (tools/versions.py) makes of it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def versions():
    spec = importlib.util.spec_from_file_location("versions", ROOT / "tools" / "versions.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def numbers(version):
    return tuple(map(int, re.findall(r"\d+", version)))


def test_the_oldest_python_that_is_tested_is_the_oldest_that_is_allowed(versions):
    assert versions.PROJECT["requires-python"] == ">=" + versions.pythons()[0]


def test_no_version_of_python_is_left_out(versions):
    """From the oldest to the newest, each once, and the free-threaded builds of those that have one."""
    plain = [version for version in versions.pythons() if not version.endswith("t")]
    assert plain == [f"3.{minor}" for minor in range(11, 11 + len(plain))] and "3.14" in plain
    assert [version[:-1] for version in versions.pythons() if version.endswith("t")] == plain[2:]


def test_the_matrix_installs_the_oldest_packages_that_are_allowed(versions):
    pinned = dict(requirement.split("==") for requirement in versions.oldest_packages())
    assert set(pinned) == set(versions.PACKAGES)
    assert {f"{name}>={version}" for name, version in pinned.items()} == set(versions.PROJECT["dependencies"])


def test_what_these_tests_run_on_is_allowed(versions):
    assert sys.version_info >= numbers(versions.PROJECT["requires-python"])
    for requirement in versions.PROJECT["dependencies"]:
        name, oldest = requirement.split(">=")
        assert numbers(importlib.metadata.version(name)) >= numbers(oldest)


def test_the_readme_names_these_versions(versions):
    readme = " ".join((ROOT / "README.md").read_text().split())
    plain = [version for version in versions.pythons() if not version.endswith("t")]
    free = [version[:-1] for version in versions.pythons() if version.endswith("t")]
    numpy, scipy, ml_dtypes = (requirement.split(">=")[1] for requirement in versions.PROJECT["dependencies"])
    assert f"Python {plain[0]} to {plain[-1]} and the free-threaded {' and '.join(free)}" in readme
    assert f"NumPy from {numpy}, SciPy from {scipy} and ml_dtypes from {ml_dtypes} on" in readme


def test_results_are_counted_over_both_runs_of_pytest(versions):
    output = "3 failed, 40 passed, 5 skipped in 1.25s\nnoise: 7 passed\n2 passed, 1 warning in 61.00s (0:01:01)\n"
    assert [versions.count(output, word) for word in ("passed", "failed", "skipped")] == [42, 3, 5]
