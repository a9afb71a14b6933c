"""Instance normalisation: each channel of each element of the batch with mean 0 and variance 1."""

from __future__ import annotations

import warnings
from typing import Any

from ...tensor import Tensor
from .. import functional as F
from .batchnorm import _LazyNormBase, _NormBase


class _InstanceNorm(_NormBase):
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

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        # Before version 2 statistics were kept by default, and nobody meant it.
        if local_metadata.get("version") is None and not self.track_running_stats:
            found = [k for k in ("running_mean", "running_var") if prefix + k in state_dict]
            if found:
                named = " and ".join(f'"{prefix}{name}"' for name in found)
                error_msgs.append(
                    f"Unexpected running stats buffer(s) {named} for {type(self).__name__} with "
                    "track_running_stats=False. If state_dict is a checkpoint saved before 0.4.0, this may be expected "
                    f"because {type(self).__name__} does not track running stats by default since 0.4.0. Please remove "
                    "these keys from state_dict. If the running stats are actually needed, instead set "
                    f"track_running_stats=True in {type(self).__name__} to enable them. See the documentation of "
                    f"{type(self).__name__} for details."
                )
                for name in found:
                    state_dict.pop(prefix + name)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )

    def _get_no_batch_dim(self) -> int:
        """How many dimensions an input has that is no batch."""
        return self._dims[0]

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        single = input.ndim == self._get_no_batch_dim()
        channels = input.shape[0 if single else 1]
        if channels != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={0 if single else 1} to match num_features ({self.num_features}), "
                    f"but got: {channels}."
                )
            warnings.warn(
                f"input's size at dim={0 if single else 1} does not match num_features. You can silence this warning "
                "by not passing in num_features, which is not used because affine=False",
                UserWarning,
                stacklevel=3,
            )
        result = F.instance_norm(
            input.unsqueeze(0) if single else input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )
        return result.squeeze(0) if single else result


class InstanceNorm1d(_InstanceNorm):
    """`functional.instance_norm` of (N, C, L) or (C, L).

    >>> import retrograd as torch
    >>> torch.nn.InstanceNorm1d(1)(torch.tensor([[1., 3.]]))
    tensor([[-1.0000,  1.0000]])
    """

    _dims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """`functional.instance_norm` of (N, C, H, W) or (C, H, W)."""

    _dims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """`functional.instance_norm` of (N, C, D, H, W) or (C, D, H, W)."""

    _dims = (4, 5)


class LazyInstanceNorm1d(_LazyNormBase, _InstanceNorm):
    """`InstanceNorm1d` that learns `num_features` from its first input."""

    cls_to_become = InstanceNorm1d
    _dims = (2, 3)


class LazyInstanceNorm2d(_LazyNormBase, _InstanceNorm):
    """`InstanceNorm2d` that learns `num_features` from its first input."""

    cls_to_become = InstanceNorm2d
    _dims = (3, 4)


class LazyInstanceNorm3d(_LazyNormBase, _InstanceNorm):
    """`InstanceNorm3d` that learns `num_features` from its first input."""

    cls_to_become = InstanceNorm3d
    _dims = (4, 5)
