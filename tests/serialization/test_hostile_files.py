"""Files that are broken, or written to do harm: see `hostile_files.py`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

import retrograd


@pytest.fixture(scope="module", params=["quick", pytest.param("thorough", marks=pytest.mark.slow)])
def report(request: pytest.FixtureRequest) -> Any:
    """What happened when they were all loaded, in a process of its own."""
    package = os.path.dirname(os.path.dirname(retrograd.__file__))
    environment = {**os.environ, "PYTHONPATH": package, "PYTHONHASHSEED": "0"}
    script = os.path.join(os.path.dirname(__file__), "hostile_files.py")
    done = subprocess.run(
        [sys.executable, script, request.param], capture_output=True, text=True, timeout=600, env=environment
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_there_are_enough_of_them(report: Any) -> None:
    assert report["files"]["crafted"] >= 1000
    assert report["files"]["mutated"] >= 6000
    assert report["files"]["disguised"] >= 7000


def test_they_load_right_or_are_refused_in_one_way(report: Any) -> None:
    assert report["problems"] == []
    assert report["refused"]["crafted"] == report["files"]["crafted"]
    # Of a zip archive much is padding, dates and names of what is optional, two fifths of all changed bytes: what loads
    # was compared with the good file (a difference is a problem).
    assert report["refused"]["mutated"] >= 0.55 * report["files"]["mutated"]
    # With checksums that are right some are good files, so that more than the first instructions were tried.
    assert report["loaded"]["disguised"] > 100 and report["loaded"]["instructions"] > 30


def test_none_runs_code(report: Any) -> None:
    # A tensor with a conj bit sets its class, and accidents.py asks an error for its frame, to tell whose an error is;
    # nothing else happens that an audit hook sees.
    asked = {f"object.__getattr__ {name}" for name in ("tb_frame", "f_code")}
    assert set(report["events"]) <= {"object.__setattr__", "builtins.id"} | asked
    assert "os.system" in report["canary"]  # the hook would have seen it


def test_none_takes_time_or_memory(report: Any) -> None:
    assert report["slowest"] < 10  # seconds, where one of a quintillion steps would not end
    assert report["memory"] < 300  # MiB, where one of them asks for a terabyte
