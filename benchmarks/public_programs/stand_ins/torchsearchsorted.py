"""Stands in for torchsearchsorted, whose one function torch has itself since 1.6."""

from torch import searchsorted

__all__ = ["searchsorted"]
