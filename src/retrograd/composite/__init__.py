"""Composite operators, one file a family; `registry.py` says how one is made."""

from . import (
    comparison,
    conversion,
    index,
    inplace,
    linalg,
    memory,
    nn,
    operators,
    pointwise,
    random_inplace,
    reduce,
    shape,
    special,
)

__all__ = [
    "comparison",
    "conversion",
    "index",
    "inplace",
    "linalg",
    "memory",
    "nn",
    "operators",
    "pointwise",
    "random_inplace",
    "reduce",
    "shape",
    "special",
]
