"""Public programs for torch, unmodified, on torch and on retrograd: do they run, and do they give the same losses?

    python run.py FOLDER [--only NAME ...] [--keep FOLDER] [--table docs/PROGRAMS.md]

``manifest.yaml`` names the programs: repository, commit, how each is started, and what stands in for its data. FOLDER
has their checkouts, as FOLDER/owner/name: clones, or the files of the commit. What is not there is listed, with its
address, and left out; nothing is downloaded.

Each program is unpacked from its commit into a folder of its own, gets its data (``data.py``), and runs twice, in a
process of its own on one thread: with torch, and with ``torch`` meaning retrograd (``child.py``). What it hands to
``backward()`` is compared, call by call, and so are the times.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import data
import yaml

HERE = Path(__file__).parent
TOLERANCE = 1e-4
CHAOS = 10
"""Where rounding errors grow from step to step, how many times more than torch's own losses ours may differ: those that
torch gives on this processor, and those that it gives without the wide instructions of it, in other orders of sums."""
PLAIN = {"ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41", "MKL_CBWR": "COMPATIBLE"}
TIME_LIMIT = 150


@dataclass
class Program:
    """An entry of the manifest."""

    name: str
    repository: str
    """owner/name, on GitHub"""
    commit: str
    start: str
    """the program and its arguments, as one writes them in a shell; ``starters/x.py`` is one of ours, for a library
    that comes without a program"""
    folder: str = ""
    """where in the repository it is started"""
    files: list[str] = field(default_factory=list)
    """what is unpacked of the repository beside its Python files"""
    needs: list[str] = field(default_factory=list)
    """other repositories whose packages it imports, as owner/name@commit or owner/name@commit:folder"""
    data: str = ""
    """the function of ``data.py`` which writes what the program reads"""
    stand_in: str = ""
    """what stands in for the program's data and for packages, in words"""
    losses: int = 20
    """how many are compared, at most; the program is ended after them"""

    @property
    def path(self) -> str:
        return shlex.split(self.start)[0]


@dataclass
class Run:
    losses: list[float]
    seconds: float
    error: str | None


def manifest() -> list[Program]:
    entries = [Program(**entry) for entry in yaml.safe_load((HERE / "manifest.yaml").read_text())]
    assert len({program.name for program in entries}) == len(entries), "two programs of one name"
    return entries


def unpack(checkouts: Path, repository: str, commit: str, files: list[str], into: Path) -> None:
    """Files of a commit, by their patterns; all files, where somebody has unpacked them."""
    if not (checkouts / repository / ".git").exists():
        shutil.copytree(checkouts / repository, into)
        return
    into.mkdir(parents=True, exist_ok=True)
    archive = subprocess.Popen(
        ["git", "-C", str(checkouts / repository), "archive", commit, "--", *files], stdout=subprocess.PIPE
    )  # fmt: skip
    subprocess.run(["tar", "-x", "-C", str(into)], stdin=archive.stdout, check=True)
    if archive.wait():
        raise RuntimeError(f"{repository} has no commit {commit}")


def run(program: Program, library: str, place: Path) -> Run:
    """The program, once, in the files at `place`."""
    folder = place / "program" / program.folder
    words = shlex.split(program.start)
    if words[0].startswith("starters/"):
        words[0] = str(HERE / words[0])
    result = place / "result.json"
    paths = [str(folder)] if words[0].startswith("/") else []
    for index, need in enumerate(program.needs):
        paths.append(str(place / f"needs{index}" / need.partition("@")[2].partition(":")[2]))
    environment = {
        **os.environ,
        "PROGRAM_PATH": os.pathsep.join(paths), "MPLBACKEND": "Agg", "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "TQDM_DISABLE": "1",
    }  # fmt: skip
    if library == "plain torch":
        environment.update(PLAIN)
    with (place / "output.txt").open("w") as output:
        child = subprocess.Popen(
            [sys.executable, str(HERE / "child.py"), library.split()[-1], str(result), str(program.losses), *words],
            cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
        error = None
        try:
            child.wait(TIME_LIMIT)
        except subprocess.TimeoutExpired:
            error = f"took more than {TIME_LIMIT} s"
        finally:
            try:  # with all processes that it started
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            child.wait()
    if not result.exists():
        error = error or f"ended with status {child.returncode}"
        result.write_text(json.dumps({"losses": [], "seconds": math.nan, "error": error}))
    return read_run(place)


def read_run(place: Path) -> Run:
    return Run(**json.loads((place / "result.json").read_text()))


def difference(ours: list[float], theirs: list[float]) -> float:
    """The largest relative difference of two lists of losses; infinite if they are not of one length."""
    if len(ours) != len(theirs) or not ours:
        return math.inf
    scale = max(1e-3 * max(map(abs, theirs)), 1e-12)  # a loss that passes through zero is compared with the others
    worst = 0.0
    for a, b in zip(ours, theirs):
        if a == b or (math.isnan(a) and math.isnan(b)):
            continue
        gap = abs(a - b) / max(abs(b), scale)
        worst = max(worst, gap if math.isfinite(gap) else math.inf)
    return worst


def try_program(program: Program, checkouts: Path, keep: Path | None, reuse: str) -> dict[str, Any]:
    runs: dict[str, Run] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for library in ("torch", "retrograd", "plain torch"):
            if library == "plain torch":
                if difference(runs["retrograd"].losses, runs["torch"].losses) <= TOLERANCE or runs["retrograd"].error:
                    break
            place = Path(keep or scratch) / re.sub(r"\W+", "_", program.name) / library.replace(" ", "_")
            if (reuse == "all" or (reuse and library != "retrograd")) and (place / "result.json").exists():
                runs[library] = read_run(place)
                continue
            shutil.rmtree(place, ignore_errors=True)
            unpack(checkouts, program.repository, program.commit, ["*.py", *program.files], place / "program")
            for index, need in enumerate(program.needs):
                repository, _, rest = need.partition("@")
                unpack(checkouts, repository, rest.partition(":")[0], ["*.py"], place / f"needs{index}")
            if program.data:
                getattr(data, program.data)(place / "program" / program.folder)
            runs[library] = run(program, library, place)
    ours, theirs = runs["retrograd"], runs["torch"]
    gap = difference(ours.losses, theirs.losses)
    first = difference(ours.losses[:1], theirs.losses[:1])
    other = difference(runs["plain torch"].losses, theirs.losses) if "plain torch" in runs else 0.0
    return {
        "runs": runs, "ours": ours, "theirs": theirs, "difference": gap, "own": other,
        "agrees": not ours.error and not theirs.error and first <= TOLERANCE and gap <= max(TOLERANCE, CHAOS * other),
    }  # fmt: skip


def missing(programs: list[Program], checkouts: Path) -> list[str]:
    wanted = {program.repository: program.commit for program in programs}
    for program in programs:
        wanted.update((need.split("@")[0], need.split("@")[1].split(":")[0]) for need in program.needs)
    return [
        f"https://github.com/{repository} at {commit}"
        for repository, commit in sorted(wanted.items())
        if not (checkouts / repository).is_dir()
    ]  # fmt: skip


PAGE = """\
# Other people's programs

Public programs for torch, unmodified, run with `torch` meaning retrograd (`python -m retrograd program.py`) and beside
torch itself. This page is written by `make programs CHECKOUTS=folder`, which runs them all;
`benchmarks/public_programs` has the manifest: the commit of each, how it is started, and what stands in for data that
would have to be downloaded. A library that comes without a program is trained for some steps as its users would
(`starters/library.py`). Nothing of the programs is in this repository.

Each program runs twice from the same seed, each time in a process of its own on one thread. What it gives to
`backward()` is written down, as many losses as the table says, and compared:
**differs by** is the largest relative difference among them. Random numbers are torch's own here, so that both runs
draw the same weights, batches and noise.

Where rounding errors grow from step to step (batch normalization of few images, rectifiers under large steps), torch
differs from itself as well: its own difference, between this processor with its wide instructions and without,
stands in brackets, and ours may be {chaos} times that. All others agree to {tolerance:g}, and so does the first loss
of every program.

**Time** is the processor's, from the program's first line to its last loss, relative to torch's: below 1, retrograd is
the faster one.

{count} programs of {repositories} repositories: {runs} run, {agree} agree.

| program | from | data | losses | runs | agrees | differs by | time |
| --- | --- | --- | ---: | --- | --- | ---: | ---: |
{rows}
"""


def table(results: list[tuple[Program, dict[str, Any]]]) -> str:
    """The page of documentation."""
    rows = []
    for program, found in results:
        ours, theirs = found["ours"], found["theirs"]
        where = program.path if not program.path.startswith("starters/") else program.folder or "the library"
        link = f"[{program.repository}](https://github.com/{program.repository}/tree/{program.commit})"
        differs = f"{found['difference']:.0e}" if found["difference"] < math.inf else "–"
        if found["own"]:
            differs += f" ({found['own']:.0e})"
        cells = [
            program.name, f"{link}: {'/'.join(filter(None, (program.folder, where)))}", program.stand_in or "its own",
            str(len(theirs.losses)), "no" if ours.error else "yes", "yes" if found["agrees"] else "no", differs,
            f"{ours.seconds / theirs.seconds:.1f}",
        ]  # fmt: skip
        rows.append("| " + " | ".join(cells) + " |")
    return PAGE.format(
        chaos=CHAOS, tolerance=TOLERANCE, count=len(results), repositories=len({p.repository for p, _ in results}),
        runs=sum(not found["ours"].error for _, found in results), agree=sum(found["agrees"] for _, found in results),
        rows="\n".join(rows),
    )  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", type=Path)
    parser.add_argument("--only", nargs="*", help="names of programs, or beginnings of them")
    parser.add_argument("--keep", type=Path, help="where the programs' files and what they print stay")
    parser.add_argument(
        "--reuse", choices=("torch", "all"), default="", help="take the results that --keep has: of torch, or all"
    )
    parser.add_argument("--jobs", type=int, default=1, help="how many programs run at a time")
    parser.add_argument("--table", type=Path, help="the page to write")
    arguments = parser.parse_args()
    programs = manifest()
    if arguments.only:
        programs = [program for program in programs if program.name.startswith(tuple(arguments.only))]
    absent = missing(programs, arguments.checkouts)
    if absent:
        print("Not here, to be cloned first:", *absent, sep="\n  ", file=sys.stderr)
    programs = [program for program in programs if (arguments.checkouts / program.repository).is_dir()]
    results = []
    with ThreadPoolExecutor(arguments.jobs) as workers:

        def one(program: Program) -> dict[str, Any]:
            return try_program(program, arguments.checkouts, arguments.keep, arguments.reuse)

        for program, found in zip(programs, workers.map(one, programs)):
            results.append((program, found))
            ours, theirs = found["ours"], found["theirs"]
            errors = "".join(f"  {name}: {each.error[:150]}" for name, each in found["runs"].items() if each.error)
            words = [
                "ok  " if found["agrees"] else "FAIL",
                f"{program.name:34} {len(ours.losses):3}/{len(theirs.losses):<3}",
                f"{found['difference']:8.1e} {found['own']:8.1e}",
                f"{ours.seconds:7.2f} s beside {theirs.seconds:7.2f} s{errors}",
            ]  # fmt: skip
            print(*words, flush=True)
    if arguments.table is not None:
        arguments.table.write_text(table(results), encoding="utf-8")
    return 0 if all(found["agrees"] for _, found in results) else 1


if __name__ == "__main__":
    sys.exit(main())
