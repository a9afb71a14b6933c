"""For the tests and for the examples in docstrings: what must be so before the first of them runs."""

from __future__ import annotations

import gc
from collections import Counter
from importlib.util import find_spec
from typing import Any
from zlib import crc32

import pytest

from retrograd.core.quiet import restore_names

pytest_plugins = ["bundles"]  # tests/bundles.py, which pytest finds by pyproject.toml's pythonpath
pytest.register_assert_rewrite("operator_runs")  # what its assertions compare is shown, as those of tests

restore_names()  # see quiet.py: NumPy's deprecation warnings are heard, and doctest finds the examples in kernels

# Modules on top of packages that retrograd does not bring cannot be imported to look for examples.
collect_ignore = [] if find_spec("tensorboard") else ["src/retrograd/utils/tensorboard"]

HAS_TORCH = find_spec("torch") is not None

#: A function with more cases than this has one for each sample, operator, module …
MANY = 100


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Any:
    """The garbage collector does not look at the tests, of which there are thousands, nor at any module.

    They stay until the end.  Some tests call it again and again, and it would walk all of this each time.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


def pytest_addoption(parser: Any) -> None:
    parser.addoption("--every", type=int, default=1, metavar="N", help="every Nth case of functions with very many")


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: Any, name: str, obj: Any) -> Any:
    """Without torch, functions that compare with it are left out before pytest makes a test of each of their cases."""
    marks = [] if HAS_TORCH else getattr(obj, "pytestmark", [])
    found = [mark for mark in marks if mark.name == "parity"]
    if found:
        marks[:] = found  # without those that hold the cases
        return []
    return None


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if not HAS_TORCH:
        terminalreporter.write_line("without torch, tests that compare with it were left out: make test-parity")


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Without torch, tests that compare with it are left out at once: with those above, they are a third of all.

    With ``--every N``, functions with many cases run an Nth of them, each another: a sample that one leaves out is met
    by others.  All other tests run.

    (pytest is not told what was left out: it would keep all of that until the end, for the garbage collector to walk.)
    """
    if not HAS_TORCH:
        items[:] = [item for item in items if item.get_closest_marker("parity") is None]
    every = config.getoption("--every")
    if every <= 1:
        return
    functions = [item.nodeid.partition("[")[0] for item in items]
    cases = Counter(functions)
    seen = Counter({function: crc32(function.encode()) for function in cases})
    kept = []
    for item, function in zip(items, functions):
        seen[function] += 1
        if cases[function] <= MANY or seen[function] % every == 0:
            kept.append(item)
    items[:] = kept
