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


def _norms(torch: Any) -> dict[str, Any]:
    f = torch.nn.functional
    return {
        "layer_norm": lambda x, w, b: f.layer_norm(x, (4,), w, b),
        "group_norm": lambda x, w, b: f.group_norm(x, 2, w, b),
        "batch_norm": lambda x, w, b: f.batch_norm(x, None, None, w, b, True),
    }


@pytest.mark.parametrize("name", ["layer_norm", "group_norm", "batch_norm"])
@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_parameters_may_have_more_precision(torch: Any, name: str, half: str) -> None:
    """Results have the input's dtype, gradients of parameters theirs, not rounded on the way."""
    norm = _norms(torch)[name]
    x = torch.arange(32.0).cos().reshape(2, 4, 4).to(getattr(torch, half))
    grads = []
    for dtype in (x.dtype, torch.float32):
        weight, bias = (torch.linspace(s, s + 1, 4).requires_grad_() for s in (0.5, -0.5))
        input = x.detach().clone().to(dtype).requires_grad_()
        result = norm(input, weight, bias)
        assert result.dtype == dtype
        result.backward(torch.ones_like(result))
        assert input.grad.dtype == dtype
        grads.append((weight.grad, bias.grad))
    for mixed, single in zip(*grads, strict=True):
        assert mixed.dtype == torch.float32
        # torch itself rounds those of layer_norm on the way.
        assert torch.allclose(mixed, single, atol=0.05 if (torch.__name__, name) == ("torch", "layer_norm") else 1e-4)


@pytest.mark.parametrize("name", ["layer_norm", "group_norm", "batch_norm"])
@pytest.mark.parametrize("input, weight, bias, message", [
    ("float16", "bfloat16", "bfloat16", "expect parameter to have scalar type of Float"),
    ("float16", "float32", "float16", "expect parameter to have scalar type of Float"),
    ("float16", "float16", "float32", "expected scalar type Half but found Float"),
    ("float32", "float32", "float64", "expected scalar type Float but found Double"),
    ("float32", "float64", "float64", "expect parameter to have scalar type of Float"),
    ("float64", "float32", "float32", "all inputs must share same datatype"),
])  # fmt: skip
def test_dtypes_that_do_not_go_together(
    torch: Any, name: str, input: str, weight: str, bias: str, message: str
) -> None:
    x = torch.ones(2, 4, 4, dtype=getattr(torch, input))
    with pytest.raises(RuntimeError, match=message):
        _norms(torch)[name](x, *(torch.ones(4, dtype=getattr(torch, d)) for d in (weight, bias)))


def test_statistics_have_the_parameters_dtype(torch: Any) -> None:
    x, weight = torch.ones(2, 4, dtype=torch.float16), torch.ones(4)
    for result in (
        torch.native_layer_norm(x, (4,), weight, weight, 1e-5),
        torch.native_group_norm(x, weight, weight, 2, 4, 1, 2, 1e-5),
    ):
        assert [part.dtype for part in result] == [torch.float16, torch.float32, torch.float32]


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("training", [True, False])
def test_running_statistics_of_instance_norm_have_any_dtype(torch: Any, dtype: str, training: bool) -> None:
    x = torch.arange(24.0, dtype=torch.float64).reshape(2, 3, 4)
    mean, var = (torch.ones(3, dtype=getattr(torch, dtype)) for _ in "mv")
    result = torch.nn.functional.instance_norm(x, mean, var, use_input_stats=training)
    assert result.dtype == torch.float64
    assert mean.dtype == var.dtype == getattr(torch, dtype)
    assert (mean.tolist() == [1, 1, 1]) != training
