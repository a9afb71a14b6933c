"""Distances and angles between vectors; part of ``functional``."""

from __future__ import annotations

from ... import kernels
from ..._generated import functions as generated
from ...ops import namespace as ops
from ...ops.registry import composite
from ...tensor import Tensor


def same_shape(input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Both, broadcast to one shape."""
    if input._memory_.shape == target._memory_.shape:
        return input, target
    shape = kernels.broadcast_shape(input._memory_, target._memory_)
    return tuple(x if x._memory_.shape == shape else x.expand(shape) for x in (input, target))  # type: ignore[return-value]


@composite("torch.cosine_similarity", space="nn.functional")
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along `dim`."""
    if eps < 0:
        raise RuntimeError(f"eps must be non-negative, got: {eps}")
    x1, x2 = same_shape(x1, x2)
    common = ops.result_type(x1, x2)
    if not common.is_floating_point:
        raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {common}")
    x1, x2 = x1.to(common), x2.to(common)
    first = x1 / x1.norm(2, dim, keepdim=True).clamp_min(eps)
    second = x2 / x2.norm(2, dim, keepdim=True).clamp_min(eps)
    return (first * second).sum(dim)


@composite("torch.pairwise_distance", space="nn.functional")
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The `p`-norm of the difference of vectors along the last dimension."""
    difference = generated._add_number(x1 - x2, eps)
    return generated._norm(difference, p, (difference._memory_.ndim - 1,), keepdim)
