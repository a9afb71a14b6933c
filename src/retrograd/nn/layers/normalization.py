"""Layers that give what goes through them mean 0 and variance 1."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

from ...core import dtypes
from ...ops import factories
from ...tensor import Tensor
from .. import functional as F
from .. import init
from ..module import Module
from .linear import new_parameter


def _shape(shape: int | Sequence[int]) -> tuple[int, ...]:
    return (int(shape),) if isinstance(shape, numbers.Integral) else tuple(shape)  # type: ignore[arg-type]


class _Affine(Module):
    """A normalisation with a weight (ones at first) and a bias (zeros), either of which may be absent."""

    weight: Tensor | None
    bias: Tensor | None

    def _add_affine(self, shape: tuple[int, ...], weight: bool, bias: bool, device: Any, dtype: Any) -> None:
        for name, wanted in (("weight", weight), ("bias", bias)):
            parameter = new_parameter(*shape, device=device, dtype=dtype) if wanted else None
            self.register_parameter(name, parameter)

    def reset_parameters(self) -> None:
        """Set the first values."""
        if self.weight is not None:
            init.ones_(self.weight)
        if getattr(self, "bias", None) is not None:
            init.zeros_(self.bias)  # type: ignore[arg-type]


class LayerNorm(_Affine):
    """`functional.layer_norm` over the last dimensions.

    >>> import retrograd as torch
    >>> torch.nn.LayerNorm(2)
    LayerNorm((2,), eps=1e-05, elementwise_affine=True, bias=True)
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._add_affine(self.normalized_shape, elementwise_affine, elementwise_affine and bias, device, dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(_Affine):
    """`functional.rms_norm` over the last dimensions."""

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        weight = new_parameter(*self.normalized_shape, device=device, dtype=dtype) if elementwise_affine else None
        self.register_parameter("weight", weight)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(_Affine):
    """`functional.group_norm` with a weight and a bias for each channel."""

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self._add_affine((num_channels,), affine, affine and bias, device, dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class _ChannelNorm(_Affine):
    """What batch and instance norm share: a mean and a variance for each channel, kept from batch to batch."""

    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None
    _dims: tuple[int, ...]
    _version = 2

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        self._add_affine((num_features,), affine, affine and bias, device, dtype)
        tracked = track_running_stats
        self.register_buffer("running_mean", factories.zeros(num_features, dtype=dtype) if tracked else None)
        self.register_buffer("running_var", factories.ones(num_features, dtype=dtype) if tracked else None)
        self.register_buffer("num_batches_tracked", factories.tensor(0, dtype=dtypes.long) if tracked else None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forget what was kept."""
        if self.running_mean is not None and self.running_var is not None and self.num_batches_tracked is not None:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Forget what was kept, and set the first values."""
        self.reset_running_stats()
        super().reset_parameters()

    def _check_input(self, input: Tensor) -> None:
        if input.ndim not in self._dims:
            expected = " or ".join(f"{n}D" for n in self._dims)
            raise ValueError(f"expected {expected} input (got {input.ndim}D input)")

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class _BatchNorm(_ChannelNorm):
    def forward(self, input: Tensor) -> Tensor:
        self._check_input(input)
        # In training the statistics are the batch's own; so they are in evaluation if none are kept.
        by_batch = self.training or (self.running_mean is None and self.running_var is None)
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # the plain mean over all batches
                momentum = 1.0 / float(self.num_batches_tracked)
        keep = not self.training or self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean if keep else None,
            self.running_var if keep else None,
            self.weight,
            self.bias,
            by_batch,
            momentum,
            self.eps,
        )


class BatchNorm1d(_BatchNorm):
    """`functional.batch_norm` of (N, C) or (N, C, L).

    >>> import retrograd as torch
    >>> torch.nn.BatchNorm1d(1)(torch.tensor([[1.], [3.]]))
    tensor([[-1.0000],
            [ 1.0000]], grad_fn=<NativeBatchNormBackward0>)
    """

    _dims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """`functional.batch_norm` of (N, C, H, W)."""

    _dims = (4,)


class BatchNorm3d(_BatchNorm):
    """`functional.batch_norm` of (N, C, D, H, W)."""

    _dims = (5,)


class _InstanceNorm(_ChannelNorm):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def forward(self, input: Tensor) -> Tensor:
        self._check_input(input)
        single = input.ndim == self._dims[0]  # without a batch
        by_input = self.training or not self.track_running_stats
        result = F.instance_norm(
            input.unsqueeze(0) if single else input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            by_input,
            self.momentum or 0.0,
            self.eps,
        )
        return result.squeeze(0) if single else result


class InstanceNorm1d(_InstanceNorm):
    """`functional.instance_norm` of (N, C, L) or (C, L)."""

    _dims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """`functional.instance_norm` of (N, C, H, W) or (C, H, W)."""

    _dims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """`functional.instance_norm` of (N, C, D, H, W) or (C, D, H, W)."""

    _dims = (4, 5)
