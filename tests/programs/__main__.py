"""Runs random programs: ``python tests/programs --programs 10000 --seed 1``; ``--print 17`` prints one as a script."""

from __future__ import annotations

import argparse
import inspect
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import retrograd
from programs import recorder
from programs.compare import difference, shortened, write
from programs.pieces import Statement, render
from programs.rules import RULES, explain

MAIN = """

import importlib, sys

torch = importlib.import_module(sys.argv[1] if len(sys.argv) > 1 else "retrograd")
recorder = Recorder(torch, globals())

"""


def script(program: list[Statement]) -> str:
    """A file of its own: ``python FILE torch`` or ``python FILE retrograd`` prints what the program writes down."""
    return inspect.getsource(recorder) + MAIN + render(program) + "\nfor event in recorder.events:\n    print(*event)\n"


def main() -> int:
    """The exit status says whether there was no difference that the rules do not explain."""
    parser = argparse.ArgumentParser(description="Random programs, compared with torch")
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="of the first program; the next ones count on from it")
    parser.add_argument("--failures", type=int, default=5, help="stop after so many")
    parser.add_argument(
        "--print", type=int, metavar="SEED", help="print the program of a seed as a script, and no more"
    )
    parser.add_argument("--all", action="store_true", help="accept nothing: show what the rules explain, too")
    options = parser.parse_args()
    if options.print is not None:
        print(script(write(options.print)))
        return 0
    import torch

    torch.set_num_threads(1)
    rules = (lambda d: None) if options.all else explain
    start, failures, done, used = time.perf_counter(), 0, 0, Counter()
    for seed in range(options.seed, options.seed + options.programs):
        program = write(seed)
        try:
            found, names = difference(program, retrograd, torch, rules)
        except KeyboardInterrupt:
            break
        done += 1
        used.update({name.rstrip("*") for name in names})
        if found is None:
            continue

        def differs(shorter: list[Statement], kind: str = found.kind) -> bool:
            still, _ = difference(shorter, retrograd, torch, rules)
            return still is not None and still.kind == kind

        failures += 1
        short = shortened(program, differs)
        print(f"# seed {seed}\n{render(short)}-> {difference(short, retrograd, torch, rules)[0]}\n", flush=True)
        if failures == options.failures:
            break
    seconds = time.perf_counter() - start
    print(f"{done} programs in {seconds:.1f} s, {1000 * seconds / done:.1f} ms each; {failures} differ")
    for rule in RULES:
        print(f"  {used[rule.name] / done:8.3%} of {rule.budget:6.2%}  {rule.name}: {rule.reason}")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
