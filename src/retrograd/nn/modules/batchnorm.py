"""Batch normalisation: each channel with mean 0 and variance 1 over the batch."""

from __future__ import annotations

from typing import Any

from ...core import dtypes
from ...ops import namespace as ops
from ...tensor import Tensor
from .. import functional as F
from ..parameter import UninitializedBuffer, UninitializedParameter
from .lazy import LazyModuleMixin
from .module import Module
from .normalization import _Affine


class _NormBase(_Affine):
    """What batch and instance norm share: a mean and a variance for each channel, kept from batch to batch."""

    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None
    #: The numbers of dimensions that an input may have.
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
        mean = var = count = None
        if track_running_stats:
            mean = ops.zeros(num_features, device=device, dtype=dtype)
            var = ops.ones(num_features, device=device, dtype=dtype)
            count = ops.tensor(0, device=device, dtype=dtypes.long)
        self.register_buffer("running_mean", mean)
        self.register_buffer("running_var", var)
        self.register_buffer("num_batches_tracked", count)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forget what was kept."""
        if self.track_running_stats:
            for tensor, value in ((self.running_mean, 0), (self.running_var, 1), (self.num_batches_tracked, 0)):
                assert tensor is not None
                tensor.fill_(value)

    def reset_parameters(self) -> None:
        """Forget what was kept, and set the first values."""
        self.reset_running_stats()
        super().reset_parameters()

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim not in self._dims:
            expected = " or ".join(f"{n}D" for n in self._dims)
            raise ValueError(f"expected {expected} input (got {input.ndim}D input)")

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any], *rest: Any
    ) -> None:
        # Before version 2 batches were not counted.
        if (local_metadata.get("version") or 0) < 2 and self.track_running_stats:
            count = self.num_batches_tracked
            zero = ops.tensor(0, dtype=dtypes.long) if count is None else count
            state_dict.setdefault(prefix + "num_batches_tracked", zero)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class _BatchNorm(_NormBase):
    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        # In training the statistics are the batch's own; so they are in evaluation if none are kept.
        by_batch = self.training or (self.running_mean is None and self.running_var is None)
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
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


class SyncBatchNorm(_BatchNorm):
    """`BatchNorm` over the batches of all processes of a group; here there is one process, so that it is the same.

    >>> import retrograd as torch
    >>> net = torch.nn.Sequential(torch.nn.BatchNorm1d(3), torch.nn.ReLU())
    >>> [type(module).__name__ for module in torch.nn.SyncBatchNorm.convert_sync_batchnorm(net).children()]
    ['SyncBatchNorm', 'ReLU']
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim < 2:
            raise ValueError(f"expected at least 2D input (got {input.ndim}D input)")
        if input.shape[1] == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """`module` with a SyncBatchNorm, of the same parameters and buffers, for every batch norm in it."""
        converted: Any = module
        if isinstance(module, _BatchNorm):
            converted = cls(
                module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats,
                process_group, bias=module.bias is not None,
            )  # fmt: skip
            for name in ("weight", "bias"):
                setattr(converted, name, getattr(module, name))
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                converted._buffers[name] = getattr(module, name)
            converted.training = module.training
            if hasattr(module, "qconfig"):
                converted.qconfig = module.qconfig
        for name, child in module.named_children():
            converted.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return converted


# ---------------------------------------------------------------------------------------------------------------- lazy


class _LazyNormBase(LazyModuleMixin, _NormBase):
    """A norm that learns the number of channels from its first input."""

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, False, False, device=device, dtype=dtype, bias=False)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(device=device, dtype=dtype)
            if bias:
                self.bias = UninitializedParameter(device=device, dtype=dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = ops.tensor(0, device=device, dtype=dtypes.long)

    def reset_parameters(self) -> None:
        """Set the first values, once there is room for them."""
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:  # type: ignore[override]
        """Take the number of channels from `input`."""
        if self.has_uninitialized_params():
            self.num_features: Any = input.shape[1]
            tensors: list[Any] = [self.weight, self.bias] if self.affine else []
            tensors += [self.running_mean, self.running_var] if self.track_running_stats else []
            for tensor in tensors:
                if tensor is not None:
                    tensor.materialize((self.num_features,))
            self.reset_parameters()


class LazyBatchNorm1d(_LazyNormBase, _BatchNorm):
    """`BatchNorm1d` that learns `num_features` from its first input."""

    cls_to_become = BatchNorm1d
    _dims = (2, 3)


class LazyBatchNorm2d(_LazyNormBase, _BatchNorm):
    """`BatchNorm2d` that learns `num_features` from its first input."""

    cls_to_become = BatchNorm2d
    _dims = (4,)


class LazyBatchNorm3d(_LazyNormBase, _BatchNorm):
    """`BatchNorm3d` that learns `num_features` from its first input."""

    cls_to_become = BatchNorm3d
    _dims = (5,)
