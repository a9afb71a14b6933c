"""Convolutions and their transposes over signals, images and volumes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ...autograd.grad_mode import no_grad
from ...ops import namespace as ops
from ...tensor import Tensor
from .. import functional as F
from .. import init
from ..parameter import Parameter, UninitializedParameter
from .lazy import LazyModuleMixin
from .module import Module
from .utils import _ntuple, _reverse_repeat_tuple

Ints = int | Sequence[int]


class _ConvNd(Module):
    """What all convolutions share: the settings, a weight and a bias."""

    weight: Tensor
    bias: Tensor | None
    #: How many dimensions are convolved over.
    _dims: int
    _function: Callable[..., Tensor]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...],
        padding: str | tuple[int, ...],
        dilation: tuple[int, ...],
        transposed: bool,
        output_padding: tuple[int, ...],
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string {padding!r}, should be one of 'same', 'valid'")
            if padding == "same" and any(step != 1 for step in stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in ("zeros", "reflect", "replicate", "circular"):
            raise ValueError(
                "padding_mode must be one of 'zeros', 'reflect', 'replicate', 'circular', but got padding_mode="
                f"'{padding_mode}'"
            )
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = self._sides()
        self.weight = Parameter(ops.empty(self._weight_shape(), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(ops.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _weight_shape(self) -> tuple[int, ...]:
        first, second = self.out_channels, self.in_channels
        if self.transposed:
            first, second = second, first
        return (first, second // self.groups, *self.kernel_size)

    def _sides(self) -> Sequence[int]:
        """The padding of each side, from the last dimension to the first, as `pad` takes it."""
        if not isinstance(self.padding, str):
            return _reverse_repeat_tuple(self.padding, 2)
        sides = [0] * (2 * len(self.kernel_size))
        if self.padding == "same":
            reach = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size, strict=True)]
            for i, total in enumerate(reversed(reach)):
                sides[2 * i : 2 * i + 2] = total // 2, total - total // 2
        return sides

    def reset_parameters(self) -> None:
        """Draw new first values: uniform in ±``1 / sqrt(fan_in)``."""
        # Drawn in order, however the weight lies in memory.
        drawn = self.weight if self.weight.is_contiguous() else ops.empty_like(self.weight.detach().contiguous())
        init.kaiming_uniform_(drawn, a=math.sqrt(5))
        if drawn is not self.weight:
            with no_grad():
                self.weight.copy_(drawn)
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            padding = 0
        return type(self)._function(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        zeros, ones = (0,) * len(self.kernel_size), (1,) * len(self.kernel_size)
        for name, usual in (("padding", zeros), ("dilation", ones), ("output_padding", zeros), ("groups", 1)):
            if getattr(self, name) != usual:
                text += f", {name}={getattr(self, name)}"
        if self.bias is None:
            text += ", bias=False"
        return text + (f", padding_mode={self.padding_mode}" if self.padding_mode != "zeros" else "")

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("padding_mode", "zeros")


class _Conv(_ConvNd):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints = 1,
        padding: str | Ints = 0,
        dilation: Ints = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        spread = _ntuple(self._dims)
        super().__init__(
            in_channels, out_channels, spread(kernel_size), spread(stride),
            padding if isinstance(padding, str) else spread(padding), spread(dilation), False, spread(0), groups, bias,
            padding_mode, device=device, dtype=dtype,
        )  # fmt: skip


class Conv1d(_Conv):
    """The convolution of signals (N, C, L) or (C, L).

    >>> import retrograd as torch
    >>> torch.nn.Conv1d(2, 4, 3, padding="same")(torch.ones(1, 2, 5)).shape
    torch.Size([1, 4, 5])
    """

    _dims = 1
    _function = staticmethod(F.conv1d)


class Conv2d(_Conv):
    """The convolution of images (N, C, H, W) or (C, H, W).

    >>> import retrograd as torch
    >>> torch.nn.Conv2d(3, 8, 3, stride=2)
    Conv2d(3, 8, kernel_size=(3, 3), stride=(2, 2))
    """

    _dims = 2
    _function = staticmethod(F.conv2d)


class Conv3d(_Conv):
    """The convolution of volumes (N, C, D, H, W) or (C, D, H, W)."""

    _dims = 3
    _function = staticmethod(F.conv3d)


# ----------------------------------------------------------------------------------------------------------- transposes


class _ConvTransposeNd(_ConvNd):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints = 1,
        padding: Ints = 0,
        output_padding: Ints = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Ints = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        spread = _ntuple(self._dims)
        super().__init__(
            in_channels, out_channels, spread(kernel_size), spread(stride), spread(padding), spread(dilation), True,
            spread(output_padding), groups, bias, padding_mode, device=device, dtype=dtype,
        )  # fmt: skip

    def _output_padding(self, input: Tensor, output_size: Sequence[int] | None) -> tuple[int, ...]:
        """What is added to one side of the output so that it has `output_size`."""
        if output_size is None:
            return self.output_padding
        dims = self._dims
        lead = 2 if input.dim() == dims + 2 else 1
        if len(output_size) == lead + dims:
            output_size = output_size[lead:]
        if len(output_size) != dims:
            raise ValueError(
                f"ConvTranspose{dims}D: for {input.dim()}D input, output_size must have {dims} or {lead + dims} "
                f"elements (got {len(output_size)})"
            )
        assert not isinstance(self.padding, str)
        least = [
            (input.size(d + lead) - 1) * self.stride[d] - 2 * self.padding[d]
            + self.dilation[d] * (self.kernel_size[d] - 1) + 1
            for d in range(dims)
        ]  # fmt: skip
        most = [least[d] + self.stride[d] - 1 for d in range(dims)]
        if any(not low <= size <= high for low, size, high in zip(least, output_size, most, strict=True)):
            raise ValueError(
                f"requested an output size of {output_size}, but valid sizes range from {least} to {most} (for an "
                f"input of {input.size()[2:]})"
            )
        return tuple(size - low for size, low in zip(output_size, least, strict=True))

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        return type(self)._function(
            input, self.weight, self.bias, self.stride, self.padding, self._output_padding(input, output_size),
            self.groups, self.dilation,
        )  # fmt: skip


class ConvTranspose1d(_ConvTransposeNd):
    """The transpose of `Conv1d`: signals made longer.

    >>> import retrograd as torch
    >>> torch.nn.ConvTranspose1d(2, 1, 3, stride=2)(torch.ones(1, 2, 4), output_size=[10]).shape
    torch.Size([1, 1, 10])
    """

    _dims = 1
    _function = staticmethod(F.conv_transpose1d)


class ConvTranspose2d(_ConvTransposeNd):
    """The transpose of `Conv2d`: images made larger."""

    _dims = 2
    _function = staticmethod(F.conv_transpose2d)


class ConvTranspose3d(_ConvTransposeNd):
    """The transpose of `Conv3d`: volumes made larger."""

    _dims = 3
    _function = staticmethod(F.conv_transpose3d)


# ---------------------------------------------------------------------------------------------------------------- lazy


class _LazyConvXdMixin(LazyModuleMixin):
    """A convolution that learns the number of channels from its first input."""

    in_channels: int
    out_channels: int
    groups: int
    weight: Any
    bias: Any
    _dims: int

    def _put_off(self, out_channels: int, bias: bool, device: Any, dtype: Any) -> None:
        """What depends on the channels waits for the first input."""
        self.out_channels = out_channels
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw the first values, once there is room for them."""
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:  # type: ignore[override]
        """Take the number of channels from `input`."""
        if not self.has_uninitialized_params():
            return
        me: Any = self
        if input.dim() not in (self._dims + 1, self._dims + 2):
            raise RuntimeError(
                f"Expected {self._dims + 1}D (unbatched) or {self._dims + 2}D (batched) input to "
                f"{type(self).__name__}, but got input of size: {input.shape}"
            )
        self.in_channels = input.shape[-self._dims - 1]
        if self.in_channels % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        self.weight.materialize(me._weight_shape())
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()


class _LazyConv(_LazyConvXdMixin):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints = 1,
        padding: str | Ints = 0,
        dilation: Ints = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device=device, dtype=dtype
        )
        self._put_off(out_channels, bias, device, dtype)


class _LazyConvTranspose(_LazyConvXdMixin):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints = 1,
        padding: Ints = 0,
        output_padding: Ints = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Ints = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode, device=device,
            dtype=dtype,
        )  # fmt: skip
        self._put_off(out_channels, bias, device, dtype)


class LazyConv1d(_LazyConv, Conv1d):
    """`Conv1d` that learns `in_channels` from its first input.

    >>> import retrograd as torch
    >>> layer = torch.nn.LazyConv1d(4, 3); y = layer(torch.ones(1, 2, 5)); layer
    Conv1d(2, 4, kernel_size=(3,), stride=(1,))
    """

    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """`Conv2d` that learns `in_channels` from its first input."""

    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """`Conv3d` that learns `in_channels` from its first input."""

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """`ConvTranspose1d` that learns `in_channels` from its first input."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """`ConvTranspose2d` that learns `in_channels` from its first input."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """`ConvTranspose3d` that learns `in_channels` from its first input."""

    cls_to_become = ConvTranspose3d
