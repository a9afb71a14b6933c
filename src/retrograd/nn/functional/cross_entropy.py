"""Losses of probabilities: cross entropies and divergences; part of ``functional``."""

from __future__ import annotations

import dataclasses
import math
import warnings
from typing import Any

from ... import kernels
from ..._generated import functions as generated
from ...core.state import local
from ...core.where import users_level
from ...ops import namespace as ops
from ...ops.registry import composite
from ...tensor import Tensor
from .linear import linear
from .reduction import reduced, reduction_number


@composite(space="nn.functional")
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Minus the log-probabilities `input` at the classes `target`.

    The shapes are (N, C) and (N), or (N, C, d1, ...) and (N, d1, ...), or (C) and ().

    >>> import retrograd as torch
    >>> torch.nn.functional.nll_loss(torch.tensor([[-1., -2.], [-3., -4.]]), torch.tensor([0, 1]))
    tensor(2.5000)
    """
    return _nll(input, target, weight, reduction_number(reduction, size_average, reduce), ignore_index)


def _nll(input: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int) -> Tensor:
    """Images, and what torch makes images of, have a node of their own."""
    shape = input._memory_.shape
    if len(shape) == 4:
        return generated.nll_loss2d(input, target, weight, reduction, ignore_index)
    if len(shape) < 3 or target._memory_.shape != (shape[0], *shape[2:]) or not input._memory_.size:
        return generated.nll_loss(input, target, weight, reduction, ignore_index)
    image = input.contiguous().reshape((*shape[:2], 1, -1))
    result = generated.nll_loss2d(image, target.reshape((shape[0], 1, -1)), weight, reduction, ignore_index)
    return result if reduction else result.reshape(target._memory_.shape)


@composite(space="nn.functional")
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Minus the log-probability, by `softmax` of the logits `input`, of classes `target` or a distribution over them.

    >>> import retrograd as torch
    >>> torch.nn.functional.cross_entropy(torch.zeros(1, 4), torch.tensor([2]))
    tensor(1.3863)
    """
    number = reduction_number(reduction, size_average, reduce)
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}")
    shape = input._memory_.shape
    class_dim = 0 if len(shape) == 1 else 1
    if shape == target._memory_.shape:
        return _soft_cross_entropy(input, target, weight, number, ignore_index, label_smoothing, class_dim)
    logs = generated._log_softmax(input, class_dim)
    loss = _nll(logs, target, weight, number, ignore_index)
    if not label_smoothing:
        return loss
    smooth = _uniform_loss(logs, target, weight, number, ignore_index, class_dim)
    return generated._mul_number(loss, 1 - label_smoothing) + generated._mul_number(
        smooth, label_smoothing / shape[class_dim]
    )


def _soft_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    label_smoothing: float,
    class_dim: int,
) -> Tensor:
    """`cross_entropy` for a target that gives the probability of each class."""
    if target._memory_.dtype.kind not in "fV":
        raise RuntimeError(
            "Expected floating point type for target with class probabilities, got "
            + kernels.scalar_name(target._memory_.dtype)
        )
    if ignore_index >= 0:
        raise RuntimeError("ignore_index is not supported for floating point target")
    classes = input._memory_.shape[class_dim]
    _check_weight(weight, classes)
    if label_smoothing:
        target = generated._add_number(
            generated._mul_number(target, 1 - label_smoothing), label_smoothing / max(classes, 1)
        )
    logs = generated._log_softmax(input, class_dim)
    terms = logs * target if weight is None else logs * target * _along_classes(weight, input._memory_.ndim, class_dim)
    if reduction == 0:
        return -terms.sum(class_dim)
    loss = -terms.sum()
    if reduction == 2:
        return loss
    return generated._div_number(loss, input._memory_.size / classes if classes else 0.0)


def _uniform_loss(
    logs: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int, class_dim: int
) -> Tensor:
    """The part of `cross_entropy` that label smoothing adds: every class counts alike."""
    terms = logs if weight is None else logs * _along_classes(weight, logs._memory_.ndim, class_dim)
    losses = -terms.sum(class_dim)
    ignored = target == ignore_index
    losses = losses.masked_fill(ignored.reshape(losses.shape), 0)
    if reduction != 1:
        return reduced(losses, reduction)
    if weight is None:
        return losses.sum() / (~ignored).sum()
    counted = weight.gather(0, target.masked_fill(ignored, 0).reshape(-1)).masked_fill(ignored.reshape(-1), 0)
    return losses.sum() / counted.sum()


def _along_classes(weight: Tensor, ndim: int, class_dim: int) -> Tensor:
    return weight.reshape([-1 if d == class_dim else 1 for d in range(ndim)])


def _check_weight(weight: Tensor | None, classes: int) -> None:
    if weight is not None and weight._memory_.shape != (classes,):
        raise RuntimeError(
            f"weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of "
            f"shape: {list(weight._memory_.shape)}"
        )


@composite(space="nn.functional")
def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """``cross_entropy(linear(input, linear_weight, linear_bias), target)``.

    `linear_weight` is (classes, features), or (classes, ..., features) for a loss at several places.  `options` say in
    torch how to compute it in parts, which changes nothing but the memory it takes; here they are ignored.

    >>> import retrograd as torch
    >>> torch.nn.functional.linear_cross_entropy(torch.ones(1, 2), torch.zeros(4, 2), torch.tensor([0]))
    tensor(1.3863)
    """
    if options is not None and not isinstance(options, dict) and not dataclasses.is_dataclass(options):
        raise TypeError(
            "linear_cross_entropy(): argument 'options' must be LinearCrossEntropyOptions or dict, not "
            f"{type(options).__name__}"
        )
    batch, features = tuple(input.shape[:-1]), input.shape[-1] if input.ndim else 0
    if input.ndim not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.ndim}")
    if linear_weight.ndim < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {linear_weight.ndim}")
    if features != linear_weight.shape[-1]:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), got "
            f"{features} and {linear_weight.shape[-1]}, respectively"
        )
    places = tuple(linear_weight.shape[:-1])
    if linear_bias is not None and tuple(linear_bias.shape) != places:
        raise RuntimeError(f"expected linear_bias shape {places}, got {tuple(linear_bias.shape)}")
    if len(places) > 1 and not batch:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} requires batched input, "
            f"(N, {features}), got unbatched input with shape {tuple(input.shape)}"
        )
    if tuple(target.shape) == (*batch, *places) and ignore_index is not None:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    flat = linear_weight.reshape((math.prod(places), features))
    logits = linear(input, flat, None if linear_bias is None else linear_bias.reshape(-1))
    return cross_entropy(
        logits.reshape((*batch, *places)), target, weight, reduction=reduction,
        ignore_index=-100 if ignore_index is None else ignore_index, label_smoothing=label_smoothing,
    )  # fmt: skip


@composite(space="nn.functional")
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Minus the log-probability of targets between 0 and 1, where `input` is the probability of 1."""
    number = reduction_number(reduction, size_average, reduce)
    if input._memory_.shape != target._memory_.shape:
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}) is deprecated. "
            "Please ensure they have the same size."
        )
    if weight is not None:
        weight = weight.expand(input._memory_.shape)
    return generated.binary_cross_entropy(input, target, weight, number)


@composite(space="nn.functional")
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """`binary_cross_entropy` of ``sigmoid(input)``, without its loss of precision."""
    number = reduction_number(reduction, size_average, reduce)
    if input._memory_.shape != target._memory_.shape:
        raise ValueError(f"Target size ({target.shape}) must be the same as input size ({input.shape})")
    if target.is_complex() and input.is_floating_point():
        return _bce_of_complex_targets(input, target, weight, pos_weight, number)
    return generated.binary_cross_entropy_with_logits(input, target, weight, pos_weight, number)


def _bce_of_complex_targets(
    input: Tensor, target: Tensor, weight: Tensor | None, pos_weight: Tensor | None, reduction: int
) -> Tensor:
    """Linear in the targets, so that it has a value: in their dtype, and without a gradient, as in torch."""
    given = [t for t in (input, target, weight, pos_weight) if t is not None]
    if pos_weight is not None:
        raise RuntimeError(
            f"result type {target._type_name_()[:-6]} can't be cast to the desired output type "
            f"{input._type_name_()[:-6]}: complex targets have no pos_weight"
        )
    dtype, no = target.dtype, generated.log_sigmoid(input.detach())
    losses = ((1 - target.detach()) * input.detach()).to(dtype)  # rounded at each step
    losses = (losses - no).to(dtype)
    if weight is not None:
        losses = (losses * weight.detach()).to(dtype)
    if reduction:
        losses = losses.mean() if reduction == 1 else losses.sum()
    if local.state.grad_enabled and any(t.requires_grad for t in given):
        raise RuntimeError(
            "binary_cross_entropy_with_logits does not support automatic differentiation for outputs with complex "
            "dtype: detach the tensors"
        )
    return losses


@composite(space="nn.functional")
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """The divergence of the distribution `target` from the one whose log-probabilities are `input`."""
    by_batch = reduction == "batchmean" and size_average is None and reduce is None
    if reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size. 'batchmean' divides "
            "only by the batch size, and aligns with the KL div math definition.",
            UserWarning,
            stacklevel=users_level(),
        )
    number = 2 if by_batch else reduction_number(reduction, size_average, reduce)
    for given in (input, target):
        if not given.is_floating_point():
            raise RuntimeError(f"kl_div: {'Complex' if given.is_complex() else 'Integral'} inputs not supported.")
    if log_target:
        losses = target.exp() * (target - input)
    else:
        losses = ops.xlogy(target, target) - target * input
    result = reduced(losses, number)
    return result / input._memory_.shape[0] if by_batch and input._memory_.ndim else result
