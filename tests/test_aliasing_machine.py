"""Random programs over views, in-place writes, grad modes, hooks and backward passes (see aliasing/programs.py).

Each is run by retrograd and, a statement at a time, compared with

* the oracle (aliasing/oracle.py), which has no graph and no aliasing of histories: every value and every ``.grad``;
* torch, where it is installed: every value, version, base, flag, node, gradient and error.

``python tests/aliasing --sequences 100000 --seed 7`` runs as many as one likes (``--oracle`` against the oracle).
"""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

import retrograd
from aliasing.compare import (
    difference,
    oracle_difference,
    oracle_seed,
    run_seed,
    shortened,
    step_differences,
)
from aliasing.exits import EXITS, OF_TANGENTS, OutOfStep, check_met
from aliasing.exits import check as check_exits
from aliasing.programs import Features, Generator, Machine

try:
    import torch
except ImportError:
    torch = None

needs_torch = pytest.mark.skipif(torch is None, reason="torch is not installed")

# ------------------------------------------------------------------------------------------------- seeded programs


def check_against_oracle(seeds: range, steps: int = 12) -> None:
    for seed in seeds:
        program, found = oracle_seed(seed, retrograd, steps)
        if found is not None:
            short = shortened(program, lambda p: oracle_difference(p, retrograd) is not None)
            pytest.fail(f"seed {seed}:\n" + "\n".join(short) + f"\n-> {oracle_difference(short, retrograd) or found}")


def check_against_torch(seeds: range, steps: int = 12) -> Counter[str]:
    torch.set_num_threads(1)
    exits: Counter[str] = Counter()
    for seed in seeds:
        program, found, every_step = run_seed(seed, retrograd, torch, exits, steps)
        if found is not None:
            short = shortened(program, lambda p, e=every_step: difference(p, retrograd, torch, e) is not None)
            found = difference(short, retrograd, torch, every_step) or found
            pytest.fail(f"seed {seed}:\n" + "\n".join(short) + f"\n-> {found}")
    check_exits(exits, len(seeds), steps)
    return exits


@pytest.mark.parametrize("first", range(0, 1600, 400))
def test_values_and_gradients_are_the_oracles(first):
    check_against_oracle(range(first, first + 400))


@pytest.mark.parity
@needs_torch
@pytest.mark.parametrize("first", range(0, 2500, 500))
def test_everything_is_torchs(first):
    check_against_torch(range(first, first + 500))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1_000_000, 1_020_000, 5000))
def test_values_and_gradients_are_the_oracles_in_the_long_run(first):
    check_against_oracle(range(first, first + 5000), steps=20)


@pytest.mark.slow
@pytest.mark.parity
@needs_torch
def test_everything_is_torchs_in_the_long_run():
    exits = check_against_torch(range(1_000_000, 1_020_000), steps=20)
    check_met(exits, EXITS.keys() - OF_TANGENTS)


# --------------------------------------------------------------------------------------------------- state machine


class Aliasing(RuleBasedStateMachine):
    """The same statements, chosen and shrunk by hypothesis: a rule a kind of statement."""

    def __init__(self) -> None:
        super().__init__()
        self.ours, self.yours = Machine(retrograd), Machine(torch)
        self.in_step = True

    def _next(self, kind: str, rng: random.Random, mode: bool) -> None:
        if not self.in_step:
            return
        generator = Generator(rng, Features())
        generator.tensors = self.ours.tensors()
        statement = getattr(generator, kind)()
        if mode:
            statement = f"with {generator.mode()}: {statement}"
        try:
            found = step_differences(self.ours, self.yours, statement)
        except OutOfStep:
            self.in_step = False
            return
        assert not found, "\n    ".join([statement, *found])

    @rule(rng=st.randoms(use_true_random=False))
    def leaf(self, rng):
        self._next("leaf", rng, False)

    def _rule(kind: str, moded: bool = False):
        @precondition(lambda self: self.ours.tensors())
        @rule(rng=st.randoms(use_true_random=False), mode=st.booleans() if moded else st.just(False))
        def run(self, rng, mode):
            self._next(kind, rng, mode)

        return run

    view = _rule("view", True)
    another_view = _rule("view")
    write = _rule("write", True)
    another_write = _rule("write")
    compute = _rule("compute", True)
    backward = _rule("backward")
    hook = _rule("hook")
    detach = _rule("detach")
    flag = _rule("flag")
    odd = _rule("odd")
    custom = _rule("custom", True)
    forget = _rule("forget")


TestAliasing = pytest.mark.parity(needs_torch(Aliasing.TestCase))
TestAliasing.settings = settings(
    max_examples=60,
    stateful_step_count=15,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
