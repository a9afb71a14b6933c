"""``python -m retrograd.distributed.run -n 4 train.py ...``: start a program in several processes on this machine.

With mpi4py installed it calls the ``mpiexec`` that came with it, else it starts the processes itself, for the backend
"gloo". In both cases programs find RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT in their environment.

When a process fails, the others hear of it through the group (Note [Failures] in monitor.py) and end with errors that
say so. Those that do not end by themselves are ended from here.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

__all__ = ["main"]


def _arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m retrograd.distributed.run", description="start a program in several processes on this machine"
    )
    parser.add_argument("-n", "--nproc-per-node", "--nproc_per_node", type=int, default=1, help="how many processes")
    parser.add_argument("--backend", choices=["mpi", "gloo"], help="what starts them; MPI's mpiexec if mpi4py is here")
    parser.add_argument("--standalone", action="store_true", help="torchrun's way to say: on this machine alone")
    parser.add_argument("--nnodes", choices=["1", "1:1"], default="1", help="for more machines, use mpiexec itself")
    parser.add_argument("--grace", type=float, default=60.0, help="seconds for the others to end when one has failed")
    parser.add_argument("-m", "--module", action="store_true", help="the program is the name of a module")
    parser.add_argument("program", help="the program, or the module")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    return parser.parse_args(given)


def mpiexec() -> str | None:
    """The mpiexec that belongs to this Python's MPI, or the one on the path."""
    beside = Path(sys.executable).parent / "mpiexec"
    return str(beside) if beside.exists() else shutil.which("mpiexec")


def mpi_command(count: int, worker: list[str]) -> list[str]:
    """How this machine's mpiexec is told to start `count` processes, on fewer processors if need be."""
    found = mpiexec()
    if found is None:
        raise SystemExit("there is no mpiexec: pip install 'retrograd[mpi]', or write --backend gloo")
    version = subprocess.run([found, "--version"], capture_output=True, text=True, timeout=60, check=False).stdout
    own = [] if "HYDRA" in version else ["--oversubscribe", "--bind-to", "none"]
    if own and hasattr(os, "geteuid") and os.geteuid() == 0:
        own.append("--allow-run-as-root")
    return [found, *own, "-n", str(count), *worker]


def _free_port() -> int:
    with closing(socket.socket()) as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def main(given: Sequence[str] | None = None) -> int:
    """Start the processes, and wait for them; the exit status."""
    asked = _arguments(given)
    backend = asked.backend or ("mpi" if find_spec("mpi4py") and mpiexec() else "gloo")
    count = asked.nproc_per_node
    with _Endings(count) as endings:
        environment = dict(os.environ, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(_free_port()),
                           RETROGRAD_LAUNCHER=str(endings.port))  # fmt: skip
        worker = [sys.executable, str(Path(__file__).with_name("run_worker.py")), *(["-m"] if asked.module else []),
                  asked.program, *asked.arguments]  # fmt: skip
        if backend == "mpi":
            commands = [(mpi_command(count, worker), environment)]
        else:
            ranks = [{"RANK": str(r), "LOCAL_RANK": str(r), "WORLD_SIZE": str(count)} for r in range(count)]
            commands = [(worker, environment | rank) for rank in ranks]
        started = [subprocess.Popen(command, env=its, start_new_session=True) for command, its in commands]
        try:
            return _wait(started, endings, asked.grace)
        finally:
            for process in started:
                _end(process)


def _wait(started: list[subprocess.Popen], endings: _Endings, grace: float) -> int:
    until = None
    while any(process.poll() is None for process in started):
        failed = endings.failed or any(process.poll() for process in started)
        if until is None and failed:
            until = time.monotonic() + grace
        if until is not None and (time.monotonic() > until or len(endings.codes) == endings.count):
            endings.end()
            until = float("inf") if len(endings.codes) == endings.count else time.monotonic() + 5
        time.sleep(0.02)
    for rank, code in endings.failed:
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"
        print(f"retrograd.distributed.run: rank {rank} {how}", file=sys.stderr)
    first = endings.failed[0][1] if endings.failed else next((p.returncode for p in started if p.returncode), 0)
    return 128 - first if first < 0 else first


def _end(process: subprocess.Popen) -> None:
    """End a process and those that it has started, which are its group."""
    for how, seconds in ((signal.SIGTERM, 5), (signal.SIGKILL, 5)):
        if process.poll() is not None:
            return
        try:
            os.killpg(process.pid, how)
            process.wait(seconds)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue


class _Endings:
    """How the program ended in each process: run_worker.py tells."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.codes: dict[int, int] = {}
        #: Those that did not end well, in their order.
        self.failed: list[tuple[int, int]] = []
        self._lines: list[socket.socket] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                line, _ = self._listening.accept()
            except OSError:
                return
            self._lines.append(line)
            threading.Thread(target=self._hear, args=(line,), daemon=True).start()

    def _hear(self, line: socket.socket) -> None:
        with line.makefile("r") as said:
            words = (said.readline(), said.readline())
        if not words[0]:
            return
        rank, code = int(words[0]), int(words[1] or 1)
        self.codes[rank] = code
        if code:
            self.failed.append((rank, code))

    def end(self) -> None:
        """Tell all that are left to end."""
        for line in self._lines:
            try:
                line.sendall(b"!")
            except OSError:
                pass

    def __enter__(self) -> _Endings:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._listening.close()
        for line in self._lines:
            line.close()


if __name__ == "__main__":
    raise SystemExit(main())
