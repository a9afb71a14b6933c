"""A linear layer and the cross entropy of its results, in one call; part of ``functional``."""

from __future__ import annotations

import math
from typing import Any

from ...tensor import Tensor


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
    from . import cross_entropy, linear

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
