"""``torch.quantization``: the older name of `torch.ao.quantization`."""

from .ao import quantization as _quantization

__all__ = list(_quantization.__all__)

globals().update({name: getattr(_quantization, name) for name in __all__})
