"""What run.py starts for each rank: a process that starts the program in another one, and outlives it.

If the program is killed, this one is still there: MPI's launcher, which would end all others at once, does not notice
before they have said what happened. It imports nothing but Python's own modules, since it does nothing but wait.
"""

from __future__ import annotations

import ctypes
import os
import runpy
import signal
import socket
import sys
import threading
import time

_RANKS = ("RANK", "PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")
_SIZES = ("WORLD_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE")
_LOCAL_RANKS = ("LOCAL_RANK", "MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK")
_DIE_WITH_PARENT = 1  # Linux's PR_SET_PDEATHSIG


def _first(names: tuple[str, ...], default: str) -> str:
    return next((os.environ[name] for name in names if name in os.environ), default)


def run_program(arguments: list[str]) -> None:
    """Be the program."""
    as_module = arguments[:1] == ["-m"]
    sys.argv = arguments[as_module:]
    if as_module:
        sys.path[0] = os.getcwd()
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
        runpy.run_path(sys.argv[0], run_name="__main__")


def watch(child: int, line: socket.socket) -> int:
    """Wait for the program, tell the launcher how it ended, and stay until all have; the exit status."""
    told_to_end = threading.Event()

    def listen() -> None:
        try:
            line.recv(1)
        except OSError:
            pass
        told_to_end.set()

    threading.Thread(target=listen, daemon=True).start()
    ended = 0
    kill_at: float | None = None
    while not ended:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            break
        if told_to_end.is_set():
            os.kill(child, signal.SIGTERM if kill_at is None or time.monotonic() < kill_at else signal.SIGKILL)
            kill_at = kill_at or time.monotonic() + 3
        told_to_end.wait(0.02) if kill_at is None else time.sleep(0.2)
    code = os.waitstatus_to_exitcode(status)
    try:
        line.sendall(f"{code}\n".encode())
    except OSError:
        pass
    if code:
        told_to_end.wait()
    return 128 - code if code < 0 else code


def main() -> None:
    rank = _first(_RANKS, "0")
    os.environ.update(RANK=rank, WORLD_SIZE=_first(_SIZES, "1"), LOCAL_RANK=_first(_LOCAL_RANKS, rank))
    line = socket.create_connection(("127.0.0.1", int(os.environ.pop("RETROGRAD_LAUNCHER"))))
    line.sendall(f"{rank}\n".encode())
    supervisor = os.getpid()
    child = os.fork()
    if child == 0:
        line.close()
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        if os.getppid() == supervisor:
            run_program(sys.argv[1:])
        return
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda given, frame: os.kill(child, given))
    sys.exit(watch(child, line))


if __name__ == "__main__":
    main()
