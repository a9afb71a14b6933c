"""Activations as modules; each is the function of the same name in ``functional``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...ops import factories
from ...tensor import Tensor
from .. import functional as F
from .. import init
from ..module import Module
from ..parameter import Parameter


class _Plain(Module):
    """An activation without settings."""

    function: Callable[[Tensor], Tensor]

    def forward(self, input: Tensor) -> Tensor:
        return type(self).function(input)


class Sigmoid(_Plain):
    """``1 / (1 + exp(-input))``."""

    function = staticmethod(F.sigmoid)


class Tanh(_Plain):
    """The hyperbolic tangent."""

    function = staticmethod(F.tanh)


class LogSigmoid(_Plain):
    """The logarithm of the sigmoid."""

    function = staticmethod(F.logsigmoid)


class Softsign(_Plain):
    """``input / (1 + abs(input))``."""

    function = staticmethod(F.softsign)


class Tanhshrink(_Plain):
    """``input - tanh(input)``."""

    function = staticmethod(F.tanhshrink)


class _MaybeInplace(Module):
    """An activation that may write over its input."""

    function: Callable[..., Tensor]

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return type(self).function(input, inplace=self.inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class ReLU(_MaybeInplace):
    """The positive part.

    >>> import retrograd as torch
    >>> torch.nn.ReLU()(torch.tensor([-1., 2.]))
    tensor([0., 2.])
    """

    function = staticmethod(F.relu)


class ReLU6(_MaybeInplace):
    """Clamped between 0 and 6."""

    function = staticmethod(F.relu6)


class SiLU(_MaybeInplace):
    """The input times its sigmoid."""

    function = staticmethod(F.silu)


class Mish(_MaybeInplace):
    """The input times the tanh of its softplus."""

    function = staticmethod(F.mish)


class SELU(_MaybeInplace):
    """`ELU` scaled so that a normal distribution keeps its mean and variance."""

    function = staticmethod(F.selu)


class Hardsigmoid(_MaybeInplace):
    """``clamp(input + 3, 0, 6) / 6``."""

    function = staticmethod(F.hardsigmoid)

    def extra_repr(self) -> str:
        return ""


class Hardswish(_MaybeInplace):
    """The input times its `Hardsigmoid`."""

    function = staticmethod(F.hardswish)

    def extra_repr(self) -> str:
        return ""


class _Sloped(Module):
    """An activation with one number, named in `_setting`, that may write over its input."""

    function: Callable[..., Tensor]
    _setting: str

    def __init__(self, value: float, inplace: bool) -> None:
        super().__init__()
        setattr(self, self._setting, value)
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return type(self).function(input, getattr(self, self._setting), self.inplace)

    def extra_repr(self) -> str:
        return f"{self._setting}={getattr(self, self._setting)}" + (", inplace=True" if self.inplace else "")


class LeakyReLU(_Sloped):
    """The positive part plus `negative_slope` times the negative part."""

    function = staticmethod(F.leaky_relu)
    _setting = "negative_slope"

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__(negative_slope, inplace)


class ELU(_Sloped):
    """The positive part, and ``alpha * (exp(input) - 1)`` where the input is negative."""

    function = staticmethod(F.elu)
    _setting = "alpha"

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(alpha, inplace)


class CELU(_Sloped):
    """`ELU` made continuously differentiable for every `alpha`."""

    function = staticmethod(F.celu)
    _setting = "alpha"

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(alpha, inplace)


class Hardtanh(Module):
    """Clamped between `min_val` and `max_val`."""

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        if max_val <= min_val:
            raise AssertionError(f"max_val ({max_val}) must be larger than min_val ({min_val})")
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}" + (", inplace=True" if self.inplace else "")


class Threshold(Module):
    """The input where it is above `threshold`, else `value`."""

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        return f"threshold={self.threshold}, value={self.value}" + (", inplace=True" if self.inplace else "")


class GELU(Module):
    """The input times the normal distribution function of it, or (``"tanh"``) an approximation."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class Softplus(Module):
    """``log(1 + exp(beta * input)) / beta``, and the input itself where ``beta * input`` is above `threshold`."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class _Shrink(Module):
    function: Callable[..., Tensor]

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return type(self).function(input, self.lambd)

    def extra_repr(self) -> str:
        return str(self.lambd)


class Softshrink(_Shrink):
    """The input moved towards zero by `lambd`, and zero where it is nearer to it than that."""

    function = staticmethod(F.softshrink)


class Hardshrink(_Shrink):
    """The input, with zero where it is not farther from it than `lambd`."""

    function = staticmethod(F.hardshrink)


class PReLU(Module):
    """`LeakyReLU` with a learned slope, one or one for each channel."""

    weight: Tensor

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(factories.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the first slope."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class _AlongDim(Module):
    """An activation along one dimension."""

    function: Callable[..., Tensor]

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return type(self).function(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax(_AlongDim):
    """``exp(input)`` divided by its sum along `dim`.

    >>> import retrograd as torch
    >>> torch.nn.Softmax(dim=0)(torch.zeros(2))
    tensor([0.5000, 0.5000])
    """

    function = staticmethod(F.softmax)


class Softmin(_AlongDim):
    """`Softmax` of ``-input``."""

    function = staticmethod(F.softmin)


class LogSoftmax(_AlongDim):
    """The logarithm of `Softmax`, without its loss of precision."""

    function = staticmethod(F.log_softmax)


class GLU(_AlongDim):
    """One half of the input times the sigmoid of the other, halved along `dim`."""

    function = staticmethod(F.glu)

    def __init__(self, dim: int = -1) -> None:
        super().__init__(dim)


class Softmax2d(Module):
    """`Softmax` over the channels of (N, C, H, W) or (C, H, W)."""

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3)
