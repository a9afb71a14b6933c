"""Timing two things side by side: interleaved samples, medians, and a table of ratios with their bars.

Import this before NumPy or torch: it sets the thread counts that their libraries read when they are loaded, to what
BENCH_THREADS says (one, if it says nothing).

A `Case` names a *subject* and a *reference* (retrograd and torch, as a rule) and makes for each a function to time.
Samples of the two alternate, so that a machine which slows down half-way slows both. What is compared is the median
of each; the spread beside it is the middle half of the ratios of neighbouring samples.
"""

from __future__ import annotations

import os

THREADS = int(os.environ.get("BENCH_THREADS", "1"))
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = str(THREADS)

import argparse
import gc
import json
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter, process_time, sleep

Sampler = Callable[[], float]

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
    """An interpreter of its own that takes samples when it is told to, for measurements on several threads: the idle
    threads of one library spin for a while on the processors that the other wants, so the two must not share a
    process, and neither answers before its threads are at rest."""

    def __init__(self, *command: str) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([sys.executable, *command], stdin=pipe, stdout=pipe, text=True)

    def ask(self, line: str) -> float:
        """Sends a line and returns the number that comes back."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline() or '"the worker ended"')
        if isinstance(answer, str):
            raise RuntimeError(answer)
        return answer

    def sampler(self, name: str) -> Sampler:
        """A sampler of what the worker knows under this name."""
        self.ask(name)
        return lambda: self.ask("")


def answer_as_worker(sampler_of: Callable[[str], Sampler]) -> None:
    """The other end of a `Worker`: a line with a name chooses what to time, an empty line takes a sample of it."""
    sampler: Sampler = float
    for line in sys.stdin:
        try:
            if line.strip():
                sampler = float  # so that what the last case kept is let go
                gc.collect()
                sampler = sampler_of(line.strip())
            answer: float | str = sampler() if not line.strip() else 0.0
        except Exception as error:
            answer = f"{type(error).__name__}: {error}"
        at_rest()
        print(json.dumps(answer), flush=True)


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
    pairs = sorted(a / b for a, b in zip(*times))
    result.spread = pairs[len(pairs) // 4], pairs[-1 - len(pairs) // 4]
    return result


def run_all(cases: list[Case], quick: bool = False) -> list[Result]:
    """Runs the cases in order and prints the row of each as soon as it is known."""
    print(f"{'case':<42}{'subject':>21}{'reference':>21}   ratio  (middle half)    bar")
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


def format_row(result: Result) -> str:
    """The part of a row after its name."""
    if result.error:
        return f"  {result.error}"
    sides = zip(result.labels, (result.subject_s, result.reference_s))
    left, right = (f"{label} {format_seconds(seconds)}" for label, seconds in sides)
    low, high = result.spread
    bar = "   –" if result.bar is None else f"{result.bar:.2f}"
    return f"{left:>21}{right:>21}   {result.ratio:5.2f}  ({low:.2f} – {high:.2f})   {bar}  {result.verdict}"


def markdown(results: list[Result]) -> str:
    """The table as Markdown, for the README."""
    lines = ["| | time | reference | ratio | bar |", "| --- | --- | --- | --- | --- |"]
    for r in results:
        if r.error:
            lines.append(f"| {r.name} | {r.error} | | | |")
            continue
        times = [f"{label} {format_seconds(s)}" for label, s in zip(r.labels, (r.subject_s, r.reference_s))]
        bar = "" if r.bar is None else f"{r.bar:g}"
        lines.append(f"| {r.name} (per {r.unit}) | {times[0]} | {times[1]} | **{r.ratio:.2f}** | {bar} |")
    return "\n".join(lines)


def command_line(description: str, cases: list[Case], versions: dict[str, str]) -> int:
    """Runs the cases that the command line asks for; with --strict, the exit status says whether every bar held."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    parser.add_argument("--only", metavar="TEXT", default="", help="only the cases with TEXT in their name")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write everything measured as JSON")
    parser.add_argument("--markdown", metavar="FILE", type=Path, help="write the table as Markdown")
    parser.add_argument("--strict", action="store_true", help="exit with status 1 if a bar is missed")
    options = parser.parse_args()

    threads = "one thread" if THREADS == 1 else f"{THREADS} threads"
    print(f"{threads}; " + ", ".join(f"{name} {version}" for name, version in versions.items()) + "\n")
    results = run_all([case for case in cases if options.only in case.name], options.quick)
    missed = [r for r in results if r.verdict in ("over", "error")]
    print(f"\n{len(missed)} of {len(results)} rows over their bar or in error" if missed else "\nall bars hold")
    if options.json:
        write_json(options.json, results, versions)
    if options.markdown:
        options.markdown.write_text(markdown(results) + "\n")
    return 1 if missed and options.strict else 0


def write_json(path: Path, results: list[Result], versions: dict[str, str]) -> None:
    """Everything measured, with the versions that it was measured on."""
    about = {"python": platform.python_version(), **versions}
    rows = [{**asdict(r), "verdict": r.verdict} for r in results]
    for row in rows:  # nan is not JSON
        if row["error"]:
            row.update(subject_s=None, reference_s=None, ratio=None, spread=None)
    path.write_text(json.dumps({"versions": about, "results": rows}, indent=2, ensure_ascii=False) + "\n")
