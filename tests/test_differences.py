"""docs/DIFFERENCES.md: each example is run here, and beside torch; the tables are those that the tests compare by.

``python tests/test_differences.py`` writes the tables anew.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import io
import re
import sys
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import pytest

PAGE = Path(__file__).parent.parent / "docs" / "DIFFERENCES.md"


class Entry(NamedTuple):
    """One difference of the page."""

    title: str
    reason: str
    code: str
    ours: str
    theirs: str


def entries() -> list[Entry]:
    found = []
    for part in re.split(r"^### ", PAGE.read_text(encoding="utf-8"), flags=re.M)[1:]:
        title, _, rest = re.split(r"^## ", part, maxsplit=1, flags=re.M)[0].partition("\n")
        reason, _, block = rest.partition("```pycon\n")
        lines = block.partition("```")[0].splitlines()
        code = [line[4:] for line in lines if line.startswith((">>> ", "... "))]
        said = dict(line.split(": ", 1) for line in lines if line.startswith(("retrograd: ", "torch: ")))
        found.append(Entry(title, reason.strip(), "\n".join(code), said.get("retrograd", ""), said.get("torch", "")))
    return found


def run(name: str, code: str) -> str:
    """What the last expression is, or the error that is raised, on one line."""
    module = importlib.import_module(name)
    tree = ast.parse(code)
    last = tree.body[-1]
    printed = io.StringIO()
    namespace: dict[str, Any] = {"torch": module}
    value = None
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(printed):
            warnings.simplefilter("ignore")
            exec(compile(ast.Module(tree.body[:-1], []), "example", "exec"), namespace)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), "example", "eval"), namespace)
            else:
                exec(compile(ast.Module([last], []), "example", "exec"), namespace)
    except Exception as error:
        return " ".join(f"{type(error).__name__}: {error}".split())
    return " ".join((printed.getvalue() + ("" if value is None else repr(value))).split())


def fits(found: str, expected: str) -> bool:
    """Is it this, where ``...`` stands for anything?"""
    return re.fullmatch(".*".join(re.escape(part) for part in expected.split("...")), found) is not None


@pytest.fixture(autouse=True)
def same_state(clean_state: None) -> Any:
    import retrograd

    before = retrograd.get_rng_state()
    yield
    retrograd.set_rng_state(before)


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.title)
def test_it_has_a_reason_and_an_example(entry: Entry) -> None:
    assert entry.reason and entry.code and entry.ours and entry.theirs


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.title)
def test_what_it_says_of_retrograd(entry: Entry) -> None:
    found = run("retrograd", entry.code)
    assert fits(found, entry.ours), found


@pytest.mark.parity
@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.title)
def test_what_it_says_of_torch(entry: Entry) -> None:
    """And that it still is a difference: an entry whose two outcomes have become the same has to go."""
    torch = pytest.importorskip("torch")
    try:
        found = run("torch", entry.code)
    finally:
        torch.set_flush_denormal(False)  # an example sets it, and the processor obeys it in all that this process runs
    assert fits(found, entry.theirs), found
    assert not fits(found, entry.ours), "this is no difference any more: delete the entry"


# --------------------------------------------------------------------------------------------------------------- tables


def tables() -> dict[str, list[tuple[str, str]]]:
    """By the name of a table: what differs, and why; from where the tests have it."""
    from aliasing.exits import EXITS
    from autograd.test_dispatch_trace import COMPOSED_OTHERWISE
    from graph_differences import _LISTED, _SHOWN
    from programs.rules import RULES
    from special_value_exceptions import _BY_REASON, WHY
    from test_bfloat16 import TORCH_DIFFERS
    from test_no_argument_is_ignored import EXCEPTIONS
    from wrong_calls.explained import ACCEPTED, REFUSED

    def names(found: Any) -> str:
        return ", ".join(f"`{name}`" for name in found)

    graphs: dict[str, list[str]] = {}
    for reason, _, operators in _LISTED:
        graphs.setdefault(reason, []).extend(operators)
    return {
        "graphs": [(names(operators), why) for why, operators in graphs.items()],
        "attributes of nodes": [(names(attributes), why) for why, attributes in _SHOWN],
        "special values": [(names(_BY_REASON[reason]), why) for reason, why in WHY.items()],
        "bfloat16": [(f"`{name}`", why) for name, why in TORCH_DIFFERS.items()],
        "programs": [(rule.name, rule.reason) for rule in RULES],
        "memory": [(name, why) for name, (_, why) in EXITS.items()],
        "accepted": [(f"`{reason.calls}`", reason.why) for reason in ACCEPTED],
        "refused": [(f"`{reason.calls}`", reason.why) for reason in REFUSED],
        "not read": [(names(found), why) for why, found in EXCEPTIONS.items()],
        "trace": [(names(op for _, op in calls), why) for why, (_, calls) in COMPOSED_OTHERWISE.items()],
    }


def with_tables(text: str) -> str:
    """The page with its tables as they are now."""
    for name, rows in tables().items():
        lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
        table = "\n".join(["| what | why |", "| --- | --- |", *lines])
        pattern = rf"<!-- {name} -->\n.*?<!-- end -->"
        assert len(re.findall(pattern, text, flags=re.S)) == 1, f"the page has no place for the table {name!r}"
        made = f"<!-- {name} -->\n{table}\n<!-- end -->"
        text = re.sub(pattern, lambda _, made=made: made, text, flags=re.S)  # type: ignore[misc]
    return text


def test_the_tables_are_those_of_the_tests() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert with_tables(text) == text, "run: python tests/test_differences.py"


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
