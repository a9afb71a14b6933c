"""For the tests and for the examples in docstrings: what must be so before the first of them runs."""

from __future__ import annotations

from collections import Counter
from importlib.util import find_spec
from typing import Any
from zlib import crc32

from retrograd.core.quiet import restore_names

restore_names()  # see quiet.py: NumPy's deprecation warnings are heard, and doctest finds the examples in kernels

# Modules on top of packages that retrograd does not bring cannot be imported to look for examples.
collect_ignore = [] if find_spec("tensorboard") else ["src/retrograd/utils/tensorboard"]

HAS_TORCH = find_spec("torch") is not None

#: A function with more cases than this has one for each sample, operator, module …
MANY = 100


def pytest_addoption(parser: Any) -> None:
    parser.addoption("--every", type=int, default=1, metavar="N", help="every Nth case of functions with very many")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if not HAS_TORCH:
        terminalreporter.write_line("without torch, tests that compare with it were left out: make test-parity")


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Without torch, tests that compare with it are left out at once: they are a third of all.

    With ``--every N``, functions with many cases run an Nth of them, each another: a sample that one leaves out is met
    by others.  All other tests run.
    """
    if not HAS_TORCH:
        compared = [item for item in items if item.get_closest_marker("parity") is not None]
        config.hook.pytest_deselected(items=compared)
        items[:] = [item for item in items if item.get_closest_marker("parity") is None]
    every = config.getoption("--every")
    if every <= 1:
        return
    functions = [item.nodeid.partition("[")[0] for item in items]
    cases = Counter(functions)
    seen = Counter({function: crc32(function.encode()) for function in cases})
    kept, left_out = [], []
    for item, function in zip(items, functions):
        seen[function] += 1
        (kept if cases[function] <= MANY or seen[function] % every == 0 else left_out).append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = kept
