"""Runs random programs: ``python tests/aliasing --sequences 10000 --seed 1`` (see --help)."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import retrograd
from aliasing.compare import difference, oracle_difference, oracle_seed, run_seed, shortened
from aliasing.exits import EXITS


def main() -> int:
    """The exit status says whether there was no difference."""
    parser = argparse.ArgumentParser(description="Random programs over views and in-place writes, compared with torch")
    parser.add_argument("--sequences", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="of the first program; the next ones count on from it")
    parser.add_argument("--steps", type=int, default=12, help="statements in a program")
    parser.add_argument("--failures", type=int, default=5, help="stop after so many")
    parser.add_argument("--oracle", action="store_true", help="compare with the oracle, without torch")
    options = parser.parse_args()
    if not options.oracle:
        import torch

        torch.set_num_threads(1)
    start, failures, done = time.perf_counter(), 0, 0
    exits: Counter[str] = Counter()
    for seed in range(options.seed, options.seed + options.sequences):
        done += 1
        every_step = True
        if options.oracle:
            program, found = oracle_seed(seed, retrograd, options.steps)
        else:
            program, found, every_step = run_seed(seed, retrograd, torch, exits, options.steps)
        if found is None:
            continue

        def differs(p: list[str], every_step: bool = every_step) -> str | None:
            return oracle_difference(p, retrograd) if options.oracle else difference(p, retrograd, torch, every_step)

        failures += 1
        short = shortened(program, lambda p: differs(p) is not None)
        print(f"# seed {seed}{'' if every_step else ', looking at the end only'}")
        print("\n".join(short))
        print("->", differs(short) or found, "\n")
        if failures == options.failures:
            break
    print(f"{done} sequences of {options.steps} in {time.perf_counter() - start:.1f} s; {failures} differ")
    for name, n in exits.most_common():
        print(f"{n / done:8.2%} (of at most {EXITS[name][0]:.0%}) ended early: {EXITS[name][1]}")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
