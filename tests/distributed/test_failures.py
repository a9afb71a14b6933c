"""A process that dies, raises or hangs ends the others, with errors that say whose fault it was and what it was
doing.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from distributed.launch import launched, needs_mpi

MPI = pytest.param("mpi", marks=needs_mpi)
#: What processes take to start and to say goodbye, on a busy machine, besides the timeout of the programs, 3 s.
MOST = 60


def failing(count: int, backend: str, what: str, who: int, grace: float = 15) -> str:
    status, output, seconds = launched(count, backend, "failing.py", what, str(who), seconds=MOST, grace=grace)
    assert status != 0, output
    assert seconds < MOST
    return output


def others(output: str, count: int, who: int, words: str) -> None:
    """All other processes say so."""
    for rank in set(range(count)) - {who}:
        assert re.search(rf"\[Rank {rank}\] .*{words}", output), output[-4000:]


@pytest.mark.parametrize(("backend", "who"), [("gloo", 1), pytest.param("mpi", 1, marks=needs_mpi),
                                              pytest.param("mpi", 0, marks=needs_mpi)])  # fmt: skip
def test_a_rank_that_dies(backend: str, who: int) -> None:
    output = failing(3, backend, "dies", who)
    others(output, 3, who, rf"all_reduce number 5 cannot be finished: rank {who} died.*all_reduce number 4")
    assert f"rank {who} was killed by SIGKILL" in output


@pytest.mark.parametrize("backend", [MPI])
def test_a_rank_that_raises(backend: str) -> None:
    output = failing(3, backend, "raises", 1)
    others(output, 3, 1, r"rank 1 raised ValueError at failing.py:\d+: something of its own.*all_reduce number 4")


@pytest.mark.parametrize("backend", [MPI])
def test_a_rank_that_hangs(backend: str) -> None:
    output = failing(3, backend, "hangs", 2)
    others(output, 3, 2, r"Timed out after waiting 3 s \(3000ms\) in all_reduce number 5. rank 2 is computing")
    assert re.search(r"\[Rank 2\] ended, since rank \d raised DistBackendError.*This process did not notice", output)


@pytest.mark.parametrize("backend", [MPI])
def test_a_rank_that_is_stopped(backend: str) -> None:
    output = failing(2, backend, "stops", 1, grace=4)
    others(output, 2, 1, r"Timed out .* rank 1 is .*not heard of for")


@pytest.mark.parametrize("backend", [MPI])
def test_a_rank_that_ends(backend: str) -> None:
    output = failing(2, backend, "ends", 1)
    others(output, 2, 1, r"all_reduce number 5 cannot be finished: rank 1 has left \(its program has ended\)")


@pytest.mark.parametrize("backend", [MPI])
def test_a_rank_that_never_starts(backend: str) -> None:
    output = failing(2, backend, "never starts", 1, grace=2)
    assert "rank 1 ended with status 3" in output


@pytest.mark.parametrize("backend", [MPI])
def test_an_error_that_is_caught(backend: str) -> None:
    """A timeout is an exception like any other: a program may catch it."""
    _, output, _ = launched(2, backend, "failing.py", "is caught", "1", seconds=MOST)
    assert "rank 0 caught it" in output and "Traceback" not in output, output


@pytest.mark.parametrize("backend", [pytest.param("gloo", marks=pytest.mark.slow), MPI])
def test_resuming(backend: str, tmp_path: Path) -> None:
    """A checkpoint is whole or absent: killed while it writes the fourth, a program goes on from the third."""

    def losses(output: str) -> dict[int, str]:
        return {int(step): loss for step, loss in re.findall(r"step (\d+) loss (\S+)", output)}

    status, output, _ = launched(2, backend, "resuming.py", str(tmp_path / "whole"), "7", seconds=MOST)
    assert status == 0, output[-3000:]
    whole = losses(output)
    assert len(whole) == 7
    status, output, _ = launched(2, backend, "resuming.py", str(tmp_path / "cut"), "7", "kill", seconds=MOST)
    assert status != 0 and len(losses(output)) == 4
    assert re.search(r"\[Rank 1\] .*rank 0 died", output), output[-3000:]
    assert {path.suffix for path in (tmp_path / "cut").iterdir()} == {".pt", ".part"}
    status, output, _ = launched(2, backend, "resuming.py", str(tmp_path / "cut"), "7", seconds=MOST)
    assert status == 0 and losses(output) == {step: whole[step] for step in range(3, 7)}, output[-3000:]
