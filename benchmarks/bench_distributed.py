"""Data-parallel training measured: bytes on the wire, overlap of communication with backward, efficiency on two ranks.

    python benchmarks/bench_distributed.py [--ranks 2] [--rounds 15] [--width 1024]

starts itself under mpiexec. One thread for each process. Of each time the least of many rounds is taken, in which the
variants take turns, since other programs run on the machine as well. What the columns mean is said in
docs/DISTRIBUTED.md.
"""

from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import retrograd as torch
import retrograd.distributed as dist
from retrograd.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from retrograd.distributed.run import mpi_command
from retrograd.distributed.work import WorkFuture
from retrograd.nn.parallel import DistributedDataParallel as DDP


def model_of(width: int) -> Any:
    torch.manual_seed(0)
    layers = [layer for _ in range(6) for layer in (torch.nn.Linear(width, width), torch.nn.ReLU())]
    return torch.nn.Sequential(*layers, torch.nn.Linear(width, 10))


def after_backward(state: Any, bucket: Any) -> Any:
    """A communication hook that does not overlap: it starts when the pass is over and somebody waits."""

    def start() -> Any:
        dist.all_reduce(bucket.buffer().div_(dist.get_world_size()))
        return bucket.buffer()

    return WorkFuture(start)


class Counter:
    """Counts what is handed to the backend, as bytes and operations; and, if asked to, is a wire: an operation is not
    done before its bytes would have gone through, one after the other, whatever the processors do meanwhile.
    """

    def __init__(self) -> None:
        backend = dist.group.WORLD.backend
        self.bytes = self.operations = 0
        self.speed = float("inf")  # bytes per second
        self._free = 0.0
        original = backend.all_reduce

        def counted(array: Any, op: Any) -> Any:
            self.bytes += array.nbytes
            self.operations += 1
            work = original(array, op)
            if self.speed < float("inf") and array.nbytes > 64:
                self._free = max(self._free, time.monotonic()) + 2 * (backend.size - 1) / backend.size * (
                    array.nbytes / self.speed
                )
                until, poll = self._free, work._poll
                work._poll = lambda: poll() and time.monotonic() >= until
            return work

        backend.all_reduce = counted

    def take(self) -> tuple[int, int]:
        found = self.bytes, self.operations
        self.bytes = self.operations = 0
        return found


def stepper(model: Any, rows: int, width: int, sync: bool = True) -> Callable[[], float]:
    """A function that makes one step, and gives its time."""
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x, y = torch.randn(rows, width), torch.randint(0, 10, (rows,))

    def step() -> float:
        began = time.perf_counter()
        optimizer.zero_grad()
        with nullcontext() if sync else model.no_sync():
            torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        return time.perf_counter() - began

    return step


def least(steps: dict[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """The least time of each, taking turns, in step with the other ranks."""
    best = dict.fromkeys(steps, float("inf"))
    for number in range(rounds + 2):
        for name, step in steps.items():
            dist.barrier()
            took = torch.tensor([step()])
            dist.all_reduce(took, dist.ReduceOp.MAX)  # the slowest rank counts
            if number >= 2:
                best[name] = min(best[name], took.item())
    return best


def work(asked: argparse.Namespace) -> None:
    dist.init_process_group("mpi")
    rank, size, width, rows = dist.get_rank(), dist.get_world_size(), asked.width, asked.rows
    counter = Counter()
    gradients = sum(p.nbytes for p in model_of(width).parameters())
    variants = {
        "float32": (None, None), "float16": (None, default_hooks.fp16_compress_hook),
        "bfloat16": (None, default_hooks.bf16_compress_hook),
        "PowerSGD, rank 4": (powerSGD_hook.PowerSGDState(None, 4, 2), powerSGD_hook.powerSGD_hook),
    }  # fmt: skip
    if rank == 0:
        print(f"{size} ranks, a perceptron with gradients of {gradients / 1e6:.1f} MB, {rows} rows for each rank\n")
        print(f"{'gradients sent as':<20}{'handed to MPI':>16}{'per rank on a wire':>20}{'operations':>12}")
    for name, (state, hook) in variants.items():
        model = DDP(model_of(width), bucket_cap_mb=asked.bucket)
        if hook is not None:
            model.register_comm_hook(state, hook)
        step = stepper(model, rows, width)
        for _ in range(4):
            counter.take()
            step()
        handed, operations = counter.take()
        if rank == 0:  # a sum by parts, as all good algorithms make it, sends each part twice
            wire = 2 * (size - 1) / size * handed
            print(f"{name:<20}{handed / 1e6:>13.2f} MB{wire / 1e6:>17.2f} MB{operations:>12}")
    overlapped, after = (
        DDP(model_of(width), bucket_cap_mb=asked.bucket),
        DDP(model_of(width), bucket_cap_mb=asked.bucket),
    )
    after.register_comm_hook(None, after_backward)
    alone = stepper(model_of(width), rows, width)
    single = float("inf")
    for wire in (float("inf"), asked.wire * 1e6):
        counter.speed = wire
        times = least(
            {
                "no communication": stepper(overlapped, rows, width, sync=False),
                "during backward": stepper(overlapped, rows, width),
                "after backward": stepper(after, rows, width),
            },
            asked.rounds,
        )
        counter.speed = float("inf")
        for number in range(asked.rounds + 2):  # in turn: one process computes, the others sleep
            dist.barrier()
            if rank == 0:
                took = alone()
                single = min(single, took) if number >= 2 else single
        dist.barrier()
        if rank == 0:
            none, during, late = times.values()
            print("\nthrough shared memory" if wire == float("inf") else f"\nthrough a wire of {asked.wire:g} MB/s")
            for name, value in times.items():
                print(f"  step, {name:<20}{value * 1e3:>10.1f} ms{value / none:>8.2f} of that without")
            hidden = max(0.0, (late - during) / max(1e-9, late - none))
            print(f"  of the communication, {hidden:.0%} is hidden behind backward")
            print(f"  efficiency, rows per second of those without communication: {none / during:.0%}")
            print(f"  one rank alone, the other asleep: {single / none:.2f} of a step without communication")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--rows", type=int, default=256)
    parser.add_argument("--bucket", type=float, default=4.0, help="megabytes of a bucket")
    parser.add_argument("--wire", type=float, default=250.0, help="megabytes per second of a wire that is imitated")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.worker:
        work(asked)
        return
    command = [sys.executable, str(Path(__file__).resolve()), *sys.argv[1:], "--worker"]
    raise SystemExit(subprocess.run(mpi_command(asked.ranks, command), timeout=900, check=False).returncode)


if __name__ == "__main__":
    main()
