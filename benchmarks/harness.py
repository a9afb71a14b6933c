"""Timing two libraries: each has a process of its own, the two take turns, and a table tells ratios and their bars.

Import this before NumPy or torch: it sets the thread counts that their libraries read when they are loaded, to what
BENCH_THREADS says (one, if it says nothing).

`both(name, setup)` is the ordinary case: `setup(lib)` returns the function to time, and runs with either library in a
process that has that library alone. (In one process the idle threads of one library's BLAS spin on the processors that
the other wants.) What the two functions return is compared before they are timed. Samples of the two alternate, so that
a machine which slows down half-way slows both; a process answers only when its threads are at rest. The ratio is that
of the medians; beside it stand the middle half of the ratios of neighbouring samples, and the ratio of the least times,
which other processes disturb least. The load of the machine is printed before and after.
"""

from __future__ import annotations

import os

THREADS = int(os.environ.get("BENCH_THREADS", "1"))
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = str(THREADS)

import argparse
import contextlib
import datetime
import functools
import gc
import importlib
import json
import math
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from time import perf_counter, process_time, sleep
from types import ModuleType
from typing import Any

Sampler = Callable[[], float]
Setup = Callable[[ModuleType], Callable[[], Any]]

_bytecode = tempfile.TemporaryDirectory()  # where fresh interpreters keep theirs


@dataclass(frozen=True)
class Case:
    """One row of the table. `subject` and `reference` each return a sampler: a call that takes one sample and
    returns its seconds per unit of work (per operation, per step …)."""

    name: str
    subject: Callable[[], Sampler]
    reference: Callable[[], Sampler]
    bar: float | None = None
    """The ratio that must not be exceeded; None for a row that only informs."""
    unit: str = "call"
    labels: tuple[str, str] = ("retrograd", "torch")
    repeats: int = 41
    quick_repeats: int = 9


@dataclass
class Result:
    """What came of a case; `error` is set, and the numbers are nan, if it could not be run."""

    name: str
    unit: str
    labels: tuple[str, str]
    bar: float | None
    subject_s: float = float("nan")
    reference_s: float = float("nan")
    ratio: float = float("nan")
    least: float = float("nan")
    """The ratio of the least times."""
    spread: tuple[float, float] = (float("nan"), float("nan"))
    repeats: int = 0
    error: str | None = None

    @property
    def verdict(self) -> str:
        """OK, over, error, or a dash where there is no bar."""
        if self.error:
            return "error"
        if self.bar is None:
            return "–"
        return "OK" if self.ratio <= self.bar else "over"


# ----------------------------------------------------------------------------------------------------------- samplers


def in_process(
    run: Callable[[], object], work: int = 1, sample_s: float = 0.004, clock: Callable[[], float] = perf_counter
) -> Sampler:
    """Times `run` in this process, calling it as often as makes a sample of about `sample_s` seconds.

    `work` is the number of units that one call does. What runs on one thread may be timed by `process_time`, which
    goes on only while this process has a processor.
    """
    run()  # the first call may pay for what is made once
    start = clock()
    run()
    calls = max(1, round(sample_s / max(clock() - start, 1e-9)))
    loop = range(calls)

    def sample() -> float:
        start = clock()
        for _ in loop:
            run()
        return (clock() - start) / (calls * work)

    return sample


def in_subprocess(code: str) -> Sampler:
    """Times a fresh interpreter that runs `code`, its start included, with compiled bytecode as an install has it."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = _bytecode.name

    def sample() -> float:
        start = perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL, env=environment)
        return perf_counter() - start

    sample()  # write and warm the bytecode caches
    return sample


class Worker:
    """An interpreter of its own that takes samples when it is told to."""

    def __init__(self, *command: str) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([sys.executable, *command], stdin=pipe, stdout=pipe, text=True)

    def ask(self, line: str) -> Any:
        """Sends a line and returns what comes back."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline() or '"the worker ended"')
        if isinstance(answer, str):
            raise RuntimeError(answer)
        return answer

    def sampler(self, name: str) -> Sampler:
        """A sampler of what the worker knows under this name; its attribute `found` is what the function returned."""

        def sample() -> float:
            return self.ask("")

        sample.found = self.ask(name)  # type: ignore[attr-defined]
        return sample


def answer_as_worker(choose: Callable[[str], tuple[Sampler, Any]]) -> None:
    """The other end of a `Worker`: a line with a name chooses what to time, an empty line takes a sample of it."""
    sampler: Sampler = float
    for line in sys.stdin:
        answer: Any
        try:
            if line.strip():
                sampler = float  # so that what the last case kept is let go
                gc.collect()
                sampler, found = choose(line.strip())
                answer = fingerprint(found)
            else:
                answer = sampler()
        except Exception as error:
            answer = f"{type(error).__name__}: {error}"
        at_rest()
        print(json.dumps(answer), flush=True)


def fingerprint(found: Any) -> list[float]:
    """A few numbers that two results have in common if they are the same: for each tensor, its sums."""
    if isinstance(found, (tuple, list)):
        return [number for one in found for number in fingerprint(one)]
    if hasattr(found, "detach"):
        values = found.detach()
        if values.is_complex():
            values = values.abs()
        values = values.double()
        return [float(values.sum()), float(values.abs().sum()), float((values * values).sum())]
    return [float(found)] if isinstance(found, (int, float)) else []


def differ(one: list[float], other: list[float]) -> bool:
    """Are these not the same numbers, up to the rounding of single precision?"""
    scale = max([abs(x) for x in one if math.isfinite(x)], default=0.0)
    return len(one) != len(other) or any(
        not (x == y or (math.isnan(x) and math.isnan(y)) or abs(x - y) <= 1e-3 * max(abs(x), abs(y)) + 1e-4 * scale)
        for x, y in zip(one, other)
    )


@dataclass(frozen=True)
class _Timed:
    setup: Setup
    work: int
    sample_s: float
    clock: Callable[[], float]
    same: bool


SETUPS: dict[str, _Timed] = {}


def both(
    name: str,
    setup: Setup,
    work: int = 1,
    *,
    sample_s: float = 0.004,
    clock: Callable[[], float] = perf_counter,
    same: bool = True,
    sides: tuple[str, str] = ("retrograd", "torch"),
    **options: Any,
) -> Case:
    """A case that runs the same code on both libraries, each in its process; `work` is the number of units in one call.

    Where the two draw other random numbers, or are given nothing to compare, say ``same=False``. A side may be a
    library with a number of threads of its own: ``retrograd:1``.
    """
    SETUPS[name] = _Timed(setup, work, sample_s, clock, same)
    subject, reference = (functools.partial(_sampler, library, name) for library in sides)
    return Case(name, subject=subject, reference=reference, **options)


def _sampler(library: str, name: str) -> Sampler:
    return worker(library).sampler(name)


@functools.cache
def worker(library: str) -> Worker:
    """The process that has this library to itself: the same script, told so."""
    return Worker(sys.argv[0], "--worker", library)


def work(library: str) -> None:
    """What that process does."""
    name, _, threads = library.partition(":")
    lib = importlib.import_module(name)
    lib.set_num_threads(int(threads or THREADS))
    if THREADS == 1 and hasattr(os, "sched_setaffinity"):
        # The two take turns on one processor: of a virtual machine's, one may be at half the speed of another.
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

    def choose(name: str) -> tuple[Sampler, Any]:
        timed = SETUPS[name]
        lib.manual_seed(0)
        run = timed.setup(lib)
        found = run() if timed.same else None
        return in_process(run, timed.work, timed.sample_s, timed.clock), found

    answer_as_worker(choose)


def at_rest() -> None:
    """Waits until no thread of this process uses a processor any more."""
    for _ in range(1000):
        before = process_time()
        sleep(0.005)
        if process_time() - before < 0.001:
            return


# ------------------------------------------------------------------------------------------------------------ running


def measure(case: Case, quick: bool = False) -> Result:
    """Runs one case. The garbage collector stays on, as users have it, and starts each case with nothing to do."""
    result = Result(case.name, case.unit, case.labels, case.bar)
    gc.collect()
    try:
        samplers = case.subject(), case.reference()
        found = [getattr(sampler, "found", []) for sampler in samplers]
        if differ(*found):
            raise ValueError(f"the results differ: {found[0]} and {found[1]}")
        times: tuple[list[float], list[float]] = ([], [])
        result.repeats = case.quick_repeats if quick else case.repeats
        for repeat in range(result.repeats):
            for side in (0, 1) if repeat % 2 == 0 else (1, 0):
                times[side].append(samplers[side]())
    except Exception as error:  # a case that fails is a row of the table, not the end of it
        result.error = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        return result
    finally:
        gc.collect()
    result.subject_s, result.reference_s = map(statistics.median, times)
    result.ratio = result.subject_s / result.reference_s
    result.least = min(times[0]) / min(times[1])
    pairs = sorted(a / b for a, b in zip(*times))
    result.spread = pairs[len(pairs) // 4], pairs[-1 - len(pairs) // 4]
    return result


def run_all(cases: list[Case], quick: bool = False) -> list[Result]:
    """Runs the cases in order and prints the row of each as soon as it is known."""
    print(f"{'case':<42}{'subject':>21}{'reference':>21}   ratio  (middle half)   least    bar")
    results = []
    for case in cases:
        print(f"{case.name:<42}", end="", flush=True)
        result = measure(case, quick)
        results.append(result)
        print(format_row(result))
    return results


# ---------------------------------------------------------------------------------------------------------- reporting


def format_seconds(seconds: float) -> str:
    """Three significant digits with a unit that suits.

    >>> format_seconds(0.0000123)
    '12.3 µs'
    """
    for scale, unit in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def format_amount(result: Result, amount: float) -> str:
    """Seconds, or MiB where that is the unit."""
    return f"{amount:.1f} MiB" if result.unit == "MiB" else format_seconds(amount)


def format_row(result: Result) -> str:
    """The part of a row after its name."""
    if result.error:
        return f"  {result.error}"
    sides = zip(result.labels, (result.subject_s, result.reference_s))
    left, right = (f"{label} {format_amount(result, amount)}" for label, amount in sides)
    low, high = result.spread
    bar = "   –" if result.bar is None else f"{result.bar:.2f}"
    ratios = f"{result.ratio:5.2f}  ({low:.2f} – {high:.2f})   {result.least:5.2f}"
    return f"{left:>21}{right:>21}   {ratios}   {bar}  {result.verdict}"


def markdown(results: list[Result]) -> str:
    """The table as Markdown, for the README."""
    lines = ["| | time | reference | ratio | of the least times | bar |", "| --- | --- | --- | --- | --- | --- |"]
    for r in results:
        if r.error:
            lines.append(f"| {r.name} | {r.error} | | | | |")
            continue
        times = [f"{label} {format_amount(r, s)}" for label, s in zip(r.labels, (r.subject_s, r.reference_s))]
        bar = "" if r.bar is None else f"{r.bar:g}"
        name = r.name if r.unit == "MiB" else f"{r.name} (per {r.unit})"
        columns = [name, *times, f"**{r.ratio:.2f}**", f"{r.least:.2f}", bar]
        lines.append(f"| {' | '.join(columns)} |")
    return "\n".join(lines)


def machine() -> dict[str, str]:
    """What it is measured on. (Virtual processors often have the name of a whole line: family and model tell.)"""
    name = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        lines = [line.partition(":") for line in Path("/proc/cpuinfo").read_text().splitlines()]
        known = {key.strip(): value.strip() for key, _, value in lines}
        name = known.get("model name", name)
        if "cpu family" in known:
            name += f" (family {known['cpu family']}, model {known.get('model')})"
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "machine": f"{name}, {processors} processors", "threads": str(THREADS), "python": platform.python_version(),
        "date": datetime.date.today().isoformat(),
    }  # fmt: skip


def versions(*names: str) -> dict[str, str]:
    """The versions of packages; one that lies on the path without being installed has none."""
    found = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "from its sources"
    return found


def load() -> str:
    """The load of the machine: how many processes have wanted a processor in the last minute."""
    return f"load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "load unknown"


def write_into(path: Path, name: str, text: str) -> None:
    """Puts a text between the lines ``<!-- NAME -->`` and ``<!-- end of NAME -->`` of a file."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, found, rest = path.read_text(encoding="utf-8").partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise SystemExit(f"{path} has no place for {name}: put {begin} and {end} on lines of their own")
    path.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")


def command_line(description: str, cases: list[Case], versions: dict[str, str], build: str = "") -> int:
    """Runs the cases that the command line asks for; with --strict, the exit status says whether every bar held.

    `build` tells the marks of one build's table from those of another.
    """
    if sys.argv[1:2] == ["--worker"]:
        work(sys.argv[2])
        return 0
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    parser.add_argument("--only", metavar="TEXT", default="", help="only the cases with TEXT in their name")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write everything measured as JSON")
    parser.add_argument("--markdown", metavar="FILE", type=Path, help="write the table as Markdown")
    parser.add_argument("--into", metavar="FILE", type=Path, help="write it between the marks of this script in FILE")
    parser.add_argument("--mark", metavar="TEXT", default="", help="more words of the marks, for a second run")
    parser.add_argument("--strict", action="store_true", help="exit with status 1 if a bar is missed")
    options = parser.parse_args()

    about = {**machine(), **versions}
    described = ", ".join(f"{name} {value}" for name, value in about.items())
    print(f"{described}\n{load()}\n")
    started = load()
    results = run_all([case for case in cases if options.only in case.name], options.quick)
    print(f"\n{load()}")
    missed = [r for r in results if r.verdict in ("over", "error")]
    print(f"\n{len(missed)} of {len(results)} rows over their bar or in error" if missed else "\nall bars hold")
    if options.json:
        write_json(options.json, results, about)
    if options.markdown:
        options.markdown.write_text(markdown(results) + "\n")
    if options.into:
        name = Path(sys.argv[0]).stem + f" on {THREADS} thread{'s' * (THREADS > 1)}{build}{options.mark}"
        write_into(options.into, name, f"{described}; {started} before, {load()} after\n\n{markdown(results)}")
    return 1 if missed and options.strict else 0


def write_json(path: Path, results: list[Result], versions: dict[str, str]) -> None:
    """Everything measured, with the versions that it was measured on."""
    rows = [{**asdict(r), "verdict": r.verdict} for r in results]
    for row in rows:  # nan is not JSON
        if row["error"]:
            row.update(subject_s=None, reference_s=None, ratio=None, least=None, spread=None)
    path.write_text(json.dumps({"versions": versions, "results": rows}, indent=2, ensure_ascii=False) + "\n")
