"""``torch.nn``: for now the functional operators and Parameter."""

from . import functional
from .parameter import Parameter

__all__ = ["Parameter", "functional"]
