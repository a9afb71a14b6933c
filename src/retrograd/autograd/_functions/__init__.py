"""Functions from before tensors recorded their history themselves."""

from __future__ import annotations

import math
from typing import Any

from ...tensor import Tensor
from ..function import Function

__all__ = ["Resize"]


class Resize(Function):
    """Another shape of as many elements.

    >>> import retrograd as torch
    >>> from retrograd.autograd._functions import Resize
    >>> Resize.apply(torch.ones(4), (2, 2)).shape
    torch.Size([2, 2])
    """

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, sizes: tuple[int, ...]) -> Tensor:
        if math.prod(sizes) != tensor.numel():
            raise RuntimeError(
                f"requested resize to {'x'.join(map(str, sizes))} ({math.prod(sizes)} elements in total), but the "
                f"given "
                f"tensor has a size of {'x'.join(map(str, tensor.shape))} ({tensor.numel()} elements). autograd's "
                f"resize can "
                "only change the shape of a given tensor, while preserving the number of elements."
            )
        ctx.input_sizes = tuple(tensor.shape)
        return tensor.clone().reshape(sizes)  # type: ignore[attr-defined]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad.reshape(ctx.input_sizes), None  # type: ignore[attr-defined]
