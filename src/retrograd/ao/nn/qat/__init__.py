"""``torch.ao.nn.qat``: modules to be trained with their weights as they will be rounded."""

from .linear import Linear

__all__ = ["Linear"]
