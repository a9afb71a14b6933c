"""Layers and losses at the edges of what they take: single numbers, nothing at all, sizes that do not fit."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest


def test_losses_of_single_numbers(torch: Any) -> None:
    F = torch.nn.functional
    x = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    y, weight = torch.tensor(1.0, dtype=torch.float64), torch.tensor(0.5, dtype=torch.float64)
    loss = F.binary_cross_entropy(x, y, weight=weight, reduction="none")
    assert loss.shape == () and loss.device.type == "cpu" and loss.item() == pytest.approx(-0.5 * math.log(0.3))
    loss.backward()
    assert x.grad.item() == pytest.approx(-0.5 / 0.3)
    x.grad = None
    F.binary_cross_entropy_with_logits(x, y, weight=weight, reduction="none").backward()
    assert x.grad.item() == pytest.approx(-0.5 / (1 + math.exp(0.3)))
    row = torch.tensor([0.1, 0.4, 0.2])
    assert F.multi_margin_loss(row, torch.tensor(1), reduction="none").shape == ()
    assert F.multi_margin_loss(row, torch.tensor([1]), reduction="none").shape == (1,)


def test_distances_that_are_counted_keep_nan(torch: Any) -> None:
    x = torch.tensor([[math.inf, 1.0], [math.inf, 2.0], [3.0, 2.0]], dtype=torch.float64)
    np.testing.assert_array_equal(torch.nn.functional.pdist(x, p=0.0), [math.nan, 2, 1])
    np.testing.assert_array_equal(torch.cdist(x[:1], x, p=0.0), [[math.nan, math.nan, 2]])


def test_ctc_loss_of_no_input(torch: Any) -> None:
    probabilities = torch.zeros(1, 3, 5).log_softmax(2).requires_grad_()
    targets, nothing = torch.ones(3, 2, dtype=torch.int64), torch.zeros(3, dtype=torch.int64)
    for wanted, loss in ((nothing, 0.0), (nothing + 1, math.inf)):
        losses = torch.nn.functional.ctc_loss(probabilities, targets, nothing, wanted, reduction="none")
        assert losses.tolist() == [loss] * 3
        losses.sum().backward()
        assert not probabilities.grad.any()


@pytest.mark.parametrize("dims", [2, 3])
def test_grids_of_nothing(torch: Any, dims: int) -> None:
    grid_sample = torch.nn.functional.grid_sample
    for batch, channels in ((2, 0), (0, 2)):
        image = torch.zeros(batch, channels, *[3] * dims)
        places = torch.zeros(batch, *[2] * dims, dims)
        assert grid_sample(image, places, align_corners=False).shape == (batch, channels, *[2] * dims)
    with pytest.raises(RuntimeError, match=f"expected grid to have size {dims} in last dimension"):
        grid_sample(torch.zeros(1, 1, *[3] * dims), torch.zeros(1, 1, 1, 1), align_corners=False)


def test_a_grid_of_one_place_is_warned_of(torch: Any) -> None:
    with pytest.warns(UserWarning, match="See the documentation of affine_grid for details"):
        torch.nn.functional.affine_grid(torch.ones(1, 2, 3), (1, 1, 2, 1), align_corners=True)


def test_unpooling(torch: Any) -> None:
    F = torch.nn.functional
    indices = torch.zeros(0, 2, 3, 3, dtype=torch.int64)
    assert F.max_unpool2d(torch.zeros(0, 2, 3, 3), indices, 2).shape == (0, 2, 6, 6)
    x = torch.zeros(0, 2, 3, 3, requires_grad=True)
    F.max_unpool2d(x, indices, 2).sum().backward()
    assert x.grad.shape == (0, 2, 3, 3)
    with pytest.raises(RuntimeError, match="There should be exactly three elements"):
        F.max_unpool3d(torch.ones(1, 3, 1, 1, 1), torch.zeros(1, 3, 1, 1, 1, dtype=torch.int64), [1, 1])


def test_sizes_that_do_not_fit(torch: Any) -> None:
    F = torch.nn.functional
    with pytest.raises(RuntimeError, match=r"calculated shape of the array of sliding blocks as \(-4, -3\)"):
        F.fold(torch.zeros(1, 12, 12), (4, 5), (2, 2), dilation=8)
    with pytest.raises(RuntimeError, match="the product of kernel_width and kernel_height overflowed"):
        F.fold(torch.zeros(3, 7), 16, 7318349394477056)
    for kernel in ((), (2,)):
        with pytest.raises(RuntimeError, match="kernel_size must either be a single Int or tuple of Ints"):
            F.fractional_max_pool2d(torch.zeros(1, 2, 7, 7), kernel, output_size=3, _random_samples=torch.rand(1, 2, 2))
    with pytest.raises(RuntimeError, match="Output size is too small"):
        F.max_pool1d_with_indices(torch.ones(1, 1, 4), 3, stride=2, dilation=2)
    with pytest.raises(ValueError, match="upscale factor is too large"):
        F.pixel_shuffle(torch.zeros(1, 16, 4, 4), 2975275351648613580)


@pytest.mark.parametrize("mode", ["replicate", "reflect"])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_padding_of_what_is_empty(torch: Any, mode: str, dims: int) -> None:
    """Nothing but the batch may be empty."""
    sides, image = (2, 2) * dims, (5,) * dims
    assert torch.nn.functional.pad(torch.ones(0, 3, *image), sides, mode).shape == (0, 3, *(9,) * dims)
    for shape in ((3, 0, *image), (0, *image), (3, 3, *image[1:], 0), (3, 0, *image[1:], 0)):
        message = f"Expected {dims + 1}D or {dims + 2}D .* but got: {re.escape(str(list(shape)))}"
        with pytest.raises(RuntimeError, match=message):
            torch.nn.functional.pad(torch.ones(shape), sides, mode)


@pytest.mark.parametrize("size", [(2.0,), [2.0], (None,), 2.0, "a", (True,)])
def test_sizes_that_are_no_ints(torch: Any, size: Any) -> None:
    with pytest.raises(TypeError):
        torch.nn.functional.interpolate(torch.ones(1, 1, 4), size=size)
    with pytest.raises(TypeError, match="expected size to be one of int or"):
        torch.nn.functional.interpolate(torch.ones(1, 1, 4), size=(torch.tensor(2.0),))
    assert torch.nn.functional.interpolate(torch.ones(1, 1, 4), size=(torch.tensor(2),)).shape == (1, 1, 2)


def test_samples_of_an_empty_image(torch: Any) -> None:
    with pytest.raises(RuntimeError, match=r"non-empty spatial dimensions, but .*\[1, 1, 0, 2\] with dimension 2"):
        torch.nn.functional.grid_sample(torch.ones(1, 1, 0, 2), torch.ones(1, 1, 1, 2), align_corners=False)
    with pytest.raises(RuntimeError, match=r"non-empty spatial dimensions, but .* with dimension 3"):
        torch.nn.functional.grid_sample(torch.ones(1, 1, 2, 0, 2), torch.ones(1, 1, 1, 1, 3), align_corners=False)


@pytest.mark.parametrize("shape, target", [((10, 3), (10, 2)), ((10, 3), (10, 2, 2)), ((3,), (2, 2))])
def test_targets_of_too_many_dimensions(torch: Any, shape: Any, target: Any) -> None:
    with pytest.raises(RuntimeError, match="0D or 1D target tensor expected, multi-target not supported"):
        torch.nn.functional.nll_loss(torch.ones(shape), torch.zeros(target, dtype=torch.int64))


@pytest.mark.parametrize("targets", [(0,), (3, 0)])
def test_ctc_loss_of_empty_targets(torch: Any, targets: Any) -> None:
    """There is one way to say nothing: blanks all along."""
    log_probs = torch.arange(60.0).cos().reshape(5, 3, 4).log_softmax(2).requires_grad_()
    loss = torch.nn.functional.ctc_loss(
        log_probs, torch.zeros(targets, dtype=torch.int64), [5, 5, 5], [0, 0, 0], reduction="none"
    )
    assert torch.allclose(loss, -log_probs.sum(0)[:, 0])
    loss.sum().backward()


@pytest.mark.parametrize("targets, inputs, wanted, message", [
    ((3, 2), [5, 4, 6], [0, 2, 0], "Expected input_lengths to have value at most 5, but got value 6"),
    ((3, 2), [5, -4, 4], [0, 2, 0], "Expected input_lengths to have value at least 0, but got value -4"),
    ((3, 2), [5, 4, 4], [0, -2, 0], "Expected target_lengths to have value at least 0, but got value -2"),
    ((3, 2), [5, 4, 5], [0, 3, 0], "to have size at least 3 at dimension 1, but got size 2 for argument #2 'targets'"),
    ((2, 2), [5, 4, 5], [2, 2, 2], "to have size 3 at dimension 0, but got size 2 for argument #2 'targets'"),
    ((4,), [5, 4, 5], [2, 2, 2], "to have size 6 at dimension 0, but got size 4 for argument #2 'targets'"),
])  # fmt: skip
def test_lengths_of_ctc_loss(torch: Any, targets: Any, inputs: Any, wanted: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        torch.nn.functional.ctc_loss(torch.ones(5, 3, 4), torch.ones(targets, dtype=torch.int64), inputs, wanted)
    with pytest.raises(RuntimeError, match="log_probs tensor must not be empty"):
        none = torch.zeros(0, dtype=torch.int64)
        torch.nn.functional.ctc_loss(torch.ones(0, 0, 4), none, none, none)


def test_lists_of_parameters_on_meta(torch: Any) -> None:
    text = str(torch.nn.ParameterList([torch.nn.Parameter(torch.empty(1, device="meta"))]))
    assert text == "ParameterList(  (0): Parameter containing: [torch.float32 of size 1])"
