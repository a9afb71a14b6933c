"""Sweeps over a recorded graph, beside the derivative of the gradient: over the sample database; and who falls back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as torch
from func.test_vmap_operators import differentiable, function, mapped_ops
from operator_runs import needs_torch
from retrograd.autograd import functional
from retrograd.func import sweep
from samples import Op


def twice(outputs: list[Any], leaves: list[Any], vectors: list[Any]) -> list[Any]:
    """The products with the Jacobian from two backward passes."""
    taken_with = [torch.zeros_like(out, requires_grad=True) for out in outputs]
    gradients = torch.autograd.grad(outputs, leaves, taken_with, create_graph=True, allow_unused=True)
    pairs = [(g, v) for g, v in zip(gradients, vectors, strict=True) if g is not None and g.requires_grad]
    if not pairs:
        return [None] * len(outputs)
    return list(torch.autograd.grad([g for g, _ in pairs], taken_with, [v for _, v in pairs], allow_unused=True))


def check(op: Op, samples: list[Any]) -> tuple[int, set[str]]:
    compared, swept = 0, set()
    for sample in samples:
        rng = np.random.default_rng(sample.seed)
        tensors = [torch.from_numpy(spec.draw(rng)) for spec in sample.specs]
        leaves = [t.requires_grad_() for t, spec in zip(tensors, sample.specs, strict=True) if spec.differentiable]
        vectors = [torch.from_numpy(np.asarray(rng.standard_normal(tuple(t.shape)))).to(t.dtype) for t in leaves]
        try:
            given = [t.clone() if t.requires_grad else t for t in tensors]  # some are written to
            outputs = [out for out in function(torch, op, sample)(*given) if out.requires_grad]
            expected = twice(outputs, leaves, vectors)
        except Exception:
            continue  # not differentiable twice in these numbers
        if not outputs:
            continue
        got = sweep.tangents(outputs, leaves, vectors)
        if got is None:
            continue
        for out, mine, right in zip(outputs, got, expected, strict=True):
            values = np.zeros(tuple(out.shape)) if right is None else right.numpy()
            mine = np.zeros(tuple(out.shape)) if mine is None else mine
            assert mine.shape == values.shape, sample.name
            np.testing.assert_allclose(mine, values, rtol=1e-7, atol=1e-9, err_msg=sample.name)
            swept.add(type(out.grad_fn).__name__)
        compared += 1
    return compared, swept


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_sweeps_are_derivatives_of_gradients() -> None:
    compared, swept = 0, set()
    for op in mapped_ops():
        count, names = check(op, differentiable(op)[:2])
        compared += count
        swept |= names
    assert compared > 300
    assert {"MulBackward0", "MvBackward0", "MmBackward0", "AddmmBackward0", "ViewBackward0", "ProdBackward0"} <= swept


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_sweeps_are_derivatives_of_gradients_for_all_samples() -> None:
    assert sum(check(op, differentiable(op))[0] for op in mapped_ops()) > 1000


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * x**2 * grad


def test_what_is_not_swept_over_is_differentiated_twice() -> None:
    x, v = torch.tensor([1.0, 2.0]), torch.tensor([1.0, -1.0])
    calls = []

    def own(x: Any) -> Any:
        calls.append(1)
        return Cube.apply(x).cumsum(0)

    _, product = functional.jvp(own, x, v)
    np.testing.assert_allclose(product.numpy(), [3.0, -9.0])
    assert len(calls) == 1  # the function runs once in any case

    def hooked(x: Any) -> Any:
        y = x * x
        y.register_hook(lambda grad: grad * 10)
        return y

    assert functional.jvp(hooked, x, v)[1].tolist() == [20.0, -40.0]


def test_results_are_nobody_elses() -> None:
    x, v = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    _, (a, b) = functional.jvp(lambda x: (x, x.view(2, 1)), x, v)
    a += 1
    b += 1
    assert v.tolist() == [3.0, 4.0] and a.tolist() == [4.0, 5.0] and b.tolist() == [[4.0], [5.0]]
    assert functional.jvp(lambda x: x.sum() * torch.ones(2), x, v)[1].add_(1).tolist() == [8.0, 8.0]


@needs_torch
@pytest.mark.parity
def test_products_and_hessians_are_torchs() -> None:
    import torch as theirs

    rng = np.random.default_rng(0)
    weights, point, direction = rng.standard_normal((6, 6)), rng.standard_normal(6), rng.standard_normal(6)
    found = []
    for lib in (torch, theirs):
        w, x, v = (lib.from_numpy(a.copy()) for a in (weights, point, direction))

        def energy(x: Any, lib: Any = lib, w: Any = w) -> Any:
            return (lib.tanh(w @ x) ** 2).sum() + (x * x * x).sum() + x.sin().prod() + x.cumsum(0)[3] ** 2

        def many(x: Any, lib: Any = lib, w: Any = w) -> Any:
            return lib.tanh(w @ x) * x.sin(), x.view(2, 3).t(), x[1:4], lib.nn.functional.linear(x, w, x)

        f = lib.autograd.functional
        products = [f.hvp(energy, x, v)[1], f.vhp(energy, x, v)[1], f.hessian(energy, x), *f.jvp(many, x, v)[1]]
        found.append([t.numpy() for t in (*products, *f.jacobian(many, x))])
    for mine, right in zip(*found, strict=True):
        np.testing.assert_allclose(mine, right, rtol=1e-9, atol=1e-12)
