"""The memory that whole training steps take: retrograd beside torch, each step in a process of its own.

    python benchmarks/bench_memory.py [--quick] [--only TEXT] [--json FILE] [--markdown FILE] [--strict]

What is measured is how far the process's memory grows beyond what it has before the first step, at its peak during ten
steps: the kernel's high-water mark of resident memory (VmHWM of /proc), which is set back before them. Parameters are
there by then, and so is what is loaded once: another network's step has run. On Linux alone.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import importlib
import os
import subprocess
import sys
from pathlib import Path

# isort: off
os.environ.setdefault("BENCH_THREADS", "2")
import harness  # before NumPy and torch, whose thread counts it sets
from harness import THREADS, Case

import models
from bench_kernels import STEPS
# isort: on

STEPS_OF = {step.__name__: step for _, _, step in STEPS}


def resident(what: str) -> float:
    """A line of the process's status, in MiB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(what):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"/proc/self/status has no {what}")


def growth(library: str, name: str) -> float:
    """How far the memory of this process grows while steps are made, in MiB."""
    lib = importlib.import_module(library)
    lib.set_num_threads(THREADS)
    for other in ("mlp_step", "convnet_step"):
        getattr(models, other)(lib)()
    run = STEPS_OF[name](lib)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts anew
    for _ in range(10):
        run()
    return resident("VmHWM") - before


def sampler(library: str, name: str) -> harness.Sampler:
    """Each sample is a process."""

    def sample() -> float:
        command = [sys.executable, __file__, "--measure", library, name]
        return float(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)

    return sample


CASES = [
    Case(
        f"{title}: memory", functools.partial(sampler, "retrograd", step.__name__),
        functools.partial(sampler, "torch", step.__name__), bar=1.0, unit="MiB", repeats=5, quick_repeats=1,
    )
    for title, _, step in STEPS
]  # fmt: skip


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(growth(sys.argv[2], sys.argv[3]))
    else:
        found = harness.versions("numpy", "torch", "retrograd")
        sys.exit(harness.command_line((__doc__ or "").splitlines()[0], CASES, found))
