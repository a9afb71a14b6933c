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
