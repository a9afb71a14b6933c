"""Whole random programs, written before they run (see programs/grammar.py), beside torch.

What the two libraries write down differently is explained by a rule (programs/rules.py), or the test fails; a rule
may explain no more than its share of the programs, and in the long run it has to explain some.

``python tests/programs --programs 100000 --seed 7`` runs as many as one likes, and prints those that differ as scripts.
"""

from __future__ import annotations

import hashlib
from collections import Counter

import pytest

import retrograd
from programs.compare import difference, looking, shortened, write
from programs.pieces import Statement, render, size
from programs.rules import RULES, explain

try:
    import torch
except ImportError:
    torch = None

needs_torch = pytest.mark.skipif(torch is None, reason="torch is not installed")

LONG = 100_000


def check(seeds: range) -> Counter:
    """How many of the programs each rule explains; fails if it is too many, or if none explains a difference."""
    torch.set_num_threads(1)
    used: Counter[str] = Counter()
    for seed in seeds:
        program = write(seed)
        found, names = difference(program, retrograd, torch, explain)
        used.update({name.rstrip("*") for name in names})
        if found is not None:

            def differs(shorter: list[Statement], kind: str = found.kind) -> bool:
                still, _ = difference(shorter, retrograd, torch, explain)
                return still is not None and still.kind == kind

            short = shortened(program, differs)
            found = difference(short, retrograd, torch, explain)[0] or found
            pytest.fail(f"seed {seed}:\n{render(short)}\n-> {found}")
    for rule in RULES:
        # A few more in a small sample are no surprise.
        allowed = rule.budget * len(seeds) + 3 * (rule.budget * len(seeds)) ** 0.5 + 2
        assert used[rule.name] <= allowed, f"{rule.name} explains {used[rule.name]} of {len(seeds)} programs"
    return used


@pytest.mark.parity
@needs_torch
@pytest.mark.parametrize("first", range(0, 1500, 500))
def test_programs_are_torchs(first):
    check(range(first, first + 500))


@pytest.mark.slow
@pytest.mark.parity
@needs_torch
def test_programs_are_torchs_in_the_long_run():
    used = check(range(1_000_000, 1_000_000 + LONG))
    for rule in RULES:
        print(f"{used[rule.name] / LONG:8.3%} of {rule.budget:6.2%}  {rule.name}")
    stale = [rule.name for rule in RULES if not used[rule.name]]
    assert not stale, f"these rules explain nothing any more: {stale}"


# ------------------------------------------------------------------------------------------------- the generator itself


def test_a_seed_is_one_program_on_every_python():
    text = "".join(render(write(seed)) for seed in range(20))
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "83f30edffad7bd7a"


def test_programs_are_about_everything():
    text = "".join(render(write(seed)) for seed in range(400))
    for word in (
        "float16", "bfloat16", "complex64", "int8", "bool", "inference_mode()", "enable_grad()", "register_hook",
        "register_prehook", "register_post_accumulate_grad_hook", "register_multi_grad_hook", ".remove()", "mark_dirty",
        "mark_non_differentiable", "set_materialize_grads", "save_for_backward", "needs_input_grad", "setup_context",
        "once_differentiable", "use_reentrant=True", "use_reentrant=False", "make_dual", "create_graph=True",
        "retain_graph=True", "allow_unused=True", "inputs=[", "float('nan')", "float('inf')", "torch.zeros((0",
        "expand", ".transpose(", "out=", "detach()", "] = ", ".grad = None", ".grad.zero_()", "saved_tensors_hooks",
    ):  # fmt: skip
        assert word in text, word


def test_a_difference_is_found_and_shortened():
    """A library that computes tanh wrongly, and only there, differs; the statement that shows it remains."""

    class Wrong:
        def __getattr__(self, name):
            return (lambda x: x.tanh() + 1) if name == "tanh" else getattr(retrograd, name)

    program = [
        Statement("v1 = torch.ones(2)"),
        Statement("torch.no_grad()", [Statement("v2 = v1 * 2"), Statement("v3 = torch.tanh(v1)")]),
        Statement("look()"),
    ]
    assert difference(program, retrograd, retrograd)[0] is None
    found = difference(program, Wrong(), retrograd)[0]
    assert found is not None and found.what == "v3.value"
    short = shortened(program, lambda p: difference(p, Wrong(), retrograd)[0] is not None)
    assert [s.text for s in short] == ["v1 = torch.ones(2)", "v3 = torch.tanh(v1)", "look()"]
    assert size(looking(program)) == 10


def test_an_error_in_one_library_alone_is_a_difference():
    program = [Statement("v1 = torch.ones(2).no_such_method()")]
    assert difference(program, retrograd, retrograd)[0] is None

    class Other:
        def __getattr__(self, name):
            return getattr(retrograd, name)

        @staticmethod
        def ones(*shape):
            class More(retrograd.Tensor):
                def no_such_method(self):
                    return 1

            return More()

    found = difference(program, retrograd, Other())[0]
    assert found is not None and (found.what, found.mine, found.theirs) == ("raised", "AttributeError", None)
