"""Every operator records the nodes that torch records, saves what torch saves, and packs it in torch's order.

`graph_differences.py` has the operators and the attributes of nodes of which this does not hold, each with a reason;
one that is listed there in vain fails as well.
"""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import retrograd
from graph_differences import ATTRIBUTES, OPERATORS
from graphs import differences, recorded
from samples import OPS
from samples.spec import Op

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity


def found_of(op: Op, excused: dict[str, int]) -> dict[str, str]:
    """The kinds of differences that some sample of an operator shows, each with an example."""
    found: dict[str, str] = {}
    for inplace in (None, op.inplace) if op.inplace else (None,):
        for sample in op.samples:
            if inplace is not None and not sample.method:
                continue
            try:
                theirs = recorded(torch, op, sample, inplace)
                mine = recorded(retrograd, op, sample, inplace)
            except Exception:  # test_operators.py is about what is refused
                continue
            for kind, example in differences(mine, theirs, excused).items():
                found.setdefault(kind, f"{sample.name}{' in place' if inplace else ''}: {example}")
    return found


@pytest.fixture(scope="module")
def comparison() -> tuple[dict[str, dict[str, str]], dict[str, int]]:
    """What was found of each operator, and how often each attribute was excused."""
    excused = dict.fromkeys(ATTRIBUTES, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {op.name: found_of(op, excused) for op in OPS}, excused


@pytest.mark.parametrize("name", [op.name for op in OPS])
def test_graph_is_torchs(comparison: Any, name: str) -> None:
    found = comparison[0][name]
    kinds, reason = OPERATORS.get(name, (frozenset(), ""))
    for kind, example in found.items():
        assert kind in kinds, f"{kind}: {example}"
    for kind in kinds:
        assert kind in found, f"{name} is listed as different in what it has {kind} ({reason}), and is not"


def test_no_exception_is_listed_in_vain(comparison: Any) -> None:
    assert [name for name, used in comparison[1].items() if not used] == []
    assert OPERATORS.keys() <= comparison[0].keys()
