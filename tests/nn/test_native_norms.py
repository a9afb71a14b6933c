"""native_group_norm, native_layer_norm and native_batch_norm: which of their results have a derivative."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd


def inputs(module: Any) -> list[Any]:
    rng = np.random.default_rng(3)
    return [module.from_numpy(rng.normal(size=shape)).requires_grad_() for shape in ((2, 4, 3), (4,), (4,))]


def group_norm(module: Any, x: Any, weight: Any, bias: Any) -> Any:
    return module.native_group_norm(x, weight, bias, 2, 4, 3, 2, 1e-5)


def test_what_requires_grad(torch):
    x, weight, bias = inputs(torch)
    results = group_norm(torch, x, weight, bias)
    assert [(r.requires_grad, r.output_nr, tuple(r.shape)) for r in results] == [
        (True, 0, (2, 4, 3)), (True, 1, (2, 2)), (True, 2, (2, 2)),
    ]  # fmt: skip
    for others in (
        torch.native_layer_norm(x, (3,), None, None, 1e-5),
        torch.native_batch_norm(x, weight, bias, None, None, True, 0.1, 1e-5),
    ):
        assert [r.requires_grad for r in others] == [True, False, False]
        assert len(others[0].grad_fn._input_metadata) == 1


def test_group_norm_by_finite_differences():
    """Every result by itself, backward and forward, and twice. (Torch loses the gradient of the mean or of the inverse
    deviation where the other's is not given.)"""
    x, weight, bias = inputs(retrograd)
    for chosen in ((0,), (1,), (2,), (1, 2), (0, 1, 2)):

        def some(x, weight, bias, chosen=chosen):
            results = group_norm(retrograd, x, weight, bias)
            return tuple(results[i] for i in chosen)

        # (The means do not depend on the weight.)
        args = (x, weight, bias) if 0 in chosen else (x, weight.detach(), bias.detach())
        assert retrograd.autograd.gradcheck(some, args, check_forward_ad=True)
        assert retrograd.autograd.gradgradcheck(some, args)


@pytest.mark.parity
@pytest.mark.parametrize("chosen", [(0,), (1, 2), (0, 1, 2)])
def test_group_norm_beside_torch(chosen):
    torch = pytest.importorskip("torch")
    found = []
    for module in (retrograd, torch):
        args = inputs(module)
        results = group_norm(module, *args)
        rng = np.random.default_rng(4)
        given = [module.from_numpy(rng.normal(size=tuple(results[i].shape))) for i in chosen]
        grads = module.autograd.grad([results[i] for i in chosen], args, given, allow_unused=True)
        tangents = [module.from_numpy(rng.normal(size=tuple(a.shape))) for a in args]
        with module.autograd.forward_ad.dual_level():
            duals = [module.autograd.forward_ad.make_dual(a.detach(), t) for a, t in zip(args, tangents, strict=True)]
            forward = [module.autograd.forward_ad.unpack_dual(r).tangent for r in group_norm(module, *duals)]
        found.append([None if g is None else g.numpy() for g in (*grads, *forward)])
    for mine, theirs in zip(*found, strict=True):
        assert (mine is None) == (theirs is None)
        if mine is not None:
            np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)
