"""Which operators are slow on large tensors: every operator of the tests' sample database, enlarged, beside torch.

    python benchmarks/sweep_operators.py [--above RATIO] [--only TEXT ...] [--elements N] [--samples N] [--into FILE]

The dimensions of a sample's tensors are multiplied by one factor, so that the largest has about N elements; samples
that do not work enlarged (sizes among the arguments, given values) are passed over. Each library has a process of its
own, and the two take turns; one thread is timed by the processor's clock, which stands still while others have it.
It is a report, without bars.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import signal
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from time import perf_counter, process_time
from types import ModuleType
from typing import Any

# isort: off
import harness  # before NumPy, whose thread count it sets

import numpy
# isort: on

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from samples import OPS, Op, Sample
from samples.spec import T, map_tree

warnings.simplefilter("ignore")
PATIENCE = 20  # seconds for one sample
CLOCK = process_time if harness.THREADS == 1 else perf_counter


def enlarged(sample: Sample, elements: int) -> Sample | None:
    """The sample with every dimension (but those of size one) multiplied, in single precision."""
    specs = sample.specs
    shapes = [spec.shape for spec in specs if spec.shape and 0 not in spec.shape]
    if not shapes:
        return None
    largest = max(shapes, key=lambda shape: numpy.prod(shape))
    factor = 1
    while numpy.prod([n * (factor + 1) if n > 1 else n for n in largest]) <= elements and factor < elements:
        factor += 1
    if factor == 1:
        return None

    def grow(leaf: Any) -> Any:
        if not isinstance(leaf, T):
            return leaf
        repeats = [factor if n > 1 else 1 for n in leaf.shape]
        shape = tuple(n * k for n, k in zip(leaf.shape, repeats))
        values = None if leaf.values is None else numpy.tile(numpy.asarray(leaf.values), repeats)
        return replace(leaf, shape=shape, values=values, layout="contiguous")

    args, kwargs = map_tree(grow, (sample.args, sample.kwargs))
    return replace(sample, args=args, kwargs=kwargs).float32_twin()


def prepare(lib: ModuleType, op: Op, sample: Sample, arrays: list[numpy.ndarray]) -> tuple[Any, Any]:
    """The forward and the backward call; the latter is None where nothing can be differentiated."""
    built = sample.build(lib, [array.copy() for array in arrays])

    def forward() -> Any:
        return op.call(lib, built.args, built.kwargs)

    result = forward()
    outputs = [y for y in (result if isinstance(result, (tuple, list)) else [result]) if getattr(y, "grad_fn", None)]
    if not outputs or not op.differentiable:
        return forward, None
    grads = [lib.ones_like(y) for y in outputs]
    leaves = [x for x in built.leaves if x.requires_grad]

    def backward() -> Any:
        return lib.autograd.grad(outputs, leaves, grads, retain_graph=True, allow_unused=True)

    backward()
    return forward, backward


def best(run: Any, repeats: int) -> float:
    """The shortest of some calls: robust enough for a report on a busy machine."""
    times = []
    for _ in range(repeats):
        start = CLOCK()
        run()
        times.append(CLOCK() - start)
    return min(times)


def give_up(*_: Any) -> None:
    """What the alarm clock calls."""
    raise TimeoutError(f"more than {PATIENCE} s")


def serve(library: str) -> None:
    """What a worker does: "operator sample elements forward" names what to time."""
    lib = importlib.import_module(library)
    lib.set_num_threads(harness.THREADS)
    signal.signal(signal.SIGALRM, give_up)

    def patiently(run: Any) -> Any:
        signal.alarm(PATIENCE)
        try:
            return run()
        finally:
            signal.alarm(0)

    @functools.lru_cache(maxsize=1)
    def calls(position: int, number: int, elements: int) -> tuple[Any, Any]:
        op = OPS[position]
        large = enlarged(op.samples[number], elements)
        if large is None:
            raise LookupError("not enlarged")
        return prepare(lib, op, large, large.arrays())

    def choose(name: str) -> tuple[harness.Sampler, Any]:
        *place, direction = name.split()
        run = patiently(lambda: calls(*map(int, place)))[direction == "backward"]
        if run is None:
            raise LookupError("nothing to differentiate")
        first = patiently(lambda: best(run, 1))
        repeats = 3 if first > 0.2 else 9
        return lambda: min(first, patiently(lambda: best(run, repeats))), None

    harness.answer_as_worker(choose)


def compare(op: Op, position: int, number: int, elements: int) -> list[tuple[float, str]]:
    """(ratio, row) of the forward and the backward call, as far as the enlarged sample works."""
    rows = []
    for direction in ("forward", "backward"):
        times = []
        for library in ("torch", "retrograd"):
            try:
                times.append(harness.worker(library).sampler(f"{position} {number} {elements} {direction}")())
            except RuntimeError as error:  # most often a size among the arguments that was not enlarged
                if library == "retrograd" and str(error).startswith("TimeoutError"):
                    rows.append((float("inf"), f"    inf  {op.name} {direction}  [sample {number}]  {error}"))
                break
        else:
            ratio = times[1] / times[0]
            shown = " / ".join(harness.format_seconds(seconds) for seconds in reversed(times))
            rows.append((ratio, f"{ratio:7.2f}  {op.name} {direction}  [{op.samples[number].name}]  {shown}"))
    return rows


def main() -> int:
    """Prints each operator above the ratio as it is found, then all of them in order."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--above", type=float, default=5.0, metavar="RATIO", help="report what is slower (default 5)")
    parser.add_argument("--only", metavar="TEXT", nargs="+", default=[""], help="only operators named so")
    parser.add_argument("--into", metavar="FILE", type=Path, help="write the rows between this script's marks in FILE")
    parser.add_argument("--elements", type=int, default=1_000_000, help="of the largest tensor (default 1,000,000)")
    parser.add_argument("--samples", type=int, default=2, help="samples of each operator (default 2)")
    options = parser.parse_args()
    about = {**harness.machine(), **harness.versions("numpy", "torch", "retrograd")}
    described = ", ".join(f"{name} {value}" for name, value in about.items()) + f"; {harness.load()}"
    print(described)
    found: list[tuple[float, str]] = []
    measured = 0
    not_enlarged = []
    for position, op in enumerate(OPS):
        if not any(text in op.name for text in options.only):
            continue
        done = 0
        for number, sample in enumerate(op.samples):
            if done == options.samples:
                break
            large = None
            with contextlib.suppress(Exception):
                large = enlarged(sample, options.elements)
            rows = compare(op, position, number, options.elements) if large is not None else []
            done += bool(rows)
            for row in rows:
                if row[0] > options.above:
                    found.append(row)
                    print(row[1], flush=True)
        measured += done > 0
        if not done:
            not_enlarged.append(op.name)
    print(f"\n{harness.load()}; {measured} operators measured; above {options.above:g}, slowest first:")
    print("\n".join(row for _, row in sorted(found, reverse=True)))
    print(f"\nnot enlarged: {', '.join(not_enlarged)}")
    if options.into:
        name = f"{Path(sys.argv[0]).stem} on {harness.THREADS} thread{'s' * (harness.THREADS > 1)}"
        shown = "\n".join(row for _, row in sorted(found, reverse=True))
        harness.write_into(options.into, name, f"{described}\n\n```\n{shown}\n```")
    return 0


if __name__ == "__main__":
    sys.exit(serve(sys.argv[2]) if sys.argv[1:2] == ["--worker"] else main())
