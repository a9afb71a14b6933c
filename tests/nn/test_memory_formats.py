"""Images with their channels innermost in memory keep them there, as in torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd

VALUES = np.random.default_rng(0).normal(size=(2, 4, 6, 6)).astype(np.float32)

#: What a function gives for an image with its channels innermost, its channels innermost.
KEEPING: dict[str, Any] = {
    "max_pool2d": lambda t, x: t.nn.functional.max_pool2d(x, 2),
    "indices of max_pool2d": lambda t, x: t.nn.functional.max_pool2d(x, 2, return_indices=True)[1],
    "avg_pool2d": lambda t, x: t.nn.functional.avg_pool2d(x, 3, 2, 1),
    "lp_pool2d": lambda t, x: t.nn.functional.lp_pool2d(x, 2, 2),
    "adaptive_avg_pool2d": lambda t, x: t.nn.functional.adaptive_avg_pool2d(x, 3),
    "adaptive_max_pool2d": lambda t, x: t.nn.functional.adaptive_max_pool2d(x, 3),
    "conv2d": lambda t, x: t.nn.functional.conv2d(x, t.ones(5, 4, 3, 3)),
    "conv2d of groups": lambda t, x: t.nn.functional.conv2d(x, t.ones(4, 1, 3, 3), groups=4, padding=1),
    "conv_transpose2d": lambda t, x: t.nn.functional.conv_transpose2d(x, t.ones(4, 3, 3, 3)),
    "batch_norm in training": lambda t, x: t.nn.BatchNorm2d(4)(x),
    "batch_norm": lambda t, x: t.nn.BatchNorm2d(4).eval()(x),
    "group_norm": lambda t, x: t.nn.functional.group_norm(x, 2),
    "dropout": lambda t, x: t.nn.functional.dropout(x),
    "dropout2d": lambda t, x: t.nn.functional.dropout2d(x),
    "nearest": lambda t, x: t.nn.functional.interpolate(x, scale_factor=2),
    "bilinear": lambda t, x: t.nn.functional.interpolate(x, scale_factor=2, mode="bilinear"),
    "bicubic": lambda t, x: t.nn.functional.interpolate(x, size=9, mode="bicubic"),
    "pad": lambda t, x: t.nn.functional.pad(x, (1, 2, 0, 1)),
    "reflect": lambda t, x: t.nn.functional.pad(x, (1, 1, 1, 1), mode="reflect"),
    "replicate": lambda t, x: t.nn.functional.pad(x, (1, 1, 1, 1), mode="replicate"),
    "pixel_unshuffle": lambda t, x: t.nn.functional.pixel_unshuffle(x, 2),
    "cat of channels": lambda t, x: t.cat([x, x], 1),
    "cat of images": lambda t, x: t.cat([x, x]),
    "relu": lambda t, x: x.relu(),
    "sum": lambda t, x: x + x * t.ones(4, 1, 1),
}


@pytest.mark.parametrize("name", KEEPING)
def test_channels_stay_innermost(torch: Any, name: str) -> None:
    plain = torch.tensor(VALUES)
    image = plain.contiguous(memory_format=torch.channels_last).requires_grad_()
    result = KEEPING[name](torch, image)
    assert result.is_contiguous(memory_format=torch.channels_last) and not result.is_contiguous()
    if "dropout" not in name:
        expected = KEEPING[name](torch, plain)
        assert expected.is_contiguous()
        np.testing.assert_allclose(result.detach(), expected.detach(), atol=1e-5)
    if result.requires_grad:
        result.sum().backward()
        assert image.grad.is_contiguous(memory_format=torch.channels_last)


def test_a_filter_decides_too(torch: Any) -> None:
    weight = torch.ones(5, 4, 3, 3).contiguous(memory_format=torch.channels_last)
    result = torch.nn.functional.conv2d(torch.tensor(VALUES), weight)
    assert result.is_contiguous(memory_format=torch.channels_last)


def test_volumes(torch: Any) -> None:
    nn = torch.nn
    x = torch.arange(384.0).reshape(2, 3, 4, 4, 4).contiguous(memory_format=torch.channels_last_3d)
    for layer in (
        nn.Conv3d(3, 2, 3), nn.ConvTranspose3d(3, 2, 2), nn.BatchNorm3d(3), nn.GroupNorm(3, 3), nn.MaxPool3d(2),
        nn.Upsample(scale_factor=2), nn.ConstantPad3d(1, 0.0), nn.ReplicationPad3d(1), nn.ReflectionPad3d(1),
    ):  # fmt: skip
        assert layer(x).is_contiguous(memory_format=torch.channels_last_3d), layer
    for layer in (nn.AvgPool3d(2), nn.AdaptiveAvgPool3d(2), nn.AdaptiveMaxPool3d(2)):
        assert layer(x).is_contiguous(), layer


def test_a_mixture_is_laid_out_plainly() -> None:
    image = retrograd.tensor(VALUES)
    assert retrograd.cat([image, image.contiguous(memory_format=retrograd.channels_last)], 1).is_contiguous()


def test_one_image_taken_out_and_put_back_is_laid_out_plainly(torch: Any) -> None:
    """Its strides say something else than channels innermost, and copies of it have the same strides."""
    images = torch.tensor(VALUES).contiguous(memory_format=torch.channels_last)
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.complex64):
        one = images[0][None].to(dtype)
        assert one.clone().stride() == one.stride() == (4, 1, 24, 4)
    one = images[0][None].double()
    assert torch.nn.functional.interpolate(one, size=(3, 3), mode="bilinear").is_contiguous()
    assert torch.nn.functional.interpolate(one.byte(), size=(3, 3), mode="bilinear").is_contiguous()


@pytest.mark.parametrize("shape, strides, copied", [
    ((5, 3, 24), (1, 0, 5), (1, 5, 15)), ((4, 1, 3), (1, 7, 4), (1, 7, 4)),
    ((24, 3, 5), (5, 0, 1), (15, 5, 1)), ((4, 2, 3), (2, 1, 20), (2, 1, 8)),
])  # fmt: skip
def test_strides_of_copies(torch: Any, shape: Any, strides: Any, copied: Any) -> None:
    x = torch.arange(120.0).as_strided(shape, strides)
    for copy in (x.clone(), x.double(), x.bfloat16()):
        assert copy.stride() == copied
        assert copy.float().equal(x)


@pytest.mark.parametrize("mode, antialias, kept", [
    ("nearest", False, True), ("nearest-exact", False, True), ("bilinear", False, True), ("bilinear", True, True),
    ("area", False, True), ("bicubic", False, False), ("bicubic", True, False), ("lanczos", True, False),
])  # fmt: skip
def test_gradients_of_interpolate(torch: Any, mode: str, antialias: bool, kept: bool) -> None:
    image = torch.tensor(VALUES).contiguous(memory_format=torch.channels_last).requires_grad_()
    result = torch.nn.functional.interpolate(image, size=(4, 9), mode=mode, antialias=antialias)
    (grad,) = torch.autograd.grad(result, image, torch.ones_like(result))
    assert grad.is_contiguous(memory_format=torch.channels_last) == kept != grad.is_contiguous()


def test_gradients_of_interpolated_volumes(torch: Any) -> None:
    x = torch.arange(384.0).reshape(2, 3, 4, 4, 4).contiguous(memory_format=torch.channels_last_3d).requires_grad_()
    for mode, kept in (("trilinear", True), ("nearest", False)):
        result = torch.nn.functional.interpolate(x, size=(2, 5, 3), mode=mode)
        (grad,) = torch.autograd.grad(result, x, torch.ones_like(result))
        assert grad.is_contiguous(memory_format=torch.channels_last_3d) == kept


def test_expanded_channels_are_not_innermost(torch: Any) -> None:
    x = torch.tensor(VALUES)[:1, :1].expand(1, 4, 6, 6)
    assert torch.nn.functional.interpolate(x, size=(3, 3)).is_contiguous()


def test_batch_norm_of_what_may_be_read_with_its_channels_innermost(torch: Any) -> None:
    """The strides of its dimensions of one element do not matter to it."""
    x = torch.arange(6.0).reshape(1, 3, 2, 1).permute(0, 2, 1, 3)
    one = torch.tensor(VALUES).contiguous(memory_format=torch.channels_last)[0][None]
    for image in (x, one):
        for training in (True, False):
            result = torch.nn.BatchNorm2d(image.shape[1]).train(training)(image)
            assert result.is_contiguous(memory_format=torch.channels_last) and not result.is_contiguous()


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dims", [2, 3])
def test_gradients_of_convolutions(torch: Any, dims: int, transposed: bool) -> None:
    """Image and filter decide together, also where the gradient of the result lies plainly."""
    form = (torch.channels_last, torch.channels_last_3d)[dims - 2]
    function = getattr(torch.nn.functional, f"conv_transpose{dims}d" if transposed else f"conv{dims}d")
    for inner in ((False, False), (False, True), (True, False), (True, True)):
        leaves = [torch.arange(1.0, 1 + n * 4 * 3**dims).view(n, 4, *[3] * dims) / 99 for n in (2, 4)]
        leaves = [
            (x.contiguous(memory_format=form) if last else x).requires_grad_()
            for x, last in zip(leaves, inner, strict=True)
        ]
        result = function(*leaves)
        for grad in torch.autograd.grad(result, leaves, torch.ones(result.shape)):
            assert grad.is_contiguous(memory_format=form) == any(inner) != grad.is_contiguous()


@pytest.mark.parametrize("name", ["max_pool2d", "avg_pool2d", "adaptive_max_pool2d", "adaptive_avg_pool2d"])
def test_gradients_of_pools(torch: Any, name: str) -> None:
    for part in (slice(None), slice(2)):
        image = torch.tensor(VALUES).contiguous(memory_format=torch.channels_last)[:, part].requires_grad_()
        result = getattr(torch.nn.functional, name)(image, 2)
        for given in (torch.ones_like(result), torch.ones(result.shape)):
            (grad,) = torch.autograd.grad(result, image, given, retain_graph=True)
            assert grad.is_contiguous(memory_format=torch.channels_last) and not grad.is_contiguous()
        (grad,) = torch.autograd.grad(result, image, given, create_graph=True)
        assert grad.is_contiguous(memory_format=torch.channels_last)


def test_gradients_of_pools_of_volumes(torch: Any) -> None:
    for name, kept in (("max_pool3d", True), ("avg_pool3d", False), ("adaptive_max_pool3d", False)):
        x = torch.arange(384.0).reshape(2, 3, 4, 4, 4).contiguous(memory_format=torch.channels_last_3d).requires_grad_()
        result = getattr(torch.nn.functional, name)(x, 2)
        (grad,) = torch.autograd.grad(result, x, torch.ones(result.shape))
        assert grad.is_contiguous(memory_format=torch.channels_last_3d) == kept != grad.is_contiguous()


def test_one_volume_without_a_batch(torch: Any) -> None:
    one = torch.arange(192.0).reshape(1, 3, 4, 4, 4).contiguous(memory_format=torch.channels_last_3d)[0].clone()
    for part in torch.nn.functional.max_pool3d(one, 2, return_indices=True):
        assert part.unsqueeze(0).is_contiguous(memory_format=torch.channels_last_3d) and not part.is_contiguous()
    assert torch.nn.functional.adaptive_max_pool3d(one, 2).is_contiguous()


def test_the_mean_of_an_image_keeps_its_channels_innermost(torch: Any) -> None:
    image = torch.tensor(VALUES).contiguous(memory_format=torch.channels_last).requires_grad_()
    mean = torch.nn.functional.adaptive_avg_pool2d(image, 1)
    assert mean.stride() == (4, 1, 4, 4)
    mean.sum().backward()
    np.testing.assert_allclose(image.grad, np.full(VALUES.shape, 1 / 36), rtol=1e-6)
    volume = torch.ones(2, 3, 4, 4, 4).contiguous(memory_format=torch.channels_last_3d)
    assert torch.nn.functional.adaptive_avg_pool3d(volume, 1).stride() == (3, 1, 3, 3, 3)
    assert torch.nn.functional.adaptive_avg_pool2d(torch.tensor(VALUES), 1).stride() == (4, 1, 1, 1)


def test_formats_are_said_by_strides_of_one_channel_too(torch: Any) -> None:
    for shape, strides in (((8, 1, 3, 3), (9, 1, 3, 1)), ((2, 4, 1, 1), (4, 1, 4, 4))):
        plain = torch.ones(shape)
        image = plain.to(memory_format=torch.channels_last)
        assert image.stride() == strides and image.to(memory_format=torch.channels_last) is image
        assert plain.to(torch.float64, memory_format=torch.channels_last).stride() == strides
        assert plain.contiguous(memory_format=torch.channels_last) is plain
    assert torch.nn.Conv2d(1, 8, 3).to(memory_format=torch.channels_last).weight.stride() == (9, 1, 3, 1)


@pytest.mark.parametrize("training", [True, False])
def test_gradients_of_batch_norm(torch: Any, training: bool) -> None:
    layer = torch.nn.BatchNorm2d(4).train(training)
    image = torch.tensor(VALUES).contiguous(memory_format=torch.channels_last).requires_grad_()
    result = layer(image)
    for given in (torch.ones_like(result), torch.ones(result.shape)):
        grad, of_weight = torch.autograd.grad(result, (image, layer.weight), given, retain_graph=True)
        assert grad.is_contiguous(memory_format=torch.channels_last) and not grad.is_contiguous()
    (none,) = torch.autograd.grad(result, layer.weight, given)
    assert none.shape == of_weight.shape == (4,)
