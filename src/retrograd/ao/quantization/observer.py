"""Observers: modules that give what they are given, and remember in which range it lay.

From the range follow a scale and a zero point: what is between ``quant_min`` and ``quant_max`` after
``round(x / scale) + zero_point`` can be written in eight bits.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from typing import Any

from ...core import dtypes
from ...core.type_info import finfo
from ...nn.modules.module import Module
from ...ops import factories
from ...ops import namespace as ops
from ...tensor import Tensor
from .schemes import (
    QScheme,
    QuantizedType,
    per_channel_affine,
    per_tensor_affine,
    quint8,
)


class ObserverBase(ABC, Module):
    """What sees the values and gives `calculate_qparams`."""

    def __init__(self, dtype: QuantizedType) -> None:
        super().__init__()
        self.dtype = dtype

    @abstractmethod
    def forward(self, x: Tensor) -> Tensor:
        """Observe `x`, and give it."""

    @abstractmethod
    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """The scale and the zero point."""

    @classmethod
    def with_args(cls, **kwargs: Any) -> Any:
        """What makes such an observer with these arguments."""
        return functools.partial(cls, **kwargs)


class _RangeObserver(ObserverBase):
    """An observer that keeps the least and the greatest value."""

    min_val: Tensor
    max_val: Tensor
    eps: Tensor

    def __init__(
        self,
        dtype: QuantizedType,
        qscheme: QScheme,
        reduce_range: bool,
        quant_min: int | None,
        quant_max: int | None,
        factory_kwargs: dict[str, Any] | None,
        eps: float,
        start: Any,
    ) -> None:
        super().__init__(dtype)
        if qscheme.symmetric and dtype is quint8 and reduce_range:
            raise NotImplementedError("Cannot reduce range for symmetric quantization for quint8")
        self.qscheme = qscheme
        self.reduce_range = reduce_range
        low, high = dtype.low, dtype.high
        if reduce_range:  # one bit less, so that sums of products do not overflow
            low, high = low // 2, high // 2
        self.quant_min: int = low if quant_min is None else quant_min
        self.quant_max: int = high if quant_max is None else quant_max
        where: dict[str, Any] = {name: (factory_kwargs or {}).get(name) for name in ("device", "dtype")}
        self.register_buffer("eps", factories.tensor([eps], **where))
        self.register_buffer("min_val", factories.tensor(start[0], **where))
        self.register_buffer("max_val", factories.tensor(start[1], **where))

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """The scale and the zero point for what was seen; 1 and 0 if nothing was."""
        if not self.min_val.numel() or bool((self.min_val > self.max_val).any()):
            return factories.tensor([1.0]), factories.tensor([0], dtype=dtypes.int64)
        low, high = self.min_val.clamp(max=0), self.max_val.clamp(min=0)  # zero can always be written
        span = self.quant_max - self.quant_min
        if self.qscheme.symmetric:
            scale = ops.maximum(ops.maximum(-low, high) / (span / 2), self.eps)
            middle = 0 if self.dtype.low < 0 else (self.quant_min + self.quant_max + 1) // 2
            zero_point = ops.full_like(scale, middle, dtype=dtypes.int64)
        else:
            scale = ops.maximum((high - low) / span, self.eps)
            zero_point = self.quant_min - (low / scale).round().to(dtypes.int64)
            zero_point = zero_point.clamp(self.quant_min, self.quant_max)
        return scale.reshape(-1), zero_point.reshape(-1)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"


class MinMaxObserver(_RangeObserver):
    """The least and the greatest value of all that was seen.

    >>> import retrograd as torch
    >>> seen = torch.ao.quantization.MinMaxObserver()
    >>> _ = seen(torch.tensor([-1., 3.]))
    >>> seen.calculate_qparams()
    (tensor([0.0157]), tensor([64]))
    """

    def __init__(
        self,
        dtype: QuantizedType = quint8,
        qscheme: QScheme = per_tensor_affine,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        factory_kwargs: dict[str, Any] | None = None,
        eps: float = float(finfo(dtypes.float32).eps),
    ) -> None:
        if qscheme.per_channel:
            raise NotImplementedError(
                "MinMaxObserver's qscheme only support torch.per_tensor_symmetric and torch.per_tensor_affine."
            )
        start = (float("inf"), float("-inf"))
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps, start)

    def forward(self, x: Tensor) -> Tensor:
        if x.numel():
            low, high = ops.aminmax(x.detach().to(self.min_val.dtype))
            self._take(low, high)
        return x

    def _take(self, low: Tensor, high: Tensor) -> None:
        self.min_val.copy_(ops.minimum(low, self.min_val))
        self.max_val.copy_(ops.maximum(high, self.max_val))


class MovingAverageMinMaxObserver(MinMaxObserver):
    """The least and the greatest value of each batch, averaged over the batches."""

    def __init__(
        self, averaging_constant: float = 0.01, dtype: QuantizedType = quint8, qscheme: QScheme = per_tensor_affine,
        reduce_range: bool = False, quant_min: int | None = None, quant_max: int | None = None,
        eps: float = float(finfo(dtypes.float32).eps), factory_kwargs: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps)
        self.averaging_constant = averaging_constant

    def _take(self, low: Tensor, high: Tensor) -> None:
        if bool(self.min_val > self.max_val):  # the first batch
            super()._take(low, high)
            return
        self.min_val.add_(low - self.min_val, alpha=self.averaging_constant)
        self.max_val.add_(high - self.max_val, alpha=self.averaging_constant)


class PerChannelMinMaxObserver(_RangeObserver):
    """The least and the greatest value of each slice along `ch_axis`."""

    def __init__(
        self,
        ch_axis: int = 0,
        dtype: QuantizedType = quint8,
        qscheme: QScheme = per_channel_affine,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        factory_kwargs: dict[str, Any] | None = None,
        eps: float = float(finfo(dtypes.float32).eps),
    ) -> None:
        if not qscheme.per_channel:
            raise NotImplementedError(
                "PerChannelMinMaxObserver's qscheme only support torch.per_channel_symmetric and "
                "torch.per_channel_affine."
            )
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps, ([], []))
        self.ch_axis = ch_axis

    def forward(self, x: Tensor) -> Tensor:
        if x.numel():
            rows = x.detach().to(self.eps.dtype).movedim(self.ch_axis, 0).flatten(1)
            low, high = ops.aminmax(rows, dim=1)
            if self.min_val.numel():
                low, high = ops.minimum(low, self.min_val), ops.maximum(high, self.max_val)
            self.min_val.resize_(low.shape).copy_(low)
            self.max_val.resize_(high.shape).copy_(high)
        return x
