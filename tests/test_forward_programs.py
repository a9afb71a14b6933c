"""Random programs over views, in-place writes and dual tensors, beside torch (see aliasing/duals.py)."""

from __future__ import annotations

from collections import Counter

import pytest

import retrograd
from aliasing.duals import dual_seed
from aliasing.exits import OF_TANGENTS, check_met
from aliasing.exits import check as check_exits

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity


def check(seeds: range, steps: int) -> Counter[str]:
    torch.set_num_threads(1)
    exits: Counter[str] = Counter()
    for seed in seeds:
        found = dual_seed(seed, retrograd, torch, exits, steps)
        if found is not None:
            pytest.fail(found)
    check_exits(exits, len(seeds), steps)
    return exits


@pytest.mark.parametrize("first", range(0, 600, 150))
def test_tangents_are_torchs(first):
    check(range(first, first + 150), steps=12)


@pytest.mark.slow
def test_tangents_are_torchs_in_the_long_run():
    check_met(check(range(1_000_000, 1_020_000), steps=16), OF_TANGENTS)
