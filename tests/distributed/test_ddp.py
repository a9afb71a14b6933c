"""DistributedDataParallel against one process on the joined batch, and beside torch's."""

from __future__ import annotations

import json
import math
import signal
import sys
from pathlib import Path

import pytest

from distributed.launch import PROGRAMS, launched, needs_mpi, passes, run


@pytest.mark.parametrize("count", [pytest.param(2, marks=needs_mpi), pytest.param(4, marks=needs_mpi)])
def test_by_mpi(count: int) -> None:
    passes(count, "mpi", "check_ddp.py")


def test_by_sockets() -> None:
    passes(2, "gloo", "check_ddp.py", "test_models", "test_unused", "test_uneven_inputs")


def _numbers(found: object) -> list[float | None]:
    flat: list[float | None] = []
    waiting = [found]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
        else:
            flat.append(one)  # type: ignore[arg-type]
    return flat


#: What torch's processes now and then end with on a busy machine, when the program is over and the interpreter gone: a
#: thread of its backend is still there. The numbers are in their file by then.
_ABORTS_AT_EXIT = "terminate called without an active exception\n"


@pytest.mark.parity
def test_the_same_script_on_torch(tmp_path: Path) -> None:
    """Its import is all that changes."""
    pytest.importorskip("torch")
    text = (PROGRAMS / "same_script.py").read_text(encoding="utf-8")
    ours = tmp_path / "ours.py"
    lines = text.splitlines(keepends=True)
    for number, line in enumerate(lines):
        if line.startswith(("import torch", "from torch")):
            lines[number] = line.replace("import torch\n", "import retrograd as torch\n").replace(
                " torch.", " retrograd."
            )
    assert sum(one != other for one, other in zip(lines, text.splitlines(keepends=True), strict=True)) == 4
    ours.write_text("".join(lines))
    found = {}
    for name, script in (("torch", PROGRAMS / "same_script.py"), ("retrograd", ours)):
        answers = tmp_path / f"{name}.json"
        command = [sys.executable, "-m", "retrograd.distributed.run", "--backend", "gloo", "-n", "2", str(script)]
        status, output, _ = run([*command, str(answers)], 150)
        if name == "torch" and _ABORTS_AT_EXIT in output:
            assert status == 128 + signal.SIGABRT, output[-4000:]
        else:
            assert status == 0, output[-4000:]
        found[name] = json.loads(answers.read_text())
    assert found["torch"].keys() == found["retrograd"].keys() and len(found["torch"]) == 20
    for key, expected in found["torch"].items():
        one, other = _numbers(found["retrograd"][key]), _numbers(expected)
        assert len(one) == len(other), key
        # A gradient in the middle between two numbers of 16 bits becomes the one here, the other there.
        within = 1e-4 if key.endswith(" half") else 1e-6
        for a, b in zip(one, other, strict=True):
            assert (a is None) == (b is None), key
            assert a is None or b is None or math.isclose(a, b, rel_tol=within, abs_tol=1e-9), (key, a, b)


@pytest.mark.parametrize("backend", ["gloo", pytest.param("mpi", marks=needs_mpi)])
def test_graphs_that_differ(backend: str) -> None:
    """All processes end, with errors that name the parameters and the rank whose graph is another."""
    status, output, _ = launched(2, backend, "failing.py", "graph differs", "1")
    assert status != 0
    assert "On rank 1 backward() did not reach: second.weight, second.bias" in output
    assert "[Rank 0]" in output and "rank 1 raised RuntimeError" in output


@pytest.mark.parametrize("backend", [pytest.param("mpi", marks=needs_mpi)])
def test_a_graph_that_differs_at_the_end(backend: str) -> None:
    status, output, _ = launched(2, backend, "failing.py", "graph ends", "1")
    assert status != 0
    assert "[Rank 0]" in output and "rank 1 has left" in output and "has not reached second.weight" in output
