"""Composite operators, one file a family; `registry.py` says how one is made."""

from . import conversion, index, inplace, linalg, nn, operators, pointwise, random_inplace, reduce, shape

__all__ = ["conversion", "index", "inplace", "linalg", "nn", "operators", "pointwise", "random_inplace", "reduce", "shape"]
