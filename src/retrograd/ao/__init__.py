"""``torch.ao``: modules that know how their weights will be rounded, and observers of ranges.

What there is: `quantization` with observers and qconfigs, `nn.qat` with a Linear that trains with them.  Tensors of
quantized dtypes, and converting a model to them, are not here.
"""

from . import nn, quantization

__all__ = ["nn", "quantization"]
