"""``torch.nn.init``: how parameters get their first values.

Every function fills a tensor in place, unrecorded, and returns it.  The fan-based ones keep the variance of what goes
through a layer: Xavier (Glorot) in both directions on average, Kaiming (He) in one of them for a rectifier.
"""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from ..autograd.grad_mode import no_grad
from ..random import Generator, default_generator
from ..tensor import Tensor, wrap

__all__ = [
    "calculate_gain", "constant", "constant_", "dirac", "dirac_", "eye", "eye_", "kaiming_normal", "kaiming_normal_",
    "kaiming_uniform", "kaiming_uniform_", "normal", "normal_", "ones_", "orthogonal", "orthogonal_", "sparse",
    "sparse_", "trunc_normal_", "uniform", "uniform_", "xavier_normal", "xavier_normal_", "xavier_uniform",
    "xavier_uniform_", "zeros_",
]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Tensor])


class _Mode(threading.local):
    """Are values set at all?"""

    skipping = False


_mode = _Mode()


@contextmanager
def skipped() -> Iterator[None]:
    """Within the block, on this thread, the functions of this file leave tensors as they are."""
    before, _mode.skipping = _mode.skipping, True
    try:
        yield
    finally:
        _mode.skipping = before


_GAINS: dict[str, float] = {
    "sigmoid": 1.0, "tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4,
    **{name + d: 1.0 for name in ("conv", "conv_transpose") for d in ("1d", "2d", "3d")}, "linear": 1.0,
}  # fmt: skip


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor that makes up for how much a nonlinearity shrinks what goes through it.

    >>> import retrograd as torch
    >>> torch.nn.init.calculate_gain("tanh")
    1.6666666666666667
    """
    if nonlinearity == "leaky_relu":
        if param is None:
            param = 0.01
        elif isinstance(param, bool) or not isinstance(param, (int, float)):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + param**2))
    if nonlinearity not in _GAINS:
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    return _GAINS[nonlinearity]


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """How many inputs an output has, and how many outputs an input has, in a layer with this weight."""
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def _fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return _calculate_fan_in_and_fan_out(tensor)[mode == "fan_out"]


# -------------------------------------------------------------------------------------------------------- plain values


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Uniform numbers between `a` and `b`."""
    if _mode.skipping:
        return tensor
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normal numbers."""
    if _mode.skipping:
        return tensor
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Normal numbers, drawn again if not between `a` and `b`."""
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be "
            "incorrect.",
            UserWarning,
            stacklevel=2,
        )
    if _mode.skipping or tensor.is_meta:  # nothing is drawn where there are no values
        return tensor
    draw = _by_normals if _share(mean, std, a, b) > 0.3 else _by_uniforms
    with no_grad():
        return draw(tensor, mean, std, a, b, generator)


def _share(mean: float, std: float, a: float, b: float) -> float:
    """How much of the normal distribution lies between `a` and `b`."""
    below = [(1 + math.erf((bound - mean) / std / math.sqrt(2))) / 2 for bound in (a, b)]
    return below[1] - below[0]


def _by_normals(tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Generator | None) -> Tensor:
    """Draw normal numbers, and those that are outside again; in each round as many as there are elements, as torch."""
    low, high = tensor._memory_.dtype.type(a), tensor._memory_.dtype.type(b)
    result = tensor.normal_(mean, std, generator=generator)._numbers_
    while (outside := (result < low) | (result > high)).any():
        again = wrap(np.empty_like(result)).normal_(mean, std, generator=generator)  # type: ignore[attr-defined]
        result = np.where(outside, again._numbers_, result)
    return tensor.copy_(wrap(result))


def _by_uniforms(tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Generator | None) -> Tensor:
    """Draw uniform numbers between the bounds, and take each with the probability that its density is of the highest.

    Where little of the distribution lies between the bounds, normal numbers would seldom do.
    """
    peak = ((max(a, min(mean, b)) - mean) / std) ** 2
    result, pending = tensor._numbers_, np.ones(tensor.shape, bool)
    while pending.any():
        candidates = wrap(np.empty_like(result)).uniform_(a, b, generator=generator)._numbers_  # type: ignore[attr-defined]
        chance = wrap(np.empty_like(result)).uniform_(generator=generator)._numbers_  # type: ignore[attr-defined]
        result = np.where(pending, candidates, result)
        with np.errstate(divide="ignore"):
            pending &= np.log(chance) > -0.5 * (((candidates - mean) / std) ** 2 - peak)
    return tensor.copy_(wrap(result))


def constant_(tensor: Tensor, val: float) -> Tensor:
    """The same number everywhere.

    >>> import retrograd as torch
    >>> torch.nn.init.constant_(torch.empty(2), 0.5)
    tensor([0.5000, 0.5000])
    """
    if _mode.skipping:
        return tensor
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Ones."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Zeros."""
    return constant_(tensor, 0.0)


def eye_(tensor: Tensor) -> Tensor:
    """A matrix with ones on the diagonal."""
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    if _mode.skipping:
        return tensor
    with no_grad():
        return tensor.copy_(wrap(np.eye(*tensor.shape, dtype=tensor._memory_.dtype)))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """The weight of a convolution that gives as many of its input channels as it can unchanged."""
    if tensor.ndimension() not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    outputs, inputs, *kernel = tensor.shape
    if outputs % groups:
        raise ValueError("dim 0 must be divisible by groups")
    if _mode.skipping:
        return tensor
    per_group = outputs // groups
    values = np.zeros(tensor.shape, tensor._memory_.dtype)
    middle = tuple(n // 2 for n in kernel)
    for group in range(groups):
        for channel in range(min(per_group, inputs)):
            values[(group * per_group + channel, channel, *middle)] = 1
    with no_grad():
        return tensor.copy_(wrap(values))


# -------------------------------------------------------------------------------------------------- by the layer's fans


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Uniform in ±``gain * sqrt(6 / (fan_in + fan_out))``."""
    bound = gain * math.sqrt(6.0 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normal with standard deviation ``gain * sqrt(2 / (fan_in + fan_out))``."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(tensor))), generator)


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Uniform in ±``gain * sqrt(3 / fan)``; `a` is the slope of the leaky_relu that follows.

    >>> import retrograd as torch
    >>> w = torch.nn.init.kaiming_uniform_(torch.empty(50, 8), a=5 ** 0.5)
    >>> bool(w.abs().max() <= 8 ** -0.5)
    True
    """
    if 0 in tensor.shape:
        return _nothing_to_do(tensor)
    bound = math.sqrt(3.0) * calculate_gain(nonlinearity, a) / math.sqrt(_fan(tensor, mode))
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Normal with standard deviation ``gain / sqrt(fan)``; `a` is the slope of the leaky_relu that follows."""
    if 0 in tensor.shape:
        return _nothing_to_do(tensor)
    return normal_(tensor, 0.0, calculate_gain(nonlinearity, a) / math.sqrt(_fan(tensor, mode)), generator)


def _nothing_to_do(tensor: Tensor) -> Tensor:
    warnings.warn("Initializing zero-element tensors is a no-op", UserWarning, stacklevel=3)
    return tensor


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """A matrix (the first dimension by all others) with orthonormal rows or columns, times `gain`."""
    if tensor.ndimension() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    if _mode.skipping:
        return tensor
    rows = tensor.shape[0]
    flat = normal_(wrap(np.empty((rows, tensor.numel() // rows), tensor._memory_.dtype)), generator=generator)._numbers_
    q, r = np.linalg.qr(flat if flat.shape[0] >= flat.shape[1] else flat.T)
    q = q * np.sign(np.diag(r))  # which makes it uniform among the orthogonal ones
    with no_grad():
        values = q if flat.shape[0] >= flat.shape[1] else q.T
        return tensor.copy_(wrap(values.reshape(tensor.shape) * gain))


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """Normal numbers, with the fraction `sparsity` of each column zeroed."""
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    if _mode.skipping:
        return tensor
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    normal_(tensor, 0.0, std, generator)
    with no_grad():
        for column in range(columns):
            chosen = (generator or default_generator).permutation(rows)[:zeros]
            tensor[wrap(chosen), column] = 0.0
    return tensor


def _deprecated(function: F) -> F:
    def old(*args: Any, **kwargs: Any) -> Tensor:
        name = function.__name__
        warnings.warn(
            f"`nn.init.{name[:-1]}` is now deprecated in favor of `nn.init.{name}`.", FutureWarning, stacklevel=2
        )
        return function(*args, **kwargs)

    old.__name__ = function.__name__[:-1]
    old.__doc__ = f"The older name of `{function.__name__}`."
    return old  # type: ignore[return-value]


uniform = _deprecated(uniform_)
normal = _deprecated(normal_)
constant = _deprecated(constant_)
eye = _deprecated(eye_)
dirac = _deprecated(dirac_)
orthogonal = _deprecated(orthogonal_)
sparse = _deprecated(sparse_)
xavier_uniform = _deprecated(xavier_uniform_)
xavier_normal = _deprecated(xavier_normal_)
kaiming_uniform = _deprecated(kaiming_uniform_)
kaiming_normal = _deprecated(kaiming_normal_)
