"""``torch.ao.nn``: modules for quantization."""

from . import qat

__all__ = ["qat"]
