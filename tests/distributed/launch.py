"""Starting the programs of this folder in several processes, with a time limit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from retrograd.distributed.run import mpi_command, mpiexec

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).parent / "programs"
HAS_MPI = find_spec("mpi4py") is not None and mpiexec() is not None

needs_mpi = [pytest.mark.mpi, pytest.mark.skipif(not HAS_MPI, reason="mpi4py and mpiexec are not installed")]


def environment(**more: str) -> dict[str, str]:
    """One thread for each process: there are more of them than processors."""
    paths = [str(ROOT / "src"), str(PROGRAMS), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(paths), **more,
    }  # fmt: skip


def run(command: list[str], seconds: float, **more: str) -> tuple[int, str, float]:
    """Exit status, output and time of a command, which is ended with all that it has started when its time is up."""
    began = time.monotonic()
    process = subprocess.Popen(
        command, env=environment(**more), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        pytest.fail(f"{' '.join(command)} took more than {seconds} s:\n{output[-3000:]}")
    return process.returncode, output, time.monotonic() - began


def launched(
    count: int, backend: str, program: str, *arguments: str, seconds: float = 120, grace: float = 15
) -> tuple[int, str, float]:
    """A program started by our launcher."""
    command = [sys.executable, "-m", "retrograd.distributed.run", "--backend", backend, "-n", str(count)]
    return run([*command, "--grace", str(grace), str(PROGRAMS / program), *arguments], seconds)


def passes(count: int, backend: str, program: str, *arguments: str, seconds: float = 150) -> str:
    """Run a program that checks itself, under mpiexec itself or, for "gloo", by our launcher; its output."""
    if backend == "mpi":
        status, output, _ = run(mpi_command(count, [sys.executable, str(PROGRAMS / program), *arguments]), seconds)
    else:
        status, output, _ = launched(count, backend, program, *arguments, seconds=seconds)
    assert status == 0, output[-5000:]
    assert output.count("all is well") == count, output[-5000:]
    return output
