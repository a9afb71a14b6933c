"""A convolution or a linear layer and the batch norm after it as one layer, for evaluation."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

from ...ops import namespace as ops
from ...tensor import Tensor
from ..modules.batchnorm import _BatchNorm
from ..modules.conv import _ConvNd
from ..modules.linear import Linear
from ..modules.module import Module
from ..parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]

ConvT = TypeVar("ConvT", bound=_ConvNd)
LinearT = TypeVar("LinearT", bound=Linear)


def _check(layer: Module, bn: _BatchNorm) -> None:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")


def fuse_conv_bn_eval(conv: ConvT, bn: _BatchNorm, transpose: bool = False) -> ConvT:
    """A convolution that does what `conv` and then `bn` do; both in evaluation mode.

    >>> import retrograd as torch
    >>> conv, bn = torch.nn.Conv1d(2, 3, 1).eval(), torch.nn.BatchNorm1d(3).eval()
    >>> x = torch.ones(1, 2, 4)
    >>> torch.allclose(torch.nn.utils.fuse_conv_bn_eval(conv, bn)(x), bn(conv(x)))
    True
    """
    _check(conv, bn)
    fused = copy.deepcopy(conv)
    norm: Any = bn
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, norm.running_mean, norm.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return fused


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """The weight and the bias of `fuse_conv_bn_eval`; `transpose` for transposed convolutions."""
    shape = [1] * conv_w.ndim
    shape[1 if transpose else 0] = -1
    return _fused(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, shape)


def fuse_linear_bn_eval(linear: LinearT, bn: _BatchNorm) -> LinearT:
    """A linear layer that does what `linear` and then `bn` do; both in evaluation mode."""
    _check(linear, bn)
    if bn.num_features not in (1, linear.out_features):
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got linear.out_features="
            f"{linear.out_features} and bn.num_features={bn.num_features}"
        )
    fused = copy.deepcopy(linear)
    norm: Any = bn
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, norm.running_mean, norm.running_var, bn.eps, bn.weight, bn.bias
    )
    return fused


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:
    """The weight and the bias of `fuse_linear_bn_eval`."""
    return _fused(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, [-1, 1])


def _fused(
    weight: Tensor, bias: Tensor | None, mean: Tensor, var: Tensor, eps: float, bn_weight: Tensor | None,
    bn_bias: Tensor | None, shape: list[int],
) -> tuple[Parameter, Parameter]:  # fmt: skip
    """``(x @ weight + bias - mean) / sqrt(var + eps) * bn_weight + bn_bias`` as one weight and one bias."""
    old_bias = ops.zeros_like(mean) if bias is None else bias
    scale = ops.rsqrt(var + eps)
    scale = scale if bn_weight is None else scale * bn_weight
    new_bias = (old_bias - mean) * scale
    new_bias = new_bias if bn_bias is None else new_bias + bn_bias
    new_weight = (weight * scale.reshape(shape)).to(weight.dtype)
    new_bias = new_bias.to(weight.dtype if bias is None else bias.dtype)
    return (
        Parameter(new_weight.detach(), weight.requires_grad),
        Parameter(new_bias.detach(), old_bias.requires_grad),
    )
