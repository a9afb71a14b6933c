"""Batching rules: what each operator of the table is, for many examples at once.

A rule is called as ``rule(level, function, args, kwargs)`` with the arguments as the operator got them, and returns the
result as batched tensors.  Most follow one of a few patterns (patterns.py), and their operators are listed with it.
"""

from __future__ import annotations

from . import (
    composites,
    indexing,
    linear_algebra,
    more,
    networks,
    pointwise,
    products,
    random,
    rearranging,
    reductions,
    views,
)


def load() -> None:
    """Put all rules into `RULES`."""
    for family in (
        pointwise, views, reductions, rearranging, products, indexing, linear_algebra, networks, more, random,
        composites,
    ):  # fmt: skip
        family.register()
