"""Dimension arguments: negative ones wrapped, wrong ones refused with torch's words.

Every kernel that takes a ``dim`` goes through here, so that the error texts exist once.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable


def normalize_dim(dim: int, ndim: int) -> int:
    """`dim` as an index from the front; a 0-d array counts as having one dimension."""
    if dim.__class__ is not int:
        dim = _as_index(dim)
    n = ndim or 1
    if -n <= dim < n:
        return dim if dim >= 0 else dim + n
    check_long(dim)
    raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")


def normalize_dims(dims: int | Iterable[int] | None, ndim: int) -> tuple[int, ...]:
    """`dims` as a tuple of indices from the front; None and the empty list mean every dimension."""
    if dims is None:
        return tuple(range(ndim))
    if dims.__class__ is int:
        return (normalize_dim(dims, ndim),)  # type: ignore[arg-type]
    if not isinstance(dims, Iterable):
        return (normalize_dim(_as_index(dims), ndim),)
    try:
        wrapped = tuple([normalize_dim(d, ndim) for d in dims])
    except ValueError as error:  # in a list, torch says TypeError of an int of more than 64 bits
        raise TypeError(f"argument 'dim' failed to unpack a dimension with error \"{error}\"") from None
    if not wrapped:
        return tuple(range(ndim))
    if len(set(wrapped)) != len(wrapped):
        repeated = next(d for i, d in enumerate(wrapped) if d in wrapped[:i])
        raise RuntimeError(f"dim {repeated} appears multiple times in the list of dims")
    return wrapped


def axes(dims: int | Iterable[int] | None, ndim: int) -> tuple[int, ...] | None:
    """`dims` as NumPy's ``axis``: None for all, and () for the one dimension that a 0-d array is given."""
    if dims is None:
        return None
    wrapped = normalize_dims(dims, ndim)
    return wrapped if ndim else ()


def _as_index(dim: object) -> int:
    try:
        return operator.index(dim)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"argument 'dim' must be int, not {type(dim).__name__}") from None


def check_long(*values: int) -> None:
    """Refuse ints of more than 64 bits."""
    for value in values:
        if not -0x8000000000000000 <= value <= 0x7FFFFFFFFFFFFFFF:
            raise ValueError("Overflow when unpacking long long: an int argument must be less than 2**63")
