"""``torch.optim._functional``: one step of each optimizer, as functions of lists of tensors."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor
from .adadelta import adadelta
from .adagrad import adagrad
from .adam import adam
from .adamax import adamax
from .adamw import adamw
from .asgd import asgd
from .nadam import nadam
from .radam import radam
from .rmsprop import rmsprop
from .rprop import rprop
from .sgd import sgd

__all__ = [
    "adadelta", "adagrad", "adam", "adamax", "adamw", "asgd", "nadam", "radam", "rmsprop", "rprop", "sgd",
    "sparse_adam",
]  # fmt: skip


def sparse_adam(
    params: list[Tensor],
    grads: list[Any],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    state_steps: list[int],
    *,
    eps: float,
    beta1: float,
    beta2: float,
    lr: float,
    maximize: bool,
) -> None:
    """One step of `SparseAdam`: gradients have ``coalesce()``, ``_indices()`` and ``_values()``."""
    for param, grad, exp_avg, exp_avg_sq, step in zip(
        params, grads, exp_avgs, exp_avg_sqs, state_steps, strict=True
    ):  # fmt: skip
        grad = grad.coalesce()
        at, values = tuple(grad._indices()), grad._values()
        if values.numel() == 0:
            continue
        if maximize:
            values = -values
        mean = exp_avg[at].lerp(values, 1 - beta1)
        square = exp_avg_sq[at].lerp(values * values, 1 - beta2)
        exp_avg[at] = mean
        exp_avg_sq[at] = square
        scale = lr * (1 - beta2**step) ** 0.5 / (1 - beta1**step)
        param[at] -= mean / (square.sqrt() + eps) * scale
