"""A linear layer whose weight goes through what its qconfig makes for weights."""

from __future__ import annotations

from typing import Any

from ....nn import functional as F
from ....nn.modules import linear
from ....nn.utils.parametrize import (
    is_parametrized,
    transfer_parametrizations_and_params,
    type_before_parametrizations,
)
from ....tensor import Tensor


class Linear(linear.Linear):
    """`nn.Linear` with ``weight_fake_quant``, made by ``qconfig.weight()``, between its weight and its product.

    >>> import retrograd as torch
    >>> m = torch.ao.nn.qat.Linear(3, 2, qconfig=torch.ao.quantization.get_default_qconfig())
    >>> m(torch.ones(3)).shape, m.weight_fake_quant.min_val.shape
    (torch.Size([2]), torch.Size([2]))
    """

    _FLOAT_MODULE = linear.Linear

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        qconfig: Any = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(in_features, out_features, bias, device=device, dtype=dtype)
        if not qconfig:
            raise AssertionError("qconfig must be provided for QAT module")
        self.qconfig = qconfig
        self.weight_fake_quant: Any = qconfig.weight(factory_kwargs={"device": device, "dtype": dtype})

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight_fake_quant(self.weight), self.bias)

    @classmethod
    def from_float(cls, mod: Any) -> Linear:
        """The same layer, with the same parameters and parametrizations, of an `nn.Linear` that has a `qconfig`."""
        if type_before_parametrizations(mod) is not cls._FLOAT_MODULE:
            raise AssertionError(f"qat.{cls.__name__}.from_float only works for {cls._FLOAT_MODULE.__name__}")
        if not getattr(mod, "qconfig", None):
            raise AssertionError("Input float module must have a valid qconfig")
        made = cls(mod.in_features, mod.out_features, bias=mod.bias is not None, qconfig=mod.qconfig)
        for name in ("weight", "bias"):
            if is_parametrized(mod, name):
                transfer_parametrizations_and_params(mod, made, name)
            else:
                setattr(made, name, getattr(mod, name))
        return made
