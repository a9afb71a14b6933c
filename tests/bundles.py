"""Functions with very many cases run them by the dozen: a *bundle* is one of pytest's tests that runs many cases.

What pytest does around a test (set it up, capture what it prints, send three reports to the process that shows them)
takes longer than most of our cases do, of which there are tens of thousands; and its objects for all of them would be
walked whenever a test calls the garbage collector.  So consecutive cases of one function are run one after the other,
whatever becomes of those before.  Failures are reported together, each under the name by which pytest finds that case
alone, as it does with ``-k``:

    make test ARGS='"tests/test_operators.py::test_inputs_keep_their_values[mul[broadcast]]"'

Only functions all of whose arguments come from ``parametrize`` are bundled, since fixtures are made for each case anew,
and only cases without marks of their own that pytest has to act upon.  With ``--each`` or ``--pdb``, all cases are
tests of their own.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import pytest

#: The most cases of a bundle: so many that what is around them does not count, so few that `-x` soon stops.
SIZE = 50
#: Functions with fewer cases stay as they are.
FEWEST = 10
#: So many failures of a bundle are shown in full, the others by name.
SHOWN = 5
#: What a case may be marked with; everything else is for pytest to act upon.
HARMLESS = {"parametrize", "filterwarnings", "parity"}


def pytest_addoption(parser: Any) -> None:
    parser.addoption("--each", action="store_true", help="run each case of a function with many as a test of its own")


class Failures(Exception):
    """Cases of a bundle have failed: its text says which, and how."""


class Bundle(pytest.Item):
    """Consecutive cases of a function."""

    def __init__(self, *, functions: list[pytest.Function], **given: Any) -> None:
        super().__init__(**given)
        self.function = functions[0]
        #: The names and arguments of all cases.  Pytest's objects for them, but for one, are let go.
        self.cases = [(one.nodeid, one.callspec.params) for one in functions]
        self.own_markers = [mark for mark in self.function.own_markers if mark.name != "parametrize"]
        self.keywords.update({mark.name: mark for mark in self.own_markers})
        self.function.own_markers = []
        self.function.keywords = {}

    def runtest(self) -> None:
        failures: list[tuple[str, str]] = []
        skipped: Counter[str] = Counter()
        most = self.config.getoption("maxfail") or 0
        known = _known_failures(self.config)
        mended: list[str] = []
        for name, arguments in self.cases:
            try:
                with warnings.catch_warnings():  # a case may change the filters: pytest undoes that after a test
                    self.function.obj(**arguments)
                if name in known:
                    mended.append(name)
            except (pytest.skip.Exception, pytest.xfail.Exception) as reason:
                skipped[str(reason)] += 1
            except pytest.exit.Exception:
                raise
            except (Exception, pytest.fail.Exception):
                info = pytest.ExceptionInfo.from_current()
                in_full = len(failures) < SHOWN
                failures.append((name, str(self.function.repr_failure(info)) if in_full else info.exconly()))
                if 0 < most <= len(failures):
                    break
        self.user_properties += [("cases", len(self.cases)), ("skipped", dict(skipped)),
                                 ("failed", [name for name, _ in failures]), ("mended", mended)]  # fmt: skip
        if failures:
            texts = "".join(f"\n--- {name}\n{text}\n" for name, text in failures)
            raise Failures(f"{len(failures)} of {len(self.cases)} cases failed:\n{texts}")
        if skipped.total() == len(self.cases):
            pytest.skip(", ".join(skipped))

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        return str(excinfo.value) if isinstance(excinfo.value, Failures) else super().repr_failure(excinfo, style)

    def reportinfo(self) -> Any:
        return (*self.function.reportinfo()[:2], self.name)


def _can_be_bundled(item: Any) -> bool:
    if not isinstance(item, pytest.Function) or item.cls is not None or not hasattr(item, "callspec"):
        return False
    given: set[str] = set()
    for mark in item.iter_markers("parametrize"):
        if mark.kwargs.get("indirect"):
            return False
        names = mark.kwargs.get("argnames") or mark.args[0]
        given.update([name.strip() for name in names.split(",")] if isinstance(names, str) else names)
    harmless = all(mark.name in HARMLESS for mark in item.callspec.marks) and not item.get_closest_marker("xfail")
    return harmless and given.issuperset(item.fixturenames) and not hasattr(item.obj, "hypothesis")


def _together(item: Any) -> Any:
    """Equal for consecutive cases that can be in one bundle; None for those that cannot be in any."""
    return (id(item.parent), item.originalname, str(item.callspec.marks)) if _can_be_bundled(item) else None


def _bundled(items: list[Any]) -> Iterator[Any]:
    for key, group in groupby(items, _together):
        functions = list(group)
        if key is None or len(functions) < FEWEST:
            yield from functions
            continue
        for some in (functions[start : start + SIZE] for start in range(0, len(functions), SIZE)):
            name = some[0].name.removesuffix("]") + f" and {len(some) - 1} more]"
            yield Bundle.from_parent(some[0].parent, name=name, functions=some)
        marks = functions[0].obj.pytestmark  # the cases that they hold are made
        marks[:] = [mark for mark in marks if mark.name != "parametrize"]


@pytest.hookimpl(trylast=True)  # after the choice by -k, -m and --every
def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    option = config.option
    if not (option.each or option.usepdb or option.trace or option.collectonly):
        items[:] = _bundled(items)


class _Failed:
    """Of a bundle that fails, its cases are remembered for ``--lf``, which chooses before they are bundled."""

    def __init__(self, config: Any) -> None:
        self.config = config
        self.bundles: set[str] = set()
        self.failed: set[str] = set()
        self.mended: set[str] = set()

    def pytest_runtest_logreport(self, report: Any) -> None:
        properties = dict(report.user_properties)
        if report.when == "call" and "cases" in properties:
            self.bundles.add(report.nodeid)
            self.failed.update(properties["failed"])
            self.mended.update(properties["mended"])

    @pytest.hookimpl(trylast=True)  # after pytest has written down what failed
    def pytest_sessionfinish(self) -> None:
        if self.bundles and not hasattr(self.config, "workerinput"):
            known = _known_failures(self.config)
            kept = {name for name in known if name not in self.bundles | self.mended}
            self.config.cache.set(_LAST_FAILED, dict.fromkeys(sorted(kept | self.failed), True))


#: Where pytest keeps the names of the tests that have failed.
_LAST_FAILED = "cache/lastfailed"


def _known_failures(config: Any) -> dict[str, bool]:
    cache = getattr(config, "cache", None)
    return {} if cache is None else cache.get(_LAST_FAILED, {})


def pytest_configure(config: Any) -> None:
    if hasattr(config, "cache"):
        config.pluginmanager.register(_Failed(config))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """How many cases there were in bundles, and why some were skipped."""
    cases, skipped = 0, Counter[str]()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport) and report.when == "call":
                properties = dict(report.user_properties)
                cases += properties.get("cases", 0)
                skipped.update(properties.get("skipped", {}))
    if cases:
        terminalreporter.write_line(f"{cases} cases ran in bundles, of which {skipped.total()} were skipped")
    for reason, count in sorted(skipped.items()):
        terminalreporter.write_line(f"  {count}: {reason}")
