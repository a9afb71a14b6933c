"""The families of docs/ARCHITECTURE.md: every file of operators is named after one, and an operator is in its own."""

from __future__ import annotations

import ast
import functools
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "retrograd"
PLACES = {
    "kernels": PACKAGE / "kernels",
    "derivatives": PACKAGE / "derivatives",
    "formulas": PACKAGE / "derivatives" / "formulas",
    "samples": ROOT / "tests" / "samples",
    "composite": PACKAGE / "ops" / "composite",
}

#: Files that are no family: why they are there, and the family whose kernels they hold, if they hold any.
HELPERS = {
    "composite/foreach": ("one operator on each tensor of a list", None),
    "kernels/blocks": ("large arrays in blocks that stay in the cache", None),
    "kernels/compiled": ("the optional compiled kernels, which the families ask first", None),
    "kernels/compiled_products": ("those of products and convolutions", None),
    "kernels/compiled_recurrent": ("those of recurrent layers", None),
    "kernels/conv_depthwise": ("conv.py would be above 500 lines with it", "conv"),
    "kernels/conv_tbc": ("conv.py would be above 500 lines with it", "conv"),
    "kernels/dims": ("which dimension is meant", None),
    "kernels/einsum": ("an equation read and planned; products.py would be above 500 lines with it", "products"),
    "kernels/indexing_key": ("reads what stands between the brackets of x[...]", None),
    "kernels/libraries": ("which kernels run, and those of other libraries of arrays", None),
    "kernels/linalg_checks": ("the checks and errors of three families of linear algebra", None),
    "kernels/pointwise": ("makes kernels of ufuncs, for all families of functions of one element", None),
    "kernels/promotion": ("torch's dtypes, for all", None),
    "kernels/storage": ("where elements lie, for shape and memory", None),
    "kernels/updates": ("the update rules of optimizers, which are no operators", None),
    "formulas/shared": ("helpers of several families", None),
    "samples/masked": ("the operators of torch.masked, which no table has", None),
    "samples/pointwise": ("makes the samples of operators that work element by element", None),
    "samples/shared": ("helpers of several families", None),
    "samples/spec": ("the vocabulary of samples", None),
}  # fmt: skip
#: Operators whose samples one expression makes with those of another family: signbit with the questions about
#: infinities, the others with the special functions of one argument.
MADE_TOGETHER = ("signbit", "deg2rad", "rad2deg", "sinc", "nan_to_num", "fill")


def read_families() -> set[str]:
    """The families in the table of the documentation."""
    text = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = text.partition("| family | what it holds |")[2].partition("\n\n")[0]
    return {re.findall(r"`(\w+)`", row.split("|")[1])[0] for row in table.splitlines()[2:]}


def files(place: str) -> list[Path]:
    kind = "*.yaml" if place == "derivatives" else "*.py"
    return [path for path in sorted(PLACES[place].glob(kind)) if path.stem != "__init__"]


@pytest.mark.parametrize("place", PLACES)
def test_every_file_is_named_after_a_family(place: str) -> None:
    names = {path.stem for path in files(place)}
    helpers = {name.partition("/")[2] for name in HELPERS if name.startswith(f"{place}/")}
    assert sorted(names - read_families() - helpers) == []
    assert sorted(helpers - names) == [], "these helpers are no more"
    assert sorted(helpers & read_families()) == []


def test_every_family_is_somewhere() -> None:
    assert sorted(read_families() - {path.stem for place in PLACES for path in files(place)}) == []


@functools.cache
def defined(place: str) -> dict[str, str]:
    """Which file defines a name."""
    found = {}
    for path in files(place):
        if path.stem in ("blocks", "compiled", "compiled_products", "compiled_recurrent"):
            continue  # their functions have the names of the kernels that ask them
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            targets = node.targets if isinstance(node, ast.Assign) else []
            targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
            names = [t.id for t in targets if isinstance(t, ast.Name)]
            names += [node.name] if isinstance(node, ast.FunctionDef) else []
            found |= {name: path.stem for name in names if not name.startswith("_")}
    return found


@functools.cache
def entries() -> list[tuple[str, str, str]]:
    """(family, operator, text) of every entry of the table."""
    found = []
    for path in files("derivatives"):
        for text in re.split(r"^- name:", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
            found.append((path.stem, re.findall(r"\w+", text)[0], text))
    assert len(found) > 300
    return found


def test_an_entry_and_its_kernel_are_in_one_family() -> None:
    kernels = defined("kernels") | {
        name: HELPERS[f"kernels/{file}"][1] or file
        for name, file in defined("kernels").items()
        if f"kernels/{file}" in HELPERS
    }
    wrong = [
        f"{operator} is in {family}.yaml, its kernel in {kernels[operator]}.py"
        for family, operator, text in entries()
        if "\n  kernel:" not in text and kernels[operator] != family  # (others borrow the kernel of another operator)
    ]
    assert wrong == []


def test_the_samples_of_an_entry_are_in_its_family() -> None:
    families = {operator: family for family, operator, _ in entries()}
    wrong, together = [], set(MADE_TOGETHER)
    for path in files("samples"):
        if path.stem in read_families():
            for op in importlib.import_module(f"samples.{path.stem}").OPS:
                family = families.get(op.fn) if isinstance(op.fn, str) else None
                if family not in (None, path.stem) and op.name in together:
                    together.remove(op.name)
                elif family not in (None, path.stem):
                    wrong.append(f"{op.name} is in samples/{path.stem}.py, its entry in {family}.yaml")
    assert wrong == []
    assert together == set(), "these are where they belong"


def test_a_formulas_helper_is_in_the_family_of_an_entry_that_calls_it() -> None:
    """Or among those that several families share."""
    home, callers = defined("formulas"), {}
    for family, _, text in entries():
        for name in set(re.findall(r"\b\w+(?=\()", text)) & set(home):
            callers.setdefault(name, set()).add(family)
    wrong = [f"{name} ({home[name]})" for name, families in callers.items() if home[name] not in {*families, "shared"}]
    assert wrong == []
