"""Sorting, and what is distinct."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._generated import functions as generated
from ...kernels.promotion import unsupported
from ...tensor import Tensor
from ..registry import composite


@composite(out=True)
def msort(input: Tensor) -> Tensor:
    """The elements sorted along the first dimension."""
    return generated.sort(input, 0)[0]


@composite()
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The different elements (or parts along `dim`); with where they occur and how often, a tuple.

    >>> import retrograd as torch
    >>> torch.unique(torch.tensor([3, 1, 3]), return_counts=True)
    (tensor([1, 3]), tensor([1, 2]))
    """
    found: Any
    if dim is None:
        found = generated._unique2(input, sorted, return_inverse, return_counts)
    else:
        found = generated.unique_dim(input, dim, sorted, return_inverse, return_counts)
    return asked_for(found, return_inverse, return_counts)


@composite(method=False)
def _unique(input: Tensor, sorted: bool = True, return_inverse: bool = False) -> tuple[Tensor, Tensor]:
    """The different elements, and where they occur (empty unless it is asked for)."""
    return generated._unique2(input, sorted, return_inverse)[:2]


def asked_for(found: Sequence[Tensor], return_inverse: bool, return_counts: bool) -> Any:
    """Of what `unique` finds, the part that was asked for."""
    results = [part for part, asked in zip(found, (True, return_inverse, return_counts), strict=True) if asked]
    return results[0] if len(results) == 1 else tuple(results)


@composite()
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """`input` with runs of equal elements, or of equal slices along `dim`, made one.

    >>> import retrograd as torch
    >>> torch.unique_consecutive(torch.tensor([1, 1, 2, 1]))
    tensor([1, 2, 1])
    """
    if input._memory_.dtype.kind in "cW":
        unsupported("unique", input._memory_.dtype)
    found = generated._unique_consecutive(input, return_inverse, return_counts, dim)
    return asked_for(found, return_inverse, return_counts)
