"""The layers and losses, one family a file: modules around the functions of ``nn/functional.py``."""

from . import activation, dropout, linear, loss, normalization, shape

__all__ = ["activation", "dropout", "linear", "loss", "normalization", "shape"]
