"""Softmax and its logarithm."""

from __future__ import annotations

import math
from typing import Any

from ..._generated import functions as generated
from ...core import dtypes
from ...tensor import Tensor
from ..registry import composite


@composite("special.softmax", out=True)
def softmax(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """`nn.functional.softmax` as a function and method."""
    return generated._softmax(input if dtype is None else input.to(dtype), dim)


@composite("special.log_softmax", out=True)
def log_softmax(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """`nn.functional.log_softmax` as a function and method."""
    return generated._log_softmax(input if dtype is None else input.to(dtype), dim)


@composite(method=False, out=True)
def _safe_softmax(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """`softmax`, and zeros where all is -inf.

    >>> import retrograd as torch
    >>> torch._safe_softmax(torch.tensor([[-torch.inf, -torch.inf], [0., 0.]]), 1)
    tensor([[0.0000, 0.0000],
            [0.5000, 0.5000]])
    """
    nothing = input.eq(-math.inf).all(dim, keepdim=True)  # type: ignore[attr-defined]
    # No gradient goes where all is -inf, nor is one computed there.
    return softmax(input.masked_fill(nothing, 0.0), dim, dtype).masked_fill(nothing, 0.0)  # type: ignore[attr-defined]


@composite(method=False)
def _masked_softmax(input: Tensor, mask: Tensor, dim: int | None = None, mask_type: int | None = None) -> Tensor:
    """`softmax` over the elements that a mask of bools does not hide; NaN where it hides all.

    `mask_type`: of a batch of (heads, length, length) the mask is (length, length) if 0, (batch, length) if 1; 2: as
    large as `input`, which any mask may be.

    >>> import retrograd as torch
    >>> torch._masked_softmax(torch.zeros(1, 3), torch.tensor([[False, True, False]]), 1, 2)
    tensor([[0.5000, 0.0000, 0.5000]])
    """
    if mask.dtype is not dtypes.bool_:
        raise RuntimeError(f"Mask should be a boolean tensor, but got {mask.dtype}")
    if mask_type is None:
        raise RuntimeError("Mask Type should be defined: 0, 1 or 2")
    if mask_type not in (0, 1, 2):
        raise RuntimeError(
            "Mask Type should be 0 (src_mask) or 1 (src_key_padding_mask), or 2 (default_mask), but got "
            f"{mask_type}"
        )
    shape = input._memory_.shape
    if mask._memory_.shape != shape:
        wanted = {0: shape[-1:] * 2, 1: (shape[0], shape[-1])}.get(mask_type)
        if mask_type == 2 or mask._memory_.shape != wanted:
            raise RuntimeError(
                f"For mask_type == {mask_type} mask shape should "
                + ("match input shape" if mask_type == 2 else f"be {('(L, L)', '(B, L)')[mask_type]}")
                + f", but got {list(mask._memory_.shape)} for an input of {list(shape)}"
            )
        if mask_type == 1:
            mask = generated.view(mask, (shape[0], *[1] * (len(shape) - 2), shape[-1]))
    return generated._softmax(input.masked_fill(mask, -math.inf), -1 if dim is None else dim)  # type: ignore[attr-defined]


def _narrowed(grad: Tensor, grad_output: Tensor, input_dtype: Any) -> Tensor:
    """The gradient of an input that was converted on the way: halves, whose softmax was computed in float32."""
    given = grad_output.dtype
    if input_dtype is given or not (given is dtypes.float32 and input_dtype is dtypes.float16):
        return grad
    return grad.to(input_dtype)  # type: ignore[attr-defined]


@composite(method=False, out=True)
def _softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any) -> Tensor:
    """The gradient of `softmax` for its input, by that for its `output`.

    >>> import retrograd as torch
    >>> y = torch.tensor([0.25, 0.75])
    >>> torch._softmax_backward_data(torch.tensor([1., 0.]), y, 0, torch.float32)
    tensor([ 0.1875, -0.1875])
    """
    return _narrowed(generated.softmax_backward(grad_output, output, dim), grad_output, input_dtype)


@composite(method=False, out=True)
def _log_softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any) -> Tensor:
    """The gradient of `log_softmax` for its input, by that for its `output`.

    >>> import retrograd as torch
    >>> y = torch.tensor([0.25, 0.75]).log()
    >>> torch._log_softmax_backward_data(torch.tensor([1., 0.]), y, 0, torch.float32)
    tensor([ 0.7500, -0.7500])
    """
    return _narrowed(generated.log_softmax_backward(grad_output, output, dim), grad_output, input_dtype)
