"""``torch.nn.grad``: the gradients of convolutions, as functions of what is needed for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..autograd import grad
from ..autograd.grad_mode import enable_grad
from ..ops import factories
from ..tensor import Tensor
from . import functional
from .functional.family import family


def _gradient(
    dims: int, wanted: str, input: Tensor, weight: Tensor, grad_output: Tensor, settings: tuple[Any, ...]
) -> Any:
    conv = getattr(functional, f"conv{dims}d")
    with enable_grad():
        input, weight = input.detach(), weight.detach()
        chosen = (input if wanted == "input" else weight).requires_grad_()
        output = conv(input, weight, None, *settings)
    return grad(output, chosen, grad_output)[0]


def _make_input(dims: int) -> Callable[..., Tensor]:
    def conv_input(
        input_size: Sequence[int],
        weight: Tensor,
        grad_output: Tensor,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        input = factories.zeros(tuple(input_size), dtype=grad_output.dtype, device=grad_output.device)
        return _gradient(dims, "input", input, weight, grad_output, (stride, padding, dilation, groups))

    return conv_input


def _make_weight(dims: int) -> Callable[..., Tensor]:
    def conv_weight(
        input: Tensor,
        weight_size: Sequence[int],
        grad_output: Tensor,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        weight = factories.zeros(tuple(weight_size), dtype=grad_output.dtype, device=grad_output.device)
        return _gradient(dims, "weight", input, weight, grad_output, (stride, padding, dilation, groups))

    return conv_weight


conv1d_input: Callable[..., Tensor]
conv2d_input: Callable[..., Tensor]
conv3d_input: Callable[..., Tensor]
conv1d_input, conv2d_input, conv3d_input = family(
    "conv{d}d_input",
    _make_input,
    """The gradient of `conv{d}d` for its input, of size `input_size`.

    >>> import retrograd as torch
    >>> torch.nn.grad.conv1d_input((1, 1, 2), torch.tensor([[[3.]]]), torch.ones(1, 1, 2))
    tensor([[[3., 3.]]])
    """,
)
conv1d_weight: Callable[..., Tensor]
conv2d_weight: Callable[..., Tensor]
conv3d_weight: Callable[..., Tensor]
conv1d_weight, conv2d_weight, conv3d_weight = family(
    "conv{d}d_weight", _make_weight, "The gradient of `conv{d}d` for its weight, of size `weight_size`."
)
