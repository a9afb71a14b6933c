"""Dropout of whole channels, dropout that keeps the variance, other random functions; part of ``functional``."""

from __future__ import annotations

import math
import warnings

import numpy as np

from ... import kernels
from ..._generated import functions as generated
from ...core.devices import device, device_of_array_class
from ...core.dtypes import from_numpy_dtype
from ...core.state import local
from ...core.where import users_level
from ...ops import namespace as ops
from ...ops.registry import composite
from ...random import Generator, default_generator, generator_of
from ...tensor import Tensor, wrap
from ...tensor.beside import beside
from ...tensor.meta import MetaArray, meta_tensor
from .activation import leaky_relu


def _check_probability(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def _mask(like: np.ndarray, p: float, input: Tensor) -> Tensor:
    """Zeros with probability `p`, and else 1 / (1 - p), to multiply `input` with."""
    if isinstance(like, MetaArray):
        return meta_tensor(MetaArray.like(like))
    levels = local.state.batch_levels
    if levels:  # within a vmap, which says whether examples have one mask or each its own
        return levels[-1].draw(_drawn_mask, (like.shape, like.dtype, p, input.device), {})
    generator = (
        default_generator if like.__class__ is np.ndarray else generator_of(device_of_array_class(like.__class__))
    )
    with generator.lock:
        return wrap(kernels.dropout_mask(like, p, generator.twister))


def _drawn_mask(shape: tuple[int, ...], dtype: np.dtype, p: float, where: device) -> Tensor:
    like = ops.empty(shape, dtype=from_numpy_dtype(dtype), device=where)
    return _mask(like._memory_, p, like)


def _channels(input: Tensor, dims: int) -> tuple[int, ...]:
    """A number for each channel of a batch, or of one image."""
    shape = input._memory_.shape
    lead = len(shape) - dims if len(shape) > dims else 1
    return (*shape[:lead], *[1] * (len(shape) - lead))


def _feature_dropout(input: Tensor, shape: tuple[int, ...], p: float, training: bool, inplace: bool) -> Tensor:
    _check_probability(p)
    if not training or p == 0 or not input._memory_.size:
        return input
    if input._memory_.ndim < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    mask = _mask(beside(input, np.empty(shape if p < 1 else (), input._memory_.dtype))._memory_, p, input)
    return input.mul_(mask) if inplace else generated.mul(input, mask)


@composite(space="nn.functional")
def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Whole channels of signals (batch, channels, length) zeroed with probability `p`, the others divided by 1 - p."""
    _check_probability(p)
    if input._memory_.ndim not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input._memory_.ndim}D input. Note that dropout1d "
            "exists to provide channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an "
            "optional batch dimension (i.e. 2D or 3D inputs)."
        )
    return _feature_dropout(input, _channels(input, 1), p, training, inplace)


@composite(space="nn.functional")
def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Whole channels of images (batch, channels, height, width) zeroed with probability `p`."""
    _check_probability(p)
    shape = input._memory_.shape
    if len(shape) not in (3, 4):
        warnings.warn(
            f"dropout2d: Received a {len(shape)}-D input to dropout2d, which is deprecated and will result in an error "
            "in a future release.",
            stacklevel=users_level(),
        )
    elif len(shape) == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired "
            "- input is interpreted as shape (N, C, L), where C is the channel dim. This behavior will change in a "
            "future release to interpret the input as one without a batch dimension, i.e. shape (C, H, W): use "
            "dropout1d to keep it",
            stacklevel=users_level(),
        )
    return _feature_dropout(input, (*shape[:2], *[1] * (len(shape) - 2)), p, training, inplace)


@composite(space="nn.functional")
def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Whole channels of volumes (batch, channels, depth, height, width) zeroed with probability `p`."""
    _check_probability(p)
    shape = input._memory_.shape
    if len(shape) not in (4, 5):
        warnings.warn(
            f"dropout3d: Received a {len(shape)}-D input to dropout3d, which is deprecated and will result in an error "
            "in a future release.",
            stacklevel=users_level(),
        )
    return _feature_dropout(input, _channels(input, 3), p, training, inplace)


_SATURATED = -1.7580993408473766  # what selu tends to for large negative numbers


def _alpha(input: Tensor, shape: tuple[int, ...], p: float, training: bool, inplace: bool) -> Tensor:
    _check_probability(p)
    if not training or p == 0 or not input._memory_.size:
        return input
    if p == 1:
        nothing = beside(input, np.zeros((), input._memory_.dtype))
        return input.mul_(nothing) if inplace else input * nothing
    scale = ((1 - p) * (1 + p * _SATURATED**2)) ** -0.5
    like = input._memory_
    if shape != like.shape:
        like = beside(input, np.empty(shape, like.dtype))._memory_
    kept = _mask(like, p, input)
    dropped = kept == 0
    factor = (~dropped).to(input.dtype) * scale
    shift = (kept * 0 - scale * _SATURATED * p).masked_fill(dropped, scale * _SATURATED - scale * _SATURATED * p)
    return input.mul_(factor).add_(shift) if inplace else input * factor + shift


@composite(space="nn.functional")
def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Elements saturated with probability `p`, and the result scaled to keep mean and variance; for use with `selu`."""
    return _alpha(input, input._memory_.shape, p, training, inplace)


@composite(space="nn.functional")
def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """`alpha_dropout` of whole channels."""
    shape = input._memory_.shape
    return _alpha(input, (*shape[:2], *[1] * (len(shape) - 2)), p, training, inplace)


@composite(space="nn.functional")
def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """`leaky_relu` with a slope drawn from [lower, upper] for each element if `training`, else with their mean."""
    return _rrelu(input, lower, upper, training, inplace, None)


@composite("torch.rrelu_", space="nn.functional")
def rrelu_(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False,
    generator: Generator | None = None,
) -> Tensor:  # fmt: skip
    """In-place `rrelu`."""
    return _rrelu(input, lower, upper, training, True, generator)


def _rrelu(
    input: Tensor, lower: float, upper: float, training: bool, inplace: bool, generator: Generator | None
) -> Tensor:
    for name, bound in (("lower", lower), ("upper", upper)):
        if not math.isfinite(bound):
            raise RuntimeError(f"rrelu: {name} bound must be finite, got {bound}")
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    if local.state.batch_levels:
        raise RuntimeError(
            "vmap: We do not yet support calling rrelu inside vmap: use leaky_relu, or another activation"
        )
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    numbers = input._numbers_
    steep = numbers <= 0  # torch draws for these alone
    drawn = (generator or generator_of(input.device)).uniform_where(steep, np.dtype(np.float64))
    if numbers.dtype != np.float64:
        lower, upper = float(np.float32(lower)), float(np.float32(upper))
    drawn = beside(input, (lower + (upper - lower) * drawn).astype(numbers.dtype))._numbers_
    slopes = np.where(steep, drawn, np.ones_like(numbers))
    return (generated._rrelu_with_noise_ if inplace else generated._rrelu_with_noise)(input, wrap(slopes))


@composite(space="nn.functional")
def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """A sample of the Gumbel-softmax distribution; if `hard`, one-hot with the gradient of the soft one.

    >>> import retrograd as torch
    >>> float(torch.nn.functional.gumbel_softmax(torch.zeros(3), hard=True).sum())
    1.0
    """
    gumbels = -ops.empty_like(logits.detach()).exponential_().log()
    soft = generated._softmax((logits + gumbels) / tau, dim)
    if not hard:
        return soft
    index = soft.detach().argmax(dim, keepdim=True)
    one_hot = ops.zeros_like(logits.detach()).scatter(dim, index, 1.0)
    return one_hot - soft.detach() + soft


@composite(space="nn.functional")
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """`input` with elements zeroed with probability `p` and the others divided by ``1 - p``; itself if not training."""
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0 or not input._memory_.size:
        return input
    mask = _mask(input._memory_ if p < 1 else beside(input, np.empty((), input._memory_.dtype))._memory_, p, input)
    return input.mul_(mask) if inplace else generated.mul(input, mask)
