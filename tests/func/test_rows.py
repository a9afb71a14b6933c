"""Passes over many gradients at once on bare arrays, beside one pass for each: over the sample database."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as torch
from func.test_vmap_operators import differentiable, function, mapped_ops
from retrograd.func import rows
from samples import Op

COUNT = 3


def cotangents(outputs: list[Any], seed: int) -> list[list[Any]]:
    """Rows of gradients for each of `outputs`."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(COUNT):
        parts = []
        for out in outputs:
            values = rng.standard_normal(tuple(out.shape))
            parts.append(torch.from_numpy(np.asarray(values)).to(out.dtype))
        found.append(parts)
    return found


def check(op: Op, samples: list[Any]) -> int:
    compared = 0
    for sample in samples:
        rng = np.random.default_rng(sample.seed)
        tensors = [torch.from_numpy(spec.draw(rng)) for spec in sample.specs]
        leaves = [t.requires_grad_() for t, spec in zip(tensors, sample.specs, strict=True) if spec.differentiable]
        try:
            given = [t.clone() if t.requires_grad else t for t in tensors]  # some are written to
            outputs = [out for out in function(torch, op, sample)(*given) if out.requires_grad]
            grads = cotangents(outputs, sample.seed)
            options = {"retain_graph": True, "allow_unused": True}
            expected = [torch.autograd.grad(outputs, leaves, row, **options) for row in grads]
        except Exception:
            continue  # not differentiable in these numbers
        if not outputs:
            continue
        stacked = [torch.stack(column) for column in zip(*grads, strict=True)]
        got = torch.autograd.grad(outputs, leaves, stacked, allow_unused=True, is_grads_batched=True)
        for mine, *apart in zip(got, *expected, strict=True):
            assert all(one is None for one in apart) == (mine is None), sample.name
            if mine is not None:
                right = np.stack([one.resolve_conj().resolve_neg().numpy() for one in apart])
                values = mine.resolve_conj().resolve_neg().numpy()
                assert values.shape == right.shape and values.dtype == right.dtype, sample.name
                np.testing.assert_allclose(values, right, rtol=1e-7, atol=1e-9, err_msg=sample.name)
        compared += 1
    return compared


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_rows_are_passes_one_by_one() -> None:
    """The first samples of every operator that can be differentiated; and every formula is used."""
    used = set()
    before = dict(rows.ROWS)
    if not before:
        rows._register()
        before = dict(rows.ROWS)

    def watched(cls: Any, formula: Any) -> Any:
        def run(node: Any, edges: Any, grad: Any) -> Any:
            used.add(cls)
            return formula(node, edges, grad)

        return run

    rows.ROWS.update({cls: watched(cls, formula) for cls, formula in before.items()})
    try:
        compared = sum(check(op, differentiable(op)[:2]) for op in mapped_ops())
    finally:
        rows.ROWS.update(before)
    assert compared > 700
    assert {before[cls] for cls in used} == set(before.values())
    assert len(used) > 100


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_rows_are_passes_one_by_one_for_all_samples() -> None:
    assert sum(check(op, differentiable(op)) for op in mapped_ops()) > 3500


def test_nodes_with_hooks_see_batched_gradients() -> None:
    x = torch.randn(3, requires_grad=True)
    y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append(tuple(g.shape)) or g * 10)
    (got,) = torch.autograd.grad(y.sin(), x, torch.eye(3), is_grads_batched=True)
    np.testing.assert_allclose(got.numpy(), np.diag(20 * np.cos(y.detach().numpy())), rtol=1e-6)
    assert seen == [(3,)]


def test_a_graph_is_released_after_a_pass_over_rows() -> None:
    x = torch.randn(3, requires_grad=True)
    y = x.sin()
    torch.autograd.grad(y, x, torch.eye(3), is_grads_batched=True)
    with pytest.raises(RuntimeError, match="a second time"):
        torch.autograd.grad(y, x, torch.eye(3), is_grads_batched=True)
