"""Losses of numbers beside numbers; part of ``functional``."""

from __future__ import annotations

import warnings

from ..._generated import functions as generated
from ...core.where import users_level
from ...ops.registry import composite
from ...tensor import Tensor
from .distance import same_shape
from .reduction import reduced, reduction_number


def _warn_of_broadcasting(input: Tensor, target: Tensor) -> None:
    if input._memory_.shape != target._memory_.shape:
        warnings.warn(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). This will "
            "likely lead to incorrect results due to broadcasting. Please ensure they have the same size.",
            UserWarning,
            stacklevel=users_level(),
        )


def _weighted(losses: Tensor, weight: Tensor, input: Tensor, reduction: int, by_weight: bool = True) -> Tensor:
    """Losses times `weight`, reduced; the mean is by the sum of the weights, or by the number of losses."""
    if weight._memory_.shape != input._memory_.shape:
        raise ValueError("Weights and input must have the same size.")
    losses = losses * weight
    if reduction == 1 and by_weight:
        return losses.sum() / weight.sum()
    return reduced(losses, reduction)


@composite(space="nn.functional")
def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The squared difference.

    >>> import retrograd as torch
    >>> torch.nn.functional.mse_loss(torch.tensor([1., 3.]), torch.tensor([0., 0.]))
    tensor(5.)
    """
    _warn_of_broadcasting(input, target)
    number = reduction_number(reduction, size_average, reduce)
    a, b = same_shape(input, target)
    if weight is None:
        return generated.mse_loss(a, b, number)
    return _weighted((a - b).pow(2), weight, input, number)


@composite(space="nn.functional")
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The absolute difference."""
    _warn_of_broadcasting(input, target)
    number = reduction_number(reduction, size_average, reduce)
    losses = (input - target).abs()
    return reduced(losses, number) if weight is None else _weighted(losses, weight, input, number)


@composite(space="nn.functional")
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Half the squared difference over `beta` where it is below `beta`, else the difference minus half of `beta`."""
    _warn_of_broadcasting(input, target)
    number = reduction_number(reduction, size_average, reduce)
    a, b = same_shape(input, target)
    return reduced((a - b).abs(), number) if beta == 0 else generated.smooth_l1_loss(a, b, number, beta)


@composite(space="nn.functional")
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """Half the squared difference where it is below `delta`, else `delta` times the difference less `delta` / 2."""
    _warn_of_broadcasting(input, target)
    number = reduction_number(reduction)
    a, b = same_shape(input, target)
    if weight is None:
        return generated.huber_loss(a, b, number, delta)
    return _weighted(generated.huber_loss(a, b, 0, delta), weight, input, number, by_weight=False)
