"""Normalisations over a batch, an instance or a group of channels; part of ``functional``."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..._generated import functions as generated
from ...autograd.forward_grad import has_fw_grad
from ...autograd.grad_mode import no_grad
from ...core.dtypes import float_limits
from ...core.state import process
from ...kernels.promotion import unsupported
from ...kernels.storage import has_channels_last
from ...ops import namespace as ops
from ...ops.registry import composite
from ...tensor import Tensor
from .pool import avg_pool3d


def _check_values_per_channel(input: Tensor, count: int, what: str) -> None:
    if count == 1:
        raise ValueError(f"Expected more than 1 {what} when training, got input size {input.shape}")


@composite(space="nn.functional")
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
    if training and (running_mean is None) != (running_var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")
    if training and eps <= 0:
        raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    if not input._memory_.size:
        # Torch does not look at the number of channels where there is nothing to normalise.
        empty = input.clone() if weight is None else input * weight[0]
        return empty if bias is None else empty + bias[0]
    if training and input._memory_.ndim > 1:
        _check_values_per_channel(input, input._memory_.size // max(input._memory_.shape[1], 1), "value per channel")
    if process.dual_levels and not training and has_fw_grad(input):
        for running in (running_mean, running_var):
            if running is not None and has_fw_grad(running):
                raise RuntimeError(
                    "batch_norm is not differentiable wrt running_mean and running_var, they cannot have forward grad "
                    "defined: pass fwAD.unpack_dual(running).primal"
                )
    return generated.native_batch_norm(
        input, weight, bias, running_mean, running_var, bool(training), float(momentum), float(eps)
    )


@composite(space="nn.functional")
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
    """`batch_norm` for each element of the batch alone: as one image with the channels of all of them."""
    shape = input._memory_.shape
    if use_input_stats:
        count = 1
        for size in shape[2:]:
            count *= size
        _check_values_per_channel(input, count, "spatial element")
    batch, channels = shape[:2]
    affine = [None if p is None else p.repeat(batch) for p in (weight, bias)]
    running = [None if p is None else p.detach().repeat(batch).to(input.dtype) for p in (running_mean, running_var)]
    result = generated.native_batch_norm(
        input.reshape((1, batch * channels, *shape[2:])),
        affine[0],
        affine[1],
        running[0],
        running[1],
        bool(use_input_stats),
        float(momentum),
        float(eps),
    )
    if use_input_stats:
        with no_grad():
            for kept, seen in zip((running_mean, running_var), running, strict=True):
                if kept is not None and seen is not None:
                    kept.copy_(seen.reshape(batch, channels).mean(0))
    return result.reshape(shape)


@composite(space="nn.functional")
def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Each of `num_groups` groups of channels with mean 0 and variance 1, for each element of the batch.

    >>> import retrograd as torch
    >>> torch.nn.functional.group_norm(torch.tensor([[1., 3., 5., 5.]]), 2)
    tensor([[-1.0000,  1.0000,  0.0000,  0.0000]])
    """
    shape = input._memory_.shape
    if len(shape) < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {len(shape)}")
    if num_groups > 0 and shape[0] * shape[1] // num_groups == 1 and input._memory_.size == shape[0] * shape[1]:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {list(shape)}")
    spatial = math.prod(shape[2:])
    return generated.native_group_norm(
        input if has_channels_last(input._memory_) else input.contiguous(),
        weight, bias, shape[0], shape[1], spatial, num_groups, float(eps),
    )[0]  # fmt: skip


@composite(space="nn.functional")
def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """`input` divided by a power of the mean square of `size` neighbouring channels.

    >>> import retrograd as torch
    >>> torch.nn.functional.local_response_norm(torch.ones(1, 2, 1), 1, alpha=1.0, beta=1.0)
    tensor([[[0.5000],
             [0.5000]]])
    """

    shape = input._memory_.shape
    if len(shape) < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {len(shape)} dimensions)")
    if not input._memory_.size:
        return input
    squares = (input * input).reshape((shape[0], 1, shape[1], shape[2], -1))
    squares = generated.constant_pad_nd(squares, (0, 0, 0, 0, size // 2, (size - 1) // 2), 0)
    mean = avg_pool3d(squares, (size, 1, 1), stride=1).reshape(shape)
    return input / (mean * alpha + k).pow(beta)


@composite("torch.rms_norm", space="nn.functional")
def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """`input` divided by the root of its mean square over its last dimensions, times `weight`.

    >>> import retrograd as torch
    >>> torch.nn.functional.rms_norm(torch.tensor([3., 4.]), (2,))
    tensor([0.8485, 1.1314])
    """
    shape = tuple(normalized_shape)
    if not shape:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
            "normalized_shape = []"
        )
    if tuple(input.shape[input.ndim - len(shape) :]) != shape:
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape [*, "
            f"{', '.join(map(str, shape))}], but got input of size{list(input.shape)}"
        )
    if weight is not None and tuple(weight.shape) != shape:
        raise RuntimeError(
            f"Expected weight to be of same shape as normalized_shape, but got weight of shape {list(weight.shape)} "
            f"and normalized_shape = {list(shape)}"
        )
    if input._memory_.dtype.kind not in "fVcW":
        unsupported("rms_norm", input._memory_.dtype)
    x = input.float() if input._memory_.dtype.itemsize == 2 else input  # whose squares leave its range
    if eps is None:
        eps = float(float_limits(x._memory_.dtype).eps)
    squares = x.pow(2).mean(list(range(x.ndim - len(shape), x.ndim)), keepdim=True)
    normal = x * generated._add_number(squares, eps).rsqrt()
    result = normal if weight is None else normal * weight
    return result if x is input else result.to(input.dtype)


@composite(space="nn.functional")
def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """`input` with mean 0 and variance 1 over its last dimensions, times `weight`, plus `bias`.

    >>> import retrograd as torch
    >>> torch.nn.functional.layer_norm(torch.tensor([[1., 3.]]), (2,))
    tensor([[-1.0000,  1.0000]])
    """
    return generated.native_layer_norm(input, tuple(normalized_shape), weight, bias, eps)


@composite(space="nn.functional")
def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None) -> Tensor:
    """`input` divided by its `p`-norm along `dim`, or by `eps` if that is larger."""
    length = input.norm(p, dim, keepdim=True).clamp_min(eps).expand(input._memory_.shape)
    return generated.div(input, length) if out is None else ops.div(input, length, out=out)
