"""Builds both wheels, the package's and that of its compiled part, and tests them where nothing else is installed.

    python tools/wheels.py [further arguments for pytest]

First the package alone, which is pure Python; then both, on the compiled core. It fails if one takes more than three
minutes of the processor's time to build, or has more than five megabytes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WHEELS, ENVIRONMENT = ROOT / "build" / "wheels", ROOT / ".venvs" / "wheels"
MOST_SECONDS, MOST_BYTES = 180, 5_000_000
#: Few, but they read every kind of file that a wheel has to have: code, what is generated, signatures, pages.
TESTS = [
    "tests/test_tensor.py", "tests/autograd/test_engine.py", "tests/test_registry.py", "tests/explorer/test_page.py"
]  # fmt: skip
OF_THE_CORE = ["tests/test_compiled_core.py", "tests/kernels/test_compiled_products.py"]


def processor_time() -> float:
    """What the processes that were started and have ended took: on a busy machine the clock says more."""
    times = os.times()
    return times.children_user + times.children_system


def build(project: Path) -> Path:
    """The wheel of a project, with how long it took and how large it is."""
    start, before = processor_time(), set(WHEELS.glob("*.whl"))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-deps"]
    subprocess.run([*pip, "--wheel-dir", str(WHEELS), str(project)], check=True)
    seconds, (wheel,) = processor_time() - start, set(WHEELS.glob("*.whl")) - before
    size = wheel.stat().st_size
    print(f"{wheel.name}: {seconds:.0f} s, {size / 1e6:.2f} MB", flush=True)
    if seconds > MOST_SECONDS or size > MOST_BYTES:
        sys.exit(f"{wheel.name} may take {MOST_SECONDS} s and have {MOST_BYTES / 1e6:.0f} MB")
    return wheel


def run(python: Path, core: str, tests: list[str]) -> None:
    """The tests with what is installed, and with nothing of the checkout but them."""
    hidden = ("RETROGRAD_", "PYTHONPATH")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    environment["RETROGRAD_CORE"] = core
    code = "import retrograd; print(retrograd.__file__); print(retrograd.__config__.show())"
    subprocess.run([str(python), "-P", "-c", code], check=True, env=environment, cwd=ROOT / "build")
    options = ["-q", "-n", "auto", "--dist", "loadfile", "-m", "not slow"]
    given = [str(python), "-P", "-m", "pytest", *options, *tests, *sys.argv[1:]]
    subprocess.run(given, check=True, env=environment, cwd=ROOT)


def main() -> None:
    shutil.rmtree(WHEELS, ignore_errors=True)
    shutil.rmtree(ROOT / "fast" / "build", ignore_errors=True)
    pure, compiled = build(ROOT), build(ROOT / "fast")
    venv.create(ENVIRONMENT, clear=True, with_pip=True)
    python = ENVIRONMENT / "bin" / "python"
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run([*pip, f"{pure}[test]"], check=True)
    run(python, "python", TESTS)
    subprocess.run([*pip, "--no-deps", str(compiled)], check=True)
    run(python, "compiled", [*TESTS, *OF_THE_CORE])


if __name__ == "__main__":
    main()
