"""Which tensors an operator needs unchanged until backward: those that torch needs, and no others.

A tensor that is saved where torch does not save it makes backward() fail for programs that torch runs; one that is
not saved where torch saves it is no harm.
"""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import retrograd
from operator_runs import Run
from samples import OPS
from samples.spec import Op

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

#: torch makes a copy, or computes by other operators.
ALSO_SAVED_HERE = {
    "matmul", "__matmul__", "einsum", "ndtr", "multi_head_attention_forward", "nn.functional.mse_loss",
    "nn.functional.scaled_dot_product_attention", "kron", "lobpcg", "gru", "lstm", "rnn_relu",
    "rnn_tanh", "__rtruediv__, options",
    # Where the modulus is 0, torch's gradient is 0; ours is that of the angle.
    "polar",
    # The sample of no elements: nothing is computed of it.
    "nn.functional.batch_norm, options",
}  # fmt: skip


def needed(module: Any, op: Op, sample: Any) -> set[tuple[str, int]]:
    """The leaves and results whose modification makes the gradient fail."""
    found = set()
    first = Run(module, op, sample)
    for kind, number in (("input", len(first.leaves)), ("result", len(first.roots))):
        for i in range(number):
            run = Run(module, op, sample)
            module.autograd.graph.increment_version(run.leaves[i] if kind == "input" else run.roots[i])
            try:
                run.gradients()
            except RuntimeError as error:
                if "modified by an inplace operation" in str(error):
                    found.add((kind, i))
    return found


@pytest.mark.parametrize(
    "op", [op for op in OPS if op.torch_gradient and op.name not in ALSO_SAVED_HERE], ids=lambda op: op.name
)
def test_nothing_is_needed_that_torch_does_not_need(op):
    for sample in op.samples[:2]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                theirs = needed(torch, op, sample)
            except Exception:
                continue  # test_operators.py is about what is computed
            mine = needed(retrograd, op, sample)
            assert mine <= theirs, sample.name
