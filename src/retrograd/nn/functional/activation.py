"""Activations; part of ``functional``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._generated import functions as generated
from ...core.type_info import finfo
from ...kernels.dims import normalize_dim
from ...kernels.promotion import scalar_name, unsupported
from ...ops import namespace as ops
from ...ops.registry import composite
from ...tensor import Tensor


def _activation(name: str, inplace: bool, input: Tensor, *args: Any) -> Tensor:
    """An operator or, if `inplace`, its in-place variant."""
    if not inplace:
        return getattr(ops, name)(input, *args)
    function: Callable | None = getattr(generated, name + "_", None)
    if function is None:  # no in-place variant: the result of a copy, which keeps the values, over the input
        return input.copy_(getattr(ops, name)(input.clone(), *args))  # type: ignore[attr-defined]
    return function(input, *args)


@composite(space="nn.functional", bare=True)
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """The positive part.

    >>> import retrograd as torch
    >>> torch.nn.functional.relu(torch.tensor([-1., 2.]))
    tensor([0., 2.])
    """
    return generated.relu_(input) if inplace else generated.relu(input)


@composite(space="nn.functional")
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Clamped between 0 and 6."""
    return _activation("hardtanh", inplace, input, 0.0, 6.0)


@composite(space="nn.functional", bare=True)
def sigmoid(input: Tensor) -> Tensor:
    """``1 / (1 + exp(-input))``."""
    return generated.sigmoid(input)


@composite(space="nn.functional", bare=True)
def tanh(input: Tensor) -> Tensor:
    """The hyperbolic tangent."""
    return generated.tanh(input)


@composite(space="nn.functional")
def logsigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the sigmoid."""
    return generated.log_sigmoid(input, out=out)


@composite(space="nn.functional")
def softplus(
    input: Tensor, beta: float = 1, threshold: float = 20, *, out: Tensor | None = None
) -> Tensor:
    """``log(1 + exp(beta * input)) / beta``, and the input itself where ``beta * input`` is above `threshold`."""
    return generated.softplus(input, beta, threshold, out=out)


@composite(space="nn.functional")
def gelu(input: Tensor, *, approximate: str = "none", out: Tensor | None = None) -> Tensor:
    """The input times the normal distribution function of it, or (``"tanh"``) an approximation."""
    return generated.gelu(input, approximate=approximate, out=out)


@composite(space="nn.functional")
def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """The input times its sigmoid."""
    return _activation("silu", inplace, input)


@composite(space="nn.functional")
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """The input times the tanh of its softplus."""
    return _activation("mish", inplace, input)


@composite(space="nn.functional")
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """The positive part plus `negative_slope` times the negative part."""
    return _activation("leaky_relu", inplace, input, negative_slope)


@composite(space="nn.functional")
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """The positive part, and ``alpha * (exp(input) - 1)`` where the input is negative."""
    return _activation("elu", inplace, input, alpha)


@composite("torch.selu", space="nn.functional")
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """`elu` scaled so that a normal distribution keeps its mean and variance."""
    return _activation("elu", inplace, input, 1.6732632423543772, 1.0507009873554805)


@composite("torch.celu", space="nn.functional")
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """`elu` made continuously differentiable for every `alpha`."""
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return _activation("celu", inplace, input, alpha)


@composite(space="nn.functional")
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Clamped between `min_val` and `max_val`."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return _activation("hardtanh", inplace, input, min_val, max_val)


@composite(space="nn.functional")
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """``clamp(input + 3, 0, 6) / 6``."""
    return _activation("hardsigmoid", inplace, input)


@composite(space="nn.functional")
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """The input times its `hardsigmoid`."""
    return _activation("hardswish", inplace, input)


@composite(space="nn.functional")
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """The input where it is above `threshold`, else `value`."""
    return _activation("threshold", inplace, input, threshold, value)


@composite(space="nn.functional")
def tanhshrink(input: Tensor) -> Tensor:
    """``input - tanh(input)``."""
    return input - input.tanh()


@composite(space="nn.functional")
def softshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """The input moved towards zero by `lambd`, and zero where it is nearer to it than that."""
    data = input._memory_
    if data.dtype.kind not in "fV":
        unsupported("softshrink_cpu", data.dtype)
    largest = finfo(input.dtype).max
    if not 0 <= lambd <= largest:
        raise RuntimeError(
            f"lambda must be in range [0, {largest:g}] for input dtype {scalar_name(data.dtype)}, but found {lambd:g}"
        )
    if out is not None and out.dtype != input.dtype:
        found = scalar_name(out._memory_.dtype)
        raise RuntimeError(f"Found dtype {found} but expected {scalar_name(data.dtype)}")
    return generated.softshrink(input, lambd, out=out)


@composite("torch.prelu", "Tensor.prelu", space="nn.functional")
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """`leaky_relu` with a learned slope, one or one for each channel."""
    n = input._memory_.ndim
    if weight._memory_.ndim > 1:
        raise RuntimeError(
            f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight._memory_.ndim}"
        )
    if weight._memory_.dtype != input._memory_.dtype:
        names = scalar_name(input._memory_.dtype), scalar_name(weight._memory_.dtype)
        raise RuntimeError("prelu: Type promoting not supported. Got {} and {}".format(*names))
    if weight._memory_.size != 1:
        if not n:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = input._memory_.shape[1] if n > 1 else 1
        if weight._memory_.size != channels:
            raise RuntimeError(
                f"Mismatch of parameter numbers and input channel size. Found parameter numbers = "
                f"{weight._memory_.size} and channel size = {channels}."
            )
    shape = [-1 if d == 1 else 1 for d in range(n)] if n > 1 else [-1] if n else []
    slope = weight if weight._memory_.ndim == n < 2 else weight.reshape(shape)
    return generated._prelu_kernel(input, slope)


@composite(space="nn.functional")
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """One half of the input times the sigmoid of the other, halved along `dim`."""
    if not input._memory_.ndim:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    if input._memory_.dtype.kind not in "fV":
        unsupported("glu_cpu", input._memory_.dtype)
    n = input._memory_.shape[normalize_dim(dim, input._memory_.ndim)]
    if n % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim} is size {n}")
    return generated.glu(input, dim)


# ------------------------------------------------------------------------------------------------------------- in place


@composite(space="nn.functional")
def relu_(input: Tensor) -> Tensor:
    """In-place `relu`."""
    return generated.relu_(input)


@composite(space="nn.functional")
def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """In-place `leaky_relu`."""
    return generated.leaky_relu_(input, negative_slope)


@composite(space="nn.functional")
def elu_(input: Tensor, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Tensor:
    """In-place `elu`, of which both the result and the input may be scaled."""
    return generated.elu_(input, alpha, scale, input_scale)


@composite("torch.selu_", space="nn.functional")
def selu_(input: Tensor) -> Tensor:
    """In-place `selu`."""
    return selu(input, True)


@composite("torch.celu_", space="nn.functional")
def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """In-place `celu`."""
    return celu(input, alpha, True)


@composite(space="nn.functional")
def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """In-place `hardtanh`."""
    return hardtanh(input, min_val, max_val, True)


@composite(space="nn.functional")
def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """In-place `threshold`."""
    return generated.threshold_(input, threshold, value)
