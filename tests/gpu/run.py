"""Everything that needs a GPU, in one run: ``python -m gpu.run`` in tests/ (``make test-cuda``).

The sample database (in several processes, since most of the time goes into compiling kernels), the tests of devices and
streams on the real library, and the benchmark beside torch.  Prints a summary, and writes everything to $OUT.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

from gpu import cannot
from gpu.run_samples import merged, summary
from retrograd.arrays import places


def samples(seconds: float, processes: int, folder: str) -> dict:
    """The sample database, each process with its share."""
    running = []
    for number in range(processes):
        command = [sys.executable, "-m", "gpu.run_samples", f"--part={number}/{processes}", f"--seconds={seconds}",
                   f"--to={folder}/samples{number}.json"]  # fmt: skip
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        running.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
    parts = []
    for number, process in enumerate(running):
        try:
            output = process.communicate(timeout=seconds + 60)[0].decode(errors="replace")
        except subprocess.TimeoutExpired:
            process.kill()
            output = process.communicate()[0].decode(errors="replace") + "\n(killed)"
        try:
            with open(f"{folder}/samples{number}.json") as file:
                parts.append(json.load(file))
            os.remove(f"{folder}/samples{number}.json")
            if process.returncode:
                print(f"process {number} ended with {process.returncode}: {output[-300:]}")
        except OSError:
            print(f"process {number} gave nothing:\n{output[:600]}\n...\n{output[-600:]}")
    return merged(parts)


#: The parts of the run in which something was wrong.
wrong: list[str] = []


def section(title: str, function, *args) -> None:
    """One part of the run; what goes wrong in it does not end the others."""
    print(f"== {title}", flush=True)
    began = time.perf_counter()
    try:
        function(*args)
    except BaseException:
        print(traceback.format_exc()[-1500:])
        wrong.append(title)
    print(f"   ({time.perf_counter() - began:.0f} s)", flush=True)


def machine() -> None:
    import numpy

    import retrograd

    place = places.places[0]
    properties = place.module.cuda.runtime.getDeviceProperties(0)
    print(f"Python {sys.version.split()[0]}, NumPy {numpy.__version__}, CuPy {place.module.__version__}, retrograd "
          f"{retrograd.__version__}, {properties['name'].decode()}")  # fmt: skip
    for name in ("torch", "scipy", "ml_dtypes", "pytest"):
        try:
            print(f"{name} {__import__(name).__version__}", end="  ")
        except Exception as error:
            print(f"{name}: {type(error).__name__}", end="  ")
    dtype = retrograd.bfloat16.np
    print(f"\nbfloat16 is held as {place.held_as(dtype)}")


def main() -> None:
    options = dict(a.lstrip("-").split("=") for a in sys.argv[1:] if "=" in a)
    only = options.get("only", "machine,samples,tests,benchmark").split(",")
    folder = os.environ.get("OUT") or tempfile.mkdtemp()
    if not places.start():
        raise SystemExit("no CUDA device: CuPy is not installed, or finds none")
    if "machine" in only:
        section("machine", machine)
    if "samples" in only:
        found: dict = {}
        section("samples", lambda: found.update(
            samples(float(options.get("seconds", 150)), int(options.get("processes", 12)), folder)))  # fmt: skip
        if found:
            with open(os.path.join(folder, "samples.json"), "w") as file:
                json.dump(found, file, indent=1)
            print(summary(found, int(options.get("most", 40)))[: int(options.get("characters", 8000))])
            section("table of what CuPy cannot do", table, found)
            if found["failures"] or found["done"] != found["chosen"]:
                wrong.append("samples")
    if "tests" in only:
        section("tests", tests, folder)
    if "benchmark" in only:
        from gpu.benchmark import main as benchmark

        section("benchmark", benchmark, folder)
    if wrong:
        raise SystemExit(f"not all is well: {', '.join(wrong)}")


def table(found: dict) -> None:
    """docs/CUDA.md says what is computed in host memory, and what CuPy says when it is asked for it."""
    hosted = sorted({name for _, names in found["on host"].values() for name in names})
    print(f"in host memory: {len(hosted)} operators ({', '.join(hosted)})")
    problems = [*cannot.stale(places.places[0].module), *cannot.unexplained(found["on host"])]
    assert not problems and len(hosted) < cannot.MOST, problems


TESTS = (
    "test_devices", "test_memory", "test_streams", "test_nccl", "test_names", "test_ending", "test_computed_there",
    "test_graphs", "test_own_kernels", "test_own_networks",
)  # fmt: skip


def one_test(name: str) -> tuple[str, int]:
    """What pytest says of one file, and how it ends."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    try:
        done = subprocess.run(
            [sys.executable, "-X", "faulthandler", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short",
             f"tests/cuda/{name}.py"],
            capture_output=True, text=True, cwd=root, timeout=240,
            env={**os.environ, "RETROGRAD_GPU": "1", "PYTHONPATH": "src"},
        )  # fmt: skip
        return done.stdout + done.stderr, done.returncode
    except subprocess.TimeoutExpired as error:
        return f"{(error.stdout or b'').decode()}\n(out of time)", -1


def tests(folder: str) -> None:
    """The tests of devices and streams, by pytest, on the real library: each file in a process of its own."""
    said = ""
    with ThreadPoolExecutor(len(TESTS)) as pool:
        found = list(pool.map(one_test, TESTS))
    for name, (output, code) in zip(TESTS, found, strict=True):
        said += f"=== {name}\n{output}"
        lines = output.splitlines()
        lines = [line for line in lines if line.startswith(("E  ", "FAILED", "ERROR")) or " passed" in line]
        print(f"{name}: exit code {code}")
        if code:
            wrong.append(name)
        print("\n".join(line[:200] for line in lines)[-1800:])
        fatal = output.find("Fatal Python error")
        if fatal >= 0:
            print(output[fatal : fatal + 1600])
        elif not lines:
            print(output[-800:])
    with open(os.path.join(folder, "tests.txt"), "w") as file:
        file.write(said)


if __name__ == "__main__":
    main()
