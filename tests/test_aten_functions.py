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


@pytest.mark.parametrize("name", ["vmap", "func"])
def test_what_is_not_here_yet_says_so(name):
    assert not hasattr(retrograd, name)
    with pytest.raises(AttributeError, match=r"is not here yet.*torch\.stack"):
        getattr(retrograd, name)
    with pytest.raises(AttributeError, match="has no attribute 'vmapp'"):
        _ = retrograd.vmapp
