"""Functions that torch has under ``torch.ops.aten`` alone, and names that are not here yet."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import retrograd


@pytest.mark.parametrize("mask", list(itertools.product((False, True), repeat=3)), ids=str)
@pytest.mark.parametrize("transposed", [False, True])
def test_convolution_backward(torch, mask, transposed):
    """What autograd computes of the same convolution, as far as it is asked for."""
    rng = np.random.default_rng(0)
    shapes = ((2, 4, 7), (4, 2, 3) if transposed else (6, 2, 3), (4,) if transposed else (6,))
    x, w, b = (torch.from_numpy(rng.standard_normal(s)).requires_grad_() for s in shapes)
    how = {"stride": 2, "padding": 1, "dilation": 1, "groups": 2}
    convolution = torch.nn.functional.conv_transpose1d if transposed else torch.nn.functional.conv1d
    result = convolution(x, w, b, **how)
    grad = torch.from_numpy(rng.standard_normal(tuple(result.shape)))
    expected = torch.autograd.grad(result, (x, w, b), grad)
    found = torch.ops.aten.convolution_backward(
        grad, x.detach(), w.detach(), list(b.shape), [2], [1], [1], transposed, [0], 2, list(mask)
    )
    for wanted, mine, theirs in zip(mask, found, expected, strict=True):
        if wanted:
            np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-12, atol=1e-12)
        else:
            assert mine is None


def test_convolution_backward_of_a_dual(torch):
    forward = torch.autograd.forward_ad
    x, w = torch.ones(1, 1, 3), torch.ones(1, 1, 2)
    with forward.dual_level():
        dual = forward.make_dual(w, torch.tensor([[[2.0, 3.0]]]))
        grad_input, grad_weight, _ = torch.ops.aten.convolution_backward(
            torch.ones(1, 1, 2), x, dual, None, [1], [0], [1], False, [0], 1, [True, True, False]
        )
        assert forward.unpack_dual(grad_input).tangent.tolist() == [[[2, 5, 3]]]
        assert forward.unpack_dual(grad_weight).tangent is None


def test_zeros_laid_out_as_another(torch):
    make = torch.ops.aten._new_zeros_with_same_feature_meta
    batch = torch.ones(2, 3)
    others = (torch.ones(4, 5), torch.ones(5, 4).t(), torch.ones(6)[2:4], torch.ones(0, 2), torch.tensor(1.0).double())
    for other, dims in itertools.product(others, range(3)):
        zeros = make(batch, other, self_num_batch_dims=dims)
        assert tuple(zeros.shape) == (*batch.shape[:dims], *other.shape)
        assert zeros.stride()[dims:] == other.stride()
        assert zeros.storage_offset() == other.storage_offset()
        assert zeros.dtype == other.dtype
        assert len(zeros.storage()) == len(other.storage()) * (1, 2, 6)[dims]
        assert not zeros.any()


def test_what_is_not_here_says_so():
    with pytest.raises(AttributeError, match="has no attribute 'vmapp'"):
        _ = retrograd.vmapp


def test_scaled_mm():
    theirs = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(4, 8)).astype(np.float32), rng.normal(size=(5, 8)).astype(np.float32)
    scales = {"one": ((), ()), "rows": ((4, 1), (1, 5))}
    for shapes, dtype in itertools.product(scales.values(), (None, "float32", "bfloat16")):
        found = []
        for m in (retrograd, theirs):
            x, y = m.from_numpy(a).to(m.float8_e4m3fn), m.from_numpy(b).to(m.float8_e4m3fn).t()
            first, second = (m.full(shape, value) for shape, value in zip(shapes, (2.0, 0.5), strict=True))
            out = None if dtype is None or shapes[0] else getattr(m, dtype)
            out = m.bfloat16 if shapes[0] else out
            bias = m.arange(5.0).to(m.bfloat16 if shapes[0] else m.float32)
            found.append(m._scaled_mm(x, y, first, second, bias=bias, out_dtype=out).float().numpy())
        np.testing.assert_allclose(*found, rtol=1e-2)
    with pytest.raises(ValueError, match="Invalid scaling configuration"):
        retrograd._scaled_mm(retrograd.ones(2, 2), retrograd.ones(2, 2), *[retrograd.tensor(1.0)] * 2)


def test_batch_norms_of_aten(torch):
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.normal(size=(3, 2, 4))).requires_grad_()
    mean, var = torch.zeros(2).double(), torch.ones(2).double()
    kept = mean.clone(), var.clone()
    results = torch.ops.aten._batch_norm_with_update(x, None, None, mean, var, 0.1, 1e-5)
    expected = torch.nn.functional.batch_norm(x, *kept, training=True)
    np.testing.assert_allclose(results[0].detach().numpy(), expected.detach().numpy())
    np.testing.assert_allclose(mean.numpy(), kept[0].numpy())
    assert [r.requires_grad for r in results] == [True, False, False, False]
    assert results[3].dtype is torch.uint8 and not results[3].numel()
    still = torch.ops.aten._batch_norm_no_update(x, None, None, mean, var, 0.1, 1e-5)
    expected = torch.nn.functional.batch_norm(x, mean, var)
    np.testing.assert_allclose(still[0].detach().numpy(), expected.detach().numpy())
    mine = torch._native_batch_norm_legit(x, None, None, mean, var, True, 0.1, 1e-5)
    np.testing.assert_allclose(mine[1].numpy(), x.detach().numpy().mean((0, 2)))


def test_gradients_of_pools_and_dropout(torch):
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(1, 2, 4, 4))).requires_grad_()
    values, where = torch.nn.functional.max_pool2d(x, 3, 1, padding=1, return_indices=True)
    grad = torch.arange(values.numel()).double().view(values.shape).requires_grad_()
    (expected,) = torch.autograd.grad(values, x, grad)
    backward = torch.ops.aten.max_pool2d_with_indices_backward
    found = backward(grad, x.detach(), [3, 3], [1, 1], [1, 1], [1, 1], False, where)
    np.testing.assert_array_equal(found.detach().numpy(), expected.detach().numpy())
    (again,) = torch.autograd.grad(found.sum(), grad)
    assert again.eq(1).all()
    mask = torch.tensor([True, False])
    assert torch.ops.aten.native_dropout_backward(torch.ones(2), mask, 2.0).tolist() == [2.0, 0.0]
    assert torch.tensor([4.0, 2.0]).__rdiv__(8).tolist() == [2.0, 4.0]


@pytest.mark.parametrize("name", ["bilinear", "bicubic"])
def test_antialiased(torch, name):
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(1, 2, 6, 5)))
    expected = torch.nn.functional.interpolate(x, size=(3, 4), mode=name, antialias=True)
    found = getattr(torch.ops.aten, f"_upsample_{name}2d_aa")(x, [3, 4], False)
    np.testing.assert_allclose(found.numpy(), expected.numpy())


POOLS = {
    "max_pool": lambda f, x: f(x, 2, 1, return_indices=True),
    "adaptive_max_pool": lambda f, x: f(x, 3, return_indices=True),
    "adaptive_avg_pool": lambda f, x: (f(x, 3), None),
    "avg_pool": lambda f, x: (f(x, 2, 1), None),
    "fractional_max_pool": lambda f, x: f(x, 2, 2, return_indices=True),
}


@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("pool", POOLS)
def test_gradients_of_pools(torch, pool, dims):
    """What autograd computes; and gradients of other shapes are refused."""
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(2, 3, *[5] * dims))).requires_grad_()
    values, where = POOLS[pool](getattr(torch.nn.functional, f"{pool}{dims}d"), x)
    grad = torch.arange(values.numel()).double().view(values.shape)
    (expected,) = torch.autograd.grad(values, x, grad)
    name = {"max_pool": f"max_pool{dims}d_with_indices", "adaptive_avg_pool": f"_adaptive_avg_pool{dims}d"}
    backward = getattr(torch.ops.aten, name.get(pool, f"{pool}{dims}d") + "_backward")
    two, one, none = [2] * dims, [1] * dims, [0] * dims
    rest = {
        "max_pool": (two, one, none, one, False, where),
        "adaptive_max_pool": (where,),
        "adaptive_avg_pool": (),
        "avg_pool": (two, one, none, False, True, None),
        "fractional_max_pool": (two, two, where),
    }[pool]
    np.testing.assert_allclose(backward(grad, x.detach(), *rest).numpy(), expected.numpy())
    with pytest.raises((RuntimeError, IndexError), match=r"(?i)expected|Dimension out of range"):
        backward(grad[0, 0], x.detach(), *rest)


def test_pads_and_convolutions_by_the_names_of_their_dimensions(torch):
    x = torch.arange(6.0).view(2, 3)
    for name, mode in (("reflection", "reflect"), ("replication", "replicate")):
        expected = torch.nn.functional.pad(x, (1, 2), mode)
        assert getattr(torch.ops.aten, f"{name}_pad1d")(x, (1, 2)).equal(expected)
        assert getattr(torch._C._nn, f"{name}_pad1d")(x, (1, 2)).equal(expected)
        for dims in (1, 2, 3):
            with pytest.raises(RuntimeError, match=f"Expected {dims + 1}D or {dims + 2}D"):
                getattr(torch.ops.aten, f"{name}_pad{dims}d")(torch.ones([3] * (dims + 3)), [1] * 2 * dims)
    volume, weight = torch.arange(54.0).view(1, 2, 3, 3, 3), torch.ones(2, 2, 2, 2, 2)
    found = torch.ops.aten.slow_conv3d(volume, weight, [2, 2, 2], torch.ones(2), [1, 1, 1], [1, 1, 1])
    assert found.equal(torch.nn.functional.conv3d(volume, weight, torch.ones(2), 1, 1))
    for groups in (0, -1):
        with pytest.raises(RuntimeError, match=f"expected groups to be greater than 0, but got groups={groups}"):
            torch.ops.aten.convolution_backward(
                torch.ones(1, 1, 3), torch.ones(1, 1, 3), torch.ones(1, 1, 1), [1], [1], [0], [1], False, [0], groups,
                [True] * 3,
            )


def test_masked_softmax(torch):
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(2, 2, 3, 3))).requires_grad_()
    rows = torch.tensor([[True, False, False], [False, False, False], [False, True, True]])
    padding = torch.tensor([[False, False, True], [False, True, False]])
    for mask, kind, whole in (
        (rows, 0, rows.expand(2, 2, 3, 3)),
        (padding, 1, padding.view(2, 1, 1, 3).expand(2, 2, 3, 3)),
        (rows.expand(2, 2, 3, 3), 2, rows.expand(2, 2, 3, 3)),
    ):
        expected = torch.softmax(x.masked_fill(whole, -torch.inf), -1)
        for found in (torch._masked_softmax(x, mask, 3, kind), torch._masked_softmax(x, mask, mask_type=kind)):
            np.testing.assert_allclose(found.detach(), expected.detach(), rtol=1e-12)
    weights = torch.arange(36.0).double().view(2, 2, 3, 3)  # of a mask as large as the input, torch knows the gradient
    (one,), (other,) = (torch.autograd.grad((y * weights).sum(), x) for y in (found, expected))
    np.testing.assert_allclose(one, other, atol=1e-12)
    assert torch._masked_softmax(x, torch.ones_like(x).bool(), 3, 2).isnan().all()
    for wrong, message in (
        ((rows,), "Mask Type should be defined"), ((rows.float(), 3, 0), "Mask should be a boolean tensor"),
        ((rows, 3, 5), "Mask Type should be 0"), ((rows, 3, 2), "mask shape should match input shape"),
        ((rows, 3, 1), r"mask shape should be \(B, L\)"),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=message):
            torch._masked_softmax(x, *wrong)
