"""Normalisations over a batch, an instance or a group of channels, made of other operators; part of ``functional``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..autograd.grad_mode import no_grad
from ..tensor import Tensor


def _per_channel(values: Tensor | None, ndim: int) -> Any:
    """One value a channel, to be broadcast over (batch, channel, ...)."""
    return None if values is None else values.reshape([-1 if dim == 1 else 1 for dim in range(ndim)])


def _scaled(normal: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """``normal * weight + bias``, one of each for a channel."""
    if weight is not None:
        normal = normal * _per_channel(weight, normal.ndim)
    return normal if bias is None else normal + _per_channel(bias, normal.ndim)


def _check_values_per_channel(input: Tensor, count: int, what: str) -> None:
    if count == 1:
        raise ValueError(f"Expected more than 1 {what} when training, got input size {input.shape}")


def _keep_running(running: Tensor | None, value: Tensor, momentum: float) -> None:
    if running is not None:
        with no_grad():
            running.mul_(1 - momentum).add_(value.to(running.dtype), alpha=momentum)


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Each channel (dimension 1) with mean 0 and variance 1, by its own values if `training`, else by the running ones.

    >>> import retrograd as torch
    >>> torch.nn.functional.batch_norm(torch.tensor([[1.], [3.]]), None, None, training=True)
    tensor([[-1.0000],
            [ 1.0000]])
    """
    if input.ndim < 2:
        raise RuntimeError(f"batch_norm: expected an input of at least 2 dimensions, got {input.ndim}")
    if not training:
        if running_mean is None or running_var is None:
            raise RuntimeError("running_mean and running_var must be defined in evaluation mode")
        scale = (running_var + eps).rsqrt()
        normal = (input - _per_channel(running_mean, input.ndim)) * _per_channel(scale, input.ndim)
        return _scaled(normal, weight, bias)
    dims = [dim for dim in range(input.ndim) if dim != 1]
    count = input.numel() // max(input.shape[1], 1)
    _check_values_per_channel(input, count, "value per channel")
    mean = input.mean(dims, keepdim=True)
    centered = input - mean
    var = (centered * centered).mean(dims, keepdim=True)
    _keep_running(running_mean, mean.detach().reshape(-1), momentum)
    _keep_running(running_var, var.detach().reshape(-1) * (count / (count - 1) if count > 1 else 1), momentum)
    return _scaled(centered * (var + eps).rsqrt(), weight, bias)


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """`batch_norm` for each element of the batch alone."""
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    count = input[0, 0].numel() if input.numel() else 0
    _check_values_per_channel(input, count, "spatial element")
    dims = list(range(2, input.ndim))
    mean = input.mean(dims, keepdim=True)
    centered = input - mean
    var = (centered * centered).mean(dims, keepdim=True)
    if running_mean is not None or running_var is not None:
        _keep_running(running_mean, mean.detach().mean(0).reshape(-1), momentum)
        _keep_running(running_var, var.detach().mean(0).reshape(-1) * (count / (count - 1)), momentum)
    return _scaled(centered * (var + eps).rsqrt(), weight, bias)


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Each of `num_groups` groups of channels with mean 0 and variance 1, for each element of the batch.

    >>> import retrograd as torch
    >>> torch.nn.functional.group_norm(torch.tensor([[1., 3., 5., 5.]]), 2)
    tensor([[-1.0000,  1.0000,  0.0000,  0.0000]])
    """
    if input.ndim < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.ndim}")
    batch, channels = input.shape[:2]
    if num_groups <= 0 or channels % num_groups:
        raise RuntimeError(
            f"Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(input.shape)} and num_groups={num_groups}"
        )
    grouped = input.reshape(batch, num_groups, input.numel() // max(batch * num_groups, 1))
    centered = grouped - grouped.mean(-1, keepdim=True)
    normal = centered * ((centered * centered).mean(-1, keepdim=True) + eps).rsqrt()
    return _scaled(normal.reshape(input.shape), weight, bias)


def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """`input` divided by the root of its mean square over its last dimensions, times `weight`.

    >>> import retrograd as torch
    >>> torch.nn.functional.rms_norm(torch.tensor([3., 4.]), (2,))
    tensor([0.8485, 1.1314])
    """
    shape = tuple(normalized_shape)
    if tuple(input.shape[input.ndim - len(shape) :]) != shape:
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape [*, "
            f"{', '.join(map(str, shape))}], but got input of size{list(input.shape)}"
        )
    import numpy as np

    if eps is None:
        eps = float(np.finfo(input._data.dtype).eps)
    normal = input * ((input * input).mean(list(range(-len(shape), 0)), keepdim=True) + eps).rsqrt()
    return normal if weight is None else normal * weight
